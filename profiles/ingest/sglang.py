"""SGLang `bench_serving`: JSON lines, one run a line, with or without the arrays of requests.

Its keys are those of vLLM's older form but for the whole answer's (`e2e_latency`) and a measured concurrency. Its times
between chunks are left out where a chunk holds several tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, settings, shares, some
from fleetcast.profiles.ingest.vllm import NEEDED, figures_of, load_of, per_token

NAME = "SGLang bench_serving"
KNOWN = "bench_serving of 2024 to 2026"
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2e_latency"}


def recognises(document: Document) -> bool:
    """Whether `bench_serving` wrote this: the whole answer under its own name."""
    first = document.objects[0] if document.objects else {}
    return "output_throughput" in first and (
        "mean_e2e_latency_ms" in first or "total_output_tokens_retokenized" in first
    )


def runs(document: Document) -> Iterator[Run]:
    """Read every line."""
    for number, data in enumerate(document.objects):
        place = f": run {number + 1}" if len(document.objects) > 1 else ""
        v.need(data, NEEDED, f"{document.path}{place}", NAME, KNOWN)
        yield _run(document, data, place)


def _run(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    done = v.count(data["completed"], f"{where}: completed") or 0
    errors = data.get("errors")
    failed = sum(1 for error in errors if error) if isinstance(errors, list) and errors else None
    version = "2024" if "max_concurrency" not in data else "2025" if "max_concurrent_requests" not in data else "2026"
    info = v.table(data.get("server_info"))
    about = settings(
        engine="SGLang" if str(data.get("backend", "")).startswith("sglang") else None,
        model=data.get("model_id") or info.get("model_path"),
        engine_version=info.get("version"),
        max_num_seqs=info.get("max_running_requests"),
        tensor_parallel=info.get("tp_size"),
    )
    load = load_of(data, where, done + (failed or 0))
    common: dict[str, Any] = {"about": about, "place": place}
    if not done:
        return Run(document.path, document.sha256, NAME, version, load, {"errors": 1.0}, **common)
    measured = some(mean_concurrency=v.positive(data.get("concurrency"), f"{where}: concurrency"))
    figures = figures_of(data, LATENCIES, where) | measured | shares(done, failed)
    return Run(document.path, document.sha256, NAME, version, load, per_token(figures), **common)
