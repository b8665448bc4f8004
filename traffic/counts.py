"""Count series: requests per step, as monitoring keeps them, and what a step without a value means.

A series has a fixed step. What is missing is either zero requests (CloudWatch writes no minute without calls) or a gap
(nobody knows); gaps are NaN here, are left out of every mean, and are bridged by a straight line where arrivals are
drawn. Left out: everything below the step, which a length model and a law of arrivals have to supply.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.traffic.trace import shown
from fleetcast.units import Seconds

MOST_STEPS = 12_000_000
"""The longest series: twenty years of minutes."""

MOST_REQUESTS = 50_000_000
"""The most arrivals that are drawn at once, for which some 4 GB of memory are needed."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Requests in steps of `step_s` from `begin_s` on (seconds after `start`); NaN is a gap."""

    begin_s: Seconds
    step_s: Seconds
    requests: NDArray[np.float64]
    start: datetime | None = None
    time_zone: str | None = None
    name: str = ""
    missing_steps: int = 0

    @property
    def span_s(self) -> Seconds:
        """Return the time that the steps cover."""
        return self.step_s * len(self.requests)

    def filled(self) -> NDArray[np.float64]:
        """Return the requests per step, gaps bridged by a straight line (and level at the ends)."""
        known = ~np.isnan(self.requests)
        if known.all():
            return self.requests
        places = np.arange(len(self.requests))
        return np.interp(places, places[known], self.requests[known])


def series(
    times_s: NDArray[np.float64],
    values: NDArray[np.float64],
    *,
    where: str,
    missing: str,
    rate: bool = False,
    step_s: Seconds | None = None,
    start: datetime | None = None,
    time_zone: str | None = None,
    name: str = "",
) -> Counts:
    """Return the series of these stamps and values, in any order; values of one step are summed.

    The step is the commonest distance of neighbouring stamps. *missing* ("zero" or "gap") says what a step without a
    value is, a NaN value is a missing one; with *rate*, values are requests per second. DataError when a stamp lies
    between steps, a value is negative, or nothing is left.
    """
    good = ~np.isnan(values)
    if not good.any():
        raise DataError(f"{where}: no counts", why="no row has a number")
    if np.any(values[good] < 0) or np.any(np.isinf(values[good])):
        row = int(np.argmax(np.isinf(values) | (values < 0)))
        raise DataError(
            f"{where}: row {row} (counting from 0): {shown(values[row])}", why="a count is finite, 0 or more"
        )
    distinct = np.unique(times_s)
    if step_s is None:
        if len(distinct) < 2:
            raise DataError(f"{where}: one stamp alone has no step", fix="export more than one step")
        apart, times = np.unique(np.round(np.diff(distinct), 6), return_counts=True)
        step_s = float(apart[np.argmax(times)])
    place = (times_s - distinct[0]) / step_s
    slot = np.rint(place)
    off = np.abs(place - slot) > 0.02
    if off.any():
        row = int(np.argmax(off))
        why = f"most stamps are {step_s:g} s apart, this one lies {abs(place[row] - slot[row]):.2f} steps off"
        raise DataError(
            f"{where}: row {row} (counting from 0) is not on the grid", why=why, fix="export one period alone"
        )
    steps = int(slot.max()) + 1
    if steps > MOST_STEPS:
        raise DataError(
            f"{where}: {steps:,} steps of {step_s:g} s",
            why=f"a series has at most {MOST_STEPS:,}",
            fix="check the time unit",
        )
    index = slot.astype(np.int64)[good]
    sums = np.bincount(index, weights=values[good], minlength=steps).astype(np.float64)
    absent = np.bincount(index, minlength=steps) == 0
    requests = sums * step_s if rate else sums
    requests[absent] = 0.0 if missing == "zero" else np.nan
    return Counts(float(distinct[0]), step_s, requests, start, time_zone, name, int(absent.sum()))


def draw_arrivals(counts: Counts, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return sorted arrivals, as many as counted in each step and uniform inside it.

    A share of a request (from a rate) is a request with that probability.
    """
    from fleetcast.traffic.arrivals import spread

    wanted = counts.filled()
    if wanted.sum() > MOST_REQUESTS:
        raise DataError(
            f"{counts.name or 'counts'}: {wanted.sum():,.0f} requests",
            why=f"at most {MOST_REQUESTS:,} are drawn at once",
            fix="fit a model and scale it: simulate traffic fit",
        )
    whole = np.floor(wanted)
    drawn = (whole + (rng.random(len(wanted)) < wanted - whole)).astype(np.int64)
    return spread(drawn, counts.begin_s, rng, counts.step_s)
