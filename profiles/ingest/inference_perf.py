"""inference-perf (kubernetes-sigs), 0.1 to 0.4: the lifecycle metrics of a stage, in seconds.

A stage sends at a rate and is one open-loop run. The summary pools stages of different rates, and the Prometheus files
(what the server says of the same stage) do not tell the rate: neither is a point. The time between tokens is taken only
where it agrees with first token, whole answer and length: versions that split events count empty chunks as tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetcast.errors import DataError
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import Run, open_loop, shares, some

NAME = "inference-perf"
KNOWN = "inference-perf 0.1 to 0.4"
LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "e2e": "request_latency",
}
DOUBTFUL = 0.15


def recognises(document: Document) -> bool:
    """Whether inference-perf wrote this: what was asked for, what succeeded and what failed."""
    first = document.first
    return "load_summary" in first and "successes" in first


def runs(document: Document) -> Iterator[Run]:
    """Read the one stage of the file."""
    data, where = document.first, document.path
    good, asked = v.table(data.get("successes")), v.table(data.get("load_summary"))
    if "latency" not in good and "request_latency" in good:
        why = "it holds what the server's Prometheus metrics say of a stage, and not the rate of its requests"
        raise DataError(f"{where}: no load", why=why, fix="import stage_N_lifecycle_metrics.json of the same stage")
    done = v.count(good.get("count"), f"{where}: successes.count") or 0
    failed = v.count(v.dig(data, "failures", "count"), f"{where}: failures.count")
    rate = v.positive(asked.get("requested_rate"), f"{where}: requested_rate")
    if rate is None:
        why = "it pools all stages, and they sent at different rates"
        raise DataError(f"{where}: no load", why=why, fix="import the stage_N_lifecycle_metrics.json files")
    load = open_loop(rate, _law(asked))
    if not done:
        yield Run(where, document.sha256, NAME, None, load, {"errors": 1.0})
        return
    v.need(data, ("successes.latency.request_latency", "successes.throughput"), where, NAME, KNOWN)
    latency = v.table(good["latency"])
    found = {
        ours: v.named(v.table(latency.get(theirs)), v.STATISTICS, 1.0, f"{where}: {theirs}")
        for ours, theirs in LATENCIES.items()
    }
    speed = v.table(good["throughput"])
    prompt = v.table(good.get("prompt_len")) or v.table(v.dig(good, "prompt_tokens"))
    output = v.table(good.get("output_len")) or v.table(v.dig(good, "output_tokens"))
    achieved = v.positive(asked.get("achieved_rate"), f"{where}: achieved_rate")
    requests = v.positive(speed.get("requests_per_sec"), f"{where}: requests_per_sec")
    figures = some(
        **{ours: stats for ours, stats in found.items() if stats},
        achieved_rate=achieved,
        request_throughput=requests,
        output_tps=v.positive(speed.get("output_tokens_per_sec"), f"{where}: output_tokens_per_sec"),
        total_tps=v.positive(speed.get("total_tokens_per_sec"), f"{where}: total_tokens_per_sec"),
        input_tokens=_length(prompt, f"{where}: prompt_len"),
        output_tokens=_length(output, f"{where}: output_len"),
        duration=done / requests if requests else None,
    )
    yield Run(where, document.sha256, NAME, None, load, _consistent(figures) | shares(done, failed))


def _law(asked: Mapping[str, Any]) -> str | None:
    kind = asked.get("type") or asked.get("load_type")
    return str(kind) if kind in ("constant", "poisson") else None


def _length(stats: Mapping[str, Any], where: str) -> dict[str, float] | None:
    mean, spread = v.positive(stats.get("mean"), where), v.number(stats.get("std_dev"), where)
    if mean is not None and spread is None:
        low, high = (v.number(stats.get(key), where) for key in ("p25", "p75"))
        if low is not None and high is not None and high >= low:
            spread = (high - low) / 1.349  # of a normal law
    return v.tokens(mean, spread)


def _consistent(figures: dict[str, Any]) -> dict[str, Any]:
    """Leave out the times between tokens where they contradict the whole answer."""
    first, gap, whole, output = (
        v.dig(figures, *path)
        for path in (("ttft", "mean"), ("tpot", "mean"), ("e2e", "mean"), ("output_tokens", "mean"))
    )
    if not (first and gap and whole and output) or whole <= first:
        return figures
    true = (whole - first) / (output - 1) if output > 1 else gap
    if abs(gap - true) <= DOUBTFUL * true:
        return figures
    kept = {key: value for key, value in figures.items() if key not in ("tpot", "itl")}
    note = (
        f"The file's time per output token is {gap / true:.2g} times what TTFT, E2E and output length give; left out."
    )
    return kept | {"note": note}
