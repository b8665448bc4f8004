"""Models follow the local clock: weekdays, weekends, holidays, and days of 23 and 25 hours."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic import laws
from fleetcast.traffic.calendar import Week, local_clock, midnights, smooth_cells
from fleetcast.traffic.counts import Counts
from fleetcast.traffic.fit import fit_model, inner_dispersion
from fleetcast.traffic.lengths import preset
from fleetcast.traffic.model import TrafficModel, Wander, make_days
from fleetcast.traffic.read import Options, read_trace, read_traffic
from fleetcast.traffic.trace import Trace, make_trace

BERLIN = "Europe/Berlin"
RAG = preset("rag")


def by_hour(trace: Trace) -> np.ndarray:
    assert trace.start is not None
    clock = local_clock(trace.start, int(trace.arrival_s[-1] // 60) + 1, 60.0, trace.time_zone)
    return np.bincount(clock.second[(trace.arrival_s // 60).astype(int)] // 3_600, minlength=24)


def flat(rate: float = 0.05) -> TrafficModel:
    return TrafficModel("flat", week=Week(np.full((7, 24), rate), 3_600.0), day_cv=0.0, lengths=RAG)


# --- the clock -------------------------------------------------------------------------------------------------------


def test_days_are_23_and_25_hours_long_where_the_clock_changes() -> None:
    for first, hours in ((date(2026, 3, 28), [24, 23, 24]), (date(2026, 10, 24), [24, 25, 24])):
        edges = midnights(first, 3, BERLIN)
        assert [(b.timestamp() - a.timestamp()) / 3_600 for a, b in pairwise(edges)] == hours
        clock = local_clock(edges[0], 72 * 60 + 120, 60.0, BERLIN)
        lengths = np.bincount(clock.day - clock.day[0]) / 60
        assert lengths[:3].tolist() == hours


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "UTC"])
def test_the_local_clock_is_the_zone_s_own(zone: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = local_clock(start, 366 * 24, 3_600.0, zone)
    for hour in range(0, 366 * 24, 97):
        local = (start + timedelta(hours=hour, minutes=30)).astimezone(ZoneInfo(zone))
        assert clock.weekday[hour] == local.weekday()
        assert clock.second[hour] == local.hour * 3_600 + local.minute * 60


def test_smooth_cells_keep_every_total_and_are_never_negative() -> None:
    cells = np.array([5.0, 0.0, 0.0, 9.0, 1.0, 30.0])
    fine = smooth_cells(cells, 60)
    assert fine.reshape(6, 60).mean(axis=1) == pytest.approx(cells, abs=1e-9)
    assert fine.min() >= 0


def test_made_days_follow_the_wall_clock_over_the_change() -> None:
    rate = np.zeros((7, 24))
    rate[:, 14] = 1.0  # all requests between 14:00 and 15:00 local
    model = TrafficModel("m", week=Week(rate, 3_600.0, False, BERLIN), time_zone=BERLIN, day_cv=0.0, lengths=RAG)
    trace = make_days(model, 3, 0, first=date(2026, 3, 28))
    hours = np.unique((trace.arrival_s // 3_600).astype(int))
    assert hours.tolist() == [14, 37, 61]  # the second day has 23 hours
    assert by_hour(trace)[14] == len(trace)
    autumn = make_days(model, 3, 0, first=date(2026, 10, 24))
    assert np.unique((autumn.arrival_s // 3_600).astype(int)).tolist() == [14, 39, 63]


def test_holidays_are_like_the_day_that_was_said() -> None:
    rate = np.array([[1.0] * 24] * 5 + [[0.1] * 24] * 2)
    week = Week(rate, 3_600.0, False, None, (date(2026, 12, 25),), 6)
    model = TrafficModel("m", week=week, day_cv=0.0, lengths=RAG)
    trace = make_days(model, 2, 0, first=date(2026, 12, 24))
    one, other = np.histogram(trace.arrival_s, [0, 86_400, 172_800])[0]
    assert abs(one - 86_400) < 4 * 86_400**0.5
    assert abs(other - 8_640) < 4 * 8_640**0.5


# --- fits ------------------------------------------------------------------------------------------------------------


def cloudwatch(path: Path, first: date, days: int) -> Path:
    """Counts per 5 minutes at UTC stamps of traffic that peaks from 14:00 to 15:00 Berlin time, 10 to 1."""
    edges = midnights(first, days, BERLIN)
    steps = round((edges[-1].timestamp() - edges[0].timestamp()) / 300)
    clock = local_clock(edges[0], steps, 300.0, BERLIN)
    rng = np.random.default_rng(0)
    values = rng.poisson(np.where(clock.second // 3_600 == 14, 500, 50)).tolist()
    stamps = [(edges[0].astimezone(UTC) + timedelta(seconds=300 * k)).isoformat() for k in range(steps)]
    row = {"Id": "m", "Label": "m", "Timestamps": stamps[::-1], "Values": values[::-1]}
    path.write_text(json.dumps({"MetricDataResults": [row]}))
    return path


@pytest.mark.parametrize(("first", "hours"), [(date(2026, 3, 23), 23), (date(2026, 10, 19), 25)])
def test_cloudwatch_counts_in_another_zone_over_the_change(tmp_path: Path, first: date, hours: int) -> None:
    path = cloudwatch(tmp_path / "calls.json", first, 14)  # the clock changes on the first Sunday
    counts = read_traffic(path, Options(time_zone=BERLIN)).counts
    assert counts is not None
    assert counts.start is not None
    clock = local_clock(counts.start, len(counts.requests), 300.0, BERLIN)
    lengths = np.bincount(clock.day - clock.day[0]) / 12
    assert lengths.tolist() == [24] * 6 + [hours] + [24] * 7
    model = fit_model(counts, lengths=RAG, cell_s=3_600.0, smooth=False)
    assert model.week is not None
    assert model.time_zone == BERLIN
    for day in range(7):  # also the days after the change, and the change itself, peak at 14:00
        assert model.week.rate[day, 14] == pytest.approx(500 / 300, rel=4 * (24 * 500) ** -0.5)
        assert np.delete(model.week.rate[day], 14) == pytest.approx(np.full(23, 50 / 300), rel=4.5 * (12 * 50) ** -0.5)
    sunday = make_days(model, 1, 0, first=first + timedelta(days=6))
    assert by_hour(sunday).argmax() == 14
    assert sunday.arrival_s[-1] <= hours * 3_600
    assert sunday.arrival_s[-1] > hours * 3_600 - 300
    naive = fit_model(read_traffic(path, Options()).counts, lengths=RAG, cell_s=3_600.0, smooth=False)  # type: ignore[arg-type]
    assert naive.week is not None
    assert np.count_nonzero(naive.week.rate.mean(axis=0) > 0.4) == 2  # by UTC the peak is smeared over two hours


def test_a_week_of_ragpulse_gives_working_days_and_weekends_in_their_bands(shared_data: Path) -> None:
    trace = read_trace(shared_data / "traces" / "ragpulse_0_trace.jsonl")
    model = fit_model(trace)
    assert model.week is not None
    assert np.array_equal(model.week.rate[0], model.week.rate[4])
    assert np.array_equal(model.week.rate[5], model.week.rate[6])
    begin = trace.start
    assert begin is not None
    clock = local_clock(begin, 7 * 24, 3_600.0, trace.time_zone)
    weekend = clock.weekday >= 5
    counts = np.bincount((trace.arrival_s // 3_600).astype(int), minlength=7 * 24)[: 7 * 24]
    weeks = [make_days(model, 7, seed, first=date(2025, 9, 22)) for seed in range(40)]
    local = local_clock(datetime(2025, 9, 22, tzinfo=ZoneInfo("Asia/Shanghai")), 7 * 24, 3_600.0, "Asia/Shanghai")
    made = np.array([np.bincount((w.arrival_s // 3_600).astype(int), minlength=7 * 24) for w in weeks])
    for kind, recorded in ((False, counts[~weekend]), (True, counts[weekend])):
        days = made[:, (local.weekday >= 5) == kind]
        totals = days.sum(axis=1) / (days.shape[1] / 24)
        wanted = recorded.sum() / (len(recorded) / 24)
        band = totals.std(ddof=1) * (1 + 1 / len(totals)) ** 0.5
        assert abs(totals.mean() - wanted) < 4 * band / len(totals) ** 0.5 + 0.01 * wanted
        assert totals.min() < wanted < totals.max()
        shape = days.reshape(len(weeks), -1, 24).mean(axis=(0, 1))
        hour = clock.second[weekend == kind] // 3_600
        target = np.bincount(hour, weights=recorded, minlength=24) / np.bincount(hour, minlength=24)
        noise = np.sqrt(target / np.bincount(hour, minlength=24)) + 0.05 * target + 0.5
        assert np.all(np.abs(shape - target) < 4 * noise)
    assert 700 < made[:, local.weekday >= 5].sum(axis=1).mean() / 2 < 860  # published: 759 and 801


def test_what_was_put_in_is_fitted_back() -> None:
    hours = 0.4 + 0.3 * np.sin(2 * np.pi * np.arange(24) / 24)
    week = Week(np.array([hours] * 5 + [0.5 * hours] * 2), 3_600.0)
    layers = (Wander(3_600.0, 0.3, 0.6),)
    true = TrafficModel("t", week=week, day_cv=0.25, wander=layers, lengths=RAG, start=datetime(2026, 1, 4))
    found = fit_model(make_days(true, 84, 1), groups="weekday-weekend", cell_s=3_600.0, smooth=False)
    assert found.week is not None
    assert found.week.rate[0] / found.week.rate[0].mean() == pytest.approx(hours / hours.mean(), rel=0.2)
    assert found.week.rate[5].mean() / found.week.rate[0].mean() == pytest.approx(0.5, rel=0.2)
    assert found.day_cv == pytest.approx(0.25, abs=4 * 0.25 / (2 * 82) ** 0.5)
    assert [layer.step_s for layer in found.wander][:1] == [3_600.0]
    assert found.wander[0].cv == pytest.approx(0.3, rel=0.25)
    assert found.wander[0].correlation == pytest.approx(0.6, abs=0.15)
    assert found.dispersion == pytest.approx(1.0, abs=0.05)


def test_plain_poisson_is_fitted_as_plain_poisson() -> None:
    trace = make_days(flat(), 28, 2)
    found = fit_model(trace)
    assert found.day_cv < 0.05
    assert all(layer.cv < 0.1 for layer in found.wander)
    assert found.week is not None
    assert found.week.rate == pytest.approx(np.full_like(found.week.rate, 0.05), rel=0.5)


@pytest.mark.parametrize(("cv", "wanted"), [(1.0, 1.0), (2.0, 4.0), (4.0, 16.0)])
def test_bursts_inside_the_minute_are_told_from_the_rate(cv: float, wanted: float) -> None:
    edges = 60.0 * np.arange(601)
    expected = 600 + 300 * np.sin(np.arange(600) / 20)
    arrival = laws.at_operational_times(edges, expected, cv**2, np.random.default_rng(3))
    found = inner_dispersion(make_trace(arrival, np.ones(len(arrival), int), np.ones(len(arrival), int)))
    assert found is not None
    assert found[0] == pytest.approx(wanted, rel=0.12)


def test_gaps_are_left_out_of_every_mean() -> None:
    requests = np.full(14 * 288, 30.0)
    requests[1_000:1_300] = np.nan
    counts = Counts(0.0, 300.0, requests, datetime(2026, 1, 5))
    model = fit_model(counts, lengths=RAG)
    assert model.week is not None
    assert model.week.rate == pytest.approx(np.full_like(model.week.rate, 0.1))


# --- days ------------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_days_and_layers_draw_apart() -> None:
    model = TrafficModel("m", week=flat().week, day_cv=0.3, wander=(Wander(3_600.0, 0.2, 0.5),), lengths=RAG)
    one, same, other = (make_days(model, 2, seed) for seed in (5, 5, 6))
    assert np.array_equal(one.arrival_s, same.arrival_s)
    assert np.array_equal(one.output_tokens, same.output_tokens)
    assert not np.array_equal(one.arrival_s, other.arrival_s)
    longer = make_days(TrafficModel(**{**vars(model), "lengths": preset("chat")}), 2, 5)
    assert np.array_equal(one.arrival_s, longer.arrival_s)  # other lengths leave arrivals as they were


def test_days_differ_as_they_are_told_to() -> None:
    model = TrafficModel(**{**vars(flat(0.2)), "day_cv": 0.4})
    counts = np.histogram(make_days(model, 400, 7).arrival_s, 86_400 * np.arange(401))[0]
    cv = counts.std() / counts.mean()
    assert counts.mean() == pytest.approx(0.2 * 86_400, rel=4 * 0.4 / 20)
    assert cv == pytest.approx(0.4, rel=0.25)


def test_wandering_factors_have_their_spread_and_correlation() -> None:
    drawn = Wander(60.0, 0.5, 0.8).draw(200_000, np.random.default_rng(8))
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    assert drawn.std() == pytest.approx(0.5, rel=0.05)
    assert np.corrcoef(drawn[1:], drawn[:-1])[0, 1] == pytest.approx(0.8, abs=0.03)


def test_lengths_come_from_their_time_of_the_week() -> None:
    minutes = np.arange(14 * 1_440)
    arrival = np.repeat(60.0 * minutes, 3) + np.tile([1.0, 20.0, 40.0], len(minutes))
    hour = (arrival // 3_600).astype(int) % 24
    trace = make_trace(arrival, hour + 1, 100 * (hour + 1), start=datetime(2026, 1, 5))
    made = make_days(fit_model(trace, cell_s=3_600.0), 3, 0)
    assert np.array_equal(made.output_tokens, 100 * made.input_tokens)  # pairs stay together
    wanted = (made.arrival_s // 3_600).astype(int) % 24 + 1
    assert np.mean(np.abs(made.input_tokens - wanted) <= 1) > 0.95
    assert np.mean(made.input_tokens == wanted) > 0.9


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda: make_days(flat(), 0, 0), ScenarioError),
        (lambda: make_days(flat(), 5_000, 0), ScenarioError),
        (lambda: make_days(flat(), 1, -1), ScenarioError),
        (lambda: make_days(flat(), 1, 0, burst="huge"), ScenarioError),
        (lambda: make_days(flat(1e5), 1, 0), ScenarioError),
        (lambda: make_days(TrafficModel("m", week=flat().week), 1, 0), ScenarioError),
        (lambda: fit_model(Counts(0.0, 60.0, np.zeros(5)), lengths=RAG), DataError),
        (lambda: fit_model(Counts(0.0, 60.0, np.ones(5))), DataError),
        (lambda: fit_model(Counts(0.0, 60.0, np.ones(5)), lengths=RAG, groups="month"), ScenarioError),
    ],
)
def test_what_cannot_be_made_is_refused(act: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        act()
