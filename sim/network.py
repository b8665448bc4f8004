"""The way from a client's region to the fleet's and back: distance, jitter, handshakes, PrivateLink.

Modelled: the median delay of each direction (half the round trip), its jitter (a shifted lognormal), a fixed
delay of PrivateLink, and the round trips that a new connection pays before its request leaves. Left out:
bandwidth, loss, slow start (a prompt above some 14 KB on a new connection pays further round trips), route
changes of minutes or hours, and the spread between availability zones.

The round trips are `rtt_matrix_ms.csv` (cloudping.co, 2024-11-14): TCP connect times, which carry the
measuring's own overhead of 4–12 ms, to be seen on the diagonal. A pair's two directions measure the same
round trip (median difference 1 %), so they are averaged, and the overhead is taken off: averaged −
mean(diagonal) + 1 ms. A second copy of the source (Virginia–Ohio 13, Virginia–Oregon 68, Oregon–Tokyo 105 ms)
agrees within 12 %.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError, suggest
from fleetcast.units import Bytes, Seconds, Tokens

Floats = NDArray[np.float64]

MATRIX = Path(__file__).with_name("rtt_matrix_ms.csv")
SAME_REGION: Seconds = 0.001  # between zones 0.4–1.2 ms is usual; also what the correction leaves of the diagonal
FLOOR: Seconds = 0.0005  # no correction brings two regions nearer than this
PRIVATELINK: Seconds = 0.0003
TAIL = 1.06
STEADY = 0.97  # share of the median that never varies: light in glass
NEW_CONNECTIONS = 0.01
TLS_ROUND_TRIPS: Mapping[str, int] = {"1.3": 1, "1.2": 2, "none": 0}
Z99 = 2.3263478740408408  # standard normal 99 % quantile

HEADER_BYTES: Bytes = 1_000.0
BYTES_PER_INPUT_TOKEN: Bytes = 4.0
BYTES_PER_OUTPUT_TOKEN: Bytes = 364.0


@dataclass(frozen=True)
class Network:
    """The delays between one client region and one fleet region; build it with `network_for`."""

    client_region: str
    fleet_region: str
    one_way_s: Seconds  # median, PrivateLink included
    privatelink_s: Seconds  # its part in one_way_s
    tail: float  # p99 / p50 of the way itself, PrivateLink apart
    new_connection_share: float
    tls: str
    measured: bool  # False: the round trip comes from the matrix

    @property
    def round_trip_s(self) -> Seconds:
        """The median round trip, PrivateLink included."""
        return 2 * self.one_way_s

    @property
    def handshake_round_trips(self) -> int:
        """Round trips a new connection pays before its request: TCP 1, TLS 1.3 one more, TLS 1.2 two."""
        return 1 + TLS_ROUND_TRIPS[self.tls]


NO_NETWORK = Network("", "", 0.0, 0.0, 1.0, 0.0, "none", True)


def network_for(
    client_region: str,
    fleet_region: str,
    *,
    privatelink: bool = True,
    privatelink_latency_s: Seconds = PRIVATELINK,
    round_trip_s: Seconds | None = None,
    tail: float = TAIL,
    new_connection_share: float = NEW_CONNECTIONS,
    tls: str = "1.3",
) -> Network:
    """Describe the way between two regions; a *round_trip_s* without PrivateLink replaces the matrix's.

    *privatelink_latency_s* is added to each direction, so twice to a round trip. *tail* is p99 / p50 of the
    way.
    """
    _check(privatelink_latency_s >= 0, "network.privatelink_latency", privatelink_latency_s, "0.3 ms")
    _check(round_trip_s is None or round_trip_s >= 0, "network.round_trip", round_trip_s, "18 ms")
    _check(tail >= 1, "network.tail", tail, "1.06", "p99 is never below the median")
    _check(0 <= new_connection_share <= 1, "network.new_connection_share", new_connection_share, "1 %")
    if tls not in TLS_ROUND_TRIPS:
        known = ", ".join(f'"{version}"' for version in TLS_ROUND_TRIPS)
        raise ScenarioError(f"network.tls = {tls!r}", why="no such TLS version", fix=f"write one of {known}")
    between = round_trip(client_region, fleet_region)  # also checks the names
    measured = round_trip_s is not None
    added = privatelink_latency_s if privatelink else 0.0
    one_way = (between if round_trip_s is None else round_trip_s) / 2 + added
    return Network(client_region, fleet_region, one_way, added, tail, new_connection_share, tls, measured)


def there(network: Network, n: int, rng: Generator) -> Floats:
    """Return the seconds from a client's send to the server's arrival of *n* requests, handshakes included.

    A new connection meets the same delay on all its ways, so it takes 1 + 2 × handshakes times as long.
    Whatever the parameters, the same variates are drawn: networks stay comparable draw by draw.
    """
    if network == NO_NETWORK:
        return np.zeros(n)
    way = _way(network, n, rng)
    new = rng.random(n) < network.new_connection_share
    way[new] *= 1 + 2 * network.handshake_round_trips
    return way


def back(network: Network, n: int, rng: Generator) -> Floats:
    """Return the seconds from server to client of *n* first tokens (or last ones)."""
    return np.zeros(n) if network == NO_NETWORK else _way(network, n, rng)


def regions() -> tuple[str, ...]:
    """Return every region of the matrix, sorted."""
    return tuple(sorted(_matrix()[0]))


def round_trip(client_region: str, fleet_region: str) -> Seconds:
    """Return the median round trip between two regions, corrected as the module says."""
    names, raw = _matrix()
    for key, name in (("network.client_region", client_region), ("fleet.region", fleet_region)):
        if name not in names:
            raise ScenarioError(f'{key} = "{name}"', why="no such region", fix=suggest(name, names))
    if client_region == fleet_region:
        return SAME_REGION
    a, b = names.index(client_region), names.index(fleet_region)
    averaged = float(raw[a, b] + raw[b, a]) / 2
    return max(averaged - float(np.diag(raw).mean()) + SAME_REGION, FLOOR)


def bytes_of(requests: int, input_tokens: Tokens, output_tokens: Tokens) -> tuple[Bytes, Bytes]:
    """Return the bytes sent to the fleet and those sent back, streaming one token per packet.

    An OpenAI-style chunk of 266 B is about 364 B with chunking, TLS and TCP/IP; 4 B per input token (English
    text) and 1 kB of headers per request are assumptions.
    """
    return HEADER_BYTES * requests + BYTES_PER_INPUT_TOKEN * input_tokens, BYTES_PER_OUTPUT_TOKEN * output_tokens


def assumptions(network: Network) -> list[tuple[str, str, str]]:
    """Return what was assumed about the way, as (text, value, source)."""
    if network == NO_NETWORK:
        return []
    found = []
    if not network.measured:
        bare = network.round_trip_s - 2 * network.privatelink_s
        same = network.client_region == network.fleet_region
        text = f"round trip {network.client_region} – {network.fleet_region}, median"
        source = "assumption: between zones of a region 0.4–1.2 ms is usual"
        matrix = "cloudping.co, 2024-11-14, less the measuring's overhead"
        found.append((text, _ms(bare), source if same else matrix))
    if network.privatelink_s:
        source = "assumption; no published AWS measurement"
        found.append(("PrivateLink adds latency one way", _ms(network.privatelink_s), source))
    value = f"{network.tail:g}"
    found.append(("network p99 / p50", value, "assumption; usual between regions: 1.03–1.10"))
    value = f"{100 * network.new_connection_share:g} %"
    source = "assumption: clients keep their connections open for about 100 requests"
    found.append(("share of requests on a new connection", value, source))
    value = f"{network.handshake_round_trips} round trips"
    found.append(("a new connection's handshake", value, f"TCP, TLS {network.tls}"))
    value = f"{BYTES_PER_INPUT_TOKEN:g} B in, {BYTES_PER_OUTPUT_TOKEN:g} B out, {HEADER_BYTES:g} B of headers"
    found.append(
        (
            "bytes per token, for the bill",
            value,
            "computed from the size of a streamed chunk; headers assumed",
        )
    )
    return found


def _way(network: Network, n: int, rng: Generator) -> Floats:
    """Draw one-way delays: a steady part and a lognormal one, with the wanted median and p99."""
    normal = rng.standard_normal(n)
    bare = network.one_way_s - network.privatelink_s
    sigma = math.log((network.tail - STEADY) / (1 - STEADY)) / Z99
    return network.privatelink_s + bare * (STEADY + (1 - STEADY) * np.exp(sigma * normal))


@cache
def _matrix() -> tuple[tuple[str, ...], Floats]:
    """Return the regions and the uncorrected round trips in seconds."""
    with MATRIX.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    return tuple(header[1:]), np.array([[float(cell) for cell in row[1:]] for row in rows]) / 1_000


def _check(good: bool, where: str, value: object, example: str, why: str = "out of range") -> None:
    if not good:
        raise ScenarioError(f"{where} = {value}", why=why, fix=f'write for example "{example}"')


def _ms(seconds: Seconds) -> str:
    return f"{seconds * 1_000:.3g} ms"
