"""What a trace looks like, in numbers: rate, burstiness, lengths.

Burstiness is given as the index of dispersion, the variance of the counts in windows over their mean: 1 for
a Poisson process, growing with the window when the rate itself wanders. Means and dispersions of counts
look at whole windows only; the counts per minute include the first and the last minute of the clock, whole
or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.traffic.arrivals import MINUTE, minute_counts
from fleetcast.traffic.trace import Trace
from fleetcast.units import Seconds

WINDOWS = (1, 10, 60)
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class Lengths:
    """Token counts per request: quantiles by probability, mean, coefficient of variation, extremes."""

    quantile: Mapping[float, float]
    mean: float
    cv: float
    least: int
    most: int


@dataclass(frozen=True, eq=False)
class Description:
    """What a trace looks like.

    `mean_rate` is requests over span (over a minute, where all arrive at once), `peak_rate_minute` that of
    the fullest minute, `peak_over_mean` its ratio to the mean of the whole minutes (without a whole minute,
    the peak is the mean). `iod` maps a window in seconds to its index of dispersion, None with fewer than
    two whole windows. `spearman` is the rank correlation of input and output, None where one of them never
    changes.
    """

    name: str
    rows: int
    span_s: Seconds
    mean_rate: float
    peak_rate_minute: float
    peak_over_mean: float
    iod: Mapping[int, float | None]
    input_tokens: Lengths
    output_tokens: Lengths
    spearman: float | None
    minute_counts: NDArray[np.int64]
    labels: Mapping[str, int]  # label column -> distinct values
    start: datetime | None
    time_zone: str | None
    recipe: str
    notes: tuple[str, ...]


def describe(trace: Trace) -> Description:
    """Return the description of *trace*; DataError when it is empty or spans more than ten years."""
    _, counts = minute_counts(trace)
    mean_rate = len(trace) / (trace.span_s or MINUTE)
    mean_minute, _ = _moments(trace, MINUTE)
    peak_rate = float(counts.max()) / MINUTE if mean_minute else mean_rate
    return Description(
        name=trace.name,
        rows=len(trace),
        span_s=trace.span_s,
        mean_rate=mean_rate,
        peak_rate_minute=peak_rate,
        peak_over_mean=peak_rate * MINUTE / mean_minute if mean_minute else 1.0,
        iod={window: _moments(trace, window)[1] for window in WINDOWS},
        input_tokens=_lengths(trace.input_tokens),
        output_tokens=_lengths(trace.output_tokens),
        spearman=rank_correlation(trace.input_tokens, trace.output_tokens),
        minute_counts=counts,
        labels={key: len(np.unique(column.codes[column.codes >= 0])) for key, column in trace.labels.items()},
        start=trace.start,
        time_zone=trace.time_zone,
        recipe=trace.recipe,
        notes=trace.notes,
    )


def as_json(seen: Description) -> dict[str, Any]:
    """Return *seen* as JSON types, floats to ten significant digits: seconds, requests per second, tokens."""
    return {
        "schema": 1,
        "name": seen.name,
        "requests": seen.rows,
        "start": seen.start.isoformat() if seen.start else None,
        "time_zone": seen.time_zone,
        "span_s": _round(seen.span_s),
        "mean_rate": _round(seen.mean_rate),
        "peak_rate": _round(seen.peak_rate_minute),
        "peak_over_mean": _round(seen.peak_over_mean),
        "index_of_dispersion": {f"{window} s": _round(value) for window, value in seen.iod.items()},
        "input_tokens": _json_lengths(seen.input_tokens),
        "output_tokens": _json_lengths(seen.output_tokens),
        "spearman": _round(seen.spearman),
        "labels": dict(seen.labels),
        "minute_rate": [_round(count / MINUTE) for count in seen.minute_counts.tolist()],
        "recipe": seen.recipe,
        "notes": list(seen.notes),
    }


def _moments(trace: Trace, window: Seconds) -> tuple[float, float | None]:
    """Return mean and index of dispersion of the counts in whole windows, laid from the first arrival on."""
    windows = int(trace.span_s // window)
    if not windows:
        return 0.0, None
    place = np.floor((trace.arrival_s - trace.arrival_s[0]) / window)
    place = place[: np.searchsorted(place, windows)]  # the last window is not whole
    ends = np.flatnonzero(np.diff(place, append=np.inf)) + 1
    counts = np.diff(ends, prepend=0)  # of the windows that are not empty: a quiet year has few of them
    mean = float(counts.sum() / windows)
    if windows < 2:
        return mean, None
    variance = (float((counts.astype(np.float64) ** 2).sum()) - windows * mean**2) / (windows - 1)
    return mean, variance / mean


def _lengths(tokens: NDArray[np.int32]) -> Lengths:
    mean = float(tokens.mean())
    return Lengths(
        quantile=dict(zip(QUANTILES, np.quantile(tokens, QUANTILES).tolist(), strict=True)),
        mean=mean,
        cv=float(tokens.std()) / mean if mean else 0.0,
        least=int(tokens.min()),
        most=int(tokens.max()),
    )


def rank_correlation(one: NDArray[np.int32], other: NDArray[np.int32]) -> float | None:
    """Return the correlation of the ranks, ties sharing their mean rank."""
    a, b = _ranks(one), _ranks(other)
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean()) / spread if spread else None


def _ranks(tokens: NDArray[np.int32]) -> NDArray[np.float64]:
    _, place, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _json_lengths(lengths: Lengths) -> dict[str, Any]:
    return {
        "mean": _round(lengths.mean),
        "cv": _round(lengths.cv),
        "min": lengths.least,
        **{f"p{100 * share:g}": _round(value) for share, value in lengths.quantile.items()},
        "max": lengths.most,
    }


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.10g}")
