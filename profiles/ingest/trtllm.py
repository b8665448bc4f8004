"""TensorRT-LLM `trtllm-bench`: the report of a throughput or latency run, in milliseconds.

Load is the concurrency that was measured on average, which is the one asked for as long as the run is long. What the
engine was built for (`max_batch_size`, `max_num_tokens`) is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, settings, some

NAME = "trtllm-bench"
KNOWN = "the reports of TensorRT-LLM 0.16 to 1.2"
NEEDED = (
    "request_info.num_requests",
    "request_info.avg_output_length",
    "performance.request_throughput_req_s",
    "performance.system_output_throughput_tok_s",
)


def recognises(document: Document) -> bool:
    """Whether trtllm-bench wrote this: its engine, its world and its performance."""
    return {"engine", "performance"} <= document.first.keys() and bool(
        {"world_info", "request_info"} & document.first.keys()
    )


def runs(document: Document) -> Iterator[Run]:
    """Read the one run of the report."""
    data, where = document.first, document.path
    engine, world = v.table(data.get("engine")), v.table(data.get("world_info"))
    version = v.clean(engine.get("version"), 40)
    v.need(data, NEEDED, where, f"{NAME} {version or ''}".strip(), KNOWN)
    info, speed, stream = (v.table(data.get(key)) for key in ("request_info", "performance", "streaming_metrics"))
    users = v.positive(info.get("avg_num_concurrent_requests"), f"{where}: avg_num_concurrent_requests")

    def spread(mean: object, percentiles: object, name: str) -> dict[str, float]:
        return v.named({"avg": mean} | dict(v.table(percentiles)), v.STATISTICS, 1e-3, f"{where}: {name}")

    total = v.positive(speed.get("total_latency_ms"), f"{where}: total_latency_ms")
    figures = some(
        ttft=spread(stream.get("avg_ttft_ms"), stream.get("ttft_percentiles"), "ttft"),
        tpot=spread(stream.get("avg_tpot_ms"), stream.get("tpot_percentiles"), "tpot"),
        e2e=spread(speed.get("avg_request_latency_ms"), speed.get("request_latency_percentiles_ms"), "request_latency"),
        output_tps=v.positive(speed["system_output_throughput_tok_s"], f"{where}: output throughput"),
        total_tps=v.positive(speed.get("system_total_throughput_tok_s"), f"{where}: total throughput"),
        request_throughput=v.positive(speed["request_throughput_req_s"], f"{where}: request throughput"),
        requests=v.count(info["num_requests"], f"{where}: num_requests") or None,
        duration=total / 1e3 if total else None,
        mean_concurrency=users,
        input_tokens=v.tokens(v.positive(info.get("avg_input_length"), f"{where}: avg_input_length")),
        output_tokens=v.tokens(v.positive(info["avg_output_length"], f"{where}: avg_output_length")),
    )
    about = settings(
        model=engine.get("model"),
        precision=engine.get("quantization") or engine.get("dtype"),
        kv_cache=engine.get("kv_cache_dtype"),
        engine="TensorRT-LLM",
        engine_version=version,
        accelerator=v.dig(data, "machine", "name"),
        max_num_seqs=world.get("max_batch_size"),
        max_batched_tokens=world.get("max_num_tokens"),
        tensor_parallel=world.get("tp_size"),
        pipeline_parallel=world.get("pp_size"),
    )
    load = closed(max(1, round(users))) if users else {}
    yield Run(where, document.sha256, NAME, version, load, figures, about)
