"""vLLM `bench serve` (before 2025 `benchmark_serving.py`): one JSON, JSON lines, and the tables of `bench sweep`.

The file names no version; its keys tell which of three forms it has. The arrays of requests are used where present.
A rate of `inf` with a cap is a closed loop, without one all requests at once. `itl` is per chunk: where chunks hold
several tokens it is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, open_loop, settings, shares, some

NAME = "vLLM bench serve"
KNOWN = "benchmark_serving of 2024 and bench serve of 2025 and later"
NEEDED = ("completed", "duration", "request_throughput", "output_throughput")
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
ARRAYS = ("ttfts", "itls", "output_lens")
ABOUT = {
    "model": ("model_id",),
    "precision": ("dtype", "quantization"),
    "gpu": ("gpu",),
    "max_num_seqs": ("max_num_seqs", "max-num-seqs"),
    "max_batched_tokens": ("max_num_batched_tokens", "max-num-batched-tokens"),
    "max_context": ("max_model_len", "max-model-len"),
    "tensor_parallel": ("tensor_parallel_size", "tensor-parallel-size"),
    "chunked_prefill": ("enable_chunked_prefill", "enable-chunked-prefill"),
    "prefix_caching": ("enable_prefix_caching", "enable-prefix-caching"),
    "engine_version": ("vllm_version",),
}


def recognises(document: Document) -> bool:
    """Whether `bench serve` wrote this: its totals, and latencies in milliseconds."""
    first = document.objects[0] if document.objects else {}
    told = "output_throughput" in first and "completed" in first
    return told and "mean_e2e_latency_ms" not in first and ("mean_ttft_ms" in first or "ttfts" in first)


def runs(document: Document) -> Iterator[Run]:
    """Read every run: one a file, a line, or a row of a sweep."""
    several = len(document.objects) > 1
    for number, data in enumerate(document.objects):
        place = (f":{number + 2}" if document.rows else f": run {number + 1}") if several or document.rows else ""
        if not recognises_run(data):
            v.need(data, NEEDED, f"{document.path}{place}", NAME, KNOWN)
        yield _run(document, data, place)


def recognises_run(data: Mapping[str, Any]) -> bool:
    """Whether one object has what every form has."""
    return not v.missing(data, NEEDED)


def form(data: Mapping[str, Any]) -> str:
    """Return which form of the file this is, by the keys that came with it."""
    if "burstiness" not in data and "max_concurrency" not in data:
        return "2024"
    late = ("max_output_tokens_per_s", "max_concurrent_requests", "endpoint_type", "start_times", "rtfx")
    return "2026" if any(key in data for key in late) else "2025"


def _run(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    done = v.count(data["completed"], f"{where}: completed")
    asked = v.count(data.get("num_prompts"), f"{where}: num_prompts")
    failed = v.count(data.get("failed"), f"{where}: failed")
    if failed is None and asked is not None and done is not None and asked >= done:
        failed = asked - done
    load = load_of(data, where, (done or 0) + (failed or 0))
    common: dict[str, Any] = {"about": _about(data), "date": v.date_of(data.get("date")), "place": place}
    if not done:
        return Run(document.path, document.sha256, NAME, form(data), load, {"errors": 1.0}, **common)
    figures = figures_of(data, LATENCIES, where) | shares(done, failed)
    return Run(document.path, document.sha256, NAME, form(data), load, per_token(figures), **common)


def load_of(data: Mapping[str, Any], where: str, made: int) -> dict[str, Any]:
    """Return the load of a run of *made* requests in the words that vLLM and SGLang share."""
    given = data.get("request_rate")
    cap = v.count(data.get("max_concurrency"), f"{where}: max_concurrency")
    endless = given in ("inf", "Infinity") or (isinstance(given, float) and math.isinf(given))
    rate = None if endless else v.positive(given, f"{where}: request_rate")
    if rate is not None:
        shape = v.positive(data.get("burstiness"), f"{where}: burstiness")
        law = "poisson" if shape in (None, 1.0) else "gamma"
        return open_loop(rate, law, shape, cap)
    if cap is not None and cap > 0:
        return closed(min(cap, made) if made else cap)
    return closed(made) if endless and made else {}


def summary(data: Mapping[str, Any], names: Mapping[str, str], unit: float, suffix: str, where: str) -> dict[str, Any]:
    """Return figures under keys like `p99_ttft_ms`, with lengths from the totals."""
    found: dict[str, Any] = {}
    for ours, theirs in names.items():
        pattern = re.compile(rf"(mean|median|std|p[\d.]+)_{theirs}{suffix}")
        stats = {match[1]: data[key] for key in data if (match := pattern.fullmatch(key))}
        found[ours] = v.named(stats, v.STATISTICS, unit, f"{where}: {theirs}{suffix}")
    done = v.number(data.get("completed"), f"{where}: completed")
    lengths = {}
    for ours, key in (("input_tokens", "total_input_tokens"), ("output_tokens", "total_output_tokens")):
        total = v.positive(data.get(key), f"{where}: {key}")
        lengths[ours] = {"mean": total / done} if total and done else None
    total_tps = data.get("total_token_throughput", data.get("total_throughput"))
    return some(
        **{ours: stats for ours, stats in found.items() if stats},
        **lengths,
        output_tps=v.positive(data.get("output_throughput"), f"{where}: output_throughput"),
        total_tps=v.positive(total_tps, f"{where}: total_token_throughput"),
        request_throughput=v.positive(data.get("request_throughput"), f"{where}: request_throughput"),
        duration=v.positive(data.get("duration"), f"{where}: duration"),
    )


def figures_of(data: Mapping[str, Any], names: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return what a file says in milliseconds, and more of it from the arrays of requests where it has them."""
    stated = summary(data, names, 1e-3, "_ms", where)
    arrays = from_arrays(data, where)
    return (answers_from_arrays(data, where) if arrays else {}) | stated | arrays


def from_arrays(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return distributions from the arrays of requests, failed ones left out; empty where they are not there."""
    if not all(isinstance(data.get(key), list) and data[key] for key in ARRAYS):
        return {}
    first = v.several(data["ttfts"], f"{where}: ttfts")
    output = v.several(data["output_lens"], f"{where}: output_lens")
    if not len(first) == len(output) == len(data["itls"]):
        why = f"{len(first)} first tokens, {len(data['itls'])} lists of gaps, {len(output)} lengths"
        raise DataError(f"{where}: the arrays of requests differ in length", why=why)
    gaps = [v.several(item, f"{where}: itls[{i}]") for i, item in enumerate(data["itls"])]
    good = _succeeded(data, output, where)
    whole = first + np.array([gap.sum() for gap in gaps])
    more = good & (output > 1)
    joined = np.concatenate([gap for gap, kept in zip(gaps, good, strict=True) if kept] or [np.empty(0)])
    given = data.get("input_lens")
    prompts = v.several(given, f"{where}: input_lens") if isinstance(given, list) else np.empty(0)
    empty = int((good & (output == 0)).sum())
    found = some(
        ttft=v.distribution(first[good]),
        itl=v.distribution(joined),
        output_tokens=v.lengths(output[good]),
        input_tokens=v.lengths(prompts[good]) if len(prompts) == len(good) else None,
        empty=empty or None,
    )
    # Its own clock also saw what came after the last token, so what it says of whole answers goes first.
    if not v.missing(data, ("mean_tpot_ms",)):
        return found
    return found | some(tpot=v.distribution((whole[more] - first[more]) / (output[more] - 1)))


def _succeeded(data: Mapping[str, Any], output: NDArray[np.float64], where: str) -> NDArray[np.bool_]:
    """Return which requests the tool counts as completed: those without an error, also where no token came."""
    errors = data.get("errors")
    if isinstance(errors, list) and len(errors) == len(output):
        return np.array([not error for error in errors], dtype=np.bool_)
    done = v.count(data.get("completed"), f"{where}: completed")
    return np.ones(len(output), dtype=np.bool_) if done == len(output) else output > 0


def answers_from_arrays(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the whole answers' times, which older files do not tell, as first token plus gaps."""
    if not all(isinstance(data.get(key), list) and data[key] for key in ARRAYS):
        return {}
    first = v.several(data["ttfts"], f"{where}: ttfts")
    output = v.several(data["output_lens"], f"{where}: output_lens")
    gaps = np.array([v.several(item, f"{where}: itls[{i}]").sum() for i, item in enumerate(data["itls"])])
    good = _succeeded(data, output, where)
    return some(e2e=v.distribution((first + gaps)[good]))


def per_token(figures: dict[str, Any]) -> dict[str, Any]:
    """Leave out the times between chunks where a chunk holds several tokens: they are none between tokens."""
    gap, token = (v.dig(figures, key, "mean") for key in ("itl", "tpot"))
    if gap and token and gap > 1.5 * token:
        kept = {key: value for key, value in figures.items() if key != "itl"}
        return kept | {"note": f"The times between chunks are left out: a chunk holds {gap / token:.3g} tokens."}
    return figures


def _about(data: Mapping[str, Any]) -> dict[str, str]:
    found = {ours: next((data[key] for key in keys if data.get(key) not in (None, "")), None) for ours, keys in
             ABOUT.items()}  # fmt: skip
    return settings(engine="vLLM" if data.get("backend") == "vllm" else None, **found)
