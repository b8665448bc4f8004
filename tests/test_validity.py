"""What lies outside the measured range is said, with its share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fleetcast.errors import DataError
from fleetcast.profiles.range import measured_lengths
from fleetcast.profiles.read import load_profile
from fleetcast.sim.result import simulate
from fleetcast.sim.scenario import scenario_from
from fleetcast.sim.study import make_case
from fleetcast.traffic.resample import fit_days
from fleetcast.traffic.trace import make_trace
from fleetcast.traffic.write import write_trace


def test_a_fixed_length_is_a_range_of_its_own() -> None:
    assert measured_lengths(load_profile("g7-fp8-qwen3-coder-30b").profile, "input_tokens") == (128, 128)
    assert measured_lengths(load_profile("g6e-int8").profile, "input_tokens") is None


def test_a_mean_stands_for_a_lognormal_law() -> None:
    profile = load_profile("g7-fp8-qwen3-coder-30b").profile
    point = profile.point[0].model_copy(update={"input_tokens": _count(100.0, 0.6)})
    low, high = measured_lengths(profile.model_copy(update={"point": (point,)}), "input_tokens") or (0.0, 0.0)
    draws = np.random.default_rng(0).lognormal(math.log(100 / math.sqrt(1.36)), math.sqrt(math.log(1.36)), 400_000)
    assert low == pytest.approx(np.quantile(draws, 0.01), rel=0.02)
    assert high == pytest.approx(np.quantile(draws, 0.99), rel=0.02)


def _count(mean: float, cv: float) -> object:
    from fleetcast.profiles.profile import TokenCount

    return TokenCount(mean=mean, cv=cv)


def _alerts(tmp_path: object, profile: str, prompt: int, **keys: object) -> dict[str, str]:
    n = 400
    lengths = np.where(np.arange(n) < n // 4, prompt, 128)
    trace = make_trace(np.arange(n) * 10.0, lengths, np.full(n, 128), name="t.parquet")
    path = f"{tmp_path}/t.parquet"
    write_trace(trace, path)
    tables = {"profile": profile, "traffic": path, "replay": True, "runs": 1, "fleet": {"replicas": 1}, **keys}
    scenario = scenario_from(tables, "test")
    result = simulate(make_case(scenario, load_profile(profile), trace, ()))
    return {alert["code"]: alert["text"] for alert in result.data["alerts"]}


def test_lengths_that_were_not_measured(tmp_path: object) -> None:
    assert "25.0 % of requests have prompts" in _alerts(tmp_path, "g7-fp8-qwen3-coder-30b", 900)["prompt-length"]
    assert "prompt-length" not in _alerts(tmp_path, "g7-fp8-qwen3-coder-30b", 128)


def test_more_sequences_than_the_memory_holds(tmp_path: object) -> None:
    keys = {"engine": {"max_num_seqs": 60_000, "beyond": "extrapolate"}}
    assert "kv-memory" in _alerts(tmp_path, "g6e-int8", 200, **keys)
    assert "kv-memory" not in _alerts(tmp_path, "g6e-int8", 200)


def test_prices_that_are_younger_than_as_of(tmp_path: object) -> None:
    assert "2026-07-20" in _alerts(tmp_path, "g6e-int8", 128, as_of="1999-01")["older-than-prices"]
    assert "older-than-prices" not in _alerts(tmp_path, "g6e-int8", 128, as_of="2026-07")


def test_milliseconds_since_1970_are_not_taken_for_seconds() -> None:
    stamps = 1.7e12 + 1000.0 * np.arange(10)
    with pytest.raises(DataError, match="arrival at 1700000009000 s"):
        fit_days(make_trace(stamps, np.full(10, 5), np.full(10, 5)), 0.3)
    fit_days(make_trace(stamps / 1000, np.full(10, 5), np.full(10, 5)), 0.3)
