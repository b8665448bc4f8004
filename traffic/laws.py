"""Arrival laws for tests and benchmarks, each a function of a rate, a duration and a generator to sorted arrivals.

The law of the gaps is the smaller part of real traffic's burstiness: over minutes the rate itself wanders, and no law
here with a constant rate should be used to plan a fleet. Their asymptotic index of dispersion (variance over mean of
counts in long windows) is given with each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetcast.errors import ScenarioError
from fleetcast.units import Seconds

Floats = NDArray[np.float64]
Gaps = Callable[[int, np.random.Generator], Floats]
"""So many gaps of mean one."""

LARGEST_CV = 100.0


def constant(rate: float, duration_s: Seconds, rng: np.random.Generator | None = None) -> Floats:
    """Return arrivals 1/rate apart, the first after half a gap; dispersion 0."""
    _rate(rate, duration_s)
    places = np.arange(math.floor(rate * duration_s), dtype=np.float64)
    return (places + 0.5) / rate


def poisson(rate: float, duration_s: Seconds, rng: np.random.Generator) -> Floats:
    """Return a Poisson process; dispersion 1."""
    _rate(rate, duration_s)
    return np.sort(rng.uniform(0, duration_s, rng.poisson(rate * duration_s)))


def gamma(
    rate: float,
    duration_s: Seconds,
    rng: np.random.Generator,
    *,
    cv: float | None = None,
    burstiness: float | None = None,
) -> Floats:
    """Return a renewal process of gamma gaps; dispersion cv².

    Give the gaps' *cv*, or vLLM's *burstiness*, the shape: cv = 1/sqrt(burstiness), so that below 1 is burstier than
    Poisson.
    """
    if (cv is None) == (burstiness is None):
        raise ScenarioError("gamma arrivals", why="give one of `cv` and `burstiness`", fix="cv = 1/sqrt(burstiness)")
    if burstiness is not None:
        if not (math.isfinite(burstiness) and burstiness > 0):
            raise ScenarioError(f"burstiness = {burstiness!r}", why="the shape of a gamma law is above 0")
        cv = 1 / math.sqrt(burstiness)
    assert cv is not None
    return renewal(gaps_like("gamma", cv), rate, duration_s, rng)


def weibull(rate: float, duration_s: Seconds, rng: np.random.Generator, *, cv: float) -> Floats:
    """Return a renewal process of Weibull gaps; dispersion cv²."""
    return renewal(gaps_like("weibull", cv), rate, duration_s, rng)


def mmpp2(
    rates: tuple[float, float], stays_s: tuple[Seconds, Seconds], duration_s: Seconds, rng: np.random.Generator
) -> Floats:
    """Return a Poisson process whose rate switches between two, after exponential stays; it begins in balance.

    Dispersion 1 + 2 (λ₁ − λ₂)² σ₁ σ₂ / ((σ₁ + σ₂)² (λ₁ σ₂ + λ₂ σ₁)), σ the rates of leaving (Fischer and
    Meier-Hellstern 1993).
    """
    for rate in rates:
        if not (math.isfinite(rate) and rate >= 0):
            raise ScenarioError(f"rate = {rate!r}", why="a rate is 0 or more requests/s")
    if not all(math.isfinite(stay) and stay > 0 for stay in stays_s):
        raise ScenarioError(f"stays = {stays_s!r}", why="a stay lasts longer than 0 s")
    _rate(max(*rates, 1e-300), duration_s)
    edges, levels = [0.0], []
    state = int(rng.random() >= stays_s[0] / sum(stays_s))
    while edges[-1] < duration_s:
        edges.append(edges[-1] + rng.exponential(stays_s[state]))
        levels.append(rates[state])
        state = 1 - state
    return varying(edges, levels, rng, duration_s)


def on_off(rate: float, on_s: Seconds, off_s: Seconds, duration_s: Seconds, rng: np.random.Generator) -> Floats:
    """Return Poisson bursts of *rate*, exponential in length (mean *on_s*), silent between (mean *off_s*)."""
    return mmpp2((rate, 0.0), (on_s, off_s), duration_s, rng)


def stages(parts: Sequence[tuple[Seconds, float]], rng: np.random.Generator, *, start: float = 0.0) -> Floats:
    """Return Poisson arrivals whose rate goes in a straight line to each (duration, rate) in turn, from *start* on.

    A stage of duration 0 jumps, as in k6's ramping-arrival-rate.
    """
    now = 0.0
    times, levels = [0.0], [start]
    for lasts, goal in parts:
        if not (math.isfinite(lasts) and lasts >= 0 and math.isfinite(goal) and goal >= 0):
            raise ScenarioError(f"stage = {(lasts, goal)!r}", why="a stage has a duration and a rate of 0 or more")
        now += lasts
        times.append(now)
        levels.append(goal)
    at, rate = np.array(times), np.array(levels)
    grown = np.concatenate(([0.0], np.cumsum(np.diff(at) * (rate[1:] + rate[:-1]) / 2)))
    n = rng.poisson(grown[-1])
    goal_area = np.sort(rng.uniform(0, grown[-1], n))
    part = np.clip(np.searchsorted(grown, goal_area, side="right") - 1, 0, max(len(at) - 2, 0))
    return _solve_ramp(at, rate, grown, goal_area, part)


def ramp(first: float, last: float, duration_s: Seconds, rng: np.random.Generator) -> Floats:
    """Return Poisson arrivals whose rate goes in a straight line from *first* to *last*."""
    _rate(max(first, last), duration_s)
    return stages([(duration_s, last)], rng, start=first)


def sinusoid(
    mean_rate: float,
    peak_to_trough: float,
    period_s: Seconds,
    duration_s: Seconds,
    rng: np.random.Generator,
    *,
    peak_at_s: Seconds = 0.0,
) -> Floats:
    """Return Poisson arrivals whose rate is a sinusoid about *mean_rate*, highest at *peak_at_s*."""
    _rate(mean_rate, duration_s)
    if not (peak_to_trough >= 1 and period_s > 0):
        raise ScenarioError(f"peak to trough = {peak_to_trough!r}, period = {period_s!r} s", why="1 or more; above 0")
    depth = 1.0 if math.isinf(peak_to_trough) else (peak_to_trough - 1) / (peak_to_trough + 1)
    candidates = poisson(mean_rate * (1 + depth), duration_s, rng)
    rate = 1 + depth * np.cos(2 * math.pi * (candidates - peak_at_s) / period_s)
    return candidates[rng.random(len(candidates)) * (1 + depth) < rate]


def varying(edges_s: ArrayLike, rates: ArrayLike, rng: np.random.Generator, until_s: Seconds | None = None) -> Floats:
    """Return Poisson arrivals of piecewise constant *rates* between *edges_s* (one more edge than rates)."""
    edges, levels = np.asarray(edges_s, np.float64), np.asarray(rates, np.float64)
    if until_s is not None:
        edges = np.minimum(edges, until_s)
    return at_operational_times(edges, levels * np.diff(edges), None, rng)


def at_operational_times(
    edges_s: Floats, expected: Floats, dispersion: float | None, rng: np.random.Generator
) -> Floats:
    """Return arrivals with *expected* requests between neighbouring edges, by inversion in operational time.

    A unit-rate process runs on the scale of the expected requests so far; its points are carried back to the clock
    through the piecewise straight line, so the rate is followed exactly and the burstiness is that of the process. A
    *dispersion* of one (or None) is Poisson, another one gamma gaps of that variance, in equilibrium from the start
    (Gerhardt and Nelson 2009). Below the scale of a gap the dispersion is nearer to one.
    """
    so_far = np.concatenate(([0.0], np.cumsum(expected)))
    total = float(so_far[-1])
    if not total:
        return np.empty(0)
    if dispersion is None or dispersion == 1:
        points = np.sort(rng.uniform(0, total, rng.poisson(total)))
    else:
        points = renewal(gaps_like("gamma", math.sqrt(dispersion)), 1.0, total, rng)
    rising = np.concatenate(([True], np.diff(so_far) > 0))
    if not rising.all():  # in a silent step the line is level: a point at its level belongs to its end
        keep = rising | np.concatenate((rising[1:], [True]))
        so_far, edges_s = so_far[keep], edges_s[keep]
    return np.interp(points, so_far, edges_s)


def gaps_like(law: str, cv: float) -> Gaps:
    """Return what draws gaps of mean one with coefficient of variation *cv*; 0 is constant."""
    if not 0 <= cv <= LARGEST_CV:
        raise ScenarioError(f"cv = {cv!r}", why=f"a coefficient of variation is between 0 and {LARGEST_CV:g}")
    if cv == 0:
        return lambda n, rng: np.ones(n)
    if law == "gamma":
        shape = 1 / cv**2
        return lambda n, rng: rng.standard_gamma(shape, n) / shape
    shape = _weibull_shape(cv)
    mean = math.gamma(1 + 1 / shape)
    return lambda n, rng: rng.weibull(shape, n) / mean


def renewal(gaps: Gaps, rate: float, duration_s: Seconds, rng: np.random.Generator) -> Floats:
    """Return a renewal process in equilibrium: it began long before, so that its rate is *rate* from the start.

    The first gap is one picked with probability proportional to its length, begun at a uniform moment of it.
    """
    _rate(rate, duration_s)
    wanted = rate * duration_s
    several = gaps(4_096, rng)
    picked = rng.choice(several, p=several / several.sum())
    first = picked * rng.random()
    drawn = [np.array([first])]
    so_far = first
    while so_far <= wanted:
        more = gaps(max(64, int((wanted - so_far) * 1.02) + 64), rng)
        more[0] += so_far
        np.cumsum(more, out=more)
        drawn.append(more)
        so_far = float(more[-1])
    points: Floats = np.concatenate(drawn)
    points = points[: np.searchsorted(points, wanted)]
    points /= rate
    return points


def _weibull_shape(cv: float) -> float:
    """Return the shape whose coefficient of variation is *cv*, by bisection on the logarithm."""
    low, high = math.log(0.08), math.log(1e4)
    for _ in range(100):
        middle = (low + high) / 2
        shape = math.exp(middle)
        ratio = math.lgamma(1 + 2 / shape) - 2 * math.lgamma(1 + 1 / shape)
        low, high = (middle, high) if ratio > math.log1p(cv**2) else (low, middle)
    return math.exp(low)


def _solve_ramp(at: Floats, rate: Floats, grown: Floats, area: Floats, part: NDArray[Any]) -> Floats:
    """Return the times at which the area under straight lines reaches *area*: a quadratic in each part."""
    width = np.diff(at)[part]
    first, last = rate[:-1][part], rate[1:][part]
    slope = np.divide(last - first, width, out=np.zeros_like(width), where=width > 0)
    left = area - grown[:-1][part]
    root = np.sqrt(np.maximum(first**2 + 2 * slope * left, 0))
    under = first + root
    arrival: Floats = at[:-1][part] + np.divide(2 * left, under, out=np.zeros_like(left), where=under > 0)
    return arrival


def _rate(rate: float, duration_s: Seconds) -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ScenarioError(f"rate = {rate!r}", why="a rate is a finite number of requests/s above 0")
    if not (math.isfinite(duration_s) and duration_s >= 0):
        raise ScenarioError(f"duration = {duration_s!r}", why="a duration is 0 s or more")
    if rate * duration_s > 1e9:
        raise ScenarioError(f"{rate * duration_s:,.0f} arrivals", why="at most a billion are drawn at once")
