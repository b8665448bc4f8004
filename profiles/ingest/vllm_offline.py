"""vLLM `bench latency` and `bench throughput`: one batch at a time, and a heap of requests at once.

`bench latency` repeats one static batch whose size and lengths its file does not tell. `bench throughput` counts the
tokens of prompts with those of answers, and does not tell them apart: without the lengths, no output rate follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, settings, some

LATENCY, THROUGHPUT = "vLLM bench latency", "vLLM bench throughput"
NAME = f"{LATENCY} / {THROUGHPUT.removeprefix('vLLM ')}"
KNOWN = "the files of 2024 to 2026"


def recognises(document: Document) -> bool:
    """Whether one of the two wrote this: `avg_latency` with percentiles, or elapsed time and tokens a second."""
    first = document.objects[0] if document.objects else {}
    return "avg_latency" in first or {"elapsed_time", "tokens_per_second", "num_requests"} <= first.keys()


def runs(document: Document) -> Iterator[Run]:
    """Read every run: one a file, a line or a row."""
    several = len(document.objects) > 1
    for number, data in enumerate(document.objects):
        place = f":{number + (2 if document.rows else 1)}" if several or document.rows else ""
        yield (_latency if "avg_latency" in data else _throughput)(document, data, place)


def _latency(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    mean = v.positive(data.get("avg_latency"), f"{where}: avg_latency")
    if mean is None:
        v.need({}, ("avg_latency",), where, LATENCY, KNOWN)
    return Run(document.path, document.sha256, LATENCY, None, {"kind": "static"}, some(latency=mean), place=place)


def _throughput(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    v.need(data, ("elapsed_time", "num_requests", "total_num_tokens"), where, THROUGHPUT, KNOWN)
    made = v.count(data["num_requests"], f"{where}: num_requests")
    if not made:
        raise DataError(f"{where}: an empty run", why="num_requests is 0")
    figures = some(
        requests=made,
        duration=v.positive(data["elapsed_time"], f"{where}: elapsed_time"),
        total_tps=v.positive(data.get("tokens_per_second"), f"{where}: tokens_per_second"),
        request_throughput=v.positive(data.get("requests_per_second"), f"{where}: requests_per_second"),
        input_tokens=v.tokens(v.positive(data.get("input_len"), f"{where}: input_len"), 0.0),
        output_tokens=v.tokens(v.positive(data.get("output_len"), f"{where}: output_len"), 0.0),
    )
    return Run(document.path, document.sha256, THROUGHPUT, None, closed(made), figures,
               settings(gpu=data.get("gpu")), place=place)  # fmt: skip
