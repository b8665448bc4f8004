"""Which arrivals are good enough: the recorded p99 wait lies among the model's days, not among a constant rate's."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from house import ROOT

from fleetcast.traffic import laws
from fleetcast.traffic.read import read_trace


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_traffic", ROOT / "benchmarks" / "traffic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_waits_are_those_of_a_queue_with_equal_services(benchmark: ModuleType) -> None:
    arrival = np.array([0.0, 1.0, 1.5, 9.0])
    assert benchmark.waits(arrival, 2.0).tolist() == [0.0, 1.0, 2.5, 0.0]
    arrival = laws.poisson(0.7, 400_000.0, np.random.default_rng(0))
    wait = benchmark.waits(arrival, 1.0).mean()
    assert wait == pytest.approx(0.7 / (2 * 0.3), rel=0.04)  # M/D/1: load / (2 (1 - load)) service times


def test_the_recorded_tail_lies_among_the_model_s_days(benchmark: ModuleType, shared_data: Path) -> None:
    trace = read_trace(shared_data / "traces" / "AzureLLMInferenceTrace_conv.csv")
    found = benchmark.compare(trace, 0.7, 100)
    recorded = found["recorded"][0]
    assert recorded == pytest.approx(42.1, abs=0.1)  # published analysis: 42
    for name in ("counts per minute, uniform inside", "fitted model, burst fitted", "fitted model, burst low"):
        _, low, high = found[name]
        assert low <= recorded <= high, name
    constant = found["Poisson of constant rate"]
    assert constant[0] == pytest.approx(6.5, abs=0.5)
    assert constant[2] < recorded / 4
