"""ServeGen: a client's rate, burstiness and gap law per 10-minute window, and totals of them.

A client's file has no header: start_s, rate, cv, pattern (Gamma or Weibull), shape, scale; an idle window is
`600,0,0,,0,0`. A folder or an archive of them is the traffic of all clients. Its lengths are in chunk-N-dataset.json,
histograms by window written as Python literals inside strings, which are parsed and never evaluated. Arrivals are
drawn per client as a renewal process of the stated cv in its windows: totals vary as a sum of such processes does. A
histogram per field says nothing of pairs: input and output are drawn independently.
"""

from __future__ import annotations

import ast
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.traffic.counts import MOST_REQUESTS, Counts
from fleetcast.traffic.laws import gaps_like, renewal
from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import finish
from fleetcast.traffic.read.series import counts, reading
from fleetcast.traffic.read.tables import csv_table, loads
from fleetcast.traffic.trace import Labels, make_trace

WINDOW_S = 600.0
FORMAT = "ServeGen client windows"
LARGEST_MEMBER = 1 << 26
MOST_MEMBERS = 20_000
LONGEST_LITERAL = 1 << 22
_LINE = re.compile(r"^\d+(\.\d+)?,[\d.eE+-]+,[\d.eE+-]+,(Gamma|Weibull)?,[\d.eE+-]+,[\d.eE+-]+$")
_MEMBER = re.compile(r"(?:^|/)chunk-(\d+)-(trace\.csv|dataset\.json)$")
TOTALS = ("offset_s", "requests_in_window")

Histograms = dict[float, dict[str, tuple[NDArray[np.int32], NDArray[np.float64]]]]


@dataclass(frozen=True, eq=False)
class Client:
    """One client's windows: starts, rates, coefficients of variation and gap laws; its length histograms, if known."""

    name: str
    start_s: NDArray[np.float64]
    rate: NDArray[np.float64]
    cv: NDArray[np.float64]
    weibull: NDArray[np.bool_]
    lengths: Histograms = field(default_factory=dict)


def recognises(line: str) -> bool:
    """Tell whether a first line is a window of a client."""
    return bool(_LINE.match(line))


def recognises_folder(path: Path) -> bool:
    """Tell whether a folder holds client files."""
    return any(_MEMBER.search(entry.as_posix()) for entry in path.rglob("chunk-*"))


def recognises_totals(header: list[str]) -> bool:
    """Tell whether these are the columns of total rates per window."""
    return set(TOTALS) <= set(header)


def read_totals(path: Path, header: list[str], options: Options) -> Reading:
    """Return the counts of all clients per window."""
    import polars as pl

    table = csv_table(path, header)
    stamp = table.to_series(header.index("offset_s"))
    clock = read_clock(stamp, where=str(path), name="offset_s", unit="s", zone=options.time_zone, aligned=False)
    column = table.to_series(header.index("requests_in_window")).str.strip_chars().cast(pl.Float64, strict=False)
    values = column.fill_null(np.nan).to_numpy().astype(np.float64)
    remarks = ("zone and weekday of the first window are not published",)
    return counts(
        clock, values, where=str(path), name=path.name, format="ServeGen totals CSV", options=options,
        missing="zero", remarks=remarks,
    )  # fmt: skip


def read(path: Path, options: Options) -> Reading:
    """Return the counts of all clients, and a trace with a tenant per client where lengths are known or given."""
    clients = _clients(path)
    step = _step(clients, path)
    last = max(float(client.start_s[-1]) for client in clients)
    requests = np.zeros(round(last / step) + 1)
    for client in clients:
        np.add.at(requests, np.rint(client.start_s / step).astype(np.int64), client.rate * step)
    found = Counts(0.0, step, requests, None, options.time_zone, path.name)
    weight = np.concatenate([client.rate for client in clients])
    cvs = np.concatenate([client.cv for client in clients])
    active = sum(1 for client in clients if client.rate.any())
    cv = float((weight * cvs).sum() / weight.sum()) if weight.any() else 0.0
    remarks: tuple[str, ...] = (
        f"{active:,} of {len(clients):,} clients are active, the busiest with {100 * _largest(clients):.0f} % of all",
        f"a client's gaps have cv {cv:.2f} on average over requests",
    )
    read_rows = sum(len(client.rate) for client in clients)
    known = [client for client in clients if client.lengths]
    if known:
        remarks = (*remarks, f"lengths of {len(known):,} clients from their own histograms")
    result = reading(
        found, read_rows, 0, {}, "zero", where=str(path), format=FORMAT,
        options=replace(options, lengths=None), remarks=remarks,
    )  # fmt: skip
    if options.lengths is None and len(known) < active:
        return result
    trace = _trace(clients, step, options, path)
    return replace(result, trace=finish(trace, result.report, options))


def _trace(clients: list[Client], step: float, options: Options, path: Path) -> Any:
    expected = sum(float(client.rate.sum()) for client in clients) * step
    if expected > MOST_REQUESTS:
        raise DataError(
            f"{path}: {expected:,.0f} requests", why=f"at most {MOST_REQUESTS:,} are drawn at once",
            fix="fit a model and scale it: simulate traffic fit",
        )  # fmt: skip
    times, inputs, outputs, codes = [], [], [], []
    for number, client in enumerate(clients):
        arrivals = np.random.default_rng([options.seed, 2, number])
        lengths = np.random.default_rng([options.seed, 3, number])
        for place in np.flatnonzero(client.rate):
            law = gaps_like("weibull" if client.weibull[place] else "gamma", float(client.cv[place]))
            at = client.start_s[place] + renewal(law, client.rate[place], step, arrivals)
            pair = _pairs(client, float(client.start_s[place]), len(at), lengths, options)
            times.append(at)
            inputs.append(pair[0])
            outputs.append(pair[1])
            codes.append(np.full(len(at), number, np.int32))
    arrival = np.concatenate(times)
    order = np.argsort(arrival, kind="stable")
    return make_trace(
        arrival[order],
        np.concatenate(inputs)[order],
        np.maximum(np.concatenate(outputs)[order], 1),
        labels={"tenant": Labels(np.concatenate(codes)[order], tuple(client.name for client in clients))},
        name=path.name,
        recipe=f"{FORMAT}, renewal per client, seed {options.seed}",
        where=str(path),
    )


def _pairs(client: Client, at_s: float, n: int, rng: np.random.Generator, options: Options) -> tuple[Any, Any]:
    starts = [start for start in client.lengths if start <= at_s]
    table = client.lengths[max(starts)] if starts else next(iter(client.lengths.values()), None)
    if table is None:
        assert options.lengths is not None
        return options.lengths.draw(n, rng)
    return tuple(
        table[name][0][np.minimum(np.searchsorted(table[name][1], rng.random(n)), len(table[name][0]) - 1)]
        for name in ("input_tokens", "output_tokens")
    )  # type: ignore[return-value]


def _largest(clients: list[Client]) -> float:
    totals = np.array([client.rate.sum() for client in clients])
    return float(totals.max() / totals.sum()) if totals.any() else 0.0


def _step(clients: list[Client], path: Path) -> float:
    starts = np.unique(np.concatenate([client.start_s for client in clients]))
    step = float(np.diff(starts).min()) if len(starts) > 1 else WINDOW_S
    if np.any(starts % step) or starts[-1] / step > 1e6:
        raise DataError(
            f"{path}: windows do not lie on a grid", why=f"the shortest is {step:g} s", fix="export it again"
        )
    return step


def _clients(path: Path) -> list[Client]:
    files = dict(_members(path))
    names = sorted({int(number) for number, _ in files})
    clients = []
    for number in names:
        text = files.get((str(number), "trace.csv"))
        if text is not None:
            data = files.get((str(number), "dataset.json"))
            clients.append(_client(f"client {number}", text, data, path))
    if not clients:
        raise DataError(f"{path}: no client windows", why="it holds no chunk-N-trace.csv")
    return clients


def _members(path: Path) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield ((client, kind), content) of a folder, an archive or a single file, within bounds."""
    if path.is_dir():
        for entry in sorted(path.rglob("chunk-*"))[:MOST_MEMBERS]:
            match = _MEMBER.search(entry.as_posix())
            if match and entry.is_file() and entry.stat().st_size <= LARGEST_MEMBER:
                yield (match[1], match[2]), entry.read_bytes()
        return
    if not tarfile.is_tarfile(path):
        yield ("0", "trace.csv"), path.read_bytes()
        data = path.with_name(path.name.replace("-trace.csv", "-dataset.json"))
        if data != path and data.is_file() and data.stat().st_size <= LARGEST_MEMBER:
            yield ("0", "dataset.json"), data.read_bytes()
        return
    room = 16 * LARGEST_MEMBER
    try:
        with tarfile.open(path) as archive:
            for place, member in enumerate(archive):
                match = _MEMBER.search(member.name)
                if place >= MOST_MEMBERS or member.size > LARGEST_MEMBER or room < member.size:
                    raise DataError(
                        f"{path} is too large for an archive of client windows", fix="unpack it and give the folder"
                    )
                file = archive.extractfile(member) if match and member.isreg() else None
                if match and file is not None:
                    room -= member.size
                    yield (match[1], match[2]), file.read()
    except (tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise DataError(f"{path} is damaged", why=str(error), fix="copy it again") from None


def _client(name: str, text: bytes, data: bytes | None, path: Path) -> Client:
    import polars as pl

    try:
        table = pl.read_csv(text, has_header=False, infer_schema=False)
        if table.width != 6:
            raise ValueError(f"a window has 6 fields, not {table.width}")
        start, rate, cv = (table.to_series(k).str.strip_chars().cast(pl.Float64).to_numpy() for k in range(3))
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise DataError(f"{path}: the windows of {name}", why=str(error).splitlines()[0], fix="copy it again") from None
    whole = np.isfinite(start) & np.isfinite(rate) & np.isfinite(cv)
    if not whole.all() or np.any(start < 0) or np.any(rate < 0) or np.any(cv < 0) or np.any(np.diff(start) <= 0):
        raise DataError(
            f"{path}: the windows of {name}", why="a start, rate or cv is negative, missing or out of order"
        )
    pattern = table.to_series(3).fill_null("")
    return Client(name, start, rate, cv, (pattern == "Weibull").to_numpy(), _histograms(data, name, path))


def _histograms(data: bytes | None, name: str, path: Path) -> Histograms:
    """Return the length histograms of a client by window; fields are Python literals inside JSON strings."""
    if data is None:
        return {}
    windows = loads(data)
    if not isinstance(windows, dict):
        raise DataError(f"{path}: the lengths of {name} are not JSON", fix="copy the file again")
    found: Histograms = {}
    for start, fields in windows.items():
        table = {}
        for key in ("input_tokens", "output_tokens"):
            pairs = _literal(
                fields.get(key) if isinstance(fields, Mapping) else None, f"{path}: {name}, {start}, {key}"
            )
            if pairs:
                tokens = np.array(list(pairs), np.float64)
                share = np.array(list(pairs.values()), np.float64)
                good = (share > 0) & (tokens >= 0) & (tokens <= 1e7)
                if good.any():
                    table[key] = tokens[good].astype(np.int32), np.cumsum(share[good]) / share[good].sum()
        if len(table) == 2:
            found[float(start)] = table
    return dict(sorted(found.items()))


def _literal(text: object, where: str) -> dict[float, float]:
    """Return the histogram in a Python literal, which is parsed, never evaluated; an object will do too."""
    if isinstance(text, str):
        if len(text) > LONGEST_LITERAL:
            raise DataError(f"{where}: {len(text):,} characters", why=f"a histogram has at most {LONGEST_LITERAL:,}")
        try:
            text = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            raise DataError(f"{where} is not a Python dictionary", fix="copy the file again") from None
    if text is None:
        return {}
    try:
        return {float(key): float(value) for key, value in dict(text).items()}  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where} is not a histogram of numbers", fix="copy the file again") from None
