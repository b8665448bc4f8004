"""llmperf (Ray): the summary, the list of single responses, and files that hold one summary a concurrency.

Its inter-token latency is the whole answer divided by its tokens, first token included: neither TPOT nor ITL, so it is
left out. Summaries of other makers with milliseconds in their keys (`first-time-to-token_mean_in_ms`) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, settings, shares, some

NAME = "llmperf"
KNOWN = "llmperf of 2023-08-31"
NEEDED = ("results_ttft_s_mean", "results_end_to_end_latency_s_mean", "results_number_output_tokens_mean")
SHORT = "first-time-to-token_mean_in_ms"
RESPONSE = ("ttft_s", "end_to_end_latency_s", "number_output_tokens")


def recognises(document: Document) -> bool:
    """Whether llmperf wrote this, at the top or once a concurrency."""
    first = document.first
    inner = next((item for item in first.values() if isinstance(item, dict)), {})
    return any(_ours(item) for item in (first, inner)) or ("ttft_s" in first and "end_to_end_latency_s" in first)


def _ours(item: Mapping[str, Any]) -> bool:
    return any(str(key).startswith("results_ttft_s") for key in item) or SHORT in item


def runs(document: Document) -> Iterator[Run]:
    """Read one run, or one a concurrency."""
    if "ttft_s" in document.first:
        yield _responses(document)
        return
    first = document.first
    entries = {"": first} if _ours(first) else {key: v.table(item) for key, item in first.items()}
    for key, data in entries.items():
        place = f": {v.clean(key, 40)}" if key else ""
        yield (_short if SHORT in data else _summary)(document, data, place)


def _summary(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    version = v.clean(data.get("version"), 40)
    done = v.count(data.get("results_num_completed_requests"), f"{where}: results_num_completed_requests")
    failed = v.count(data.get("results_number_errors"), f"{where}: results_number_errors")
    users = v.count(data.get("num_concurrent_requests"), f"{where}: num_concurrent_requests")
    load = closed(users) if users else {}
    common: dict[str, Any] = {
        "about": settings(model=data.get("model")),
        "date": v.date_of(data.get("timestamp")),
        "place": place,
    }
    if done == 0:
        return Run(document.path, document.sha256, NAME, version, load, {"errors": 1.0}, **common)
    v.need(data, NEEDED, where, f"{NAME} {version or ''}".strip(), KNOWN)

    def stats(name: str) -> dict[str, float]:
        pattern = re.compile(rf"results_{name}_(?:quantiles_)?(mean|min|max|stddev|p\d+)")
        found = {match[1]: data[key] for key in data if (match := pattern.fullmatch(key))}
        return v.named(found, v.STATISTICS, 1.0, f"{where}: {name}")

    def length(name: str) -> dict[str, float] | None:
        found = stats(name)
        return v.tokens(found.get("mean") or None, found.get("std"))

    a_minute = v.positive(data.get("results_num_completed_requests_per_min"), f"{where}: requests a minute")
    figures = some(
        ttft=stats("ttft_s"),
        e2e=stats("end_to_end_latency_s"),
        output_tps=v.positive(data.get("results_mean_output_throughput_token_per_s"), f"{where}: output throughput"),
        request_throughput=a_minute / 60 if a_minute else None,
        input_tokens=length("number_input_tokens"),
        output_tokens=length("number_output_tokens"),
    )
    return Run(document.path, document.sha256, NAME, version, load, figures | shares(done, failed), **common)


def _short(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    users = v.count(data.get("concurrency"), f"{where}: concurrency")
    output = v.positive(data.get("output_token_length"), f"{where}: output_token_length")
    first = v.positive(data.get(SHORT), f"{where}: {SHORT}")
    figures = some(
        ttft={"mean": first / 1e3} if first else None,
        output_tps=v.positive(data.get("throughput_token_per_s"), f"{where}: throughput_token_per_s"),
        input_tokens=v.tokens(v.positive(data.get("input_token_length"), f"{where}: input_token_length")),
        output_tokens=v.tokens(output),
    )
    return Run(document.path, document.sha256, NAME, "summary", closed(users) if users else {}, figures, place=place)


def _responses(document: Document) -> Run:
    """Read `individual_responses.json`; how many were sent at once it does not tell."""
    good = [item for item in document.objects if not item.get("error_code") and item.get("ttft_s") is not None]
    failed = len(document.objects) - len(good)
    if not good:
        return Run(document.path, document.sha256, NAME, "responses", {}, {"errors": 1.0})
    absent = [key for key in RESPONSE if any(key not in item for item in good)]
    if absent:
        raise DataError(f"{document.path}: {NAME} responses without {', '.join(absent)}", why=f"read are {KNOWN}")
    first, whole, output = (v.several([item[key] for item in good], f"{document.path}: {key}") for key in RESPONSE)
    more = output > 1
    prompts = [item.get("number_input_tokens") for item in good]
    given = all(type(n) in (int, float) for n in prompts)
    figures = some(
        ttft=v.distribution(first),
        e2e=v.distribution(whole),
        tpot=v.distribution(np.maximum(whole[more] - first[more], 0.0) / (output[more] - 1)),
        output_tokens=v.lengths(output),
        input_tokens=v.lengths(v.several(prompts, f"{document.path}: number_input_tokens")) if given else None,
    )
    return Run(document.path, document.sha256, NAME, "responses", {}, figures | shares(len(good), failed))
