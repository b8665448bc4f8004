"""Random days keep the laws they were promised: rate, dispersion, day factor, pairs from their window.

Sample sizes are fixed and seeds too; a law may miss by four standard errors of its own theory.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic.arrivals import minute_counts, spread
from fleetcast.traffic.describe import describe
from fleetcast.traffic.resample import WINDOW_ROWS, DayModel, fit_days, random_day
from fleetcast.traffic.trace import Labels, Trace, make_trace


def recorded(per_minute: list[int], begin_s: float = 0.0) -> Trace:
    """A trace with so many requests in each minute; input is the minute, output the row, tenant is odd or even."""
    counts = np.array(per_minute)
    minute = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    arrival = begin_s + 60.0 * minute + 60.0 * (place + 0.5) / np.repeat(counts, counts)
    rows = np.arange(len(minute))
    return make_trace(
        arrival, minute, rows + 1, labels={"tenant": Labels((rows % 2).astype(np.int32), ("even", "odd"))}, name="r"
    )


def draw(model: DayModel, *seed: int) -> Trace:
    day, arrivals, lengths = (np.random.default_rng([*seed, source]) for source in range(3))
    return random_day(model, day=day, arrivals=arrivals, lengths=lengths)


def test_counts_per_minute_begin_with_the_minute_of_the_first_arrival() -> None:
    begin_s, counts = minute_counts(make_trace([130.0, 179.9, 180.0, 419.9], [1] * 4, [1] * 4))
    assert begin_s == 120.0
    assert counts.tolist() == [2, 1, 0, 0, 1]
    model = fit_days(make_trace([130.0, 420.0], [1] * 2, [1] * 2), 0.3)
    assert (model.begin_s, model.horizon_s, model.days) == (120.0, 360.0, 1)


def test_a_trace_of_ten_years_is_taken_for_another_unit() -> None:
    with pytest.raises(DataError, match=r"(?s)more than ten years.*milliseconds.*divide"):
        fit_days(make_trace([0.0, 1e9], [1, 1], [1, 1]), 0.3)


@pytest.mark.parametrize("cv", [-0.1, float("nan"), float("inf"), 11.0])
def test_a_day_cv_out_of_range_is_refused(cv: float) -> None:
    with pytest.raises(ScenarioError, match="day_cv = "):
        fit_days(recorded([5]), cv)


# --- arrivals --------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 30), max_size=30).filter(bool), st.integers(0, 2**32), st.integers(0, 10**6))
def test_arrivals_are_sorted_and_as_many_per_minute_as_counted(counts: list[int], seed: int, begin: int) -> None:
    arrival = spread(np.array(counts), 60.0 * begin, np.random.default_rng(seed))
    assert np.all(np.diff(arrival) >= 0)
    minute = np.floor(arrival / 60.0).astype(int) - begin
    assert np.bincount(minute, minlength=len(counts)).tolist() == counts


def test_arrivals_are_uniform_and_independent_inside_the_minute() -> None:
    minutes, each = 4_000, 50
    arrival = spread(np.full(minutes, each), 0.0, np.random.default_rng(11))
    inside = (arrival % 60.0) / 60.0
    n = len(inside)
    bins = np.bincount((inside * 20).astype(int), minlength=20)
    square = float(((bins - n / 20) ** 2 / (n / 20)).sum())
    assert abs(square - 19) < 4 * math.sqrt(2 * 19)
    # k-th of n uniforms: mean k / (n + 1), variance k (n + 1 - k) / (n + 1)^2 / (n + 2)
    k = np.arange(1, each + 1)
    error = np.sqrt(k * (each + 1 - k) / (each + 1) ** 2 / (each + 2) / minutes)
    ordered = inside.reshape(minutes, each)
    assert np.all(np.abs(ordered.mean(axis=0) - k / (each + 1)) < 4 * error)
    half = (ordered < 0.5).sum(axis=1)  # binomial: variance n / 4
    assert half.var() / (each / 4) == pytest.approx(1.0, abs=4 * math.sqrt(2 / minutes))


def test_with_no_day_factor_minute_counts_are_poisson_with_the_recorded_mean() -> None:
    wanted = np.array([3, 0, 40, 7, 120, 1, 15, 60, 2, 30])
    model = fit_days(recorded(wanted.tolist()), 0.0)
    days = 1_500
    counts = np.zeros((days, len(wanted)))
    for number in range(days):
        arrival = draw(model, 1, number).arrival_s
        counts[number] = np.bincount((arrival // 60).astype(int), minlength=len(wanted))
    assert not counts[:, wanted == 0].any()
    mean, var = counts.mean(axis=0), counts.var(axis=0)
    assert np.all(np.abs(mean - wanted) <= 4 * np.sqrt(wanted / days))
    # the variance of a Poisson sample's variance is (2 m^2 + m) / n
    assert np.all(np.abs(var - wanted) <= 4 * np.sqrt((2 * wanted**2 + wanted) / days))
    minutes = counts[:, wanted > 0]
    between = np.asarray(np.corrcoef(minutes.T))[np.triu_indices(minutes.shape[1], 1)]
    assert np.abs(between).max() < 4.5 / math.sqrt(days)  # the largest of 36


def test_a_constant_rate_gives_a_poisson_process() -> None:
    model = fit_days(recorded([600] * 120), 0.0)
    seen = describe(draw(model, 2))
    for window, n in ((1, 7_200), (10, 720), (60, 120)):
        assert seen.iod[window] == pytest.approx(1.0, abs=4 * math.sqrt(2 / n))


# --- the day factor --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [0.3, 0.8])
def test_the_day_factor_has_mean_one_and_the_given_cv(cv: float) -> None:
    rows, days = 2_000, 3_000
    model = fit_days(recorded([500] * 4), cv)
    factor = np.array([len(draw(model, 3, number)) for number in range(days)]) / rows
    assert factor.mean() == pytest.approx(1.0, abs=4 * math.sqrt((cv**2 + 1 / rows) / days))
    w = 1 + cv**2
    kurtosis = w**4 + 2 * w**3 + 3 * w**2 - 3  # of a lognormal
    assert factor.var() == pytest.approx(cv**2 + 1 / rows, rel=4 * math.sqrt((kurtosis - 1) / days))
    logs = np.log(factor)  # normal: no skew
    skew = ((logs - logs.mean()) ** 3).mean() / logs.std() ** 3
    assert abs(skew) < 4 * math.sqrt(6 / days)
    assert logs.std() == pytest.approx(math.sqrt(math.log(w)), rel=4 * math.sqrt(0.5 / days) + 0.005)


def two_days() -> Trace:
    return make_trace(np.arange(0.0, 2 * 86_400, 60.0), [1] * 2_880, [1] * 2_880)


def test_each_24_hours_have_a_factor_of_their_own() -> None:
    model = fit_days(two_days(), 0.5)
    assert model.days == 2
    days = 600
    counts = np.zeros((days, 2))
    for number in range(days):
        counts[number] = np.bincount((draw(model, 4, number).arrival_s // 86_400).astype(int), minlength=2)
    factors = counts / 1_440
    assert np.all(np.abs(factors.mean(axis=0) - 1) < 4 * math.sqrt((0.25 + 1 / 1_440) / days))
    assert np.all(factors.std(axis=0) > 0.3)
    assert abs(np.corrcoef(*factors.T)[0, 1]) < 4 / math.sqrt(days)


@pytest.mark.parametrize(
    ("cv", "days", "trace"), [(0.0, 1, recorded([4, 4])), (0.3, 1, recorded([4])), (0.3, 2, two_days())]
)
def test_the_day_stream_gives_one_draw_per_24_hours(cv: float, days: int, trace: Trace) -> None:
    used, same = np.random.default_rng(5), np.random.default_rng(5)
    random_day(fit_days(trace, cv), day=used, arrivals=np.random.default_rng(0), lengths=np.random.default_rng(0))
    same.standard_normal(days)
    assert used.bit_generator.state == same.bit_generator.state


def test_the_same_generators_give_the_same_day_and_each_source_its_own_part() -> None:
    model = fit_days(recorded([30, 50, 70]), 0.3)

    def day(*seeds: int) -> Trace:
        one, two, three = (np.random.default_rng(seed) for seed in seeds)
        return random_day(model, day=one, arrivals=two, lengths=three)

    base, again, lengths, arrivals, factor = day(1, 2, 3), day(1, 2, 3), day(1, 2, 4), day(1, 5, 3), day(6, 2, 3)
    assert np.array_equal(base.arrival_s, again.arrival_s)
    assert np.array_equal(base.output_tokens, again.output_tokens)
    assert np.array_equal(base.arrival_s, lengths.arrival_s)
    assert not np.array_equal(base.output_tokens, lengths.output_tokens)
    assert not np.array_equal(base.arrival_s, arrivals.arrival_s)
    assert len(factor) != len(base)


# --- lengths ---------------------------------------------------------------------------------------------------------


def test_rows_are_recorded_rows_of_the_same_minute_where_it_holds_enough() -> None:
    trace = recorded([WINDOW_ROWS, 2 * WINDOW_ROWS, WINDOW_ROWS + 1])
    day = draw(fit_days(trace, 0.3), 6)
    row = day.output_tokens - 1
    assert np.array_equal(day.input_tokens, day.arrival_s // 60)
    assert np.array_equal(day.input_tokens, trace.input_tokens[row])
    assert np.array_equal(day.labels["tenant"].codes, row % 2)
    assert day.labels["tenant"].names == ("even", "odd")
    assert day.name == "r"


def test_every_row_of_the_window_is_as_likely() -> None:
    rows, days = WINDOW_ROWS, 500
    model = fit_days(recorded([rows]), 0.0)
    drawn = np.concatenate([draw(model, 7, number).output_tokens for number in range(days)])
    counts = np.bincount(drawn - 1, minlength=rows)
    assert len(counts) == rows
    mean = len(drawn) / rows
    square = float(((counts - mean) ** 2 / mean).sum())
    assert abs(square - (rows - 1)) < 4 * math.sqrt(2 * (rows - 1))


def window_by_hand(counts: NDArray[np.int64], minute: int) -> tuple[int, int]:
    wanted = min(WINDOW_ROWS, counts.sum())
    for reach in range(len(counts) + 1):
        first, last = max(minute - reach, 0), min(minute + reach + 1, len(counts))
        if counts[first:last].sum() >= wanted:
            break
    return int(counts[:first].sum()), int(counts[first:last].sum())


@given(st.lists(st.sampled_from([0, 0, 1, 20, 67, 100, 199, 200, 300]), min_size=1, max_size=25))
def test_a_sparse_minute_widens_its_window_symmetrically(per_minute: list[int]) -> None:
    counts = np.array([max(per_minute[0], 1), *per_minute[1:-1], max(per_minute[-1], 1)][: len(per_minute)])
    model = fit_days(recorded(counts.tolist()), 0.3)
    assert np.array_equal(model.minute_counts, counts)
    windows = [window_by_hand(counts, minute) for minute in range(len(counts))]
    assert list(zip(model.window_first.tolist(), model.window_rows.tolist(), strict=True)) == windows


def test_lengths_follow_the_hour_they_come_from() -> None:
    day = draw(fit_days(recorded([50] * 40), 0.0), 8)
    off = day.input_tokens - day.arrival_s // 60
    inner = (day.arrival_s >= 180) & (day.arrival_s < 37 * 60)
    assert set(off[inner]) == {-2, -1, 0, 1, 2}
    assert set(day.input_tokens[day.arrival_s < 60]) == {0, 1, 2, 3}


# --- the day as a trace ----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 40_000), min_size=1, max_size=60), st.floats(0, 1), st.integers(0, 2**32))
def test_a_random_day_is_a_trace_within_its_horizon(arrival: list[float], cv: float, seed: int) -> None:
    model = fit_days(make_trace(arrival, [1] * len(arrival), [1] * len(arrival)), cv)
    day = draw(model, seed)
    assert np.all(np.diff(day.arrival_s) >= 0)
    assert np.all((model.begin_s <= day.arrival_s) & (day.arrival_s <= model.begin_s + model.horizon_s))
    assert len(day.arrival_s) == len(day.input_tokens) == len(day.output_tokens)
    assert [str(a.dtype) for a in (day.arrival_s, day.input_tokens, day.output_tokens)] == ["float64", "int32", "int32"]
    assert model.begin_s <= min(arrival)
    assert max(arrival) < model.begin_s + model.horizon_s


def test_a_day_may_be_empty() -> None:
    model = fit_days(make_trace([1_000.0], [1], [1]), 0.0)
    sizes = [len(draw(model, 9, number)) for number in range(40)]
    assert 0 in sizes
    empty = draw(model, 9, sizes.index(0))
    assert empty.span_s == 0.0


def test_scaling_the_day_scales_the_counts_and_nothing_else() -> None:
    quiet = fit_days(recorded([50] * 60), 0.0)
    busy = replace(quiet, minute_counts=quiet.minute_counts * 3)
    few, many = draw(quiet, 10), draw(busy, 10)
    assert len(many) == pytest.approx(9_000, abs=4 * math.sqrt(9_000))
    assert len(few) == pytest.approx(3_000, abs=4 * math.sqrt(3_000))
    assert set(many.output_tokens) <= set(quiet.trace.output_tokens)
