"""Arrival laws have the rate and the dispersion that their theory says, to four standard errors of repetitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError
from fleetcast.traffic import laws

Draw = Callable[[np.random.Generator], NDArray[np.float64]]
DURATION = 4_000.0
LAWS: dict[str, Draw] = {
    "poisson": lambda rng: laws.poisson(5.0, DURATION, rng),
    "gamma, bursty": lambda rng: laws.gamma(5.0, DURATION, rng, cv=3.0),
    "gamma, smooth": lambda rng: laws.gamma(5.0, DURATION, rng, burstiness=4.0),
    "weibull": lambda rng: laws.weibull(5.0, DURATION, rng, cv=2.0),
    "weibull, smooth": lambda rng: laws.weibull(5.0, DURATION, rng, cv=0.5),
    "mmpp2": lambda rng: laws.mmpp2((8.0, 2.0), (10.0, 10.0), DURATION, rng),
    "on/off": lambda rng: laws.on_off(15.0, 5.0, 10.0, DURATION, rng),
    "sinusoid": lambda rng: laws.sinusoid(5.0, 4.0, 1_000.0, DURATION, rng),
    "ramp": lambda rng: laws.ramp(1.0, 9.0, DURATION, rng),
}
DISPERSION = {
    # in windows much longer than a gap or a stay
    "poisson": 1.0,
    "gamma, bursty": 9.0,
    "gamma, smooth": 0.25,
    "weibull": 4.0,
    "weibull, smooth": 0.25,
    "mmpp2": 1 + 2 * 36 * 0.01 / (0.2**2 * (8 * 0.1 + 2 * 0.1)),
    "on/off": 1 + 2 * 15**2 * 0.2 * 0.1 / (0.3**2 * (15 * 0.1)),
}


def mean_is(values: list[float], wanted: float, slack: float = 0.0) -> None:
    data = np.array(values)
    assert abs(data.mean() - wanted) < 4 * data.std(ddof=1) / len(data) ** 0.5 + slack


@pytest.mark.parametrize("name", LAWS)
def test_arrivals_are_sorted_inside_and_as_many_as_the_rate_says(name: str) -> None:
    drawn = [LAWS[name](np.random.default_rng([4, k])) for k in range(60)]
    for arrival in drawn:
        assert arrival.dtype == np.float64
        assert np.all(np.diff(arrival) >= 0)
        assert arrival[0] >= 0
        assert arrival[-1] <= DURATION
    mean_is([len(arrival) / DURATION for arrival in drawn], 5.0)
    mean_is([np.count_nonzero(arrival < 40) / 40 for arrival in drawn], _at_start(name))  # in balance from the start


def _at_start(name: str) -> float:
    if name == "ramp":
        return 1.0 + 8.0 * 20 / DURATION
    if name == "sinusoid":
        return 5.0 * (1 + 0.6 * np.sin(2 * np.pi * 0.04) / (2 * np.pi * 0.04))
    return 5.0


@pytest.mark.parametrize("name", DISPERSION)
def test_the_dispersion_is_that_of_the_theory(name: str) -> None:
    window, found = 400.0, []
    for k in range(150):
        arrival = LAWS[name](np.random.default_rng([5, k]))
        counts = np.histogram(arrival, np.arange(0, DURATION + 1, window))[0]
        found.append(float(((counts - 5 * window) ** 2).mean()) / (5 * window))
    # a window of 80 stays or 2,000 gaps is not endless: what is missing is of the order of a stay over the window
    mean_is(found, DISPERSION[name], slack=0.06 * DISPERSION[name])


def test_constant_arrivals_keep_their_distance() -> None:
    arrival = laws.constant(4.0, 10.0)
    assert len(arrival) == 40
    assert np.diff(arrival) == pytest.approx(np.full(39, 0.25))
    assert arrival[0] == 0.125


def test_burstiness_is_the_shape_and_cv_its_root() -> None:
    one = laws.gamma(5.0, DURATION, np.random.default_rng(1), burstiness=0.25)
    other = laws.gamma(5.0, DURATION, np.random.default_rng(1), cv=2.0)
    assert np.array_equal(one, other)
    gaps = np.diff(laws.gamma(50.0, DURATION, np.random.default_rng(2), cv=2.0))
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.03)
    gaps = np.diff(laws.weibull(50.0, DURATION, np.random.default_rng(2), cv=2.0))
    assert gaps.std() / gaps.mean() == pytest.approx(2.0, rel=0.04)
    with pytest.raises(ScenarioError, match="one of `cv` and `burstiness`"):
        laws.gamma(5.0, 10.0, np.random.default_rng(0), cv=1.0, burstiness=1.0)


def test_stages_go_in_straight_lines_and_jump() -> None:
    parts = [(100.0, 10.0), (0.0, 40.0), (50.0, 40.0), (100.0, 0.0)]
    drawn = [laws.stages(parts, np.random.default_rng([6, k])) for k in range(50)]
    edges = [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]
    counts = np.array([np.histogram(arrival, edges)[0] for arrival in drawn])
    for place, wanted in enumerate((125.0, 375.0, 2_000.0, 1_500.0, 500.0)):
        mean_is(counts[:, place].tolist(), wanted)


@pytest.mark.parametrize("dispersion", [None, 1.0, 6.0])
def test_operational_time_follows_the_rate_whatever_the_dispersion(dispersion: float | None) -> None:
    edges = np.array([0.0, 60.0, 120.0, 180.0, 240.0])
    expected = np.array([300.0, 0.0, 0.0, 900.0])
    drawn = [laws.at_operational_times(edges, expected, dispersion, np.random.default_rng([7, k])) for k in range(200)]
    counts = np.array([np.histogram(arrival, edges)[0] for arrival in drawn])
    assert counts[:, 1:3].sum() == 0
    mean_is(counts[:, 0].tolist(), 300.0)
    mean_is(counts[:, 3].tolist(), 900.0)
    spread = ((counts[:, 3] - 900.0) ** 2 / 900.0).tolist()
    mean_is(spread, dispersion or 1.0, slack=0.05 * (dispersion or 1.0))


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: laws.poisson(0.0, 1.0, rng),
        lambda rng: laws.poisson(float("inf"), 1.0, rng),
        lambda rng: laws.poisson(1e9, 1e9, rng),
        lambda rng: laws.gamma(1.0, -1.0, rng, cv=1.0),
        lambda rng: laws.gamma(1.0, 1.0, rng, cv=-1.0),
        lambda rng: laws.gamma(1.0, 1.0, rng, burstiness=0.0),
        lambda rng: laws.mmpp2((1.0, -1.0), (1.0, 1.0), 1.0, rng),
        lambda rng: laws.stages([(1.0, float("nan"))], rng),
        lambda rng: laws.sinusoid(1.0, 0.5, 1.0, 1.0, rng),
    ],
)
def test_what_is_no_law_is_refused(draw: Draw) -> None:
    with pytest.raises(ScenarioError):
        draw(np.random.default_rng(0))
