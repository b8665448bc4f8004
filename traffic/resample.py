"""Random days from a recorded one.

A day of the model has the recorded rate, minute by minute, times a factor for the whole day (busy and quiet
days differ more than an hour's noise), Poisson counts, arrivals uniform inside the minute, and (input,
output, labels) rows drawn together from the requests recorded around that minute: lengths follow neither
the mean rate nor each other in a way that a fitted law would catch (Azure 2023 chat: peak to mean per
minute is 1.52 for requests, 1.90 for input tokens, 1.27 for output tokens; median output by input quartile
98, 108, 406, 89; computed from the trace, November 2026).

Left out: growth, weekdays, sessions (turns are drawn like any other request), and burstiness inside the
minute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError
from fleetcast.traffic.arrivals import MINUTE, minute_counts, spread
from fleetcast.traffic.trace import Labels, Trace
from fleetcast.units import DAY, Seconds

WINDOW_ROWS = 200
"""The fewest recorded requests that a minute draws its lengths from, where the trace has as many."""

MOST_DAY_CV = 10.0


@dataclass(frozen=True, eq=False)
class DayModel:
    """What random days are drawn from: counts per minute, and the rows each minute draws lengths from."""

    trace: Trace
    day_cv: float
    begin_s: Seconds
    minute_counts: NDArray[np.int64]
    window_first: NDArray[np.int64]  # first recorded row of each minute's window
    window_rows: NDArray[np.int64]  # rows in it

    @property
    def horizon_s(self) -> Seconds:
        """Return the whole minutes that cover the trace: a random day begins at `begin_s` and lasts this."""
        return MINUTE * len(self.minute_counts)

    @property
    def days(self) -> int:
        """Return the day factors that one draw takes: one for each 24 h of the trace, started or whole."""
        return math.ceil(self.horizon_s / DAY)


def fit_days(trace: Trace, day_cv: float) -> DayModel:
    """Return the model of days like *trace* whose day-level factor has coefficient of variation *day_cv*.

    Published traces have a day-level coefficient of variation of 0.3 or more (BurstGPT, ServeGen).
    """
    if not 0 <= day_cv <= MOST_DAY_CV:
        raise ScenarioError(
            f"day_cv = {day_cv!r}",
            why=f"the spread of the rate from day to day is between 0 (none) and {MOST_DAY_CV:g}",
            fix="write for example day_cv = 0.3",
        )
    begin_s, counts = minute_counts(trace)
    first, rows = windows(counts)
    return DayModel(trace, float(day_cv), begin_s, counts, first, rows)


def random_day(
    model: DayModel,
    *,
    day: np.random.Generator,
    arrivals: np.random.Generator,
    lengths: np.random.Generator,
    scores: NDArray[np.float64] | None = None,
) -> Trace:
    """Return one random day (or as many days as were recorded), on the clock of the recorded trace.

    The same three generators give the same day; `day` gives up exactly one draw per 24 h, whatever `day_cv`
    is. A quiet trace can give a day without requests. *scores*, standard normal and one per 24 h, stand for the draws
    of `day` where days are laid out instead of drawn.
    """
    variance = math.log1p(model.day_cv**2)
    level = day.standard_normal(model.days) if scores is None else scores
    factor = np.exp(math.sqrt(variance) * level - variance / 2)
    of_minute = np.repeat(factor, round(DAY / MINUTE))[: len(model.minute_counts)]
    counts = arrivals.poisson(model.minute_counts * of_minute)
    arrival_s = spread(counts, model.begin_s, arrivals)

    row = lengths.random(len(arrival_s))
    row *= np.repeat(model.window_rows, counts)  # u * n < n for every u < 1, in floats too
    rows = row.astype(np.int64)
    rows += np.repeat(model.window_first, counts)
    trace = model.trace
    return Trace(
        arrival_s,
        trace.input_tokens.take(rows),
        trace.output_tokens.take(rows),
        {key: Labels(column.codes.take(rows), column.names) for key, column in trace.labels.items()},
        trace.name,
        trace.start,
        trace.time_zone,
    )


def windows(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the number of rows of each minute's window.

    A window grows by a minute on both sides, as far as the trace goes, until it holds `WINDOW_ROWS` or the
    whole trace. The rows within k minutes do not fall with k, so the smallest k is found by bisection, for
    all minutes at once.
    """
    edges = np.concatenate(([0], np.cumsum(counts)))
    minutes = np.arange(len(counts))
    wanted = min(WINDOW_ROWS, int(edges[-1]))

    def window(reach: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = edges[np.maximum(minutes - reach, 0)]
        return first, edges[np.minimum(minutes + reach + 1, len(counts))] - first

    low = np.full(len(counts), -1)  # too small a reach
    high = np.full(len(counts), len(counts))  # large enough
    while np.any(high - low > 1):
        middle = (low + high) // 2
        enough = window(middle)[1] >= wanted
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    return window(high)
