"""Every published result file is read as what it is, or refused for a reason that is true of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetcast.errors import FleetcastError
from fleetcast.profiles.ingest.gather import read_runs, refuse_without_load, refuse_without_tokens
from fleetcast.profiles.ingest.run import Run

MOCK = "aiperf-0.13-mock"
STAGES = "inference-perf/kubecon-vllm/results/stage"
SGLANG = "sglang-bench/pd_mori_1p1d_dsr1/pd_mori_1p1d_dsr1"
VLLM = "vllm-bench-2024"
LLMPERF = "llmperf/meta-llama_Meta-Llama-3-8B-Instruct_tp_1"
OPEN, CLOSED = "open", "closed"

# File: tool, version, kind and size of the (last) load, then figures as the file has them, in seconds and tokens.
READ: dict[str, tuple[str, str | None, str, float, dict[str, float]]] = {
    "aiperf-0.10/chatbot_flat_r1.0.profile_export_aiperf.abridged.json": (
        "AIPerf", "0.10.0", OPEN, 1.0,
        {"output_tps": 219.6077, "ttft.mean": 0.1082461, "ttft.p99": 0.2482440, "tpot.mean": 0.005460462,
         "e2e.mean": 1.2949722, "requests": 96, "warmup_requests": 16, "output_tokens.mean": 217.46875},
    ),
    f"{MOCK}/c1/profile_export_aiperf.json": ("AIPerf", "0.13.0", CLOSED, 1, {"requests": 30, "output_tps": 83.09216}),
    f"{MOCK}/c8/profile_export_aiperf.json": ("AIPerf", "0.13.0", CLOSED, 8, {"ttft.mean": 0.1554482}),
    f"{MOCK}/c16/profile_export_aiperf.json": (
        "AIPerf", "0.13.0", CLOSED, 16,
        {"e2e.p90": 1.196195, "itl.p99": 0.3475472, "tpot.p50": 0.02726133, "mean_concurrency": 15.1431,
         "duration": 18.12928, "request_throughput": 13.23017},
    ),
    f"{MOCK}/c32/profile_export_aiperf.json": ("AIPerf", "0.13.0", CLOSED, 32, {"ttft.mean": 1.297174}),
    f"{MOCK}/poisson8/profile_export_aiperf.json": ("AIPerf", "0.13.0", OPEN, 8.0, {"ttft.mean": 0.04224518}),
    "guidellm-0.8/guidellm_report_v2_0.8.0.dev18_mockserver.json": (
        "GuideLLM", "0.8.0.dev18", OPEN, 4.0,
        {"e2e.mean": 0.01763391, "ttft.mean": 0.009783864, "tpot.mean": 0.001090441, "requests": 2,
         "input_tokens.mean": 65.5, "output_tokens.mean": 8.0, "output_tps": 6.377132, "duration": 2.518612},
    ),
    f"{VLLM}/nvidia-vllm-16.0qps-Llama-3.1-405B-FP8-20241109-150547.json": (
        "vLLM bench serve", "2024", OPEN, 16.0,
        {"output_tps": 1198.888, "ttft.mean": 1.486394, "ttft.p99": 9.912536, "tpot.mean": 0.1065389,
         "itl.p99": 0.2908385, "requests": 1000},
    ),
    f"{VLLM}/csv_data/throughput_comparsion.csv": ("vLLM bench throughput", None, CLOSED, 256, {}),
    f"{SGLANG}_conc16_isl1024_osl1024.json": (
        "SGLang bench_serving", "2026", CLOSED, 16,
        {"ttft.mean": 2.100526, "tpot.mean": 0.01190771, "e2e.p99": 16.73363, "output_tps": 1098.914,
         "mean_concurrency": 15.32698, "requests": 160},
    ),
    f"{SGLANG}_conc256_isl1024_osl1024.json": ("SGLang bench_serving", "2026", CLOSED, 256, {"output_tps": 7837.453}),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc4.json": (
        "InferenceX", None, CLOSED, 4,
        {"ttft.p50": 0.2649997, "tpot.p99": 0.02645495, "e2e.p50": 3.022585, "output_tps": 164.7277, "requests": 40},
    ),
    "inferencex/glm5_fp8_vllm_tp8_isl1024_osl128_conc64.json": ("InferenceX", None, CLOSED, 64, {"requests": 640}),
    f"{STAGES}_1_lifecycle_metrics.json": (
        "inference-perf", None, OPEN, 31.4,
        {"requests": 1884, "achieved_rate": 31.41511, "output_tps": 1943.010, "ttft.mean": 0.02983692},
    ),
    f"{STAGES}_6_lifecycle_metrics.json": ("inference-perf", None, OPEN, 183.38, {"achieved_rate": 106.5476}),
    f"{LLMPERF}_results.json": ("llmperf", "2023-08-31", CLOSED, 128, {"output_tps": 396.1643, "ttft.mean": 17.32764}),
    f"{LLMPERF}_summary.json": ("llmperf", "summary", CLOSED, 128, {"output_tps": 396.1643, "input_tokens.mean": 750}),
    "trtllm-bench/trtllm_bench_report_gb10_nvfp4.partial.json": (
        "trtllm-bench", "1.2", CLOSED, 1,
        {"ttft.mean": 4.5331, "tpot.mean": 0.01403, "e2e.p99": 4.7435, "output_tps": 3.37, "requests": 1},
    ),
}  # fmt: skip

# File (a pattern): a word of what is refused, words of the reason, and a word of what to do.
REFUSED: dict[str, tuple[str, str, str]] = {
    "aiperf-0.10/*.csv": ("no load", "does not tell how many requests were sent together", "concurrency=16"),
    f"{MOCK}/*/*.csv": ("no load", "does not tell how many requests were sent together", "concurrency=16"),
    "genai-perf/*.csv": ("no load", "does not tell how many requests were sent together", "rate=1.2"),
    "inference-perf/*/manifests.yaml": ("no benchmark result", "neither JSON nor a table", "JSON or CSV"),
    "inference-perf/*/results/*_prometheus_metrics.json": ("no load", "not the rate", "stage_N_lifecycle"),
    "inference-perf/*/results/summary_lifecycle_metrics.json": ("no load", "pools all stages", "stage_N_lifecycle"),
    "perf-analyzer/*.csv": ("no tokens", "no tokens", "output_tokens=128"),
    "sagemaker-recommender/*.json": ("no tokens", "no tokens", "output_tokens=128"),
    f"{VLLM}/nvidia-latency_test_*.json": ("no load", "does not tell its batch", "b{batch}"),
    f"{VLLM}/nvidia-throughput_test_*.json": ("no output tokens", "tokens of prompts", "output_tokens=128"),
    f"{VLLM}/csv_data/throughput_latency_curve*.csv": ("no result of a tool", "end_to_end_latency", "--columns"),
}


@pytest.fixture
def results(shared_data: Path) -> Path:
    return shared_data / "results"


def imported(path: Path) -> list[Run]:
    runs = read_runs(str(path))
    for run in runs:
        refuse_without_load(run)
        refuse_without_tokens(run)
    return runs


def figure(run: Run, path: str) -> Any:
    key, _, stat = path.partition(".")
    value = run.figures[key]
    if stat == "mean" and isinstance(value, dict) and "tokens" in value:
        return sum(t * n for t, n in zip(value["tokens"], value["count"], strict=True)) / sum(value["count"])
    return value[stat] if stat else value


@pytest.mark.parametrize("name", READ)
def test_a_published_file_is_read_as_what_it_is(results: Path, name: str) -> None:
    tool, version, kind, load, figures = READ[name]
    run = max(imported(results / name), key=lambda run: run.load.get("concurrency") or run.load["rate"])
    assert (run.tool, run.version, run.load["kind"]) == (tool, version, kind)
    assert (run.load.get("concurrency") or run.load["rate"]) == load
    assert {key: figure(run, key) for key in figures} == pytest.approx(figures, rel=1e-6)


@pytest.mark.parametrize("pattern", REFUSED)
def test_a_published_file_is_refused_for_a_true_reason(results: Path, pattern: str) -> None:
    paths = sorted(results.glob(pattern))
    assert paths
    for path in paths:
        with pytest.raises(FleetcastError) as caught:
            imported(path)
        what, why, fix = REFUSED[pattern]
        assert what in caught.value.what and why in caught.value.why and fix in caught.value.fix
        assert str(path) in caught.value.what


def test_no_published_file_is_forgotten(results: Path) -> None:
    refused = {path for pattern in REFUSED for path in results.glob(pattern)}
    told = {results / name for name in READ}
    assert not refused & told
    others = [path for path in results.rglob("*") if path.is_file() and path not in refused | told]
    tools = {path.relative_to(results).parts[0]: {run.tool for run in imported(path)} for path in others}
    assert tools == {
        "inference-perf": {"inference-perf"},
        "inferencex": {"InferenceX"},
        "sglang-bench": {"SGLang bench_serving"},
        VLLM: {"vLLM bench serve"},
    }


def test_the_arrays_of_requests_agree_with_the_tools_own_summary(results: Path) -> None:
    import json

    path = results / VLLM / "nvidia-vllm-16.0qps-Llama-3.1-405B-FP8-20241109-150547.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    (run,) = imported(path)
    for ours, theirs in (("ttft", "ttft"), ("tpot", "tpot"), ("itl", "itl")):
        for stat, name in (("mean", "mean"), ("p50", "median"), ("std", "std"), ("p99", "p99")):
            told = summary[f"{name}_{theirs}_ms"] / 1e3
            assert run.figures[ours][stat] == pytest.approx(told, rel=1e-6), (ours, stat)
    assert run.figures["output_tokens"]["tokens"]
    assert "e2e" not in summary and run.figures["e2e"]["mean"] > run.figures["ttft"]["mean"]
