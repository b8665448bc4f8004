"""Pooled percentiles against numpy, jackknife intervals against formulas and by their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fleetcast.sim.estimate import (
    BEYOND,
    BOUND_BEYOND,
    NO_SAMPLES,
    ONE_SOURCE,
    curve,
    histogram_curve,
    histogram_quantiles,
    interval,
    percentiles,
    pooled_mean,
    ratio,
    samples_needed,
    share,
)

T19 = 2.0930240544082634  # Student's t, 97.5 %, 19 degrees of freedom (tables: 2.093)
QUANTILES = (0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)

Runs = list[NDArray[np.float64]]

ties = st.integers(0, 6).map(float)
spread = st.floats(0, 1e9, allow_nan=False, allow_subnormal=True)
some_runs = st.lists(st.lists(ties | spread, max_size=40), min_size=1, max_size=6)


def _sorted(runs: list[list[float]]) -> Runs:
    return [np.sort(np.array(run, dtype=np.float64)) for run in runs]


def _exponential_days(rng: np.random.Generator, runs: int, cv: float, size: int = 2_000) -> Runs:
    """Days with a lognormal level that scales both the traffic and the mean latency."""
    sigma = math.sqrt(math.log1p(cv * cv))
    levels = np.exp(sigma * rng.standard_normal(runs) - sigma**2 / 2)
    return [np.sort(level * rng.exponential(size=rng.poisson(size * level))) for level in levels]


@given(some_runs)
@settings(max_examples=300, deadline=None)
def test_pooled_percentiles_are_those_of_the_concatenation(lists: list[list[float]]) -> None:
    runs = _sorted(lists)
    pool = np.concatenate(runs)
    found = [e.value for e in percentiles(runs, QUANTILES[1:-1], enough=False)]
    if len(pool) == 0:
        assert found == [None] * (len(QUANTILES) - 2)
    else:
        assert found == np.quantile(pool, QUANTILES[1:-1]).tolist()


@given(some_runs)
@settings(max_examples=200, deadline=None)
def test_each_run_left_out_is_a_percentile_of_the_others(lists: list[list[float]]) -> None:
    from fleetcast.sim.estimate import _pool_samples

    runs = _sorted(lists)
    pool = _pool_samples(runs, QUANTILES)
    for left_out, row in enumerate(pool.without):
        others = np.concatenate([run for i, run in enumerate(runs) if i != left_out] or [np.empty(0)])
        if len(others):
            np.testing.assert_array_equal(row, np.quantile(others, QUANTILES))
        else:
            assert np.isnan(row).all()


def test_negative_values_and_zeros_of_either_sign_are_ordered() -> None:
    runs = _sorted([[-3.5, -0.0, 2.0], [0.0, -1e-300, 5e-324], []])
    pool = np.concatenate(runs)
    assert [e.value for e in percentiles(runs, QUANTILES[1:-1], enough=False)] == np.quantile(
        pool, QUANTILES[1:-1]
    ).tolist()


def test_the_order_of_runs_does_not_matter() -> None:
    runs = _exponential_days(np.random.default_rng(5), 8, 0.3)
    there = percentiles(runs, (0.5, 0.99))
    back = percentiles(runs[::-1], (0.5, 0.99))
    for one, other in zip(there, back, strict=True):
        assert one.value == other.value
        assert one.low == pytest.approx(other.low, rel=1e-12)
        assert one.high == pytest.approx(other.high, rel=1e-12)


def test_latencies_in_other_units_scale_the_interval() -> None:
    runs = _exponential_days(np.random.default_rng(6), 12, 0.3)
    (one,) = percentiles(runs, (0.99,))
    (other,) = percentiles([run * 1_000 for run in runs], (0.99,))
    for mine, theirs in ((one.value, other.value), (one.low, other.low), (one.high, other.high)):
        assert mine is not None
        assert theirs == pytest.approx(mine * 1_000, rel=1e-9)


def test_unfinished_requests_are_larger_than_any_number() -> None:
    finished = np.linspace(1.0, 2.0, 980)
    runs = [np.append(finished, np.full(20, np.inf)) for _ in range(4)]
    p50, p95, p99 = percentiles(runs, (0.5, 0.95, 0.99))
    assert p50.value == pytest.approx(np.quantile(np.concatenate(runs), 0.5))
    assert p50.low == p50.high == p50.value  # the four runs are alike
    assert p95.value is not None and p95.value < 2
    assert (p99.value, p99.low, p99.high, p99.note) == (None, None, None, BEYOND)
    assert p99.n == 4_000


def test_one_bad_day_among_twenty_leaves_the_upper_bound_open() -> None:
    good = np.linspace(1.0, 2.0, 1_000)
    bad = np.append(np.linspace(1.0, 2.0, 850), np.full(150, np.inf))
    # 150 of 15,000 never end: just inside the p99. Without a good day they are more than 1 %.
    (p99,) = percentiles([bad] + [good] * 14, (0.989999,))
    assert p99.value is not None and p99.high is None and p99.note == BOUND_BEYOND
    assert p99.low is not None and 0 < p99.low < p99.value


def test_a_percentile_needs_ten_samples_beyond_it() -> None:
    assert [samples_needed(q) for q in (0.5, 0.9, 0.95, 0.99, 0.999)] == [20, 100, 200, 1_000, 10_000]
    assert samples_needed(0.01) == 1_000
    runs = [np.arange(60.0), np.arange(60.0)]
    p50, p99 = percentiles(runs, (0.5, 0.99))
    assert p50.value == 29.5 and p50.note == ""
    assert (p99.value, p99.low, p99.high) == (None, None, None)
    assert p99.note == "needs 1,000 samples, has 120"


def test_one_run_has_no_interval() -> None:
    (p50,) = percentiles([np.arange(101.0)], (0.5,))
    assert (p50.value, p50.low, p50.high, p50.n, p50.note) == (50.0, None, None, 101, "")
    mean = ratio([3.0], [2.0])
    assert (mean.value, mean.low, mean.high) == (1.5, None, None)


def test_samples_from_one_run_alone_have_no_interval_and_say_so() -> None:
    empty = np.empty(0)
    for estimate in (
        percentiles([np.arange(50.0), empty, empty], (0.5,))[0],
        ratio([0.3, 0.0, 0.0], [0.1, 0.0, 0.0]),
    ):
        assert estimate.value is not None
        assert (estimate.low, estimate.high, estimate.note) == (None, None, ONE_SOURCE)


def test_a_mean_of_equal_runs_has_the_textbook_interval() -> None:
    # Twenty run means symmetric about 10, so that there is no skewness to mend: x̄ ± t s/√n.
    means = 10 + np.repeat([-1.0, 1.0], 10) * np.tile(np.arange(1, 11) / 100, 2)
    estimate = ratio(means * 100, np.full(20, 100.0))
    half = T19 * means.std(ddof=1) / math.sqrt(20)
    assert estimate.value == pytest.approx(10)
    assert estimate.low == pytest.approx(10 - half, rel=1e-4)
    assert estimate.high == pytest.approx(10 + half, rel=1e-4)
    assert estimate.n == 2_000


def test_pooled_mean_weighs_samples_not_runs() -> None:
    estimate = pooled_mean([np.array([1.0]), np.array([4.0, 4.0, 4.0])])
    assert estimate.value == pytest.approx(13 / 4)
    assert estimate.n == 4
    assert pooled_mean([np.array([1.0, np.inf]), np.array([1.0])]).note == BEYOND
    assert pooled_mean([np.empty(0)]).note == NO_SAMPLES


def test_a_ratio_is_the_sums_ratio() -> None:
    estimate = ratio([1.0, 2.0, 6.0], [10.0, 10.0, 10.0])
    assert estimate.value == pytest.approx(0.3)
    assert ratio([1.0, 2.0], [0.0, 0.0]).value is None


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 1e6)), min_size=2, max_size=30))
@settings(max_examples=300, deadline=None)
def test_intervals_hold_their_value_and_are_never_negative(pairs: list[tuple[float, float]]) -> None:
    estimate = ratio([a for a, _ in pairs], [b for _, b in pairs])
    assert estimate.value is not None and estimate.low is not None and estimate.high is not None
    assert 0 <= estimate.low <= estimate.value * (1 + 1e-9)
    assert estimate.high >= estimate.value * (1 - 1e-9)


def test_an_interval_stays_positive_where_a_plain_one_would_not() -> None:
    without = np.array([1.0, 1.0, 1.0, 0.2])
    low, high = interval(1.0, without)
    plain = 3.182446 * math.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert 1 - plain < 0 < low < 1 < high


def test_a_share_of_nothing_or_everything_is_not_certain() -> None:
    none = share(np.zeros(20), np.full(20, 1_000))
    assert (none.value, none.low) == (0.0, 0.0)
    # Clopper–Pearson for 0 of 20,000: 1 − 0.025^(1/20000)
    assert none.high == pytest.approx(1.8443e-4, rel=1e-3)
    everything = share(np.full(20, 1_000), np.full(20, 1_000))
    assert (everything.value, everything.high) == (1.0, 1.0)
    assert everything.low == pytest.approx(1 - 1.8443e-4, rel=1e-6)
    nearly = share([1_000] * 19 + [900], [1_000] * 20)
    assert nearly.high is not None and nearly.high <= 1.0


def _histogram(runs: Runs, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.stack([np.histogram(run, edges)[0] for run in runs]).astype(np.int64)


def test_histogram_quantiles_are_within_a_bin_of_the_samples() -> None:
    rng = np.random.default_rng(3)
    runs = [np.sort(rng.lognormal(-4, 0.8, size=3_000)) for _ in range(5)]
    edges = np.exp(np.arange(math.log(1e-5), math.log(10), 0.005))
    quantiles = (0.01, 0.5, 0.9, 0.99, 0.999)
    exact = percentiles(runs, quantiles)
    for binned, sample in zip(histogram_quantiles(_histogram(runs, edges), edges, quantiles), exact, strict=True):
        assert binned.n == sample.n == 15_000
        assert sample.value is not None and sample.low is not None and sample.high is not None
        assert binned.value == pytest.approx(sample.value, rel=0.005)
        assert binned.low == pytest.approx(sample.low, rel=0.1)
        assert binned.high == pytest.approx(sample.high, rel=0.1)


def test_histogram_quantiles_between_two_distant_bins_interpolate_as_samples_do() -> None:
    edges = np.exp(np.arange(0, 10, 0.005))
    run = np.array([2.0, 1_000.0])
    (median,) = histogram_quantiles(_histogram([run], edges), edges, (0.5,), enough=False)
    assert median.value == pytest.approx(np.quantile(run, 0.5), rel=0.005)


def test_histogram_bins_hold_their_samples_evenly_in_the_logarithm() -> None:
    counts = np.array([[0, 1_001, 0]])
    edges = np.array([0.0, 1.0, 4.0, 8.0])
    (median,) = histogram_quantiles(counts, edges, (0.5,))
    assert median.value == pytest.approx(2.0)
    (median,) = histogram_quantiles(np.array([[1_001, 0, 0]]), edges, (0.5,))
    assert median.value == pytest.approx(0.5)


def test_a_curve_agrees_with_its_percentiles_and_has_gaps_where_they_have() -> None:
    runs = _exponential_days(np.random.default_rng(9), 5, 0.3, size=300)
    quantiles = np.array([0.001, 0.1, 0.5, 0.99, 0.999])
    band = curve(runs, quantiles.tolist())
    assert np.isnan(band.value[[0, 4]]).all()  # 1,500 samples are too few
    for index in (1, 2, 3):
        (estimate,) = percentiles(runs, (float(quantiles[index]),))
        assert (band.value[index], band.low[index], band.high[index]) == (
            estimate.value,
            estimate.low,
            estimate.high,
        )
    edges = np.exp(np.arange(-12, 4, 0.005))
    binned = histogram_curve(_histogram(runs, edges), edges, quantiles.tolist())
    np.testing.assert_allclose(binned.value, band.value, rtol=0.006)
    one = curve(runs[:1], [0.5])
    assert np.isnan(one.low).all() and np.isfinite(one.value).all()


@pytest.mark.parametrize(("cv", "runs", "least"), [(0.3, 20, 0.93), (0.6, 20, 0.90), (0.3, 8, 0.90)])
def test_the_p99_interval_covers_the_truth(cv: float, runs: int, least: float) -> None:
    """The p99 of exponential latencies whose daily level (and traffic) is lognormal, 400 times.

    The truth is the x at which E[F exp(−x/F)] = 1 %, F being the level; *least* is below the 95 % that is
    asked for, because the levels of few days say little of the tail of levels.
    """
    sigma = math.sqrt(math.log1p(cv * cv))
    z = np.linspace(-8, 8, 4_001)
    level = np.exp(sigma * z - sigma**2 / 2)
    weight = np.exp(-(z**2) / 2) * level
    low, high = 0.0, 1_000.0
    for _ in range(80):
        middle = (low + high) / 2
        above = float((weight * np.exp(-middle / level)).sum() / weight.sum()) > 0.01
        low, high = (middle, high) if above else (low, middle)
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        (p99,) = percentiles(_exponential_days(rng, runs, cv), (0.99,))
        assert p99.low is not None and p99.high is not None
        covered += p99.low <= low <= p99.high
    assert covered >= least * 400
