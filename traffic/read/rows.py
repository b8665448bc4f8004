"""Columns of a request log to a trace: what is dropped and why, ticks, duplicates, sampling, missing lengths.

A row that is no request is dropped and counted by its reason; with `strict`, the first one is refused by name. When
more than half of the rows are unreadable the file is not what it was taken for, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.traffic.lengths import MOST_LENGTH
from fleetcast.traffic.read.clock import EXAMPLE, Clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.report import ReadReport, caps_of, gaps_of, peak_of, tick_of
from fleetcast.traffic.trace import COLUMNS, Blocks, Labels, Trace, make_trace, refuse, shown

FAILED = "without output (failed or cancelled)"
UNREADABLE = ("without a readable arrival", "with a length that is no number", "unreadable")
LONGEST_SPAN_S = 10 * 366 * 86_400.0


@dataclass(frozen=True)
class Rows:
    """The columns of a log as a reader found them (polars series); *names* is what the file calls them."""

    clock: Clock
    stamps: Any
    input: Any | None
    output: Any | None
    names: tuple[str, str, str] = COLUMNS
    labels: Mapping[str, Any] = field(default_factory=dict)
    blocks: Blocks | None = None
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unread: int = 0  # lines that were no rows at all


def requests(rows: Rows, *, where: str, name: str, format: str, options: Options) -> Reading:
    """Return the trace of *rows*; DataError when nothing, or too little, is left."""
    total = len(rows.clock.seconds)
    if not total and not rows.unread:
        raise DataError(f"{where}: no requests", why="the file ends after its header")
    inputs = _column(rows.input, total)
    outputs = _column(rows.output, total)
    if options.strict:
        _refuse_first(rows, inputs, outputs, where)
    dropped, keep, failed = _judge(rows, inputs, outputs, options)
    if rows.unread:
        dropped["unreadable"] = dropped.get("unreadable", 0) + rows.unread
    kept = int(np.count_nonzero(keep))
    read = total + rows.unread
    bad = sum(count for reason, count in dropped.items() if reason in UNREADABLE)
    if not kept or bad > read / 2:
        _refuse_all(rows, inputs, outputs, where, dropped, kept, read)
    seconds = rows.clock.seconds[keep]
    inputs, outputs = inputs[keep], outputs[keep]
    outputs[failed[keep]] = 1
    remarks = list(rows.remarks)
    if np.any(failed & keep):
        remarks.append(f"{np.count_nonzero(failed & keep):,} requests without output kept as one token")
    inputs, outputs = _fill(inputs, outputs, options, remarks)

    order = None if np.all(seconds[1:] >= seconds[:-1]) else np.argsort(seconds, kind="stable")
    late = 0 if order is None else int(np.count_nonzero(seconds < np.maximum.accumulate(seconds)))
    inversions = 0 if order is None else int(np.count_nonzero(np.diff(seconds) < 0))
    places = np.flatnonzero(keep) if order is None else np.flatnonzero(keep)[order]
    stamps = seconds if order is None else seconds[order]
    if order is not None:
        inputs, outputs = inputs[order], outputs[order]
    span = float(stamps[-1] - stamps[0])
    if span > LONGEST_SPAN_S:
        why = "a trace spans at most ten years; the unit of its stamps is perhaps another one, or one stamp is wrong"
        raise DataError(f"{where}: stamps span {span:,.6g} s", why=why, fix="say which: --time-unit ms (or s, us, ns)")
    tick = tick_of(stamps)
    spread = tick is not None and options.spread_ticks
    arrival = spread_ticks(stamps, tick, options.seed) if spread and tick is not None else stamps
    trace = make_trace(
        arrival,
        inputs,
        outputs,
        labels={key: _label(key, column, places) for key, column in rows.labels.items()},
        name=name,
        start=rows.clock.start,
        time_zone=rows.clock.zone,
        blocks=rows.blocks.take(places) if rows.blocks else None,
        where=where,
        columns=rows.names,
    )
    gap, gaps = gaps_of(stamps)
    report = ReadReport(
        format=format,
        kind="requests",
        read=read,
        kept=kept,
        span_s=span,
        mean_rate=kept / (span or 60.0),
        peak_rate=peak_of(stamps),
        start=rows.clock.start,
        time_zone=rows.clock.zone,
        dropped={reason: count for reason, count in dropped.items() if count},
        out_of_order=late,
        inversions=inversions,
        duplicates=_duplicates(stamps, inputs, outputs, rows, places),
        tick_s=tick,
        spread_in_tick=spread,
        longest_gap_s=gap,
        long_gaps=gaps,
        caps=caps_of({"input_tokens": trace.input_tokens, "output_tokens": trace.output_tokens}),
        sampling=options.sampling,
        unused=rows.unused,
        remarks=tuple(remarks),
    )
    return Reading(report, finish(trace, report, options))


def finish(trace: Trace, report: ReadReport, options: Options) -> Trace:
    """Return *trace* scaled to all requests where the file holds a sample, with the report's notes."""
    if options.sampling < 1:
        from fleetcast.traffic.change import scale_intensity

        trace = scale_intensity(trace, 1 / options.sampling, np.random.default_rng([options.seed, 2]))
    return replace(trace, notes=report.notes())


def spread_ticks(stamps: NDArray[np.float64], tick: float, seed: int) -> NDArray[np.float64]:
    """Return sorted *stamps* spread evenly inside their tick, those of one tick in their order.

    The first and the last stamp stay, so that the span is the file's.
    """
    rng = np.random.default_rng([seed, 1])
    inside = rng.random(len(stamps))
    starts = np.flatnonzero(np.diff(stamps, prepend=-np.inf) > 0)
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(stamps)))
    inside = inside[np.lexsort((inside, group))]
    spread = stamps + tick * inside
    spread = np.clip(spread, stamps[0], stamps[-1])
    spread[0] = stamps[0]
    spread[-1] = stamps[-1]
    ordered: NDArray[np.float64] = np.maximum.accumulate(spread)
    return ordered


def _column(column: Any | None, rows: int) -> NDArray[np.float64]:
    """Return numbers, NaN where there is none: numbers in text are numbers."""
    import polars as pl

    if column is None:
        return np.full(rows, np.nan)
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    values: NDArray[np.float64] = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().astype(np.float64)
    return values


def _judge(
    rows: Rows, inputs: NDArray[np.float64], outputs: NDArray[np.float64], options: Options
) -> tuple[dict[str, int], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the dropped rows by reason (each row by its first), which are kept, and which of those failed."""
    keep = np.ones(len(inputs), np.bool_)
    dropped: dict[str, int] = {}
    if options.strict:  # make_trace refuses the first wrong number
        return dropped, keep, np.zeros(len(inputs), np.bool_)

    def drop(bad: NDArray[np.bool_], reason: str) -> None:
        count = int(np.count_nonzero(bad & keep))
        if count:
            dropped[reason] = dropped.get(reason, 0) + count
            keep[bad] = False

    drop(~np.isfinite(rows.clock.seconds), UNREADABLE[0])
    law = options.lengths is not None
    for values, column in ((inputs, rows.input), (outputs, rows.output)):
        if column is None:
            continue
        absent = _absent(column)
        unread = ~np.isfinite(values)
        if values is outputs and options.failures == "keep":
            unread = unread & ~absent
        if not law:
            drop(unread & absent, "without a length")
        drop(unread & ~absent, UNREADABLE[1])
        with np.errstate(invalid="ignore"):
            drop(values < 0, "with a negative length")
            drop((values != np.floor(values)) & np.isfinite(values), "with a length that is not whole")
            drop(values > MOST_LENGTH, f"with a length above {MOST_LENGTH:,} tokens")
    failed = np.zeros(len(inputs), np.bool_)
    if rows.output is not None:
        failed = outputs == 0
        if options.failures == "keep":
            failed |= np.isnan(outputs) & _absent(rows.output)
        else:
            drop(failed, FAILED)
    return dropped, keep, failed & keep


def _absent(column: Any) -> NDArray[np.bool_]:
    import polars as pl

    absent = column.is_null()
    if column.dtype == pl.String:
        absent = absent | (column.str.strip_chars() == "").fill_null(True)
    values: NDArray[np.bool_] = absent.to_numpy().astype(np.bool_)
    return values


def _fill(
    inputs: NDArray[np.float64], outputs: NDArray[np.float64], options: Options, remarks: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    absent = np.isnan(inputs) | np.isnan(outputs)
    if not absent.any() or options.lengths is None:
        return inputs, outputs
    drawn = options.lengths.draw(int(absent.sum()), np.random.default_rng([options.seed, 3]))
    for values, new in zip((inputs, outputs), drawn, strict=True):
        values[absent] = np.where(np.isnan(values[absent]), new, values[absent])
    remarks.append(f"lengths of {absent.sum():,} requests drawn from {options.lengths.name!r}")
    return inputs, outputs


def _refuse_first(rows: Rows, inputs: NDArray[np.float64], outputs: NDArray[np.float64], where: str) -> None:
    """Refuse the first value that is missing or no number; `make_trace` refuses the wrong numbers."""
    unread = np.isnan(rows.clock.seconds)
    given = (
        (unread, rows.stamps, rows.names[0], "this is not a date and time", EXAMPLE),
        (np.isnan(inputs), rows.input, rows.names[1], "this is not a number", "correct it or drop the row"),
        (np.isnan(outputs), rows.output, rows.names[2], "this is not a number", "correct it or drop the row"),
    )
    for bad, column, name, why, fix in given:
        if column is None or not bad.any():
            continue
        row = int(np.argmax(bad))
        if _absent(column)[row]:
            refuse(where, name, row, None, "the value is missing", "fill it or drop the row")
        refuse(where, name, row, column[row], why, fix)


def _refuse_all(
    rows: Rows,
    inputs: NDArray[np.float64],
    outputs: NDArray[np.float64],
    where: str,
    dropped: Mapping[str, int],
    kept: int,
    read: int,
) -> None:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
    examples = []
    for bad, column, name in (
        (np.isnan(rows.clock.seconds), rows.stamps, rows.names[0]),
        (~np.isfinite(inputs), rows.input, rows.names[1]),
        (~np.isfinite(outputs), rows.output, rows.names[2]),
    ):
        if column is not None and bad.any():
            row = int(np.argmax(bad))
            examples.append(f"`{name}`, row {row} (counting from 0): {shown(column[row])}")
    left = "no requests" if not kept else f"only {kept:,} of {read:,} rows are requests"
    raise DataError(
        f"{where}: {left}",
        why="; ".join([f"dropped: {reasons}" if reasons else "no row has all it needs", *examples]),
        fix="check which columns are taken (--columns arrival=…,input=…), or name the first bad row with --strict",
    )


def _label(key: str, column: Any, places: NDArray[np.int64]) -> Labels:
    import polars as pl

    taken = column.gather(places)
    if key == "turn":
        turns = taken.cast(pl.Int32, strict=False)
        turns = turns.set((turns < 0).fill_null(False), None)
        return Labels(turns.fill_null(-1).to_numpy().astype(np.int32))
    text = taken.cast(pl.String)
    text = text.set((text == "").fill_null(False), None)
    names = text.drop_nulls().unique(maintain_order=True)
    codes = text.replace_strict(names, np.arange(len(names), dtype=np.int32), default=-1, return_dtype=pl.Int32)
    return Labels(codes.fill_null(-1).to_numpy().astype(np.int32), tuple(names.to_list()))


def _duplicates(
    stamps: NDArray[np.float64],
    inputs: NDArray[np.float64],
    outputs: NDArray[np.float64],
    rows: Rows,
    places: NDArray[np.int64],
) -> int:
    import polars as pl

    columns = {"stamp": stamps, "input": inputs, "output": outputs}
    frame = pl.DataFrame(columns)
    if rows.labels:
        frame = frame.with_columns(series.gather(places).alias(key) for key, series in rows.labels.items())
    return frame.height - frame.n_unique()
