"""GuideLLM, 0.2 to 0.8: its JSON report (metadata.version 1 and 2, and the earlier one without) and its CSV.

A report holds several benchmarks, one a load. Statistics come by how requests ended; the successful ones count. Its
inter-token latency is one value a request, weighted by tokens: TPOT here. Its time per output token counts the first
token as well, and is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, closed, open_loop, settings, some

NAME = "GuideLLM"
KNOWN = "GuideLLM 0.2 to 0.8 (metadata.version 1 and 2)"
NEEDED = ("metrics.request_latency", "metrics.output_token_count", "metrics.output_tokens_per_second")
CLOSED = {"concurrent": "streams", "throughput": "max_concurrency"}


def recognises(document: Document) -> bool:
    """Whether GuideLLM wrote this: a report of benchmarks with its metrics, or the three-row header of its CSV."""
    if document.rows:
        return document.header[:1] in (("Run Info",), ("Benchmark",)) and len(document.rows) > 3
    benchmarks = document.first.get("benchmarks")
    mark = v.dig(document.first, "metadata", "guidellm_version") is not None
    return isinstance(benchmarks, list) and (mark or any(_is_benchmark(item) for item in benchmarks))


def _is_benchmark(item: object) -> bool:
    return "generative" in str(v.dig(item, "type_")) or v.dig(item, "metrics", "time_to_first_token_ms") is not None


def runs(document: Document) -> Iterator[Run]:
    """Read every benchmark of the report."""
    if document.rows:
        yield from _csv(document)
        return
    report = document.first
    version = v.clean(v.dig(report, "metadata", "guidellm_version"), 40)
    form = v.dig(report, "metadata", "version")
    benchmarks = report.get("benchmarks")
    for number, benchmark in enumerate(benchmarks if isinstance(benchmarks, list) else []):
        where = f"{document.path}: benchmarks[{number}]"
        said = f"{NAME} {version or ''}".strip() + (f" (metadata.version {v.shown(form)})" if form is not None else "")
        yield _run(document, report, v.table(benchmark), where, version, said)


def _run(
    document: Document, report: Mapping[str, Any], data: Mapping[str, Any], where: str, version: str | None, said: str
) -> Run:
    place = where.removeprefix(document.path)
    metrics = v.table(data.get("metrics"))
    totals = v.table(metrics.get("request_totals")) or v.table(v.dig(data, "run_stats", "requests_made"))
    done, failed, cut = (v.count(totals.get(key), f"{where}: {key}") for key in ("successful", "errored", "incomplete"))
    config = v.table(data.get("config")) or v.table(data.get("args"))
    start = v.dig(data, "start_time") or v.dig(data, "run_stats", "start_time")
    common: dict[str, Any] = {"about": _about(report, config), "date": v.date_of(start), "place": place}
    load = _load(v.table(config.get("strategy")), where)
    made = sum(number or 0 for number in (done, failed, cut))
    if load.get("kind") == "closed" and 0 < made < load["concurrency"]:
        load = closed(made)  # throughput: all of them at once, below the tool's own cap
    if done == 0:
        figures: dict[str, Any] = {"errors": 1.0} if failed or cut else {}
        return Run(document.path, document.sha256, NAME, version, load, figures, **common)
    v.need(data, NEEDED, where, said, KNOWN)

    def stats(name: str, unit: float) -> dict[str, float]:
        summary = v.table(v.dig(metrics, name, "successful"))
        flat = {key: value for key, value in summary.items() if key != "p50"} | dict(
            v.table(summary.get("percentiles"))
        )
        flat.pop("median", None)
        place = f"{where}: {name}"
        return v.named(flat | {"p50": summary.get("median")}, v.STATISTICS, unit, place)

    def mean(name: str) -> float | None:
        return v.positive(v.dig(metrics, name, "successful", "mean"), f"{where}: {name}.mean")

    def length(name: str) -> dict[str, float] | None:
        found = v.named(v.table(v.dig(metrics, name, "successful")), v.STATISTICS, 1.0, f"{where}: {name}")
        return v.tokens(found.get("mean"), found.get("std"))

    span = v.positive(data.get("duration"), f"{where}: duration")
    if span is None:
        begin, end = (v.number(data.get(key), f"{where}: {key}") for key in ("start_time", "end_time"))
        span = end - begin if begin is not None and end is not None and end > begin else None
    figures = some(
        ttft=stats("time_to_first_token_ms", 1e-3),
        tpot=stats("inter_token_latency_ms", 1e-3),
        e2e=stats("request_latency", 1.0),
        output_tps=mean("output_tokens_per_second"),
        total_tps=mean("tokens_per_second"),
        request_throughput=mean("requests_per_second"),
        mean_concurrency=mean("request_concurrency"),
        input_tokens=length("prompt_token_count"),
        output_tokens=length("output_token_count"),
        duration=span,
        warmup=v.positive(data.get("warmup_duration"), f"{where}: warmup_duration"),
        requests=done,
        unfinished=cut,
        errors=None if done is None or failed is None else failed / (done + failed),
    )
    return Run(document.path, document.sha256, NAME, version, load, figures, **common)


def _about(report: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, str]:
    places = (
        v.dig(config, "backend", "model"),
        v.dig(report, "args", "model"),
        v.dig(report, "config", "spec", "backend", "model"),
        v.dig(config, "backend", "kwargs", "model"),
    )
    return settings(model=next((model for model in places if isinstance(model, str)), None))


def _load(strategy: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the load of a strategy; `throughput` keeps as many requests in flight as it is allowed."""
    kind = str(strategy.get("type_") or strategy.get("kind"))
    if kind == "synchronous":
        return closed(1)
    if kind in ("constant", "poisson"):
        rate = v.positive(strategy.get("rate"), f"{where}: rate")
        cap = v.count(strategy.get("max_concurrency"), f"{where}: max_concurrency")
        return open_loop(rate, str(kind), cap=cap) if rate is not None else {}
    if kind in CLOSED:
        users = v.count(strategy.get(CLOSED[kind]), f"{where}: {CLOSED[kind]}")
        return closed(users) if users else {}
    return {}


def _csv(document: Document) -> Iterator[Run]:
    """Read the CSV: a row a benchmark below three rows of header (group, field and unit, statistic)."""
    names = [tuple(cell.strip() for cell in column) for column in zip(*document.rows[:3], strict=False)]
    for number, row in enumerate(document.rows[3:], 4):
        cells = dict(zip(names, row, strict=False))
        where = f"{document.path}:{number}"
        yield _run(document, _meta(cells), _from_cells(cells, where), where, _version(cells), f"{NAME} CSV")


def _meta(cells: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    return {"args": _object(cells.get(("Runtime Info", "Arguments", ""), ""))}


def _version(cells: Mapping[tuple[str, ...], str]) -> str | None:
    return v.clean(_object(cells.get(("Runtime Info", "Metadata", ""), "")).get("guidellm_version"), 40)


def _object(text: str) -> Mapping[str, Any]:
    try:
        return v.table(json.loads(text)) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}


def _from_cells(cells: Mapping[tuple[str, ...], str], where: str) -> dict[str, Any]:
    """Return a row of the CSV as the benchmark of a report."""

    def at(*path: str) -> str | None:
        return cells.get(path) or None

    def summary(group: str, unit: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for theirs, ours in (("Mean", "mean"), ("Median", "median"), ("Std Dev", "std_dev")):
            found[ours] = at(group, f"Successful {unit}", theirs)
        listed = at(group, f"Successful {unit}", "Percentiles")
        order = ("min", "p999_", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")  # p0.1 is not kept
        if listed is not None:
            parts: Sequence[str] = listed.strip("[] ").split(",")
            if len(parts) == len(order):
                found |= dict(zip(order, (part.strip() for part in parts), strict=True))
        return {"successful": {key: value for key, value in found.items() if value}} if found["mean"] else {}

    profile = _object(at("Run Info", "Profile", "") or "")
    kind = at("Benchmark", "Strategy", "")
    if kind is None:
        raise DataError(f"{where}: {NAME} CSV without Benchmark, Strategy", why=f"read are {KNOWN}")
    metrics = {
        "request_totals": {
            key: at("Request Counts", key.capitalize(), "") for key in ("successful", "errored", "incomplete")
        },
        "request_latency": summary("Request Latency", "Sec"),
        "time_to_first_token_ms": summary("Time to First Token", "ms"),
        "inter_token_latency_ms": summary("Inter Token Latency", "ms"),
        "requests_per_second": summary("Server Throughput", "Requests/Sec"),
        "request_concurrency": summary("Server Throughput", "Concurrency"),
        "prompt_token_count": summary("Token Metrics", "Input Tokens"),
        "output_token_count": summary("Token Metrics", "Output Tokens"),
        "output_tokens_per_second": summary("Token Throughput", "Output Tokens/Sec"),
        "tokens_per_second": summary("Token Throughput", "Total Tokens/Sec"),
    }
    return {
        "metrics": {key: value for key, value in metrics.items() if value},
        "config": {"strategy": _strategy(str(kind), profile, at("Run Info", "Run Index", ""), where)},
        "duration": at("Timings", "Duration", "Sec"),
        "warmup_duration": at("Timings", "Warmup", "Sec"),
        "start_time": at("Timings", "Start Time", ""),
    }


def _strategy(kind: str, profile: Mapping[str, Any], index: str | None, where: str) -> dict[str, Any]:
    """Return the strategy of the row: the CSV names its kind, and the profile lists the loads in order."""
    listed = profile.get("rate", profile.get("streams"))
    at = v.count(index, f"{where}: Run Index") or 0
    value = listed[at] if isinstance(listed, list) and at < len(listed) else listed
    key = CLOSED.get(kind, "rate")
    return {"type_": kind, key: None if isinstance(value, list) else value}
