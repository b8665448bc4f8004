"""Length laws have their quantiles, means and bounds; pairs their rank correlation; presets their sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from fleetcast.errors import ScenarioError
from fleetcast.traffic.describe import rank_correlation
from fleetcast.traffic.lengths import PRESETS, law_from, law_table, model_from, model_table, preset

N = 40_000


@pytest.mark.parametrize(
    ("table", "law"),
    [
        ({"law": "normal", "mean": 500, "sd": 50}, stats.norm(500, 50)),
        ({"law": "lognormal", "mean": 800, "cv": 1.0}, stats.lognorm(np.log(2) ** 0.5, scale=800 / 2**0.5)),
        ({"law": "exponential", "mean": 400}, stats.expon(scale=400)),
        ({"law": "gamma", "mean": 600, "cv": 0.5}, stats.gamma(4, scale=150)),
        ({"law": "weibull", "mean": 700, "shape": 1.5}, stats.weibull_min(1.5, scale=775.42)),
        ({"law": "uniform", "min": 100, "max": 300}, stats.uniform(99.5, 201)),
        ({"law": "histogram", "edges": [1, 101, 1001], "weights": [3, 1]}, None),
    ],
)  # fmt: skip
def test_a_law_draws_what_it_says(table: dict[str, Any], law: Any) -> None:
    u = (np.arange(N) + 0.5) / N
    drawn = law_from(table, "input").lengths(u)
    assert drawn.dtype == np.int32
    shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    wanted = law.ppf(shares) if law is not None else 1 + np.array([100 / 15, 100 / 3, 200 / 3, 100, 820])
    assert np.quantile(drawn, shares) == pytest.approx(wanted, rel=0.01, abs=1.5)
    if law is not None:
        assert drawn.mean() == pytest.approx(law.mean(), rel=0.01)


def test_a_mixture_has_its_pareto_tail() -> None:
    table = {"law": "pareto-lognormal", "share": 0.2, "from": 1_000, "alpha": 1.5, "mean": 300, "cv": 0.5}
    drawn = law_from(table, "input").lengths((np.arange(N) + 0.5) / N)
    body = stats.lognorm(np.log(1.25) ** 0.5, scale=300 / 1.25**0.5)
    for x in (2_000, 8_000):
        wanted = 0.2 * (x / 1_000) ** -1.5 + 0.8 * body.sf(x)
        assert np.mean(drawn > x) == pytest.approx(wanted, rel=0.02)


def test_bounds_are_drawn_within_and_not_piled_up_at() -> None:
    law = law_from({"law": "lognormal", "mean": 1_000, "cv": 1.0, "min": 10, "max": 1_500}, "input")
    drawn = law.lengths(np.random.default_rng(0).random(N))
    assert drawn.min() >= 10
    assert drawn.max() <= 1_500
    assert np.mean(drawn == 1_500) < 0.002
    with pytest.raises(ScenarioError, match="next to nothing"):
        law_from({"law": "normal", "mean": 10, "sd": 1, "min": 5_000}, "input").lengths(np.array([0.5]))


@pytest.mark.parametrize("rank", [-0.6, 0.0, 0.42])
def test_pairs_have_the_rank_correlation_and_keep_their_laws(rank: float) -> None:
    laws = {"input": {"law": "lognormal", "mean": 900, "cv": 1.2}, "output": {"law": "gamma", "mean": 300, "cv": 0.7}}
    model = model_from({**laws, "rank_correlation": rank}, "lengths")
    inputs, outputs = model.draw(N, np.random.default_rng(1))
    found = rank_correlation(inputs, outputs)
    assert found is not None
    assert abs(found - rank) < 4 / N**0.5 + 0.002
    assert inputs.mean() == pytest.approx(900, rel=4 * 1.2 / N**0.5)


def test_buckets_come_with_their_weights() -> None:
    pairs = [{"input": 128, "output": 64, "weight": 25}, {"input": 512, "output": 128, "weight": 75}]
    inputs, outputs = model_from({"bucket": pairs}, "lengths").draw(N, np.random.default_rng(2))
    assert set(zip(inputs.tolist(), outputs.tolist(), strict=True)) == {(128, 64), (512, 128)}
    assert abs(np.mean(inputs == 512) - 0.75) < 4 * (0.1875 / N) ** 0.5


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("chat", (1_155, 1_020, 4_142), (211, 129, 601)),
        ("code", (2_048, 1_469, 7_436), (27.9, 13, 251)),
        ("rag", (2_944, 3_139, 5_438), (283, 234, 891)),
    ],
)
def test_a_preset_is_near_its_source(name: str, inputs: tuple[float, ...], outputs: tuple[float, ...]) -> None:
    drawn = preset(name).draw(N, np.random.default_rng(3))
    for tokens, (mean, median, p99) in zip(drawn, (inputs, outputs), strict=True):
        assert tokens.mean() == pytest.approx(mean, rel=0.09)
        assert np.median(tokens) == pytest.approx(median, rel=0.03)
        assert np.quantile(tokens, 0.99) == pytest.approx(p99, rel=0.05)


def test_every_preset_names_its_source_and_what_it_assumes() -> None:
    assert list(PRESETS) == ["chat", "code", "rag", "summarise", "reasoning", "agent"]
    for name, model in PRESETS.items():
        assert model.source
        inputs, outputs = model.draw(2_000, np.random.default_rng(0))
        assert outputs.min() >= 1
        assert inputs.min() >= 0
        assert model_from(model_table(model), name) == model
    inputs, outputs = preset("summarise").draw(5_000, np.random.default_rng(0))
    assert (inputs + outputs).max() <= 4_096


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"law": "lognorml", "mean": 1, "cv": 1}, "closest: lognormal"),
        ({"law": "lognormal", "mean": 1}, "needs `cv`"),
        ({"law": "lognormal", "mean": -1, "cv": 1}, "above 0"),
        ({"law": "lognormal", "mean": float("inf"), "cv": 1}, "finite"),
        ({"law": "normal", "mean": 5, "sd": 1, "median": 4}, "no `median`"),
        ({"law": "uniform", "min": 9, "max": 3}, "above max"),
        ({"law": "quantiles", "shares": [0.1, 1], "tokens": [1, 2]}, "shares go from 0 to 1"),
        ({"law": "histogram", "edges": [3, 1], "weights": [1]}, "edges rise"),
        ({"law": "fixed", "value": 3, "max": 10**9}, "max"),
        ("ten", "a law is a table"),
    ],
)
def test_what_is_no_law_is_refused(table: Any, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        law_from(table, "input")
    assert says in str(caught.value)


def test_a_law_is_written_as_it_is_read() -> None:
    for table in (
        {"law": "lognormal", "mean": 8.0, "cv": 1.0, "max": 50},
        {"law": "uniform", "min": 5, "max": 9},
        {"law": "fixed", "value": 7},
    ):
        assert law_table(law_from(table, "x")) == table
