"""AIPerf (NVIDIA), 0.2 to 0.14: `profile_export_aiperf.json` and `.csv`, and the aggregates of repeats and sweeps.

Every metric carries its unit. What AIPerf calls inter-token latency is one value a request, (E2E − TTFT) /
(tokens − 1), which is TPOT here; its inter-chunk latency is ITL where chunks are tokens. The CSV does not say how load
was applied. An aggregate holds averages over repeats; where the runs themselves are at hand, import those.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, open_loop, settings, shares, some

NAME = "AIPerf"
KNOWN = "AIPerf 0.2 to 0.14"
NEEDED = ("request_throughput", "request_latency", "output_sequence_length")
LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "inter_token_latency",
    "itl": "inter_chunk_latency",
    "e2e": "request_latency",
}
FINISHED = "request_count"
LABEL = re.compile(r"(?P<name>.+?)(?: \((?P<unit>[^()]*)\))?$")
METRIC = re.compile(r"(?P<tag>.+?)_(?P<stat>avg|min|max|std|p\d+)(?:_ms)?$")


def recognises(document: Document) -> bool:
    """Whether AIPerf wrote this: its version or its sweep's keys in JSON, the columns and rows it has in CSV."""
    if document.rows:
        return _is_csv(document) or any(name.startswith("request_throughput_avg") for name in document.header)
    first = document.first
    return "aiperf_version" in first or first.get("aggregation_type") == "sweep" or _is_old_json(first)


def runs(document: Document) -> Iterator[Run]:
    """Read the run, or every combination of a sweep."""
    if document.rows:
        yield from _csv_sweep(document) if not _is_csv(document) else [_csv_run(document)]
        return
    for number, record in enumerate(document.objects):
        place = f"[{number}]" if len(document.objects) > 1 else ""
        if "per_combination_metrics" in record:
            yield from _sweep(document, record)
        elif v.dig(record, "metadata", "aggregation_type") == "confidence":
            yield _aggregate(document, record, place)
        else:
            yield _run(document, record, place)


def _is_csv(document: Document) -> bool:
    """AIPerf's CSV starts as GenAI-Perf's does; it has `min,max,sum` or percentiles in rising order, and more rows."""
    names = {row[0].split(" (")[0] for row in document.rows if row}
    ours = {"Inter Chunk Latency", "Output Token Count", "Benchmark Duration", "E2E Output Token Throughput"}
    return document.header[:2] == ("Metric", "avg") and bool(ours & names)


def _is_old_json(first: Mapping[str, Any]) -> bool:
    """Before 0.4 no version was written; the configuration has AIPerf's own tables."""
    config = v.table(first.get("input_config"))
    return "request_latency" in first and ("loadgen" in config or "phases" in config)


def _run(document: Document, data: Mapping[str, Any], place: str) -> Run:
    where = f"{document.path}{place}"
    version = v.clean(data.get("aiperf_version"), 40)
    tool = f"{NAME} {version}" if version else NAME
    failed = v.count(v.dig(data, "error_request_count", "avg"), f"{where}: error_request_count")
    failed = failed if failed is not None else _errors(data)
    completed = v.count(v.dig(data, FINISHED, "avg"), f"{where}: {FINISHED}")
    load, extra, about = _load(data, where)
    common = {"about": about, "command": v.clean(_command(data)), "date": v.date_of(data.get("start_time"))}
    if completed == 0 or (not completed and failed):
        return _made(document, version, load, {"errors": 1.0} if failed else {}, place, **common)
    v.need(data, NEEDED, where, tool, KNOWN)
    figures = _figures(data, where) | extra | shares(completed, failed)
    if data.get("was_cancelled") is True:
        figures["note"] = "The run was cancelled before its end."
    return _made(document, version, load, figures, place, **common)


def _made(
    document: Document,
    version: str | None,
    load: Mapping[str, Any],
    figures: Mapping[str, Any],
    place: str = "",
    **common: Any,
) -> Run:
    return Run(document.path, document.sha256, NAME, version, load, figures, place=place, **common)


def _figures(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read the metrics of a run: objects with `unit` and statistics under AIPerf's tags."""
    found: dict[str, Any] = {}
    for ours, tag in LATENCIES.items():
        stats = v.table(data.get(tag))
        if stats:
            place = f"{where}: {tag}"
            found[ours] = v.named(stats, v.STATISTICS, v.unit_of(stats.get("unit"), place), place)
    if not _chunks_are_tokens(data, where):
        found.pop("itl", None)

    def scalar(tag: str) -> float | None:
        return v.positive(v.dig(data, tag, "avg"), f"{where}: {tag}")

    def length(tag: str) -> dict[str, float] | None:
        mean, std = (v.number(v.dig(data, tag, key), f"{where}: {tag}.{key}") for key in ("avg", "std"))
        return v.tokens(mean, std)

    return some(
        **found,
        output_tps=scalar("output_token_throughput"),
        total_tps=scalar("total_token_throughput"),
        request_throughput=scalar("request_throughput"),
        duration=scalar("benchmark_duration"),
        mean_concurrency=scalar("effective_concurrency"),
        input_tokens=length("input_sequence_length"),
        output_tokens=length("output_sequence_length"),
    )


def _chunks_are_tokens(data: Mapping[str, Any], where: str) -> bool:
    """Whether the gaps between chunks are as many as those between tokens, within a tenth."""

    def figure(tag: str, key: str) -> float | None:
        return v.number(v.dig(data, tag, key), f"{where}: {tag}.{key}")

    gaps = figure("inter_chunk_latency", "count")
    total, mean = figure("inter_chunk_latency", "sum"), figure("inter_chunk_latency", "avg")
    if gaps is None and total and mean:
        gaps = total / mean
    tokens, requests = figure("output_sequence_length", "sum"), figure(FINISHED, "avg")
    if tokens is None:
        tokens = figure("total_osl", "avg")
    if gaps is None or tokens is None or requests is None:
        return False
    return abs(gaps - (tokens - requests)) <= 0.1 * tokens


def _errors(data: Mapping[str, Any]) -> int | None:
    summary = data.get("error_summary")
    if not isinstance(summary, list):
        return None
    counts = [item.get("count") for item in summary if isinstance(item, dict)]
    return sum(n for n in counts if type(n) is int and n > 0)


# --- how load was applied -----------------------------------------------------------------------------------------


def _load(data: Mapping[str, Any], where: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the load, what else the configuration says of the run, and the model it was about."""
    config = v.table(data.get("input_config"))
    flags = _flags(_command(data))
    items = v.dig(config, "models", "items")
    models = [item.get("name") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    older = v.dig(config, "endpoint", "model_names")
    models += older if isinstance(older, list) else []
    about = settings(model=models[0] if models else flags.get("model"))
    phases = config.get("phases")
    if isinstance(phases, list):
        load, extra = _phases([phase for phase in phases if isinstance(phase, dict)], where)
    else:
        load, extra = _loadgen(v.table(config.get("loadgen")), flags, where)
    return load, extra, about


def _phases(phases: list[dict[str, Any]], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    counted = [phase for phase in phases if phase.get("exclude_from_results") is not True]
    warm = [phase for phase in phases if phase.get("exclude_from_results") is True]
    extra = some(
        warmup_requests=sum(v.count(phase.get("requests"), f"{where}: warm-up") or 0 for phase in warm) or None,
        warmup=sum(v.number(phase.get("duration"), f"{where}: warm-up") or 0.0 for phase in warm) or None,
    )
    if len(counted) != 1:
        return {}, extra
    phase = counted[0]
    return _one_load(
        v.positive(phase.get("rate"), f"{where}: rate"),
        v.count(phase.get("concurrency"), f"{where}: concurrency"),
        v.clean(phase.get("type")) or "",
        v.positive(phase.get("smoothness"), f"{where}: smoothness"),
    ), extra


def _loadgen(config: Mapping[str, Any], flags: Mapping[str, str], where: str) -> tuple[dict[str, Any], dict[str, Any]]:
    def said(key: str) -> object:
        value = config.get(key)
        return value if value is not None else flags.get(key.replace("_", "-"))

    law = said("arrival_pattern") or said("request_rate_mode") or "poisson"
    load = _one_load(
        v.positive(said("request_rate"), f"{where}: request_rate"),
        v.count(said("concurrency"), f"{where}: concurrency"),
        str(law),
        v.positive(said("arrival_smoothness"), f"{where}: arrival_smoothness"),
    )
    return load, some(warmup_requests=v.count(said("warmup_request_count"), f"{where}: warmup_request_count"))


def _one_load(rate: float | None, users: int | None, law: str, smoothness: float | None) -> dict[str, Any]:
    law = law.lower()
    if "schedule" in law or "trace" in law or "user_centric" in law:
        return {}
    if rate is not None:
        known = "poisson" if "poisson" in law else "constant" if "constant" in law else None
        return open_loop(rate, "gamma" if "gamma" in law else known, smoothness, users)
    return closed(users) if users else {}


def _command(data: Mapping[str, Any]) -> str:
    text = v.dig(data, "run_info", "cli_command") or v.dig(data, "input_config", "cli_command")
    return text if isinstance(text, str) else ""


def _flags(command: str) -> dict[str, str]:
    try:
        words = shlex.split(command[:20_000])
    except ValueError:
        return {}
    pairs = zip_longest(words, words[1:], fillvalue="")
    return {word[2:]: "" if value.startswith("--") else value for word, value in pairs if word.startswith("--")}


# --- CSV ----------------------------------------------------------------------------------------------------------


def metrics_of(document: Document) -> dict[str, Any]:
    """Return a CSV of `Metric (unit)` rows as the JSON has it: tags with unit and statistics."""
    found: dict[str, Any] = {}
    for block in document.tables:
        header = [cell.strip() for cell in block[0]]
        if header[:1] != ["Metric"]:
            continue
        names = [name if name != "Value" else "avg" for name in header[1:]]
        for row in block[1:]:
            match = LABEL.match(row[0].strip())
            if match is None:
                continue
            tag = re.sub(r"[^a-z0-9]+", "_", match["name"].lower()).strip("_")
            cells = [cell.strip() for cell in row[1 : len(names) + 1]]
            found[tag] = dict(zip(names, cells, strict=False)) | {"unit": match["unit"]}
    return found


def _csv_run(document: Document) -> Run:
    data = metrics_of(document)
    completed = v.count(v.dig(data, FINISHED, "avg"), f"{document.path}: Request Count")
    failed = v.count(v.dig(data, "error_request_count", "avg"), f"{document.path}: Error Request Count")
    if not completed and failed:
        return _made(document, None, {}, {"errors": 1.0})
    v.need(data, NEEDED, document.path, f"{NAME} CSV", KNOWN)
    return _made(document, None, {}, _figures(data, document.path) | shares(completed, failed))


# --- aggregates ---------------------------------------------------------------------------------------------------


def _aggregate(document: Document, data: Mapping[str, Any], place: str) -> Run:
    version = v.clean(data.get("aiperf_version"), 40)
    metrics = {tag: {"mean": v.dig(stats, "mean"), "unit": v.dig(stats, "unit")} for tag, stats in
               v.table(data.get("metrics")).items()}  # fmt: skip
    where = f"{document.path}{place}"
    load, _, about = _load(v.table(data.get("metadata")), where)
    return _made(document, version, load, _means(metrics, where), place, about=about, pooled=True)


def _sweep(document: Document, data: Mapping[str, Any]) -> Iterator[Run]:
    version = v.clean(data.get("aiperf_version"), 40)
    combinations = data.get("per_combination_metrics")
    for number, entry in enumerate(combinations if isinstance(combinations, list) else []):
        place = f": per_combination_metrics[{number}]"
        parameters = v.table(v.dig(entry, "parameters"))
        load = _swept(parameters, f"{document.path}{place}")
        figures = _means(v.table(v.dig(entry, "metrics")), f"{document.path}{place}")
        yield _made(document, version, load, figures, place, about=settings(**_plain(parameters)), pooled=True)


def _csv_sweep(document: Document) -> Iterator[Run]:
    columns = [name for name in document.header if name.endswith("_mean")]
    first = next((i for i, name in enumerate(document.header) if METRIC.match(name.removesuffix("_mean"))), 0)
    for number, row in enumerate(document.objects, 2):
        place = f":{number}"
        parameters = {name: row.get(name) for name in document.header[:first]}
        metrics = {
            name.removesuffix("_mean"): {"mean": row.get(name), "unit": "ms"} for name in columns if row.get(name)
        }
        where = f"{document.path}{place}"
        load = _swept(parameters, where)
        about = settings(**_plain(parameters))
        yield _made(document, None, load, _means(metrics, where), place, about=about, pooled=True)


def _swept(parameters: Mapping[str, Any], where: str) -> dict[str, Any]:
    last = {key.rsplit(".", 1)[-1]: value for key, value in parameters.items()}
    rate = v.positive(last.get("request_rate", last.get("rate")), f"{where}: request_rate")
    return _one_load(rate, v.count(last.get("concurrency"), f"{where}: concurrency"), "poisson", None)


def _plain(parameters: Mapping[str, Any]) -> dict[str, object]:
    loads = ("concurrency", "request_rate", "rate")
    return {
        key: value for key, value in parameters.items() if key.rsplit(".", 1)[-1] not in loads and key.isidentifier()
    }


def _means(metrics: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return figures from averages over repeats, under keys such as `ttft_p99_ms` or `time_to_first_token_p99`."""
    short = {"ttft": "time_to_first_token", "itl": "inter_token_latency"}
    data: dict[str, dict[str, Any]] = {}
    for key, stats in metrics.items():
        match = METRIC.match(key)
        tag, stat = (match["tag"], match["stat"]) if match else (key, "avg")
        entry = data.setdefault(short.get(tag, tag), {})
        entry[stat] = v.dig(stats, "mean")
        entry["unit"] = v.dig(stats, "unit") or "ms"
    figures = _figures(data, where)
    if not figures:
        known = f"known: {', '.join(LATENCIES.values())}, output_token_throughput, request_throughput"
        raise DataError(f"{where}: an {NAME} aggregate without a figure that is known", why=known)
    return figures
