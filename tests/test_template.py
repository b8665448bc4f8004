"""The weekday made from published figures keeps to them."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import pytest

from fleetcast.errors import ScenarioError
from fleetcast.traffic.arrivals import minute_counts
from fleetcast.traffic.describe import describe
from fleetcast.traffic.template import hourly_shape, make_day
from fleetcast.traffic.trace import Trace

# Requests by hour: RAGPulse (7 days, UTC+8) and BurstGPT_1 (mean of 61 days, UTC+8).
RAGPULSE = [46, 16, 9, 4, 3, 4, 4, 15, 33, 43, 64, 66, 54, 60, 68, 70, 63, 54, 62, 66, 55, 52, 58, 47]
BURSTGPT = [
    940, 893, 572, 513, 368, 342, 194, 153, 178, 416, 879, 1287,
    1744, 1501, 1796, 1401, 1476, 1356, 1181, 1568, 1353, 1175, 1129, 1026,
]  # fmt: skip


@pytest.fixture(scope="module")
def days() -> list[Trace]:
    return [make_day("weekday", 4, seed) for seed in range(6)]


def test_a_day_of_ten_a_second_has_as_many_requests() -> None:
    day = make_day("weekday", 10, 0)
    assert len(day) == pytest.approx(864_000, abs=4 * math.sqrt(864_000))
    assert 0 <= day.arrival_s[0] < 60
    assert 86_340 < day.arrival_s[-1] < 86_400


def test_the_total_is_poisson_around_the_mean_rate() -> None:
    totals = np.array([len(make_day("weekday", 0.5, seed)) for seed in range(60)])
    assert totals.mean() == pytest.approx(43_200, abs=4 * math.sqrt(43_200 / 60))
    assert totals.var(ddof=1) == pytest.approx(43_200, rel=4 * math.sqrt(2 / 59))


def test_the_shape_is_the_mean_of_both_published_hour_profiles() -> None:
    shape = hourly_shape()
    assert shape.shape == (1_440,)
    for hour in range(24):
        wanted = (RAGPULSE[hour] / fmean(RAGPULSE) + BURSTGPT[hour] / fmean(BURSTGPT)) / 2
        assert shape[60 * hour : 60 * hour + 60].mean() == pytest.approx(wanted, rel=1e-9)
    assert shape.min() > 0
    assert np.abs(np.diff(shape, append=shape[0])).max() < 0.02  # smooth, also over midnight
    assert shape[14 * 60 : 15 * 60].mean() > 10 * shape[6 * 60 : 7 * 60].mean()


def test_the_hours_of_a_day_follow_the_shape(days: list[Trace]) -> None:
    wanted = hourly_shape().reshape(24, 60).mean(axis=1)
    hours = np.mean([minute_counts(day)[1].reshape(24, 60).mean(axis=1) / 240 for day in days], axis=0)
    # minutes of cv 0.215 and correlation 0.905^lag: an hour's mean has a standard deviation of about 0.12
    assert np.all(np.abs(hours / wanted - 1) < 4 * 0.12 / math.sqrt(len(days)))


def test_minutes_wander_as_those_of_the_azure_chat_trace(days: list[Trace]) -> None:
    expected = 240 * hourly_shape()
    ratio = np.array([minute_counts(day)[1] / expected for day in days])
    off = ratio - ratio.mean(axis=1, keepdims=True)
    variance = (off**2).mean() - (1 / expected).mean()  # less the Poisson part
    # 1,440 minutes are worth 143 independent ones for a variance, at a correlation of 0.905
    assert variance == pytest.approx(0.215**2, rel=4 * math.sqrt(2 / 143 / len(days)) + 0.03)
    lagged = (off[:, 1:] * off[:, :-1]).mean() / variance
    assert lagged == pytest.approx(0.905, abs=4 * math.sqrt((1 - 0.905**2) / 1_440 / len(days)) + 0.01)


def test_every_request_fits_a_context_of_1024_tokens(days: list[Trace]) -> None:
    for day in days:
        assert (day.input_tokens.astype(int) + day.output_tokens).max() <= 1_024
        assert day.input_tokens.min() >= 1
        assert day.output_tokens.min() >= 1


def test_lengths_are_about_250_in_and_100_out(days: list[Trace]) -> None:
    for day in days:
        assert day.input_tokens.mean() == pytest.approx(250, abs=3)
        assert day.output_tokens.mean() == pytest.approx(100, abs=4)


def test_answers_depend_on_prompts_as_in_the_azure_chat_trace(days: list[Trace]) -> None:
    inputs = np.concatenate([day.input_tokens for day in days])
    outputs = np.concatenate([day.output_tokens for day in days])
    quartile = np.searchsorted(np.quantile(inputs, [0.25, 0.5, 0.75]), inputs)
    medians = np.array([np.median(outputs[quartile == number]) for number in range(4)])
    published = np.array([98, 108, 406, 89])
    assert medians / medians.mean() == pytest.approx(published / published.mean(), rel=0.1)
    two_modes = np.histogram(outputs, [30, 55, 100, 160, 210])[0]
    assert two_modes[1] > 2 * two_modes[2] < two_modes[3]


def test_busy_minutes_have_shorter_answers(days: list[Trace]) -> None:
    for day in days:
        minute = (day.arrival_s // 60).astype(int)
        counts = np.bincount(minute, minlength=1_440)
        mean = np.bincount(minute, day.output_tokens, minlength=1_440) / counts
        busy = counts / hourly_shape()
        assert np.corrcoef(busy, mean)[0, 1] < -0.2


def test_the_same_seed_gives_the_same_day_and_another_seed_another() -> None:
    one, same, other = (make_day("weekday", 0.5, seed) for seed in (3, 3, 4))
    for column in ("arrival_s", "input_tokens", "output_tokens"):
        assert np.array_equal(getattr(one, column), getattr(same, column))
    assert len(one) != len(other) or not np.array_equal(one.arrival_s, other.arrival_s)


def test_streams_are_apart() -> None:
    """Another rate moves the arrivals, not the way the rate wanders."""
    few, many = (minute_counts(make_day("weekday", rate, 1))[1] / rate for rate in (20, 40))
    wander = few / (60 * hourly_shape()) - 1
    assert np.corrcoef(wander, many / (60 * hourly_shape()) - 1)[0, 1] > 0.9


def test_a_day_says_what_it_is() -> None:
    day = make_day("weekday", 0.25, 7)
    assert (day.name, day.time_zone, day.notes, dict(day.labels)) == ("weekday", None, (), {})
    assert day.start is not None
    assert day.start.isoweekday() <= 5
    assert day.start.time().isoformat() == "00:00:00"
    assert "weekday, mean rate 0.25/s, seed 7" in day.recipe
    assert describe(day).mean_rate == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize(
    ("template", "rate", "seed", "says"),
    [
        ("weekdays", 10, 0, "(?s)no traffic template named 'weekdays'.*closest: weekday"),
        ("moon", 10, 0, "known: weekday"),
        ("weekday", 0, 0, "mean rate = 0"),
        ("weekday", -1.5, 0, "mean rate = -1.5"),
        ("weekday", float("nan"), 0, "mean rate = nan"),
        ("weekday", float("inf"), 0, "mean rate = inf"),
        ("weekday", 1e6, 0, "(?s)86,400,000,000 requests does not fit into memory.*at most 500"),
        ("weekday", 1e-12, 0, "not one request"),
        ("weekday", 10, -1, "seed = -1"),
        ("weekday", 10, True, "seed = True"),
    ],
)
def test_what_cannot_be_made_is_refused(template: str, rate: float, seed: int, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        make_day(template, rate, seed)
