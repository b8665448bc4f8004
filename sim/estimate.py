"""Estimates over Monte-Carlo runs: pooled percentiles, means and ratios, each with its interval.

Runs (days) are independent, requests within one are not; so every interval is a jackknife over runs: the
statistic is computed again without each run in turn. It speaks of Monte-Carlo noise alone, not of how well
the model fits.

*Interval.* The plain jackknife is blind to skewness: where a few hot days decide the p99, its upper end is
too low. Each bound is therefore the outer one of (a) the jackknife with Student's t on the logarithm, which
stays positive, and (b) the skewness-corrected t interval of Hall (1992, JRSS B 54:221) on the pseudo-values.
Coverage of the true p99 at level 95 %, measured with 400 replications of exponential latencies whose daily
mean (and daily traffic) is lognormal; the plain jackknife in brackets: 20 runs, cv 0.3: 97 % (87 %), cv 0.6:
93 % (66 %), cv 1.0: 84 % (53 %); 8 runs, cv 0.3: 93 % (83 %). Where only one day in ten is overloaded, 20
runs cover 75 % (50 %): no method sees the days that were not drawn. The median with 20 runs:
93–95 % (87–94 %), a cost per token 96 %.

Left out: the noise of requests within one single run (one run has no interval at all).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.95
BEYOND = "lies among unfinished requests"
BOUND_BEYOND = "its upper bound lies among unfinished requests"
ONE_SOURCE = "all samples come from one run: no interval"
NO_SAMPLES = "no samples"
NO_OUTPUT = "no output token was completed"


@dataclass(frozen=True)
class Estimate:
    """A statistic pooled over runs, with the interval that covers it at *level*.

    *value* is None when it cannot be told, and *note* says why; both bounds are None with a single run, and
    *high* alone is None when the interval reaches the unfinished requests. *n* counts the samples in the
    pool.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float = LEVEL
    note: str = ""


@dataclass(frozen=True)
class Band:
    """A quantile function with its interval, one per quantile; NaN where an `Estimate` holds None."""

    quantile: Floats
    value: Floats
    low: Floats
    high: Floats
    n: int


@dataclass(frozen=True)
class _Pool:
    """Quantiles of all runs together (Q,), without each run in turn and of each run alone (R, Q); NaN when empty."""

    n: int
    quantiles: Floats
    values: Floats
    without: Floats
    alone: Floats


def percentiles(
    runs: Sequence[Floats], quantiles: Sequence[float], level: float = LEVEL, *, enough: bool = True
) -> list[Estimate]:
    """Estimate the *quantiles* of all runs' samples taken together.

    Each run is sorted; requests that never ended stand as +inf at its end. The value equals `np.quantile` of
    the concatenation. With *enough*, a quantile needs `samples_needed` samples in the pool.
    """
    return _estimates(_pool_samples(runs, quantiles), level, enough)


def histogram_quantiles(
    counts: Ints, edges: Floats, quantiles: Sequence[float], level: float = LEVEL, *, enough: bool = True
) -> list[Estimate]:
    """Estimate quantiles of values known by their counts per bin: *counts* (runs, bins), *edges* (bins + 1,).

    Inside a bin the values are taken as evenly spaced in the logarithm (a first bin from 0: evenly spaced),
    so the error is at most one bin's width.
    """
    return _estimates(_pool_histogram(counts, edges, quantiles), level, enough)


def curve(runs: Sequence[Floats], quantiles: Sequence[float], level: float = LEVEL) -> Band:
    """Return the pooled quantile function of sorted *runs* with its pointwise interval."""
    return _band(_pool_samples(runs, quantiles), level)


def histogram_curve(counts: Ints, edges: Floats, quantiles: Sequence[float], level: float = LEVEL) -> Band:
    """Return the pooled quantile function of binned values with its pointwise interval."""
    return _band(_pool_histogram(counts, edges, quantiles), level)


def samples_needed(quantile: float) -> int:
    """Return the samples a quantile needs: ten on its thinner side (p50: 20, p99: 1,000, p99.9: 10,000).

    With ten the share beyond the quantile is itself known to about 1/√10, a third; with fewer the
    "percentile" is little more than the name of one of the largest samples.
    """
    return math.ceil(10 / min(quantile, 1 - quantile) * (1 - 1e-9))


def pooled_mean(runs: Sequence[Floats], level: float = LEVEL) -> Estimate:
    """Estimate the mean of all runs' samples taken together; a single +inf makes it None."""
    sums = [float(np.sum(run)) for run in runs]
    n = sum(len(run) for run in runs)
    if any(math.isinf(s) for s in sums):
        return Estimate(None, None, None, n, level, BEYOND)
    return ratio(sums, [len(run) for run in runs], level, n=n, note=NO_SAMPLES)


def ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    level: float = LEVEL,
    *,
    n: int | None = None,
    note: str = NO_SAMPLES,
) -> Estimate:
    """Estimate Σ numerators / Σ denominators, one entry per run, all non-negative.

    *n* is the number of samples to report (by default the denominators' sum); *note* explains a zero
    denominator.
    """
    top = np.asarray(numerators, dtype=np.float64)
    bottom = np.asarray(denominators, dtype=np.float64)
    total = float(bottom.sum())
    count = round(total) if n is None else n
    if not total > 0:
        return Estimate(None, None, None, count, level, note)
    rest = total - bottom
    # A difference of sums may leave a rounding crumb where a run held everything.
    rest = np.where(np.arange(len(bottom)) == _only(bottom), 0.0, rest)
    with np.errstate(divide="ignore", invalid="ignore"):
        without = np.where(rest > 0, np.maximum(top.sum() - top, 0.0) / rest, np.nan)
    return _estimate(float(top.sum()) / total, without, count, level)


def share(hits: ArrayLike, trials: ArrayLike, level: float = LEVEL) -> Estimate:
    """Estimate Σ hits / Σ trials as a share in [0, 1].

    When no trial or every trial is a hit, all runs agree and a jackknife would claim certainty; the open side
    is then the exact binomial bound, 1 − ((1 − level)/2)^(1/n) away (about 3.7/n at 95 %).
    """
    estimate = ratio(hits, trials, level)
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    slack = 1 - ((1 - level) / 2) ** (1 / max(estimate.n, 1))
    low = max(1 - slack, 0.0) if estimate.value >= 1 else estimate.low
    high = slack if estimate.value <= 0 else min(estimate.high, 1.0)
    return Estimate(min(estimate.value, 1.0), min(low, 1.0), high, estimate.n, level, estimate.note)


def interval(value: float, without: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a non-negative *value* from its delete-one-run values *without*, two or more.

    The upper bound is inf when a run can be left out such that nothing finite remains.
    """
    from scipy.special import stdtrit

    runs = len(without)
    t = float(stdtrit(runs - 1, 0.5 + level / 2))
    if np.isinf(without).any():
        # The reciprocal is finite where the value is not: its jackknife still gives the lower bound.
        with np.errstate(divide="ignore"):
            upside_down = 1 / without
        return (1 / (1 / value + t * _spread(upside_down)) if value > 0 else 0.0), math.inf
    if (without == value).all():
        return value, value
    skewed_low, skewed_high = _hall(value, without, t)
    if value > 0 and (without > 0).all():
        half = t * _spread(np.log(without))
        low, high = value * math.exp(-half), value * math.exp(min(half, 700.0))
        return (min(low, skewed_low) if skewed_low > 0 else low), max(high, skewed_high)
    half = t * _spread(without)
    return max(min(value - half, skewed_low), 0.0), max(value + half, skewed_high)


def _spread(without: Floats) -> float:
    """Return the jackknife standard error."""
    runs = len(without)
    far = without - without.mean()
    scale = float(np.abs(far).max()) or 1.0  # before squaring: the squares of tiny numbers vanish
    return scale * math.sqrt((runs - 1) / runs * float(((far / scale) ** 2).sum()))


def _hall(value: float, without: Floats, t: float) -> tuple[float, float]:
    """Return Hall's (1992) interval: the t interval bent by the cubic that removes the skewness."""
    runs = len(without)
    error = _spread(without)
    if runs < 3 or error == 0:
        return value - t * error, value + t * error
    # The unbiased third moment of the influences over their unbiased standard deviation cubed.
    influence = (runs - 1) * (without.mean() - without) / (error * math.sqrt(runs))
    skew = float((influence**3).sum()) * runs / ((runs - 1) * (runs - 2))
    if abs(skew) < 1e-6:
        return value - t * error, value + t * error

    def bent(z: float) -> float:
        inner = 1 + skew * (z / math.sqrt(runs) - skew / (6 * runs))
        return 3 * math.sqrt(runs) / skew * (float(np.cbrt(inner)) - 1)

    return value - error * bent(t), value - error * bent(-t)


def _estimates(pool: _Pool, level: float, enough: bool) -> list[Estimate]:
    found = []
    for q, value, without, alone in zip(pool.quantiles, pool.values, pool.without.T, pool.alone.T, strict=True):
        needed = samples_needed(float(q)) if enough else 1
        if pool.n < needed:
            note = f"needs {needed:,} samples, has {pool.n:,}"
            found.append(Estimate(None, None, None, pool.n, level, note))
        else:
            found.append(_within(_estimate(float(value), without, pool.n, level), alone))
    return found


def _within(estimate: Estimate, alone: Floats) -> Estimate:
    """Cut an interval at half the least run's and twice the greatest run's own quantile.

    A quantile of all runs together lies between those of the runs; where one run in many is overloaded by orders of
    magnitude, the logarithm's interval would reach from microseconds to centuries. The factor of two keeps coverage.
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None or low is None or high is None:
        return estimate
    low, high = max(low, float(np.nanmin(alone)) / 2), min(high, 2 * float(np.nanmax(alone)))
    return Estimate(value, low, high, estimate.n, estimate.level, estimate.note)


def _estimate(value: float, without: Floats, n: int, level: float) -> Estimate:
    if math.isinf(value):
        return Estimate(None, None, None, n, level, BEYOND)
    if len(without) < 2:
        return Estimate(value, None, None, n, level)
    if np.isnan(without).any():
        return Estimate(value, None, None, n, level, ONE_SOURCE)
    low, high = interval(value, without, level)
    if math.isinf(high):
        return Estimate(value, low, None, n, level, BOUND_BEYOND)
    return Estimate(value, low, high, n, level)


def _band(pool: _Pool, level: float) -> Band:
    rows = [
        [math.nan if v is None else v for v in (e.value, e.low, e.high)] for e in _estimates(pool, level, enough=True)
    ]
    value, low, high = np.asarray(rows, dtype=np.float64).reshape(-1, 3).T
    return Band(pool.quantiles, value, low, high, pool.n)


def _only(amounts: Floats) -> int:
    """Return the index of the one run that holds everything, or −1."""
    holders = np.flatnonzero(amounts)
    return int(holders[0]) if len(holders) == 1 else -1


def _positions(n: Ints, quantiles: Floats) -> tuple[Ints, Floats]:
    """Return the lower rank and the weight of the next, shape (len(n), Q), by numpy's linear definition."""
    position = np.maximum(n - 1, 0)[:, None] * quantiles
    rank = np.floor(position).astype(np.int64)
    return rank, position - rank


def _between(a: Floats, b: Floats, weight: Floats) -> Floats:
    """Interpolate as `np.quantile` does, to the last bit; towards +inf anything but weight 0 is +inf."""
    with np.errstate(invalid="ignore"):
        gap = b - a
        mixed = np.where(weight >= 0.5, b - gap * (1 - weight), a + gap * weight)
    return np.where((weight == 0) | (a == b), a, np.where(np.isinf(b), b, mixed))


def _pool_samples(runs: Sequence[Floats], quantiles: Sequence[float]) -> _Pool:
    q = np.asarray(quantiles, dtype=np.float64)
    sizes = np.array([len(run) for run in runs], dtype=np.int64)
    n = int(sizes.sum())
    left_out = np.arange(-1, len(runs))  # -1: nothing
    pool_sizes = np.concatenate(([n], n - sizes))
    some = pool_sizes > 0
    values = np.full((len(runs) + 1, len(q)), np.nan)
    if n:
        rank, weight = _positions(pool_sizes[some], q)
        omitted = np.broadcast_to(left_out[some][:, None], rank.shape)
        first, second = _two_at(runs, rank.ravel(), omitted.ravel())
        values[some] = _between(first, second, weight.ravel()).reshape(rank.shape)
    return _Pool(n, q, values[0], values[1:], _alone(runs, sizes, q))


def _alone(runs: Sequence[Floats], sizes: Ints, quantiles: Floats) -> Floats:
    """Return the quantiles of each sorted run by itself."""
    rank, weight = _positions(sizes, quantiles)
    found = np.full(rank.shape, np.nan)
    for i, run in enumerate(runs):
        if len(run):
            found[i] = _between(run[rank[i]], run[np.minimum(rank[i] + 1, len(run) - 1)], weight[i])
    return found


def _two_at(runs: Sequence[Floats], ranks: Ints, omitted: Ints) -> tuple[Floats, Floats]:
    """Return the order statistics *ranks* and *ranks* + 1 (or the last) of all runs but *omitted*, taken
    together.

    Bisects the value itself, by one `searchsorted` per run and round: floats order as their bit patterns do,
    so the answer is exact whatever the ties, and nothing is merged or copied.
    """
    low, high = _brackets(runs, ranks, omitted)
    open_ = np.arange(len(ranks))
    while (open_ := open_[low[open_] + 1 < high[open_]]).size:
        below, above = low[open_], high[open_]
        middle = (below & above) + ((below ^ above) >> 1)
        count = _count_up_to(runs, _floats(middle), omitted[open_])
        low[open_] = np.where(count <= ranks[open_], middle, below)
        # With exactly `rank` samples up to the middle, the wanted one is the next: close the bracket.
        high[open_] = np.where(count > ranks[open_], middle, np.where(count == ranks[open_], middle, above))
    first = _next_after(runs, _floats(low), omitted)
    second = _next_after(runs, first, omitted)
    again = _count_up_to(runs, first, omitted) > ranks + 1
    return first, np.where(again | np.isnan(second), first, second)


def _brackets(runs: Sequence[Floats], ranks: Ints, omitted: Ints) -> tuple[Ints, Ints]:
    """Return keys around each wanted value, at most `rank` samples up to *low* and more up to *high*."""
    pivots = np.unique(np.concatenate([np.append(run[:: max(len(run) // 500, 1)], run[-1:]) for run in runs]))
    counts = np.stack([np.searchsorted(run, pivots, side="right") for run in runs])
    total = counts.sum(axis=0)
    keys = _keys(np.append(np.nextafter(pivots[0], -np.inf), pivots))
    low, high = np.empty_like(ranks), np.empty_like(ranks)
    for one in np.unique(omitted):
        here = omitted == one
        known = total if one < 0 else total - counts[one]
        at = np.searchsorted(known, ranks[here], side="right")
        low[here], high[here] = keys[at], keys[at + 1]
    return low, high


def _count_up_to(runs: Sequence[Floats], values: Floats, omitted: Ints) -> Ints:
    count = np.zeros(len(values), dtype=np.int64)
    for index, run in enumerate(runs):
        count += np.where(omitted == index, 0, np.searchsorted(run, values, side="right"))
    return count


def _next_after(runs: Sequence[Floats], values: Floats, omitted: Ints) -> Floats:
    """Return the smallest sample above each value, NaN where there is none."""
    found = np.full(len(values), np.nan)
    for index, run in enumerate(runs):
        at = np.searchsorted(run, values, side="right")
        there = (omitted != index) & (at < len(run))
        found[there] = np.fmin(found[there], run[at[there]])
    return found


def _keys(values: Floats) -> Ints:
    """Return integers that order as the floats do."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)


def _floats(keys: Ints) -> Floats:
    bits = np.where(keys < 0, keys ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), keys)
    return bits.view(np.float64)


def _pool_histogram(counts: Ints, edges: Floats, quantiles: Sequence[float]) -> _Pool:
    q = np.asarray(quantiles, dtype=np.float64)
    total = counts.sum(axis=0)
    values = np.full((2 * len(counts) + 1, len(q)), np.nan)
    for row, pool in enumerate([total, *(total - run for run in counts), *counts]):
        if n := int(pool.sum()):
            rank, weight = _positions(np.array([n]), q)
            below = np.concatenate(([0], np.cumsum(pool)))
            first = _in_bin(below, edges, rank[0])
            second = _in_bin(below, edges, np.minimum(rank[0] + 1, n - 1))
            values[row] = _between(first, second, weight[0])
    runs = len(counts)
    return _Pool(int(total.sum()), q, values[0], values[1 : runs + 1], values[runs + 1 :])


def _in_bin(below: Ints, edges: Floats, ranks: Ints) -> Floats:
    """Return the value at each rank, its bin's samples spread evenly in the logarithm."""
    at = np.searchsorted(below, ranks, side="right") - 1
    part = (ranks - below[at] + 0.5) / (below[at + 1] - below[at])
    left, right = edges[at], edges[at + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(left > 0, left * (right / left) ** part, right * part), dtype=np.float64)
