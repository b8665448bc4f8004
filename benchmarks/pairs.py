"""Systems that were measured twice: what to calibrate on, what to predict; read from files that are not part of this.

Every pair is a function of the data's folder; a pair whose files are absent is left out by the caller.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fleetcast.sim.calibration.bench import Bench, Key, Lengths
from fleetcast.sim.calibration.fit import Open
from fleetcast.sim.contract import Replica

NO_STEP = np.zeros(2)


@dataclass(frozen=True, eq=False)
class Pair:
    """One system: points to calibrate on, points held out, those of them beyond saturation, and why it may be hard."""

    name: str
    source: str
    calibrate: tuple[Bench, ...]
    predict: tuple[Bench, ...]
    limits: Replica
    unknown: Open = Open()  # noqa: RUF009
    beyond: frozenset[str] = frozenset()
    hard: str = ""
    family: str = ""
    active_share: float | None = None


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def ms(row: dict[str, str], names: dict[Key, str]) -> dict[Key, float]:
    """Return the figures of *row* that are there, milliseconds turned into seconds."""
    found = {}
    for key, name in names.items():
        try:
            value = float(row[name])
        except (KeyError, ValueError):
            continue
        if math.isfinite(value) and value > 0:
            found[key] = value / 1e3
    return found


def mock(data: Path) -> Iterator[Pair]:
    """AIPerf against a mock server of known truth."""

    def point(name: str, kind: str, load: float) -> Bench:
        found = json.loads((data / "results" / "aiperf-0.13-mock" / name / "profile_export_aiperf.json").read_text())
        names = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2e": "request_latency"}
        statistics = {"mean": "avg", "p50": "p50", "p90": "p90", "p99": "p99"}
        figures = {(m, s): found[n][k] / 1e3 for m, n in names.items() for s, k in statistics.items()}
        figures["output_tps", "mean"] = found["output_token_throughput"]["avg"]
        inputs = Lengths(found["input_sequence_length"]["avg"], 0.0)
        outputs = Lengths(found["output_sequence_length"]["avg"], 0.0)
        requests = int(found["request_count"]["avg"])
        return Bench(name, kind, load, inputs, outputs, figures, requests, same_span=False)

    yield Pair(
        "mock of known truth", "AIPerf 0.13 against a mock",
        tuple(point(f"c{n}", "closed", n) for n in (1, 8, 16, 32)), (point("poisson8", "open", 8.0),),
        Replica(NO_STEP, 16), Open(policy=True, seats=True), family="mock",
    )  # fmt: skip


def gb10(data: Path) -> Iterator[Pair]:
    """Qwen3.6-35B-A3B NVFP4 on a GB10, closed loops against Poisson."""
    names: dict[Key, str] = {("ttft", "mean"): "ttft_ms", ("tpot", "mean"): "itl_ms", ("e2e", "mean"): "req_latency_ms"}
    ranges = {"chatbot_flat": ((8, 1_875), (10, 740)), "agent_flat": ((8, 10_000), (10, 1_500))}
    for workload, (ins, outs) in ranges.items():
        found = []
        for row in rows(data / "validation" / "gb10-nvfp4-closed-and-open-loop.csv"):
            if row["workload"] != workload:
                continue
            figures = ms(row, names) | {("output_tps", "mean"): float(row["out_tok_s"])}
            closed = row["point"].startswith("c")
            found.append(
                Bench(row["point"], "closed" if closed else "open", float(row["point"][1:]),
                      Lengths(float(row["isl"]), 0.6, *ins), Lengths(float(row["osl"]), 0.6, *outs), figures, 96,
                      same_span=False)
            )  # fmt: skip
        yield Pair(
            f"GB10 Qwen3.6-35B {workload.split('_')[0]}", "anud18/qwen36-vllm-aiperf-benchmark",
            tuple(b for b in found if b.kind == "closed"), tuple(b for b in found if b.kind == "open"),
            Replica(NO_STEP, 32, 2048),
            beyond=frozenset({"r0.8", "r1.0", "r1.2"} if workload == "agent_flat" else ()), family="gb10", active_share=0.1,  # noqa: E501
        )  # fmt: skip


def sweeps(data: Path) -> Iterator[Pair]:
    """Poisson sweeps of vLLM and SGLang on A100 and H100, 512 in / 256 out."""
    names: dict[Key, str] = {
        ("ttft", "mean"): "ttft_mean_ms", ("ttft", "p50"): "ttft_p50_ms", ("ttft", "p90"): "ttft_p90_ms",
        ("ttft", "p99"): "ttft_p99_ms", ("e2e", "p50"): "e2el_p50_ms", ("e2e", "p90"): "e2el_p90_ms",
        ("e2e", "p99"): "e2el_p99_ms", ("tpot", "p50"): "tpot_p50_ms", ("tpot", "p90"): "tpot_p90_ms",
    }  # fmt: skip
    table = rows(data / "validation" / "poisson-rate-sweeps.csv")
    for config in sorted({row["config"] for row in table}):
        mine = [row for row in table if row["config"] == config]
        found = {}
        for row in mine:
            figures = ms(row, names) | {("output_tps", "mean"): float(row["tps_output"])}
            rate = float(row["rps"])
            found[rate] = Bench(
                f"{rate:g}/s", "open", rate, Lengths(512, 0.0), Lengths(256, 0.0), figures, 500,
                same_span=row["engine"] == "vllm",
            )  # fmt: skip
        first = mine[0]
        most = max(float(row["request_throughput"]) for row in mine)
        sglang = first["engine"] == "sglang"
        yield Pair(
            f"{config} {first['engine']} {first['model'].split('/')[-1]} {first['precision']} {first['hardware']}",
            "pChitral/vllm-cost-meter", tuple(found[r] for r in (1.0, 10.0, 50.0) if r in found),
            tuple(found[r] for r in (5.0, 25.0, 100.0, 200.0) if r in found),
            Replica(NO_STEP, 1024, 8192), Open(policy=sglang, seats=True, tokens=not sglang),
            frozenset(b.name for r, b in found.items() if r > 0.97 * most), family="sweeps",
            active_share=0.1 if "moe" in first["architecture"] else None,
        )  # fmt: skip


def g7(data: Path) -> Iterator[Pair]:
    """Qwen3-4B FP8 on a g7.4xlarge, closed loops of 300 s; 320 and 384 users are beyond its 256 seats."""
    names: dict[Key, str] = {
        ("ttft", "mean"): "ttft_mean_ms",
        ("tpot", "mean"): "itl_mean_ms",
        ("e2e", "mean"): "request_latency_mean_ms",
    }
    found = []
    for row in rows(data / "validation" / "g7-qwen3-4b-fp8" / "aiperf_sweep.csv"):
        figures = ms(row, names) | {("output_tps", "mean"): float(row["output_token_throughput_tps"])}
        users = int(row["concurrency"])
        found.append(
            Bench(f"{users} users", "closed", users, Lengths(70.0, 1.0, 1, 2_000), Lengths(float(row["osl_mean"]), 0.75, 1, 1_500),  # noqa: E501
                  figures, int(row["request_count"]), stop_s=float(row["benchmark_duration_s"]))
        )  # fmt: skip
    yield Pair(
        "g7 Qwen3-4B FP8 vLLM", "akamaslabs/vllm-benchmark", tuple(b for b in found if b.load <= 256),
        tuple(b for b in found if b.load > 256), Replica(NO_STEP, 256, 2048), family="g7",
    )  # fmt: skip


def tgi(data: Path) -> Iterator[Pair]:
    """Llama-2 on SageMaker with TGI, 1, 5 and 20 users against 10; at most 50 tokens an answer, prompts not published."""  # noqa: E501
    names: dict[Key, str] = {
        ("e2e", "mean"): "Latency Request ms avg", ("e2e", "p50"): "Latency Request ms med", ("e2e", "p90"): "Latency Request ms p(90)",  # noqa: E501
    }  # fmt: skip
    table = rows(data / "validation" / "sagemaker-tgi-a10g-a100" / "sagemaker.csv")
    systems = sorted({(row["Model Id"], row["Instance"], row["quantization"]) for row in table})
    for model, instance, quantization in systems:
        found = {}
        for row in table:
            if (row["Model Id"], row["Instance"], row["quantization"]) != (model, instance, quantization):
                continue
            figures = ms(row, names)
            users = int(row["Virtual Users"])
            tokens = min(50.0, 1e3 * figures["e2e", "mean"] / float(row["Latency (ms/token) med"]))
            figures["output_tps", "mean"] = users * tokens / figures["e2e", "mean"]
            found[users] = Bench(
                f"{users} users", "closed", users, Lengths(200.0, 0.6), Lengths(tokens, 0.1, 2, 50), figures,
                int(row["Number of requests"]),
            )  # fmt: skip
        if set(found) >= {1, 5, 10, 20}:
            yield Pair(
                f"TGI {model.split('/')[-1]} {instance}", "philschmid, SageMaker LLM benchmark",
                tuple(found[n] for n in (1, 5, 20)), (found[10],), Replica(NO_STEP, 128, 4096, policy="prefill-first"),
                family="tgi",
            )  # fmt: skip


def rtx(data: Path) -> Iterator[Pair]:
    """Llama-3.1-8B on an RTX 4090: every second request of a log of 300 tells, the others are predicted."""
    folder = data / "validation" / "rtx4090-llama31-8b-vllm-requests"
    log = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    meta = json.loads((folder / "meta.json").read_text())
    log.sort(key=lambda row: row["queued_ts"])
    sent = np.array([row["queued_ts"] for row in log])
    first = np.array([row["first_token_ts"] for row in log]) - sent
    whole = np.array([row["last_token_ts"] for row in log]) - sent
    inputs = np.array([row["input_toks"] for row in log], np.int32)
    outputs = np.array([row["output_toks"] for row in log], np.int32)
    several = outputs > 1
    tpot = np.where(several, (whole - first) / np.maximum(1, outputs - 1), np.nan)
    parts = []
    for part in (0, 1):
        mask = np.arange(len(log)) % 2 == part
        figures: dict[Key, float] = {}
        for metric, values in (("ttft", first), ("tpot", tpot), ("e2e", whole)):
            mine = values[mask & several] if metric == "tpot" else values[mask]
            figures[metric, "mean"] = float(mine.mean())
            figures.update({(metric, f"p{q}"): float(np.quantile(mine, q / 100)) for q in (50, 90, 99)})
        parts.append(
            Bench(("even", "odd")[part] + " requests", "open", len(log) / float(np.ptp(sent)), inputs, outputs, figures,
                  len(log), arrival_s=sent - sent[0], counted=mask)
        )  # fmt: skip
    engine = meta["engine_kwargs"]
    yield Pair(
        "RTX 4090 Llama-3.1-8B vLLM, request log", "LLMServingSim", (parts[0],), (parts[1],),
        Replica(NO_STEP, engine["max_num_seqs"], engine["max_num_batched_tokens"],
                kv_blocks=meta["kv_cache"]["num_gpu_blocks"]),
        beyond=frozenset(), family="rtx",
    )  # fmt: skip


def splitwise(data: Path) -> Iterator[Pair]:
    """Static batches of Llama-2-70B and BLOOM: every second batch size is predicted from the others."""
    table = rows(data / "validation" / "splitwise_batch_grid.csv")
    systems = sorted({(row["model"], row["hardware"], row["tensor_parallel"]) for row in table})
    for model, hardware, parallel in systems:
        mine = [
            row
            for row in table
            if (row["model"], row["hardware"], row["tensor_parallel"]) == (model, hardware, parallel)
        ]
        grid: dict[tuple[int, int, int], list[dict[str, str]]] = {}
        for row in mine:
            size = (int(row["prompt_size"]), int(row["batch_size"]), int(row["token_size"]))
            grid.setdefault(size, []).append(row)
        batches = sorted({batch for _, batch, _ in grid})
        found = []
        for (prompt, batch, tokens), repeats in sorted(grid.items()):
            mean = {
                name: float(np.median([float(r[name]) for r in repeats])) / 1e3
                for name in ("prompt_time", "token_time", "e2e_time")
            }
            figures = {
                ("ttft", "mean"): mean["prompt_time"],
                ("tpot", "mean"): mean["token_time"],
                ("e2e", "mean"): mean["e2e_time"],
            }
            found.append((batch, Bench(f"{batch} x {prompt}+{tokens}", "static", batch, Lengths(prompt, 0.0), Lengths(tokens, 0.0),  # noqa: E501
                                       figures, batch, repeats=len(repeats))))  # fmt: skip
        inner = set(batches[1:-1:2])
        if len(batches) >= 3:
            yield Pair(
                f"Splitwise {model} {hardware} TP{parallel}", "Mutinifni/splitwise-sim",
                tuple(b for batch, b in found if batch not in inner), tuple(b for batch, b in found if batch in inner),
                Replica(NO_STEP, max(batches), 2**20), family="splitwise",
            )  # fmt: skip


def t4(data: Path) -> Iterator[Pair]:
    """Qwen3-0.6B on two T4 with prompts and answers on different replicas: not what this engine plays."""
    names: dict[Key, str] = {
        ("ttft", "mean"): "ttft_mean_ms", ("ttft", "p50"): "ttft_median_ms", ("itl", "mean"): "itl_mean_ms",
    }  # fmt: skip
    found = {}
    for row in rows(data / "validation" / "t4x2-qwen3-0.6b-guidellm.csv"):
        figures = ms(row, names)
        figures["e2e", "mean"] = float(row["req_latency_mean_s"])
        figures["e2e", "p50"] = float(row["req_latency_median_s"])
        kind, count = row["profile"], int(row["total_requests"])
        lengths = (
            Lengths(float(row["prompt_tokens_mean"]), 0.1),
            Lengths(float(row["output_tokens_mean"]), 0.2, 1, 160),
        )
        name = f"{row['source_file']} {kind} {row['rate']}".replace(" -", "")
        if kind in ("constant", "poisson"):
            bench = Bench(
                name, "open", float(row["rate"]), *lengths, figures, count, kind, same_span=False, stop_s=60.0
            )
        else:
            users = {"synchronous": 1, "throughput": 512}.get(kind) or round(float(row["concurrency_mean"]))
            if row["source_file"] == "throughput":
                users = round(float(row["concurrency_mean"]))
            bench = Bench(name, "closed", users, *lengths, figures, count, stop_s=60.0)
        figures["request_rate", "mean"] = float(row["rps_mean"])
        found[name] = bench
    fitted = ("sync synchronous", "concurrent4 concurrent", "concurrent16 concurrent", "throughput throughput")
    yield Pair(
        "2 x T4 Qwen3-0.6B, GuideLLM", "GuideLLM sweep, prompts and answers on different replicas",
        tuple(b for n, b in found.items() if n in fitted),
        tuple(b for b in found.values() if b.kind == "open"), Replica(NO_STEP, 512, 2048), family="t4",
        hard="two replicas, prompts on one and answers on the other",
    )  # fmt: skip


FAMILIES = (mock, gb10, g7, sweeps, tgi, rtx, splitwise, t4)


def smaller(pair: Pair, requests: int) -> Pair:
    """Return *pair* with runs of at most *requests*, for a quick look."""
    cut = tuple(replace(b, requests=min(b.requests, requests)) for b in pair.calibrate)
    return replace(pair, calibrate=cut)
