"""Thresholds: the metrics a result has, the limits a user sets on them, and the verdicts.

A limit is written with its unit (`p99(ttft) < 500 ms`, `cost < $1.20/Mtok`). It holds or is crossed when the
whole interval lies on one side of it, and is undecided in between. Left out: conditions on two metrics at
once, and thresholds on differences between scenarios.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fleetcast.errors import ScenarioError, nearest, suggest
from fleetcast.sim.estimate import BEYOND, NO_OUTPUT, ONE_SOURCE, Estimate
from fleetcast.units import DURATIONS, SHARES, split_quantity

Verdict = Literal["holds", "crossed", "undecided"]


@dataclass(frozen=True)
class Metric:
    """A figure of the result: the *unit* its estimate is in, and how a limit on it is written."""

    unit: str
    text: str
    example: str


@dataclass(frozen=True)
class Threshold:
    """A limit on a metric, in the metric's own unit."""

    metric: str
    op: str  # < <= > >=
    limit: float
    unit: str
    text: str


LATENCIES: Mapping[str, str] = {
    "ttft": "time to first token",
    "tpot": "time per output token of a request after its first",
    "itl": "time between two tokens",
    "e2e": "time to the last token",
}
STATISTICS: Mapping[str, str] = {
    "p50": "median", "p90": "90th percentile", "p95": "95th percentile", "p99": "99th percentile",
    "p99.9": "99.9th percentile", "mean": "mean",
}  # fmt: skip


def _metrics() -> dict[str, Metric]:
    found = {
        f"{statistic}({latency})": Metric("s", f"{words}, {of}", f"{statistic}({latency}) < 500 ms")
        for latency, words in LATENCIES.items()
        for statistic, of in STATISTICS.items()
    }
    for name, unit, text, limit in (
        ("offered", "requests", "requests that arrived", "> 1000 requests"),
        ("completed", "requests", "requests that got all their tokens", "> 1000 requests"),
        ("rejected", "requests", "requests turned away", "<= 0 requests"),
        ("unfinished", "requests", "requests still running at the end", "<= 0 requests"),
        ("errors", "1", "share of offered requests that did not complete", "< 0.1 %"),
        ("goodput", "1", "share of offered requests that completed within all latency thresholds", "> 99 %"),
        ("throughput", "tok/s", "completed output tokens per second", "> 1000 tok/s"),
        ("request_rate", "1/s", "completed requests per second", "> 10 req/s"),
        ("batch", "sequences", "mean decoding sequences while busy", "< 48 sequences"),
        ("utilisation", "1", "busy share of replica time", "< 80 %"),
        ("occupancy_full", "1", "share of busy time with every seat taken", "< 5 %"),
        ("preemptions", "events", "sequences put back for want of KV memory", "<= 0 events"),
        ("cost", "USD/Mtok", "all dollars per million completed output tokens", "< $1.20/Mtok"),
        ("cost_per_day", "USD/day", "all dollars per day", "< $100/day"),
        ("replica_hours", "h", "hours billed for replicas", "< 48 h"),
    ):
        found[name] = Metric(unit, text, f"{name} {limit}")
    return found


METRICS: Mapping[str, Metric] = _metrics()

# What a person may write after the number, and what one of it is in the metric's unit.
UNITS: Mapping[str, Mapping[str, float]] = {
    "s": DURATIONS,
    "h": {unit: seconds / 3_600 for unit, seconds in DURATIONS.items()},
    "1": SHARES,
    "tok/s": {"tok/s": 1.0, "ktok/s": 1e3, "Mtok/s": 1e6, "tokens/s": 1.0},
    "1/s": {"req/s": 1.0, "requests/s": 1.0, "/s": 1.0, "1/s": 1.0, "req/min": 1 / 60, "/min": 1 / 60},
    "requests": {"": 1.0, "requests": 1.0, "request": 1.0, "req": 1.0},
    "sequences": {"": 1.0, "sequences": 1.0},
    "events": {"": 1.0, "events": 1.0},
    "USD/Mtok": {"$/Mtok": 1.0, "$/ktok": 1e3, "$/tok": 1e6},
    "USD/day": {"$/day": 1.0, "$/h": 24.0, "$/month": 24 / 730, "$/year": 1 / 365},
}

_SHAPE = re.compile(r"\s*(?P<metric>[^<>=≤≥]+?)\s*(?P<op><=|>=|<|>|≤|≥)\s*(?P<limit>[^<>=≤≥]+?)\s*")
_OPERATORS: Mapping[str, str] = {"≤": "<=", "≥": ">="}
_EXAMPLE = 'write for example "p99(ttft) < 500 ms"'


def parse_threshold(text: str) -> Threshold:
    """Read a threshold like `"p99(ttft) < 500 ms"`."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        why = "a threshold is a metric, one of < <= > >=, and a limit with its unit"
        raise ScenarioError(f'threshold "{text}"', why=why, fix=_EXAMPLE)
    name, written = match["metric"], match["limit"]
    op = _OPERATORS.get(match["op"], match["op"])
    key = re.sub(r"\s+", "", name).lower()
    if key not in METRICS:
        raise ScenarioError(f'threshold "{text}"', why=f'no metric named "{name}"', fix=_closest(key))
    limit = _limit(key, op, written, text)
    return Threshold(key, op, limit, METRICS[key].unit, f"{key} {op} {written}")


def parse_thresholds(table: Mapping[str, object]) -> tuple[Threshold, ...]:
    """Read a scenario's table, `{"p99(ttft)": "< 500 ms"}`."""
    found = []
    for metric, condition in table.items():
        if not isinstance(condition, str):
            known = METRICS.get(metric)
            example = known.example.split(" ", 1)[1] if known else "< 500 ms"
            why = "a limit is text: an operator, a number and a unit"
            raise ScenarioError(f"thresholds.{metric} = {condition!r}", why=why, fix=f'write for example "{example}"')
        found.append(parse_threshold(f"{metric} {condition}"))
    return tuple(found)


def judge(threshold: Threshold, estimate: Estimate) -> Verdict:
    """Compare the interval with the limit; a single run has none and is judged by its value.

    A value among unfinished requests, or dollars for no token at all, counts as infinite. Too few samples:
    undecided.
    """
    low, high = estimate.low, estimate.high
    if estimate.value is None:
        if estimate.note not in (BEYOND, NO_OUTPUT):
            return "undecided"
        low = high = math.inf
    elif low is None and high is None and estimate.note != ONE_SOURCE:
        low = high = estimate.value
    low = -math.inf if low is None else low
    high = math.inf if high is None else high
    best, worst = (low, high) if threshold.op.startswith("<") else (high, low)
    if _meets(worst, threshold):
        return "holds"
    return "undecided" if _meets(best, threshold) else "crossed"


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """Return 1 if any threshold is crossed, else 3 if any is undecided, else 0."""
    seen = set(verdicts)
    return 1 if "crossed" in seen else 3 if "undecided" in seen else 0


def _meets(value: float, threshold: Threshold) -> bool:
    match threshold.op:
        case "<":
            return value < threshold.limit
        case "<=":
            return value <= threshold.limit
        case ">":
            return value > threshold.limit
        case _:
            return value >= threshold.limit


def _limit(metric: str, op: str, written: str, text: str) -> float:
    """Return the limit in the metric's unit."""
    unit, example = METRICS[metric].unit, METRICS[metric].example
    units = UNITS[unit]
    fix = f'write for example "{example}"'
    parts = split_quantity(written.removeprefix("$"))
    if parts is None:
        raise ScenarioError(f'threshold "{text}"', why=f'"{written}" is not a number with a unit', fix=fix)
    number = parts[0]
    given = ("$" if written.startswith("$") else "") + parts[1].replace(" ", "").replace("USD", "$")
    if given not in units:
        plain = given in ("", "$")
        why = f"{metric} needs a unit"
        if not plain:
            why = f'"{given}" is not a unit of {metric}; known: {", ".join(u for u in units if u)}'
        right = " or ".join(f'"{metric} {op} {spelling}"' for spelling in _spellings(number, given, unit))
        raise ScenarioError(f'threshold "{text}"', why=why, fix=f"write {right}")
    limit = number * units[given]
    if limit < 0 or (unit == "1" and limit > 1):
        why = "a share lies between 0 and 100 %" if unit == "1" else f"{metric} is never negative"
        raise ScenarioError(f'threshold "{text}"', why=why, fix=fix)
    return limit


def _spellings(number: float, given: str, unit: str) -> list[str]:
    """Return what *number* with the wrong or no unit was probably meant to be."""
    if unit == "1" and number < 1:  # 0.001 may be a share or a percentage
        return [f"{100 * number:g} %", f"{number:g} %"]
    usual = next(iter(UNITS[unit])) or unit
    if unit == "s":
        usual = "s" if number < 10 else "ms"
    meant = (nearest(given, UNITS[unit], 1) or [usual])[0]
    return [f"${number:g}{meant[1:]}" if meant.startswith("$") else f"{number:g} {meant}"]


def _closest(key: str) -> str:
    """Return the fix for an unknown metric."""
    if key in LATENCIES:
        return f"name a statistic of it: p99({key}), mean({key})"
    if nearest(key, METRICS):
        return suggest(key, METRICS)
    plain = ", ".join(name for name in METRICS if "(" not in name)
    return f"known: {plain}, and {', '.join(STATISTICS)} of {', '.join(f'({name})' for name in LATENCIES)}"
