"""The bill, and the waterfall from the benchmark's price of a token to the effective one.

Everything is billed: busy and idle replica time, endpoint hours, bytes. Effective cost is Σ dollars / Σ
completed output tokens over all runs. Instances are billed by the second with a minimum of 60 s per launch;
an interface endpoint (PrivateLink) by the hour in each zone (it stands for good, so the hours of a run are
not rounded up), plus its gigabytes (10⁹ B) in both directions; traffic between regions by the gigabyte that
leaves either one. Left out: storage, load balancers, commitments and discounts, taxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from fleetcast.sim.estimate import NO_OUTPUT, Estimate, ratio
from fleetcast.units import DAY, HOUR, Bytes, Dollars, Seconds, Tokens

LAUNCH_MINIMUM: Seconds = 60.0
GIGABYTE: Bytes = 1e9
MILLION = 1e6
DIGITS = 10  # significant digits of a result's figures


class Priced(Protocol):
    """What the bill needs of a price: dollars per unit, and where they come from."""

    @property
    def usd(self) -> Dollars:
        """US dollars per unit."""

    @property
    def date(self) -> str:
        """When it was read."""

    @property
    def source(self) -> str:
        """Where it was read."""

    @property
    def inferred(self) -> bool:
        """Whether it was computed from another region's."""


@dataclass(frozen=True)
class Usage:
    """What one run used, as plain totals.

    *span_s* is the time billed for, *replica_s* the replica-seconds billed, *busy_s* those of them spent on
    iterations; bytes are counted to the fleet (in) and back (out).
    """

    span_s: Seconds
    replica_s: Seconds
    busy_s: Seconds
    completed_output_tokens: Tokens
    bytes_in: Bytes = 0.0
    bytes_out: Bytes = 0.0


@dataclass(frozen=True)
class Tariff:
    """The prices of a fleet: instance per hour; None where a service is not used.

    *transfer_in* is per gigabyte from the client's region to the fleet's, *transfer_out* the reverse. An
    endpoint stands in *endpoint_zones* availability zones: one by default, as the cheapest that works; two
    survive a zone.
    """

    instance: Priced
    endpoint_hour: Priced | None = None
    endpoint_gb: Priced | None = None
    transfer_in: Priced | None = None
    transfer_out: Priced | None = None
    endpoint_zones: int = 1


@dataclass(frozen=True)
class Benchmark:
    """The best output rate of one instance, in tokens per second: *basis* is "measured" or "step curve"."""

    tps: float
    batch: int | None
    basis: str


@dataclass(frozen=True)
class Line:
    """One line of the bill, averaged over runs to a day."""

    item: str
    detail: str
    quantity: float
    unit: str
    usd_per_unit: Dollars
    usd_per_day: Dollars
    inferred: bool
    date: str
    source: str


@dataclass(frozen=True)
class Step:
    """One step of the waterfall; None where no token was completed."""

    step: str
    usd_per_mtok: Dollars | None
    why: str


@dataclass(frozen=True)
class Bill:
    """What the runs cost: the lines per day, the dollars of each run, the rates with their intervals."""

    lines: tuple[Line, ...]
    usd: tuple[Dollars, ...]
    usd_per_day: Estimate
    usd_per_mtok: Estimate
    waterfall: tuple[Step, ...]


def billed_seconds(launches: Iterable[Seconds]) -> Seconds:
    """Return the seconds billed for instances that lived so long each: at least 60 s per launch."""
    return math.fsum(max(lived, LAUNCH_MINIMUM) for lived in launches)


def best_rate(
    batch: ArrayLike, time_s: ArrayLike, measured_tps: float | None = None, measured_batch: int | None = None
) -> Benchmark:
    """Return the benchmark to compare with: the best measured point, else the step curve's best batch / step."""
    if measured_tps is not None:
        return Benchmark(measured_tps, measured_batch, "measured")
    sizes = np.asarray(batch, dtype=np.int64)
    with np.errstate(divide="ignore"):  # a step that takes no time has no limit
        rates = sizes / np.asarray(time_s, dtype=np.float64)
    best = int(np.argmax(rates))
    return Benchmark(float(rates[best]), int(sizes[best]), "step curve")


def bill(
    usages: Sequence[Usage],
    tariff: Tariff,
    benchmark: Benchmark,
    *,
    instance: str,
    purchase: str = "on demand",
) -> Bill:
    """Price the runs' *usages*, one entry per run."""
    span = math.fsum(u.span_s for u in usages)
    lines = []
    usd = np.zeros(len(usages))
    network_usd = 0.0
    for item, detail, unit, price, quantities in _items(usages, tariff, f"{instance}, {purchase}"):
        dollars = [price.usd * quantity for quantity in quantities]
        usd += dollars
        if item != "instances":
            network_usd += math.fsum(dollars)
        per_day = DAY / span if span > 0 else 0.0
        quantity = math.fsum(quantities) * per_day
        total = math.fsum(dollars) * per_day
        known = (price.inferred, price.date, price.source)
        lines.append(Line(item, detail, quantity, f"{unit}/day", price.usd, total, *known))
    tokens = [u.completed_output_tokens for u in usages]
    usd_per_day = ratio(usd, [u.span_s / DAY for u in usages], n=len(usages))
    usd_per_mtok = ratio(usd * MILLION, tokens, note=NO_OUTPUT)
    steps = _waterfall(usages, tariff, benchmark, usd_per_mtok.value, network_usd)
    return Bill(tuple(lines), tuple(usd.tolist()), usd_per_day, usd_per_mtok, steps)


_Item = tuple[str, str, str, Priced, list[float]]


def _items(usages: Sequence[Usage], tariff: Tariff, bought: str) -> list[_Item]:
    """Return what is billed: name, detail, unit, price per unit and the quantity in each run."""
    span = math.fsum(u.span_s for u in usages)
    replicas = math.fsum(u.replica_s for u in usages) / span if span > 0 else 0.0
    hours = [u.replica_s / HOUR for u in usages]
    found: list[_Item] = [("instances", f"{replicas:.3g} × {bought}", "instance-hours", tariff.instance, hours)]
    zones = tariff.endpoint_zones
    if tariff.endpoint_hour is not None:
        # AWS rounds up the last hour of an endpoint's life; this one stands for good, so a day is not rounded.
        standing = [zones * u.span_s / HOUR for u in usages]
        detail = f"PrivateLink endpoint, {zones} zone{'s' if zones > 1 else ''}"
        found.append(("endpoint", detail, "endpoint-hours", tariff.endpoint_hour, standing))
    bytes_in = [u.bytes_in / GIGABYTE for u in usages]
    bytes_out = [u.bytes_out / GIGABYTE for u in usages]
    if tariff.endpoint_gb is not None:
        both = [a + b for a, b in zip(bytes_in, bytes_out, strict=True)]
        found.append(("endpoint data", "PrivateLink, both directions", "GB", tariff.endpoint_gb, both))
    for price, amounts, detail in (
        (tariff.transfer_in, bytes_in, "prompts, out of the client's region"),
        (tariff.transfer_out, bytes_out, "answers, out of the fleet's region"),
    ):
        if price is not None and price.usd > 0:
            found.append(("transfer between regions", detail, "GB", price, amounts))
    return found


def _waterfall(
    usages: Sequence[Usage], tariff: Tariff, benchmark: Benchmark, effective: float | None, network_usd: Dollars
) -> tuple[Step, ...]:
    """Return benchmark, batch under-fill, idle, network, effective; the first four add up to the last
    exactly.

    All are rounded to the decimals that leave the largest `DIGITS` significant digits, and the under-fill,
    itself a difference (busy dollars per token less the benchmark), takes up the rounding.
    """
    hourly = tariff.instance.usd
    best = hourly / HOUR / benchmark.tps * MILLION
    at = f", batch {benchmark.batch}" if benchmark.batch is not None else ""
    origin = "" if benchmark.basis == "measured" else f" ({benchmark.basis}, not a measured point)"
    whys = (
        f"${hourly:g}/h at {benchmark.tps:,.0f} tok/s{at}{origin}",
        "busy time at smaller batches and on prompts than the benchmark's best",
        "replica time without work",
        "endpoint hours, endpoint bytes and transfer between regions",
    )
    names = ("benchmark", "batch under-fill", "idle", "network")
    if effective is None:
        rest = [Step(name, None, why) for name, why in zip(names[1:], whys[1:], strict=True)]
        first = Step(names[0], float(_rounded(best, best)), whys[0])
        return (first, *rest, Step("effective", None, NO_OUTPUT))
    tokens = sum(u.completed_output_tokens for u in usages)
    replica_s = math.fsum(u.replica_s for u in usages)
    busy_s = math.fsum(u.busy_s for u in usages)
    idle = max(replica_s - busy_s, 0.0) * hourly / HOUR / tokens * MILLION
    network = network_usd / tokens * MILLION
    largest = max(best, effective, idle, network, abs(effective - network - idle - best))
    whole, start, still, wires = (_rounded(part, largest) for part in (effective, best, idle, network))
    parts = (start, whole - start - still - wires, still, wires)
    busy_share = busy_s / replica_s if replica_s > 0 else 0.0
    idle_why = f"{whys[2]}: {100 * (1 - busy_share):.3g} %"
    steps = [Step(n, float(p), w) for n, p, w in zip(names, parts, (*whys[:2], idle_why, whys[3]), strict=True)]
    return (*steps, Step("effective", float(whole), "all dollars / completed output tokens"))


def _rounded(value: float, largest: float) -> Decimal:
    """Round to the decimals at which *largest* has `DIGITS` significant digits."""
    top = Decimal(largest).adjusted() if largest > 0 else 0
    return Decimal(value).quantize(Decimal(1).scaleb(top - DIGITS + 1))
