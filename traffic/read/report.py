"""What a reader did with a file: rows kept and dropped, clock, ticks, gaps and caps, in numbers and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.units import HOUR, Seconds

MANY_GAPS = 5.0
"""A gap between arrivals is listed when it is so many times the median one."""

CAP_ROWS = 5
CAP_EXCESS = 5.0


@dataclass(frozen=True)
class Cap:
    """A pile-up at the end of a length column: rows that may have been cut off there."""

    tokens: int
    rows: int
    share: float


@dataclass(frozen=True)
class ReadReport:
    """What was read. `kind` is "requests" or "counts"; span, rate and tick are those of the stamps as written.

    `dropped` counts rows by reason, `missing_steps` the steps that a count series lacks, and `missing_as` says what
    became of them ("zero" or "gap"). `longest_gap_s` is the longest time without an arrival. `sampling` is the share of
    the requests that the file holds.
    """

    format: str
    kind: str
    read: int
    kept: int
    span_s: Seconds
    mean_rate: float
    peak_rate: float
    start: datetime | None = None
    time_zone: str | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    out_of_order: int = 0  # rows that came after a later one
    inversions: int = 0  # places where a row is earlier than the one before it
    duplicates: int = 0
    tick_s: Seconds | None = None
    spread_in_tick: bool = False
    longest_gap_s: Seconds = 0.0
    long_gaps: int = 0
    step_s: Seconds | None = None
    missing_steps: int = 0
    missing_as: str = ""
    caps: Mapping[str, Cap] = field(default_factory=dict)
    sampling: float = 1.0
    unused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the result should know, a sentence each; nothing where all was plain."""
        said = [f"columns not used: {', '.join(self.unused)}"] if self.unused else []
        if self.dropped:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items())
            said.append(f"{sum(self.dropped.values()):,} of {self.read:,} rows dropped: {reasons}")
        if self.out_of_order:
            was = "was" if self.out_of_order == 1 else "were"
            places = "1 inversion" if self.inversions == 1 else f"{self.inversions:,} inversions"
            said.append(f"{self.out_of_order:,} of {self.kept:,} arrivals {was} out of order ({places}): sorted")
        if self.duplicates:
            same = "row repeats another" if self.duplicates == 1 else "rows repeat another"
            said.append(f"{self.duplicates:,} {same} exactly: kept")
        if self.tick_s is not None and self.kind == "requests":
            became = "arrivals spread evenly inside their tick" if self.spread_in_tick else "kept as written"
            said.append(f"arrivals are stamped in ticks of {_plain(self.tick_s)} s: {became}")
        if self.missing_steps:
            steps = "step is" if self.missing_steps == 1 else "steps are"
            became = "taken as zero requests" if self.missing_as == "zero" else "taken as gaps, not as zeros"
            said.append(f"{self.missing_steps:,} {steps} missing of {_plain(self.step_s or 0)} s each: {became}")
        if self.kind == "requests" and self.kept and self._silence():
            said.append(
                f"the longest time without an arrival is {_plain(self.longest_gap_s)} s: missing or idle, taken as idle"
            )
        for column, cap in self.caps.items():
            said.append(
                f"{cap.rows:,} rows ({100 * cap.share:.1f} %) pile up at {cap.tokens:,} `{column}`: cut off there?"
            )
        if self.sampling != 1:
            said.append(f"the file holds {100 * self.sampling:g} % of the requests: intensity scaled by the rest")
        return (*said, *self.remarks)

    def _silence(self) -> bool:
        mean = self.span_s / self.kept
        return self.longest_gap_s > max(HOUR, 20 * mean)


def as_json(report: ReadReport) -> dict[str, Any]:
    """Return *report* as JSON types."""
    return {
        "format": report.format,
        "kind": report.kind,
        "rows_read": report.read,
        "rows_kept": report.kept,
        "dropped": dict(report.dropped),
        "out_of_order": report.out_of_order,
        "inversions": report.inversions,
        "duplicates": report.duplicates,
        "span_s": _round(report.span_s),
        "mean_rate": _round(report.mean_rate),
        "peak_rate": _round(report.peak_rate),
        "start": report.start.isoformat() if report.start else None,
        "weekday": f"{report.start:%A}" if report.start else None,
        "time_zone": report.time_zone,
        "tick_s": _round(report.tick_s),
        "spread_in_tick": report.spread_in_tick,
        "longest_gap_s": _round(report.longest_gap_s),
        "long_gaps": report.long_gaps,
        "step_s": _round(report.step_s),
        "missing_steps": report.missing_steps,
        "missing_as": report.missing_as,
        "caps": {
            name: {"tokens": c.tokens, "rows": c.rows, "share": _round(c.share)} for name, c in report.caps.items()
        },
        "sampling": report.sampling,
        "unused": list(report.unused),
        "remarks": list(report.remarks),
    }


def caps_of(columns: Mapping[str, NDArray[np.int32]]) -> dict[str, Cap]:
    """Return the columns whose largest values pile up: one value on many rows, far more than those just below it."""
    found = {}
    for name, tokens in columns.items():
        if len(tokens) < 100:
            continue
        most = int(tokens.max())
        width = max(3, most // 1_000)
        top = tokens[tokens > most - width]
        commonest = int(np.bincount(top - top.min()).max())
        below = int(np.count_nonzero((tokens > 0.9 * most) & (tokens <= most - width)))
        expected = below / max(0.1 * most - width, 1) * width
        if commonest >= CAP_ROWS and len(top) >= CAP_EXCESS * max(expected, 1) and most > int(tokens.min()):
            found[name] = Cap(most, len(top), len(top) / len(tokens))
    return found


def tick_of(stamps: NDArray[np.float64]) -> Seconds | None:
    """Return the tick that sorted *stamps* sit on, where it is a tenth of a second or more; None without one.

    Ticks are exact (whole seconds) or shaky (every 3.000 ± 0.003 s), the latter only where most stamps are shared.
    """
    if len(stamps) < 20:
        return None
    distinct = np.unique(stamps)
    if len(distinct) < 3:
        return None
    apart = np.diff(distinct)
    if len(stamps) >= 2 * len(distinct):
        usual = float(np.median(apart))
        steps = apart / usual
        if usual >= 0.1 and np.all(np.abs(steps - np.rint(steps)) < 0.02 * np.maximum(steps, 1)) and steps.min() > 0.5:
            return float(f"{usual:.3g}")
    tenths = apart * 10
    whole = np.rint(tenths)
    if np.any(np.abs(tenths - whole) > 1e-4):
        return None
    return float(np.gcd.reduce(whole.astype(np.int64))) / 10


def gaps_of(arrival_s: NDArray[np.float64]) -> tuple[Seconds, int]:
    """Return the longest gap between sorted arrivals, and how many are above `MANY_GAPS` times the median."""
    if len(arrival_s) < 2:
        return 0.0, 0
    gaps = np.diff(arrival_s)
    return float(gaps.max()), int(np.count_nonzero(gaps > MANY_GAPS * np.median(gaps)))


def peak_of(arrival_s: NDArray[np.float64], window: Seconds = 60.0) -> float:
    """Return the rate of the fullest minute of sorted arrivals; their mean where they span less."""
    if not len(arrival_s):
        return 0.0
    span = float(arrival_s[-1] - arrival_s[0])
    if span < window:
        return len(arrival_s) / (span or window)
    place = np.floor(arrival_s / window)
    ends = np.flatnonzero(np.diff(place, append=np.inf)) + 1
    return float(np.diff(ends, prepend=0).max()) / window


def _plain(value: float) -> str:
    return f"{value:,.10g}"


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.10g}")
