"""A model of traffic, and random days from it.

The rate is that of a week by the local clock (or, of recordings shorter than a day, the recorded one), times a factor
for the day, times factors that wander through hours and minutes (log-normal autoregressions), and arrivals come from
it in operational time with a dispersion of their own. Lengths are recorded pairs from their time of the week, or a
length model. Every layer draws from a stream of its own, so that changing one leaves the others as they were.

Left out: sessions (turns are drawn like any other request), trends, and rare events: see `change`.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError
from fleetcast.traffic.arrivals import spread
from fleetcast.traffic.calendar import Week, like_weekday, local_clock, midnights
from fleetcast.traffic.counts import MOST_REQUESTS
from fleetcast.traffic.laws import at_operational_times
from fleetcast.traffic.lengths import LengthModel
from fleetcast.traffic.resample import windows
from fleetcast.traffic.trace import Trace
from fleetcast.units import DAY, Seconds

MINUTE: Seconds = 60.0
MOST_DAYS = 3_660
NOMINAL_START = date(2026, 1, 5)
"""A Monday, for models that know no date."""

STREAMS = ("day", "wander", "arrivals", "lengths")

DAY_CV = 0.3
"""The spread of days assumed where it cannot be fitted: BurstGPT's and ServeGen's differ by 0.3 or more."""


@dataclass(frozen=True)
class Wander:
    """A factor of mean one that is drawn anew every *step_s*, correlated with the one before."""

    step_s: Seconds
    cv: float
    correlation: float

    def draw(self, steps: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return log-normal factors whose own correlation from step to step is `correlation`."""
        variance = math.log1p(self.cv**2)
        rho = math.log1p(self.correlation * self.cv**2) / variance if variance else 0.0
        from scipy.signal import lfilter

        noise = rng.standard_normal(steps)
        noise[1:] *= math.sqrt(1 - rho**2)
        score: NDArray[np.float64] = lfilter([1.0], [1.0, -rho], noise)
        factors: NDArray[np.float64] = np.exp(math.sqrt(variance) * score - variance / 2)
        return factors


@dataclass(frozen=True, eq=False)
class Pairs:
    """Recorded requests by slot (of the week, or of the recording): `rows` is sorted by slot."""

    rows: Trace
    slot: NDArray[np.int64]
    slots: int
    first: NDArray[np.int64]  # first row of each slot's window
    size: NDArray[np.int64]  # rows in it


def pairs_by_slot(rows: Trace, slot: NDArray[np.int64], slots: int) -> Pairs:
    """Return recorded *rows* with the window of each slot, grown until it holds enough of them."""
    order = np.argsort(slot, kind="stable")
    counts = np.bincount(slot, minlength=slots)
    first, size = windows(counts)
    placed = Trace(
        slot[order].astype(np.float64),
        rows.input_tokens[order],
        rows.output_tokens[order],
        rows.take(order, slot[order].astype(np.float64)).labels,
    )
    return Pairs(placed, slot[order], slots, first, size)


@dataclass(frozen=True, eq=False)
class TrafficModel:
    """What random days are drawn from; `week`, or `recorded` rates per step of `cell_s` from `start` on.

    `dispersion` is that of the arrivals in operational time (1: Poisson), `burst` its bracket: uniform inside the bins
    the rate was counted in (low) and a renewal process with the gaps' own spread (high).
    """

    name: str
    week: Week | None = None
    recorded: NDArray[np.float64] | None = None
    cell_s: Seconds = MINUTE
    begin_s: Seconds = 0.0
    start: datetime | None = None
    time_zone: str | None = None
    day_cv: float = DAY_CV
    day_basis: str = "assumed"
    wander: tuple[Wander, ...] = ()
    dispersion: float = 1.0
    burst: tuple[float, float] = (1.0, 1.0)
    lengths: LengthModel | Pairs | None = None
    scale: float = 1.0
    notes: tuple[str, ...] = field(default_factory=tuple)


def make_days(
    model: TrafficModel, days: int = 1, seed: int = 0, *, first: date | None = None, burst: str = "fitted"
) -> Trace:
    """Return *days* random days of traffic, from local midnight of *first* on.

    *burst* is "fitted", or an end of its bracket: "low" or "high". The same model, days, first and seed give the same
    trace. A recording shorter than a day gives one more of its kind.
    """
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
        raise ScenarioError(f"days = {days!r}", why=f"days are 1 to {MOST_DAYS:,}", fix="write --days 7")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ScenarioError(f"seed = {seed!r}", why="a seed is a whole number, 0 or more", fix="write --seed 0")
    dispersions = {"fitted": model.dispersion, "low": model.burst[0], "high": model.burst[1]}
    if burst not in dispersions:
        raise ScenarioError(f"burst = {burst!r}", fix=f"known: {', '.join(dispersions)}")
    streams = {
        name: np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))))
        for name in STREAMS
    }
    start, begin_s, step_s, rates, slots, day = _rates(model, days, first)
    rates = rates * model.scale
    rates *= _day_factors(model.day_cv, int(day[-1]) + 1, streams["day"])[day]
    for wander in model.wander:
        each = max(1, round(wander.step_s / step_s))
        rates *= np.repeat(wander.draw(-(-len(rates) // each), streams["wander"]), each)[: len(rates)]
    expected = rates * step_s
    if expected.sum() > MOST_REQUESTS:
        raise ScenarioError(
            f"{expected.sum():,.0f} requests", why=f"at most {MOST_REQUESTS:,} are drawn at once", fix="make fewer days"
        )
    arrival, counts = _arrivals(expected, begin_s, step_s, dispersions[burst], streams["arrivals"])
    if not len(arrival):
        raise ScenarioError("not one request came", why="the model's rate is too low", fix="make more days")
    recipe = f"model {model.name}, {days} day{'s' * (days > 1)}, seed {seed}"
    drawn = _with_lengths(model, arrival, np.repeat(slots, counts), streams["lengths"])
    return replace(drawn, name=model.name, start=start, time_zone=model.time_zone, recipe=recipe)


def _rates(
    model: TrafficModel, days: int, first: date | None
) -> tuple[datetime | None, Seconds, Seconds, NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return start, begin, step, and by step: rate, slot of the lengths, number of the day."""
    if model.week is None:
        assert model.recorded is not None
        if days != 1 or first is not None:
            lasts = len(model.recorded) * model.cell_s
            raise ScenarioError(
                f"{days} days from {first or 'any day'}",
                why=f"{model.name} is fitted from {lasts:,.0f} s, no whole day: it has a rate, but no calendar",
                fix="make one day (a recording of the same length), or fit a longer recording",
            )
        steps = np.arange(len(model.recorded))
        day = ((steps * model.cell_s) // DAY).astype(np.int64)
        return model.start, model.begin_s, model.cell_s, model.recorded.copy(), steps, day
    begin = first or _first_day(model)
    edges = midnights(begin, days, model.time_zone)
    lasts = (edges[-1] - edges[0]).total_seconds() if model.time_zone is None else _apart(edges[0], edges[-1])
    clock = local_clock(edges[0], round(lasts / MINUTE), MINUTE, model.time_zone)
    rates = model.week.rates(clock)
    cells = model.week.rate.shape[1]
    weekday = like_weekday(clock, model.week.holidays, model.week.holiday_like)
    slots = weekday * cells + (clock.second // model.week.cell_s).astype(np.int64)
    return edges[0], 0.0, MINUTE, rates, slots, clock.day - clock.day[0]


def _apart(one: datetime, other: datetime) -> Seconds:
    """Return the real seconds between two moments (of one zone, Python would subtract the wall clocks)."""
    return other.timestamp() - one.timestamp()


def _first_day(model: TrafficModel) -> date:
    """Return the day after the recording began, or a nominal Monday."""
    return model.start.date() + timedelta(days=1) if model.start else NOMINAL_START


def _day_factors(cv: float, days: int, rng: np.random.Generator) -> NDArray[np.float64]:
    variance = math.log1p(cv**2)
    factors: NDArray[np.float64] = np.exp(math.sqrt(variance) * rng.standard_normal(days) - variance / 2)
    return factors


def _arrivals(
    expected: NDArray[np.float64], begin_s: Seconds, step_s: Seconds, dispersion: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return arrivals and how many lie in each step."""
    if dispersion == 1:
        counts = rng.poisson(expected)
        return spread(counts, begin_s, rng, step_s), counts
    edges = begin_s + step_s * np.arange(len(expected) + 1, dtype=np.float64)
    arrival = at_operational_times(edges, expected, dispersion, rng)
    counts = np.diff(np.searchsorted(arrival, edges[1:], side="left"), prepend=0)
    counts[-1] += len(arrival) - counts.sum()
    return arrival, counts


def _with_lengths(model: TrafficModel, arrival: NDArray[np.float64], slot: Any, rng: np.random.Generator) -> Trace:
    lengths = model.lengths
    if lengths is None:
        raise ScenarioError(f"{model.name} has no lengths", fix='add [lengths] preset = "chat", or fit with --lengths')
    if isinstance(lengths, LengthModel):
        return Trace(arrival, *lengths.draw(len(arrival), rng))
    place = rng.random(len(arrival))
    place *= lengths.size[slot]
    return lengths.rows.take(lengths.first[slot] + place.astype(np.int64), arrival)
