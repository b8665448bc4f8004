"""What all count formats have in common: a table of stamps and values to a series, its report, and a trace if asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.traffic.counts import Counts, draw_arrivals, series
from fleetcast.traffic.read.clock import Clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.report import ReadReport
from fleetcast.traffic.read.rows import finish
from fleetcast.traffic.trace import make_trace

COARSE_S = 60.0


def counts(
    clock: Clock,
    values: NDArray[np.float64],
    *,
    where: str,
    name: str,
    format: str,
    options: Options,
    missing: str,
    rate: bool = False,
    step_s: float | None = None,
    remarks: tuple[str, ...] = (),
) -> Reading:
    """Return the series at *clock* with its report; *missing* is the format's habit, which the options override."""
    seconds = clock.seconds
    unread = ~np.isfinite(seconds)
    dropped = {"without a readable time": int(unread.sum())} if unread.any() else {}
    bad = ~np.isfinite(values) & ~unread
    if bad.any():
        dropped["without a number"] = int(bad.sum())
    use = ~unread & ~bad
    if not use.any() or (np.count_nonzero(~use) > len(seconds) / 2 and missing != "zero"):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
        raise DataError(
            f"{where}: too few counts", why=f"of {len(seconds):,} rows dropped: {reasons}" if reasons else ""
        )
    missing = options.missing or missing
    found = series(
        seconds[use],
        values[use],
        where=where,
        missing=missing,
        rate=rate or options.values == "rate",
        step_s=step_s,
        start=clock.start,
        time_zone=clock.zone,
        name=name,
    )
    late = int(np.count_nonzero(np.diff(seconds[use]) < 0))
    return reading(
        found, len(seconds), late, dropped, missing, where=where, format=format, options=options, remarks=remarks
    )


def reading(
    found: Counts,
    read: int,
    late: int,
    dropped: dict[str, int],
    missing: str,
    *,
    where: str,
    format: str,
    options: Options,
    remarks: tuple[str, ...] = (),
) -> Reading:
    """Return *found* with its report, and with a trace drawn from it where a length model was given."""
    total = float(np.nansum(found.requests))
    if not total:
        raise DataError(f"{where}: no requests", why="every count is zero")
    known = int(np.count_nonzero(~np.isnan(found.requests)))
    said = list(remarks)
    if found.step_s > COARSE_S:
        said.append(
            f"steps of {found.step_s:g} s hide bursts: on a real chat trace, 5-minute counts halved the p99 wait that "
            "1-minute counts gave"
        )
    report = ReadReport(
        format=format,
        kind="counts",
        read=read,
        kept=read - sum(dropped.values()),
        span_s=found.span_s,
        mean_rate=total / (known * found.step_s),
        peak_rate=float(np.nanmax(found.requests)) / found.step_s,
        start=found.start,
        time_zone=found.time_zone,
        dropped=dropped,
        out_of_order=late,
        step_s=found.step_s,
        missing_steps=found.missing_steps,
        missing_as=missing,
        sampling=options.sampling,
        remarks=tuple(said),
    )
    return Reading(report, _trace(found, report, options, where), found)


def _trace(found: Counts, report: ReadReport, options: Options, where: str) -> Any:
    if options.lengths is None:
        return None
    arrival = draw_arrivals(found, np.random.default_rng([options.seed, 2]))
    if not len(arrival):
        raise DataError(f"{where}: no requests", why="the counts are shares of one request")
    inputs, outputs = options.lengths.draw(len(arrival), np.random.default_rng([options.seed, 3]))
    shift = min(0.0, found.begin_s)
    trace = make_trace(
        arrival - shift,
        inputs,
        outputs,
        name=found.name,
        start=found.start,
        time_zone=found.time_zone,
        recipe=f"{report.format}, uniform in steps of {found.step_s:g} s, lengths {options.lengths.name!r}, "
        f"seed {options.seed}",
    )
    return finish(trace, report, options)
