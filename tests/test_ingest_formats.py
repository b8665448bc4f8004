"""Every form of file that is read, with numbers of our own: the tool, its version, the load, figures in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_files import (
    FILES,
    aiperf,
    genai,
    guidellm,
    inference_perf,
    llmperf,
    sglang,
    sweep,
    trtllm,
    vllm,
    vllm_arrays,
    without,
)

from fleetcast.errors import DataError, FleetcastError
from fleetcast.profiles.ingest.gather import read_runs
from fleetcast.profiles.ingest.run import Run


def read(folder: Path, name: str, text: str) -> list[Run]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_runs(str(path))


def one(folder: Path, data: Any) -> Run:
    (run,) = read(folder, "run.json", json.dumps(data))
    return run


def figure(run: Run, path: str) -> float:
    key, _, stat = path.partition(".")
    value = run.figures[key]
    return float(value[stat] if stat else value)


@pytest.mark.parametrize("form", FILES)
def test_a_file_is_known_by_what_it_holds(tmp_path: Path, form: str) -> None:
    bench = FILES[form]
    runs = read(tmp_path, "x" + Path(bench.name).suffix, bench.text)
    assert len(runs) == bench.runs
    last = runs[-1]
    assert (last.tool, last.version) == (bench.tool, bench.version)
    assert dict(last.load) == bench.load
    assert {key: figure(last, key) for key in bench.figures} == pytest.approx(bench.figures, rel=1e-9)


@pytest.mark.parametrize("form", [form for form in FILES if FILES[form].name.endswith((".json", ".jsonl"))])
def test_the_name_of_a_file_and_a_byte_order_mark_do_not_matter(tmp_path: Path, form: str) -> None:
    bench = FILES[form]
    for name, text in (("x.txt", bench.text), ("y.csv", "\ufeff" + bench.text)):
        assert read(tmp_path, name, text)[-1].tool == bench.tool


def test_what_aiperf_calls_inter_token_latency_is_tpot_and_chunks_count_only_where_they_are_tokens(
    tmp_path: Path,
) -> None:
    assert {"tpot", "itl"} <= one(tmp_path, aiperf()).figures.keys()
    data = aiperf()
    data["inter_chunk_latency"] |= {"count": data["inter_chunk_latency"]["count"] // 4}
    assert "itl" not in one(tmp_path, data).figures


def test_a_time_follows_the_unit_beside_it(tmp_path: Path) -> None:
    data = aiperf()
    for key in ("request_latency", "time_to_first_token"):
        data[key] = {name: value / 1e3 if name != "unit" else "sec" for name, value in data[key].items()}
    run = one(tmp_path, data)
    assert figure(run, "ttft.mean") == pytest.approx(0.1) and figure(run, "e2e.mean") == pytest.approx(0.5)
    data["request_latency"]["unit"] = "fortnights"
    with pytest.raises(DataError, match="fortnights"):
        one(tmp_path, data)


def test_a_replayed_trace_is_no_load(tmp_path: Path) -> None:
    data = aiperf()
    data["input_config"]["phases"] = [{"name": "profiling", "type": "fixed_schedule", "requests": 400}]
    assert one(tmp_path, data).load == {}


def test_means_over_the_arrays_of_requests_by_hand(tmp_path: Path) -> None:
    run = one(tmp_path, vllm_arrays())
    assert figure(run, "itl.p50") == pytest.approx(0.02)
    assert figure(run, "tpot.mean") == pytest.approx(0.021)  # as stated; the tool's clock saw the last chunk end
    assert run.figures["output_tokens"] == {"tokens": [0.0, 2.0, 3.0, 4.0], "count": [1, 1, 1, 1]}
    silent = {key: value for key, value in vllm_arrays().items() if not key.endswith("_ms")}
    assert figure(one(tmp_path, silent), "tpot.mean") == pytest.approx(0.02)  # (0.04/2 + 0.02/1 + 0.06/3) / 3


def test_failed_requests_do_not_count_among_arrays(tmp_path: Path) -> None:
    run = one(tmp_path, vllm_arrays(errors=["", "", "", "refused"], completed=3))
    assert figure(run, "ttft.min") == 0.1 and "empty" not in run.figures
    assert figure(run, "errors") == 0.25
    with pytest.raises(DataError, match="differ in length"):
        one(tmp_path, vllm_arrays(ttfts=[0.1, 0.2]))


def test_times_between_chunks_of_many_tokens_are_none_between_tokens(tmp_path: Path) -> None:
    run = one(tmp_path, sglang())
    assert "itl" not in run.figures and "29 tokens" in run.figures["note"]
    assert figure(one(tmp_path, vllm()), "itl.mean") == 0.01


def test_a_rate_without_end_is_a_closed_loop(tmp_path: Path) -> None:
    assert one(tmp_path, vllm(8, "inf")).load == {"kind": "closed", "concurrency": 8}
    assert one(tmp_path, vllm(1000, "inf")).load == {"kind": "closed", "concurrency": 400}  # never more than there are
    capped = one(tmp_path, vllm(64, 16.0)).load
    assert capped == {"kind": "open", "rate": 16.0, "arrivals": "poisson", "max_concurrency": 64}


def test_inference_perf_counts_empty_chunks_so_its_times_between_tokens_are_left_out(tmp_path: Path) -> None:
    run = one(tmp_path, inference_perf())
    assert not {"tpot", "itl"} & run.figures.keys() and "0.5 times" in run.figures["note"]
    data = inference_perf()
    for key in ("time_per_output_token", "inter_token_latency"):
        data["successes"]["latency"][key] = {"mean": 0.01, "p50": 0.009}
    assert figure(one(tmp_path, data), "tpot.mean") == 0.01


def test_llmperf_divides_the_whole_answer_by_its_tokens_so_that_is_no_tpot(tmp_path: Path) -> None:
    assert not {"tpot", "itl"} & one(tmp_path, llmperf()).figures.keys()


def test_settings_of_the_engine_come_along(tmp_path: Path) -> None:
    run = one(tmp_path, trtllm())
    assert {"max_num_seqs": "64", "max_batched_tokens": "4096", "tensor_parallel": "2", "precision": "FP8"}.items() <= (
        run.about.items()
    )
    last = read(tmp_path, "summary.csv", FILES["vllm sweep"].text)[-1]
    assert last.about["max_num_seqs"] == "8" and last.about["model"] == "my-model"


def test_a_key_on_the_command_line_is_not_kept(tmp_path: Path) -> None:
    run = one(tmp_path, aiperf())
    assert run.command is not None and "secret" not in run.command and "--concurrency 8" in run.command


# --- what is not read -------------------------------------------------------------------------------------------


UNKNOWN = {
    "aiperf": (without(aiperf(version="9.1.0"), "request_latency"), ["AIPerf 9.1.0", "request_latency", "0.2 to"]),
    "guidellm": (
        {**guidellm(3), "benchmarks": [without(guidellm()["benchmarks"][1], "metrics", "output_token_count")]},
        ["GuideLLM", "metadata.version 3", "metrics.output_token_count"],
    ),
    "genai": (
        without(without(genai(), "output_sequence_length"), "input_sequence_length"),
        ["GenAI-Perf", "output tokens"],
    ),
    "vllm": (without(vllm(), "request_throughput"), ["vLLM bench serve", "request_throughput"]),
    "sglang": (without(sglang(), "duration"), ["SGLang", "duration"]),
    "trtllm": (
        without(trtllm(), "performance", "request_throughput_req_s"),
        ["trtllm-bench 1.0.0", "request_throughput_req_s"],
    ),
    "llmperf": (
        without(llmperf(), "results_end_to_end_latency_s_mean"),
        ["llmperf", "results_end_to_end_latency_s_mean"],
    ),
    "inference-perf": (
        without(inference_perf(), "successes", "throughput"),
        ["inference-perf", "successes.throughput"],
    ),
    "sweep": (
        {**sweep(), "per_combination_metrics": [{"parameters": {"concurrency": 4}, "metrics": {"x_avg": {"mean": 1}}}]},
        ["aggregate", "time_to_first_token"],
    ),
}


@pytest.mark.parametrize("tool", UNKNOWN)
def test_another_version_is_refused_with_the_keys_it_lacks(tmp_path: Path, tool: str) -> None:
    data, words = UNKNOWN[tool]
    with pytest.raises(DataError) as caught:
        one(tmp_path, data)
    assert [word for word in words if word not in str(caught.value)] == []


BAD = {
    "empty": ("", "is empty"),
    "a word": ("hello", "no benchmark result"),
    "half a file": (json.dumps(aiperf())[:-200], "not JSON"),
    "half a line": (json.dumps(vllm()) + "\n" + json.dumps(vllm())[:-30], ":2 is not JSON"),
    "a list": ("[]", "no object"),
    "a number": ("[1, 2]", "no object"),
    "other JSON": ('{"a": 1, "b": 2}', "its keys are a, b"),
    "other CSV": ("a,b\n1,2\n", "its columns are a, b"),
    "a nested bomb": ("[" * 100_000, "nested deeper"),
    "an endless integer": ('{"aiperf_version": "1", "request_latency": ' + "9" * 5_000 + "}", "JSON"),
    "NaN": (json.dumps(vllm(mean_ttft_ms=float("nan"))), "not a measurement"),
    "infinity": (json.dumps(vllm(mean_ttft_ms=float("inf"))), "not a measurement"),
    "beyond a float": (json.dumps(vllm(mean_ttft_ms=10**400)), "beyond any measurement"),
    "negative": (json.dumps(vllm(p99_ttft_ms=-3.0)), "cannot be negative"),
    "text": (json.dumps(vllm(mean_ttft_ms="fast")), "a number is expected"),
    "a truth": (json.dumps(vllm(duration=True)), "a number is expected"),
    "half a request": (json.dumps(vllm(completed=3.5)), "whole number"),
    "NaN in an array": (json.dumps(vllm_arrays(ttfts=[0.1, float("nan"), 0.3, 0.0])), "ttfts[1]"),
    "text in an array": (json.dumps(vllm_arrays(itls=[[0.1, "x"], [], [], []])), "itls[0][1]"),
    "an open quote": ('a,b\n1,"2\n', "not CSV"),
    "no benchmark ran": (json.dumps({"metadata": {"guidellm_version": "0.8.0"}, "benchmarks": []}), "holds no run"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_refused_with_its_name(tmp_path: Path, what: str) -> None:
    text, word = BAD[what]
    with pytest.raises(FleetcastError) as caught:
        read(tmp_path, "bad.json", text)
    assert word in str(caught.value) and "bad.json" in str(caught.value)


def test_bytes_that_are_no_text_and_a_file_that_is_too_large_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'{"a": "\xff\xfe"}')
    with pytest.raises(DataError, match="not a text file"):
        read_runs(str(path))
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(DataError, match="too large") as caught:
        read_runs(str(path))
    assert "read whole" in caught.value.why and "summary" in caught.value.fix
    with pytest.raises(FleetcastError, match="no file"):
        read_runs(str(tmp_path / "y.json"))
