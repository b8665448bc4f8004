"""Changes of a trace follow their own laws of dispersion, and change nothing else.

Stochastic laws are compared over independent repetitions: the mean may miss by four standard errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from house import ROOT
from numpy.typing import NDArray

from fleetcast.errors import FleetcastError, ScenarioError
from fleetcast.profiles.read import load_profile
from fleetcast.sim.scenario import scenario_from
from fleetcast.sim.study import make_case
from fleetcast.traffic import change, laws
from fleetcast.traffic.trace import Labels, Trace, make_trace

HORIZON = 14_400.0


def bursty(seed: int, horizon: float = HORIZON) -> Trace:
    """On/off traffic of two tenants, whole minutes long, with an index of dispersion well above one."""
    rng = np.random.default_rng(seed)
    arrival = laws.on_off(20.0, 15.0, 30.0, horizon - 60, rng)
    arrival = np.concatenate(([0.0], arrival, [horizon - 0.5]))
    rows = np.arange(len(arrival))
    tenants = Labels((rows % 3 == 0).astype(np.int32), ("big", "small"))
    return make_trace(arrival, rows % 50 + 1, rows % 7 + 1, labels={"tenant": tenants}, name="bursty")


def dispersion(arrival: NDArray[np.float64], window: float, horizon: float = HORIZON) -> float:
    counts = np.bincount((arrival // window).astype(np.int64), minlength=int(horizon // window))[
        : int(horizon // window)
    ]
    return float(counts.var() / counts.mean())


def holds(law: Callable[[int], tuple[float, float]], repeats: int = 16) -> None:
    """Both sides of *law* agree over independent repetitions, by four standard errors of their differences."""
    apart = np.array([one - other for one, other in map(law, range(repeats))])
    assert abs(apart.mean()) < 4 * apart.std(ddof=1) / repeats**0.5 + 1e-12


@pytest.mark.parametrize("window", [1.0, 10.0, 60.0])
@pytest.mark.parametrize("kept", [0.5, 0.1])
def test_thinning_takes_dispersion_toward_one(window: float, kept: float) -> None:
    def law(seed: int) -> tuple[float, float]:
        trace = bursty(seed)
        thinned = change.thin(trace, kept, np.random.default_rng([1, seed]))
        return dispersion(thinned.arrival_s, window), 1 + kept * (dispersion(trace.arrival_s, window) - 1)

    holds(law)


def test_thinning_keeps_the_share_and_the_rows() -> None:
    trace = bursty(0)
    thinned = change.thin(trace, 0.3, np.random.default_rng(0))
    assert abs(len(thinned) - 0.3 * len(trace)) < 4 * (0.21 * len(trace)) ** 0.5
    assert set(zip(thinned.arrival_s, thinned.input_tokens, strict=True)) <= set(
        zip(trace.arrival_s, trace.input_tokens, strict=True)
    )


@pytest.mark.parametrize("window", [1.0, 10.0])
def test_superposed_independent_copies_keep_the_dispersion(window: float) -> None:
    def law(seed: int) -> tuple[float, float]:
        trace = bursty(seed)
        summed = change.superpose(trace, 4, np.random.default_rng([2, seed]), HORIZON)
        assert len(summed) == 4 * len(trace)
        return dispersion(summed.arrival_s, window), dispersion(trace.arrival_s, window)

    holds(law)


def test_superposed_copies_share_a_rhythm_longer_than_the_shift() -> None:
    hour = np.arange(24 * 60) // 60
    counts = np.where(hour % 2 == 0, 50, 10)
    arrival = np.repeat(60.0 * np.arange(len(counts)), counts) + 0.5
    trace = make_trace(arrival, np.ones(len(arrival), int), np.ones(len(arrival), int))
    summed = change.superpose(trace, 5, np.random.default_rng(0), 60.0)
    window, day = 3_600.0, 86_400.0
    assert dispersion(summed.arrival_s, window, day) == pytest.approx(5 * dispersion(arrival, window, day), rel=0.05)


@pytest.mark.parametrize("factor", [2.0, 7.5, 0.5])
def test_compressed_time_has_the_dispersion_of_a_longer_window(factor: float) -> None:
    trace = bursty(5)
    fast = change.compress_time(trace, factor)
    assert len(fast) == len(trace)
    assert fast.span_s == pytest.approx(trace.span_s / factor)
    window = 60.0
    assert dispersion(fast.arrival_s, window / factor, HORIZON / factor) == pytest.approx(
        dispersion(trace.arrival_s, window), rel=0.01
    )
    assert np.array_equal(fast.input_tokens, trace.input_tokens)


@pytest.mark.parametrize("factor", [3.0, 1.5, 0.4])
def test_scaled_intensity_multiplies_the_dispersion_of_minutes(factor: float) -> None:
    def law(seed: int) -> tuple[float, float]:
        trace = bursty(seed)
        scaled = change.scale_intensity(trace, factor, np.random.default_rng([3, seed]))
        assert len(scaled) == pytest.approx(factor * len(trace), rel=0.01)
        wanted = factor * dispersion(trace.arrival_s, 60.0)
        return dispersion(scaled.arrival_s, 60.0) / wanted, 1.0 + _rounding(trace, factor) / wanted

    holds(law)


def _rounding(trace: Trace, factor: float) -> float:
    """The variance over mean that rounding a share of a request to a request adds."""
    counts = np.bincount((trace.arrival_s // 60).astype(np.int64))
    share = (counts * factor) % 1
    return float((share * (1 - share)).mean() / (factor * counts.mean()))


def test_scaled_intensity_draws_lengths_from_the_same_time() -> None:
    minutes = np.repeat(np.arange(60), 300)
    arrival = 60.0 * minutes + np.tile(np.arange(300) / 5, 60)
    trace = make_trace(arrival, minutes + 1, np.ones(len(minutes), int))
    scaled = change.scale_intensity(trace, 2.0, np.random.default_rng(0))
    assert np.array_equal(scaled.input_tokens - 1, (scaled.arrival_s // 60).astype(int))


def test_growth_compounds_by_the_month() -> None:
    trace = bursty(1)
    grown = change.grow(trace, 0.1, 6, np.random.default_rng(0))
    assert len(grown) / len(trace) == pytest.approx(1.1**6, rel=0.01)


def test_a_spike_multiplies_inside_and_leaves_the_rest_alone() -> None:
    arrival = laws.poisson(5.0, HORIZON, np.random.default_rng(0))
    trace = make_trace(arrival, np.ones(len(arrival), int), np.ones(len(arrival), int))
    spiked = change.spike(trace, 7_230.0, 3.4, 1_815.0, np.random.default_rng(1))

    def inside(times: NDArray[np.float64]) -> NDArray[np.bool_]:
        return (times >= 7_230) & (times < 9_045)

    before = int(inside(arrival).sum())
    after = int(inside(spiked.arrival_s).sum())
    assert abs(after - 3.4 * before) < 4 * (0.24 * before) ** 0.5
    assert np.array_equal(spiked.arrival_s[~inside(spiked.arrival_s)], arrival[~inside(arrival)])
    trough = change.spike(trace, 7_230.0, 0.0, 1_815.0, np.random.default_rng(1))
    assert not inside(trough.arrival_s).any()
    with pytest.raises(ScenarioError, match="spike at"):
        change.spike(trace, 1e6, 3.0, 60.0, np.random.default_rng(0))


def test_a_client_is_lost_or_gained() -> None:
    trace = bursty(2)
    small = int((trace.labels["tenant"].codes == 1).sum())
    lost = change.lose_client(trace, "small")
    assert len(lost) == len(trace) - small
    gained = change.gain_client(trace, "small", np.random.default_rng(0))
    names = gained.labels["tenant"]
    assert names.names == ("big", "small", "small (gained)")
    assert np.bincount(names.codes).tolist() == [len(trace) - small, small, small]
    with pytest.raises(ScenarioError, match="closest: small"):
        change.lose_client(trace, "smal")
    with pytest.raises(ScenarioError, match="no tenant column"):
        change.lose_client(replace(trace, labels={}), "small")


def test_scaled_lengths_leave_arrivals_alone() -> None:
    trace = bursty(3)
    longer = change.scale_lengths(trace, 2.0, 0.01)
    assert np.array_equal(longer.arrival_s, trace.arrival_s)
    assert np.array_equal(longer.input_tokens, 2 * trace.input_tokens)
    assert set(longer.output_tokens.tolist()) == {1}
    with pytest.raises(ScenarioError, match="at most"):
        change.scale_lengths(trace, 1e6)


def test_a_mix_adds_variances_and_goes_by_the_time_of_day() -> None:
    def law(seed: int) -> tuple[float, float]:
        one, other = bursty(seed), bursty(1_000 + seed)
        mixed = change.mix(one, other)
        rates = np.array([len(one), len(other)])
        each = np.array([dispersion(trace.arrival_s, 10.0) for trace in (one, other)])
        return dispersion(mixed.arrival_s, 10.0), float((rates * each).sum() / rates.sum())

    holds(law)
    morning = make_trace([0.0], [1], [1], start=datetime(2026, 1, 5, 8))
    noon = make_trace([0.0, 5.0], [2, 2], [1, 1], start=datetime(2025, 3, 4, 12))
    assert change.mix(morning, noon).arrival_s.tolist() == [0.0, 14_400.0, 14_405.0]
    assert change.mix(noon, morning).arrival_s.tolist() == [0.0, 5.0, 72_000.0]


def test_labels_that_one_traffic_lacks_are_missing_there() -> None:
    other = make_trace([0.25], [9], [9])
    mixed = change.mix(bursty(4), other)
    assert mixed.labels["tenant"].codes[np.flatnonzero(mixed.input_tokens == 9)[0]] in (-1, 0, 1)
    assert int((mixed.labels["tenant"].codes == -1).sum()) == 1


# --- in a scenario ---------------------------------------------------------------------------------------------------

TABLES = {"profile": "g6e-int8", "traffic": "day.parquet", "as_of": "2026-11-30"}


def test_changes_are_applied_in_turn_and_said() -> None:
    rows = [{"change": "thin", "share": "50 %"}, {"change": "scale-lengths", "output": 2.0}]
    scenario = scenario_from({**TABLES, "traffic_change": rows}, "s.toml")
    trace = bursty(6)
    loaded = load_profile("g6e-int8")
    case = make_case(scenario, loaded, trace, scenario.limits())
    assert len(case.trace) == pytest.approx(len(trace) / 2, rel=0.05)
    assert len(case.study.days.trace) == len(case.trace)
    assert set(case.trace.output_tokens.tolist()) <= {2 * k for k in range(1, 8)}
    assert [note.split(" (")[0] for note in case.trace.notes] == ["changed: thin", "changed: scale-lengths"]
    assert scenario.resolved()["traffic_change"] == tuple(rows)
    again = make_case(scenario, loaded, trace, scenario.limits())
    assert np.array_equal(case.trace.arrival_s, again.trace.arrival_s)
    assert "traffic_change" not in scenario_from(TABLES, "s.toml").resolved()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"change": "thinn", "share": "50 %"}, "closest: thin"),
        ({"change": "scale"}, "scale-"),
        ({"change": "thin"}, "needs `share`"),
        ({"change": "thin", "share": "50 %", "factor": 2}, "no key `factor`"),
        ({"change": "spike", "at": 14, "factor": 2, "lasts": "1 h"}, "needs a unit"),
    ],
)
def test_a_change_that_is_none_is_refused_with_what_was_meant(row: dict[str, object], says: str) -> None:
    with pytest.raises(FleetcastError) as caught:
        scenario_from({**TABLES, "traffic_change": [row]}, "s.toml")
    assert says in str(caught.value)


def test_every_change_says_what_it_does_to_the_dispersion() -> None:
    assert len(change.CHANGES) == 10
    assert all(change.CHANGES.values())
    page = (ROOT / "docs" / "traffic.md").read_text(encoding="utf-8")
    assert [name for name in change.CHANGES if f"| `{name}` |" not in page] == []
