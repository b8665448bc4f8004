"""InferenceX (formerly InferenceMAX) results: vLLM's keys, but in seconds and without `_ms` in their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, settings, shares
from fleetcast.profiles.ingest.vllm import NEEDED, load_of, per_token, summary

NAME = "InferenceX"
KNOWN = "the results of 2025 and 2026"
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}


def recognises(document: Document) -> bool:
    """Whether this is an InferenceX result: totals as vLLM has them, latencies without a unit in their names."""
    first = document.objects[0] if document.objects else {}
    return "output_throughput" in first and ("median_ttft" in first or "mean_ttft" in first)


def runs(document: Document) -> Iterator[Run]:
    """Read every result of the file."""
    for number, data in enumerate(document.objects):
        place = f": run {number + 1}" if len(document.objects) > 1 else ""
        where = f"{document.path}{place}"
        v.need(data, NEEDED, where, NAME, KNOWN)
        done = v.count(data["completed"], f"{where}: completed") or 0
        asked = v.count(data.get("num_prompts"), f"{where}: num_prompts")
        failed = asked - done if asked is not None and asked >= done else None
        about = settings(
            model=data.get("model_id"),
            precision=data.get("precision"),
            hardware=data.get("hw"),
            tensor_parallel=data.get("tp"),
            engine=data.get("framework"),
        )
        load = load_of(data, where, done + (failed or 0))
        common: dict[str, Any] = {"about": about, "date": v.date_of(data.get("date")), "place": place}
        figures = (summary(data, LATENCIES, 1.0, "", where) if done else {"errors": 1.0}) | shares(done, failed)
        yield Run(document.path, document.sha256, NAME, None, load, per_token(figures), **common)
