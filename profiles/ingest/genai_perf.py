"""GenAI-Perf (NVIDIA, 2024 and 2025): `profile_export_genai_perf.csv` and `.json`.

Like AIPerf, which took its place: inter-token latency is one value a request (TPOT here). The CSV does not say how load
was applied; the first versions of it wrote nanoseconds, which its unit tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.aiperf import metrics_of
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, open_loop, settings, some

NAME = "GenAI-Perf"
KNOWN = "GenAI-Perf 0.0.2 to 0.0.16"
LATENCIES = {"ttft": "time_to_first_token", "tpot": "inter_token_latency", "e2e": "request_latency"}


def recognises(document: Document) -> bool:
    """Whether GenAI-Perf wrote this: rows of metrics in CSV, a configuration for perf_analyzer in JSON."""
    if document.rows:
        return document.header[:2] == ("Metric", "avg")
    first = document.first
    config = v.table(first.get("input_config"))
    return "request_latency" in first and bool(config) and ("service_kind" in config or "perf_analyzer" in config)


def runs(document: Document) -> Iterator[Run]:
    """Read the one run of the file."""
    data = metrics_of(document) if document.rows else dict(document.first)
    where = document.path
    if "request_latency" not in data and "request_throughput" not in data:
        v.need(data, ("request_latency", "request_throughput"), where, NAME, KNOWN)
    output = _length(data, ("output_sequence_length", "num_output_token", "output_token_count"), where)
    if output is None:
        why = "it counts no output tokens, so it is about something else than a language model"
        raise DataError(f"{where}: {NAME} without output tokens", why=why)
    found: dict[str, Any] = {}
    for ours, tag in LATENCIES.items():
        stats = v.table(data.get(tag))
        if stats:
            found[ours] = v.named(
                stats, v.STATISTICS, v.unit_of(stats.get("unit"), f"{where}: {tag}"), f"{where}: {tag}"
            )

    def scalar(tag: str) -> float | None:
        return v.positive(v.dig(data, tag, "avg"), f"{where}: {tag}")

    figures = some(
        **found,
        output_tps=scalar("output_token_throughput"),
        request_throughput=scalar("request_throughput"),
        requests=v.count(v.dig(data, "request_count", "avg"), f"{where}: request_count"),
        input_tokens=_length(data, ("input_sequence_length", "num_input_token"), where),
        output_tokens=output,
    )
    config = v.table(data.get("input_config"))
    model = config.get("model")
    about = settings(model=model[0] if isinstance(model, list) and model else model)
    version = v.clean(config.get("version"), 40)
    yield Run(where, document.sha256, NAME, version, _load(config, where), figures, about)


def _length(data: Mapping[str, Any], tags: tuple[str, ...], where: str) -> dict[str, float] | None:
    for tag in tags:
        mean = v.positive(v.dig(data, tag, "avg"), f"{where}: {tag}")
        if mean is not None:
            return v.tokens(mean, v.number(v.dig(data, tag, "std"), f"{where}: {tag}.std"))
    return None


def _load(config: Mapping[str, Any], where: str) -> dict[str, Any]:
    stimulus = v.table(v.dig(config, "perf_analyzer", "stimulus"))
    users = stimulus.get("concurrency", config.get("concurrency"))
    rate = stimulus.get("request_rate", config.get("request_rate"))
    users, rate = ((item[0] if isinstance(item, list) and len(item) == 1 else item) for item in (users, rate))
    at = v.positive(rate, f"{where}: request_rate")
    if at is not None:
        return open_loop(at, None)
    number = v.count(users, f"{where}: concurrency")
    return closed(number) if number else {}
