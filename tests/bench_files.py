"""Result files in the shape that benchmark tools write them, with numbers of our own.

`FILES` has one of every form: its name and text, and what the (last) run in it says: tool, version, load, figures in
seconds and tokens.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import Any

STATS = {"avg": 1.0, "p50": 0.9, "p90": 1.4, "p99": 1.8, "min": 0.5, "max": 2.0, "std": 0.2}


@dataclass(frozen=True)
class Bench:
    """A file of one tool, and what an importer should find in its last run."""

    name: str
    text: str
    tool: str
    version: str | None
    load: dict[str, Any]
    figures: dict[str, float] = field(default_factory=dict)
    runs: int = 1


def metric(mean: float, unit: str, **more: float) -> dict[str, Any]:
    """A metric as AIPerf and GenAI-Perf write it."""
    return {"unit": unit} | {key: round(mean * share, 6) for key, share in STATS.items()} | more


def aiperf(users: int = 8, version: str = "0.13.0", **changes: Any) -> dict[str, Any]:
    """A run of *users* at 0.5 s an answer of 41 tokens, first one after 100 ms, then every 10 ms."""
    rate = users / 0.5
    n = 50 * users
    return {
        "schema_version": "1.4",
        "aiperf_version": version,
        "request_throughput": {"unit": "requests/sec", "avg": rate},
        "request_latency": metric(500.0, "ms"),
        "request_count": {"unit": "requests", "avg": float(n)},
        "time_to_first_token": metric(100.0, "ms"),
        "inter_token_latency": metric(10.0, "ms"),
        "inter_chunk_latency": metric(10.0, "ms", count=40 * n, sum=400.0 * n),
        "output_token_throughput": {"unit": "tokens/sec", "avg": rate * 41},
        "total_token_throughput": {"unit": "tokens/sec", "avg": rate * 141},
        "output_sequence_length": metric(41.0, "tokens", sum=41.0 * n),
        "input_sequence_length": metric(100.0, "tokens"),
        "benchmark_duration": {"unit": "sec", "avg": n / rate},
        "input_config": {
            "models": {"items": [{"name": "my-model"}]},
            "phases": [
                {"name": "warmup", "type": "concurrency", "exclude_from_results": True, "requests": 16},
                {"name": "profiling", "type": "concurrency", "requests": n, "concurrency": users},
            ],
        },
        "run_info": {
            "cli_command": f"aiperf profile --model my-model --api-key sk-secret1234567890 --concurrency {users}"
        },
        "error_summary": [],
        "start_time": "2026-07-03T12:34:16",
    } | changes


def aiperf_old() -> dict[str, Any]:
    data = aiperf(8, "0.3.0")
    del data["run_info"], data["schema_version"]
    data["input_config"] = {
        "endpoint": {"model_names": ["my-model"], "type": "chat", "streaming": True},
        "loadgen": {"request_rate": 16.0, "request_rate_mode": "poisson", "warmup_request_count": 4, "concurrency": 64},
        "cli_command": "aiperf profile -m my-model --request-rate 16",
    }
    return data


AIPERF_CSV = """\
Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std
Input Sequence Length (tokens),100.00,100.00,100.00,40000.00,100,100,100,100,100,100,100,100,100,0.00
Inter Chunk Latency (ms),10.00,5.00,20.00,160000.00,6,7,8,9,10,11,14,16,18,2.00
Inter Token Latency (ms),10.00,5.00,20.00,4000.00,6,7,8,9,9,11,14,16,18,2.00
Output Sequence Length (tokens),41.00,41.00,41.00,16400.00,41,41,41,41,41,41,41,41,41,0.00
Request Latency (ms),"1,500.00",250.00,"3,000.00",200000.00,300,350,400,450,"1,450",1600,1700,1800,1900,100.00
Time to First Token (ms),"1,100.00",50.00,200000.00,40000.00,60,70,80,90,"1,090",1100,1140,1160,"1,180",20.00

Metric,Value
Benchmark Duration (sec),75.00
Output Token Throughput (tokens/sec),218.67
Request Count,400.00
Request Throughput (requests/sec),5.33


Endpoint,GPU_Index,GPU_Name,GPU_UUID,Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std
""".replace("\n", "\r\n")

GENAI_CSV = """\
Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),"1,100.00",250.00,"3,485.00","3,450.00","3,340.00","3,210.00","1,330.00",640.00,280.00
Request Latency (ms),"6,300.00","5,300.00","9,600.00","9,400.00","9,000.00","8,900.00","6,500.00","5,600.00","5,400.00"
Inter Token Latency (ms),30.00,27.00,35.00,34.50,33.50,32.50,31.00,30.00,29.00
Output Sequence Length (tokens),174.00,164.00,187.00,186.00,183.00,180.00,177.00,174.00,171.00
Input Sequence Length (tokens),"3,000.00","2,999.00","3,001.00",3001,3001,3000,3000,3000,3000

Metric,Value
Output Token Throughput (per sec),261.00
Request Throughput (per sec),1.50
Request Count (count),40.00
"""

GENAI_NS_CSV = """\
Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ns),"23,940,000",22920000,30750000,30100000,27510000,24260000,23380000,23200000,23020000
Inter Token Latency (ns),11540000,11450000,11700000,11690000,11640000,11580000,11550000,11530000,11520000
Request Latency (ns),5919160000,5912730000,5934450000,5933310000,5928740000,5923030000,5920170000,5918560000,5915290000
Num Output Token,512,505,516,516,515,515,512,512,511

Metric,Value
Output Token Throughput (per sec),86.48
Request Throughput (per sec),0.17
"""


def genai() -> dict[str, Any]:
    return {
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "request_latency": metric(5_000.0, "ms"),
        "time_to_first_token": metric(1_000.0, "ms"),
        "inter_token_latency": metric(40.0, "ms"),
        "output_token_throughput": {"unit": "tokens/sec", "avg": 202.0},
        "output_sequence_length": metric(101.0, "tokens"),
        "input_sequence_length": metric(200.0, "tokens"),
        "request_count": {"unit": "count", "avg": 100.0},
        "input_config": {
            "model": ["my-model"],
            "service_kind": "openai",
            "perf_analyzer": {"stimulus": {"concurrency": 10}},
        },
    }


def summary(mean: float) -> dict[str, Any]:
    percentiles = {"p001": 0.4, "p01": 0.5, "p05": 0.6, "p10": 0.7, "p25": 0.8, "p50": 0.9, "p75": 1.1, "p90": 1.4,
                   "p95": 1.6, "p99": 1.8, "p999": 1.9}  # fmt: skip
    stats = {"mean": mean, "median": 0.9 * mean, "std_dev": 0.2 * mean, "min": 0.3 * mean, "max": 2 * mean}
    return stats | {"count": 200, "percentiles": {key: share * mean for key, share in percentiles.items()}}


def guidellm_benchmark(strategy: dict[str, Any], **totals: int) -> dict[str, Any]:
    def by_status(mean: float) -> dict[str, Any]:
        return {"successful": summary(mean), "errored": summary(0.0), "incomplete": summary(0.0)}

    return {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy, "backend": {"model": "my-model"}},
        "metrics": {
            "request_totals": {"successful": 200, "errored": 0, "incomplete": 0, "total": 200} | totals,
            "requests_per_second": by_status(8.0),
            "request_concurrency": by_status(4.0),
            "request_latency": by_status(0.5),
            "prompt_token_count": by_status(100.0),
            "output_token_count": by_status(41.0),
            "time_to_first_token_ms": by_status(100.0),
            "time_per_output_token_ms": by_status(12.2),
            "inter_token_latency_ms": by_status(10.0),
            "output_tokens_per_second": by_status(328.0),
            "tokens_per_second": by_status(1128.0),
        },
        "start_time": 1_786_678_148.25,
        "end_time": 1_786_678_173.25,
        "duration": 25.0,
    }


def guidellm(form: int = 2, **totals: int) -> dict[str, Any]:
    load = {"type_": "concurrent", "streams": 4}
    report: dict[str, Any] = {
        "metadata": {"version": form, "guidellm_version": "0.8.0" if form == 2 else "0.5.0"},
        "benchmarks": [
            guidellm_benchmark({"type_": "poisson", "rate": 8.0, "max_concurrency": 10240}),
            guidellm_benchmark(load, **totals),
        ],
    }
    return report | ({"config": {"spec": {}}} if form == 2 else {"args": {"model": "my-model"}})


def guidellm_0_2() -> dict[str, Any]:
    bench = guidellm_benchmark({"type_": "synchronous"})
    bench["args"] = bench.pop("config")
    del bench["metrics"]["request_totals"], bench["duration"]
    bench["run_stats"] = {"requests_made": {"successful": 200, "errored": 0, "incomplete": 3, "total": 203}}
    return {"benchmarks": [bench]}


def guidellm_csv() -> str:
    stats = ("Mean", "Median", "Std Dev", "Percentiles")
    columns: list[tuple[str, str, str, str]] = [
        ("Run Info", "Run ID", "", "x"),
        ("Run Info", "Run Index", "", "1"),
        ("Run Info", "Profile", "", json.dumps({"type_": "concurrent", "streams": [2, 4]})),
        ("Benchmark", "Strategy", "", "concurrent"),
        ("Timings", "Start Time", "", "2026-07-03 12:00:00"),
        ("Timings", "Duration", "Sec", "25.0"),
        ("Request Counts", "Successful", "", "200"),
        ("Request Counts", "Incomplete", "", "3"),
        ("Request Counts", "Errored", "", "0"),
    ]
    for group, unit, mean in (
        ("Request Latency", "Sec", 0.5),
        ("Time to First Token", "ms", 100.0),
        ("Inter Token Latency", "ms", 10.0),
        ("Server Throughput", "Requests/Sec", 8.0),
        ("Server Throughput", "Concurrency", 4.0),
        ("Token Metrics", "Input Tokens", 100.0),
        ("Token Metrics", "Output Tokens", 41.0),
        ("Token Throughput", "Output Tokens/Sec", 328.0),
    ):
        spread = [mean * share for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.1, 1.4, 1.6, 1.8, 2.0)]
        for stat, value in zip(stats, (mean, 0.9 * mean, 0.2 * mean, spread), strict=True):
            columns.append((group, f"Successful {unit}", stat, str(value)))
    meta = json.dumps({"version": 1, "guidellm_version": "0.5.1"})
    columns += [("Runtime Info", "Metadata", "", meta), ("Runtime Info", "Arguments", "", '{"model": "my-model"}')]
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in column] for column in columns]
    return "\n".join(",".join(column[row] for column in quoted) for row in range(4)) + "\n"


def vllm(users: int | None = 8, rate: float | str = "inf", **changes: Any) -> dict[str, Any]:
    speed = 16.0
    return {
        "date": "20250301-101112",
        "backend": "vllm",
        "model_id": "my-model",
        "num_prompts": 400,
        "request_rate": rate,
        "burstiness": 1.0,
        "max_concurrency": users,
        "duration": 25.0,
        "completed": 400,
        "total_input_tokens": 40_000,
        "total_output_tokens": 16_400,
        "request_throughput": speed,
        "output_throughput": speed * 41,
        "total_token_throughput": speed * 141,
        "mean_ttft_ms": 100.0,
        "median_ttft_ms": 90.0,
        "std_ttft_ms": 20.0,
        "p99_ttft_ms": 180.0,
        "mean_tpot_ms": 10.0,
        "median_tpot_ms": 9.0,
        "p99_tpot_ms": 18.0,
        "mean_itl_ms": 10.0,
        "median_itl_ms": 9.0,
        "p99_itl_ms": 18.0,
        "mean_e2el_ms": 500.0,
        "p99_e2el_ms": 900.0,
    } | changes


def vllm_arrays(**changes: Any) -> dict[str, Any]:
    """Four requests of 2024, the last of which says nothing: means that can be worked out by hand."""
    data = vllm(None, 2.0, num_prompts=4, completed=4, duration=2.0, total_input_tokens=100, total_output_tokens=9,
                request_throughput=2.0, output_throughput=4.5, total_token_throughput=54.5)  # fmt: skip
    for key in ("burstiness", "max_concurrency", "mean_e2el_ms", "p99_e2el_ms"):
        del data[key]
    means = {"mean_ttft_ms": 150.0, "median_ttft_ms": 150.0, "p99_ttft_ms": 297.0, "std_ttft_ms": 111.803399,
             "mean_tpot_ms": 21.0, "median_tpot_ms": 20.0, "p99_tpot_ms": 22.0}  # fmt: skip
    arrays = {
        "input_lens": [10, 20, 30, 40],
        "output_lens": [3, 2, 4, 0],
        "ttfts": [0.1, 0.2, 0.3, 0.0],
        "itls": [[0.01, 0.03], [0.02], [0.01, 0.02, 0.03], []],
        "generated_texts": ["", "", "", ""],
        "errors": ["", "", "", ""],
    }
    return data | means | arrays | {"best_of": 1} | changes


def sglang(users: int | None = 16, **changes: Any) -> dict[str, Any]:
    data = vllm(users, float("inf"), backend="sglang-oai", concurrency=7.9)
    for key in ("mean_e2el_ms", "p99_e2el_ms", "date", "model_id", "burstiness", "num_prompts"):
        del data[key]
    data |= {"mean_e2e_latency_ms": 500.0, "median_e2e_latency_ms": 480.0, "p99_e2e_latency_ms": 900.0}
    return data | {"total_output_tokens_retokenized": 16_398, "mean_itl_ms": 290.0, "p99_itl_ms": 320.0} | changes


def inferencex() -> dict[str, Any]:
    data = vllm(8)
    seconds = {key.removesuffix("_ms"): value / 1e3 for key, value in data.items() if key.endswith("_ms")}
    return {key: value for key, value in data.items() if not key.endswith("_ms")} | seconds


def inference_perf(rate: float = 16.0, **changes: Any) -> dict[str, Any]:
    def spread(mean: float) -> dict[str, float]:
        return {"mean": mean, "min": 0.5 * mean, "p25": 0.8 * mean, "median": 0.9 * mean, "p75": 1.1 * mean,
                "p90": 1.4 * mean, "p99": 1.8 * mean, "max": 2 * mean}  # fmt: skip

    latency = {
        "request_latency": spread(0.5),
        "time_to_first_token": spread(0.1),
        "time_per_output_token": spread(0.005),  # half of (0.5 - 0.1) / 40: empty chunks counted as tokens
        "inter_token_latency": spread(0.005),
    }
    throughput = {"requests_per_sec": 15.9, "output_tokens_per_sec": 651.9, "total_tokens_per_sec": 2241.9}
    return {
        "load_summary": {"count": 960, "requested_rate": rate, "achieved_rate": 15.95, "send_duration": 60.0},
        "successes": {"count": 950, "latency": latency, "throughput": throughput, "prompt_len": spread(100.0),
                      "output_len": spread(41.0)},
        "failures": {"count": 10, "request_latency": None},
    } | changes  # fmt: skip


def llmperf() -> dict[str, Any]:
    data: dict[str, Any] = {
        "version": "2023-08-31",
        "name": "x_summary",
        "model": "my-model",
        "num_concurrent_requests": 4,
        "results_num_requests_started": 100,
        "results_number_errors": 2,
        "results_num_completed_requests": 98,
        "results_num_completed_requests_per_min": 480.0,
        "results_mean_output_throughput_token_per_s": 328.0,
        "timestamp": 1_714_048_581,
    }
    for name, mean in (("ttft_s", 0.1), ("end_to_end_latency_s", 0.5), ("inter_token_latency_s", 0.0122),
                       ("number_input_tokens", 100.0), ("number_output_tokens", 41.0)):  # fmt: skip
        for key, share in (("mean", 1.0), ("min", 0.5), ("max", 2.0), ("stddev", 0.2), ("quantiles_p50", 0.9),
                           ("quantiles_p99", 1.8)):  # fmt: skip
            data[f"results_{name}_{key}"] = str(mean * share) if key == "max" else mean * share
    return data


def trtllm() -> dict[str, Any]:
    def spread(mean: float) -> dict[str, float]:
        return {"p50": 0.9 * mean, "p90": 1.4 * mean, "p99": 1.8 * mean, "minimum": 0.5 * mean, "maximum": 2 * mean}

    return {
        "engine": {"model": "my-model", "version": "1.0.0", "backend": "Pytorch", "dtype": "bfloat16",
                   "quantization": "FP8"},
        "world_info": {"tp_size": 2, "pp_size": 1, "world_size": 2, "max_batch_size": 64, "max_num_tokens": 4096},
        "request_info": {"num_requests": 400, "avg_input_length": 100.0, "avg_output_length": 41.0,
                         "avg_num_concurrent_requests": 7.8},
        "performance": {"total_latency_ms": 25_000.0, "avg_request_latency_ms": 500.0, "request_throughput_req_s": 16.0,
                        "system_output_throughput_tok_s": 656.0, "system_total_throughput_tok_s": 2256.0,
                        "request_latency_percentiles_ms": spread(500.0)},
        "streaming_metrics": {"avg_ttft_ms": 100.0, "avg_tpot_ms": 10.0, "ttft_percentiles": spread(100.0),
                              "tpot_percentiles": spread(10.0)},
    }  # fmt: skip


PERF_ANALYZER = """\
Concurrency,Inferences/Second,Client Send,Server Queue,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency
1,2.0,225,64,0,498910,518795,519753,521018
4,4.0,279,33669,1,997045,1056545,1059225,1064886
2,3.5,235,9151,0,571874,578557,579769,584766
"""

RECOMMENDER = {
    "InferenceRecommendations": [
        {
            "RecommendationId": "x",
            "Metrics": {"CostPerHour": 0.736, "MaxInvocations": 600, "ModelLatency": 250},
            "EndpointConfiguration": {"InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1},
        }
    ]
}


def sweep() -> dict[str, Any]:
    def cell(users: int) -> dict[str, Any]:
        told = {"request_throughput_avg": (users * 2.0, "requests/sec"), "time_to_first_token_avg": (100.0, "ms"),
                "time_to_first_token_p99": (180.0, "ms"), "request_latency_avg": (500.0, "ms"),
                "output_token_throughput_avg": (users * 82.0, "tokens/sec"),
                "output_sequence_length_avg": (41.0, "tokens")}  # fmt: skip
        metrics = {key: {"mean": value, "std": 0.1, "unit": unit} for key, (value, unit) in told.items()}
        return {"parameters": {"concurrency": users}, "metrics": metrics}

    return {
        "aggregation_type": "sweep",
        "num_profile_runs": 6,
        "metadata": {"sweep_parameters": [{"name": "concurrency", "values": [4, 8]}]},
        "per_combination_metrics": [cell(4), cell(8)],
        "best_configurations": {},
        "pareto_optimal": [],
    }


def aggregate() -> dict[str, Any]:
    """Averages over three repeats; how load was applied stands in the folder's name alone."""
    cell = sweep()["per_combination_metrics"][1]
    meta = {"aggregation_type": "confidence", "num_profile_runs": 3, "num_successful_runs": 3}
    return {"schema_version": "1.0", "aiperf_version": "0.8.0", "metadata": meta, "metrics": cell["metrics"]}


SWEEP_CSV = """\
concurrency,request_throughput_avg_mean,request_throughput_avg_std,ttft_p99_ms_mean,ttft_p99_ms_std,output_token_throughput_avg_mean
4,8.0,0.1,180.0,2.0,328.0
8,16.0,0.1,185.0,2.0,656.0

Best Configurations
Configuration,concurrency,Metric,Unit
Best Throughput,8,16.0,requests/sec
"""

VLLM_SWEEP_CSV = (
    ",".join(["max_num_seqs", "run_number", *vllm()])
    + "\n"
    + "\n".join(
        ",".join(map(str, [seats, run, *vllm(users, completed=400).values()]))
        for seats in (4, 8)
        for run, users in ((0, 4), (1, 8))
    )
    + "\n"
)

RESPONSES = [
    {
        "error_code": None,
        "ttft_s": 0.1,
        "end_to_end_latency_s": 0.5,
        "number_output_tokens": 41,
        "number_input_tokens": 9,
    },
    {
        "error_code": None,
        "ttft_s": 0.3,
        "end_to_end_latency_s": 0.7,
        "number_output_tokens": 21,
        "number_input_tokens": 9,
    },
    {"error_code": 500, "error_msg": "no", "ttft_s": 0, "end_to_end_latency_s": 0, "number_output_tokens": 0},
]

USUAL = {"ttft.mean": 0.1, "e2e.mean": 0.5, "output_tokens.mean": 41}
EIGHT = {"kind": "closed", "concurrency": 8}
FOUR = {"kind": "closed", "concurrency": 4}


def _json(data: Any) -> str:
    return json.dumps(data)


FILES = {
    "aiperf": Bench("run.json", _json(aiperf()), "AIPerf", "0.13.0", EIGHT,
                    USUAL | {"tpot.mean": 0.01, "itl.p99": 0.018, "warmup_requests": 16, "errors": 0.0}),
    "aiperf 0.3": Bench("run.json", _json(aiperf_old()), "AIPerf", "0.3.0",
                        {"kind": "open", "rate": 16.0, "arrivals": "poisson", "max_concurrency": 64},
                        USUAL | {"warmup_requests": 4}),
    "aiperf csv": Bench("run.csv", AIPERF_CSV, "AIPerf", None, {},
                        {"ttft.p99": 1.18, "e2e.mean": 1.5, "output_tps": 218.67, "requests": 400}),
    "aiperf sweep": Bench("sweep.json", _json(sweep()), "AIPerf", None, EIGHT,
                          USUAL | {"output_tps": 656.0, "ttft.p99": 0.18}, 2),
    "aiperf aggregate": Bench("aggregate.json", _json(aggregate()), "AIPerf", "0.8.0", {},
                              USUAL | {"output_tps": 656.0, "ttft.p99": 0.18}),
    "aiperf sweep csv": Bench("sweep.csv", SWEEP_CSV, "AIPerf", None, EIGHT,
                              {"output_tps": 656.0, "ttft.p99": 0.185}, 2),
    "genai-perf": Bench("run.json", _json(genai()), "GenAI-Perf", None, {"kind": "closed", "concurrency": 10},
                        {"ttft.mean": 1.0, "tpot.p99": 0.072, "output_tokens.mean": 101, "requests": 100}),
    "genai-perf csv": Bench("run.csv", GENAI_CSV, "GenAI-Perf", None, {},
                            {"ttft.mean": 1.1, "e2e.max": 9.6, "input_tokens.mean": 3000, "output_tps": 261.0}),
    "genai-perf csv, ns": Bench("run.csv", GENAI_NS_CSV, "GenAI-Perf", None, {},
                                {"ttft.mean": 0.02394, "e2e.p99": 5.93331, "output_tokens.mean": 512}),
    "guidellm 2": Bench("report.json", _json(guidellm()), "GuideLLM", "0.8.0", FOUR,
                        USUAL | {"tpot.mean": 0.01, "e2e.p99": 0.9, "requests": 200, "mean_concurrency": 4.0}, 2),
    "guidellm 1": Bench("report.json", _json(guidellm(1)), "GuideLLM", "0.5.0", FOUR, USUAL | {"tpot.p50": 0.009}, 2),
    "guidellm 0.2": Bench("report.json", _json(guidellm_0_2()), "GuideLLM", None, {"kind": "closed", "concurrency": 1},
                          USUAL | {"duration": 25.0, "unfinished": 3}),
    "guidellm csv": Bench("report.csv", guidellm_csv(), "GuideLLM", "0.5.1", FOUR,
                          USUAL | {"tpot.p95": 0.016, "e2e.p50": 0.45, "unfinished": 3, "output_tps": 328.0}),
    "vllm 2024": Bench("run.json", _json(vllm_arrays()), "vLLM bench serve", "2024",
                       {"kind": "open", "rate": 2.0, "arrivals": "poisson"},
                       {"ttft.mean": 0.15, "ttft.p25": 0.075, "itl.mean": 0.02, "e2e.mean": 0.18, "empty": 1}),
    "vllm 2025 lines": Bench("runs.jsonl", "\n".join(_json(vllm(n)) for n in (4, 8)) + "\n", "vLLM bench serve", "2025",
                             EIGHT, USUAL | {"tpot.p99": 0.018, "requests": 400}, 2),
    "vllm 2026": Bench("run.json", _json(vllm(None, 16.0, burstiness=0.5, failed=10, max_output_tokens_per_s=900.0)),
                       "vLLM bench serve", "2026",
                       {"kind": "open", "rate": 16.0, "arrivals": "gamma", "burstiness": 0.5},
                       USUAL | {"errors": 10 / 410}),
    "vllm sweep": Bench("summary.csv", VLLM_SWEEP_CSV, "vLLM bench serve", "2025", EIGHT, USUAL, 4),
    "vllm all at once": Bench("run.json", _json(vllm(None)), "vLLM bench serve", "2025",
                              {"kind": "closed", "concurrency": 400}, USUAL),
    "vllm latency": Bench("latency.json", _json({"avg_latency": 4.0, "latencies": [4.0], "percentiles": {"50": 4.0}}),
                          "vLLM bench latency", None, {"kind": "static"}, {"latency": 4.0}),
    "vllm throughput": Bench(
        "throughput.json",
        _json({"elapsed_time": 10.0, "num_requests": 8, "total_num_tokens": 2048, "requests_per_second": 0.8,
               "tokens_per_second": 204.8}),
        "vLLM bench throughput", None, EIGHT, {"total_tps": 204.8, "duration": 10.0}),
    "sglang": Bench("runs.jsonl", json.dumps(sglang(8)) + "\n" + json.dumps(sglang(16)), "SGLang bench_serving", "2025",
                    {"kind": "closed", "concurrency": 16}, USUAL | {"mean_concurrency": 7.9, "e2e.p99": 0.9}, 2),
    "inferencex": Bench("run.json", _json(inferencex()), "InferenceX", None, EIGHT, USUAL | {"tpot.p99": 0.018}),
    "inference-perf": Bench("stage_0_lifecycle_metrics.json", _json(inference_perf()), "inference-perf", None,
                            {"kind": "open", "rate": 16.0, "arrivals": None},
                            USUAL | {"achieved_rate": 15.95, "errors": 10 / 960}),
    "llmperf": Bench("summary.json", _json(llmperf()), "llmperf", "2023-08-31", FOUR,
                     USUAL | {"ttft.max": 0.2, "errors": 0.02, "request_throughput": 8.0}),
    "llmperf by users": Bench("results.json", _json({"2": llmperf(), "4": llmperf()}), "llmperf", "2023-08-31", FOUR,
                              USUAL, 2),
    "llmperf responses": Bench("individual_responses.json", _json(RESPONSES), "llmperf", "responses", {},
                               {"ttft.mean": 0.2, "e2e.max": 0.7, "tpot.min": 0.01, "errors": 1 / 3}),
    "trtllm": Bench("report.json", _json(trtllm()), "trtllm-bench", "1.0.0", EIGHT,
                    USUAL | {"tpot.p99": 0.018, "e2e.min": 0.25, "duration": 25.0}),
    "perf_analyzer": Bench("perf.csv", PERF_ANALYZER, "perf_analyzer", "2", {"kind": "closed", "concurrency": 2},
                           {"e2e.p50": 0.571874, "request_throughput": 3.5}, 3),
    "recommender": Bench("answer.json", _json(RECOMMENDER), "SageMaker Inference Recommender", None,
                         {"kind": "open", "rate": 10.0, "arrivals": None}, {"e2e.mean": 0.25}),
}  # fmt: skip


def without(data: dict[str, Any], *path: str) -> dict[str, Any]:
    """A copy of *data* without what lies at *path*."""
    found = copy.deepcopy(data)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return found
