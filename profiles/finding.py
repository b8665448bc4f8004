"""One thing that a profile's figures say of each other, and the small arithmetic that all checks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fleetcast.profiles.profile import Durations, Point

Severity = Literal["severe", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("severe", "warning", "info")
# Every code a finding can have, and what it is about.
CODES = {
    "all-failed": "no request completed",
    "units": "seconds and milliseconds mixed",
    "littles-law": "users, rate and response time contradict each other",
    "littles-law-holds": "users, rate and response time agree",
    "prompt-tokens": "the output rate counts prompt tokens",
    "throughput": "tokens a second, requests a second and output length contradict each other",
    "ttft-is-completion": "a time to first token that is a batch completion time",
    "batch-completion": "a latency that is a batch completion time",
    "output-length": "a batch's time and rate amount to another output length",
    "e2e-sum": "first token and gaps do not make the whole answer",
    "short-run": "a closed loop that ended before it was steady",
    "saturated": "an open loop above what the server sustains",
    "client-cap": "the client sent less than it was asked to",
    "censored": "slow requests were cut off",
    "empty-answers": "some answers had no token",
    "failed-requests": "some requests failed",
    "few-requests": "too few requests for a percentile",
    "repeats-disagree": "repeats of one load differ",
    "repeats-agree": "how far repeats of one load differ",
    "not-monotone": "more load gives less of what should grow",
    "knee": "from where on more load adds little",
}


@dataclass(frozen=True)
class Finding:
    """What a check found: at which load, what, why it matters and what to do.

    `law` is what it follows from and `value` the figure, where a curve through the points rests on it.
    """

    code: str
    severity: Severity
    where: str
    what: str
    why: str
    do: str
    value: str = ""
    law: str = ""


def middle(durations: Durations | None) -> float | None:
    """Return the mean of a latency, or its median where no mean was published."""
    if durations is None:
        return None
    return durations.mean if durations.mean is not None else durations.p50


def where(point: Point) -> str:
    """Return the load of a point in words."""
    if point.kind == "static":
        return f"static batch of {point.batch}"
    if point.kind == "open":
        return f"{point.load:g} requests/s"
    return "1 user" if point.concurrency == 1 else f"{point.concurrency} users"


def output_length(point: Point) -> float | None:
    """Return the mean output tokens of a request, None where they are not known."""
    return (point.output_tokens.average or None) if point.output_tokens is not None else None


def gap(point: Point) -> float | None:
    """Return the mean time between tokens: over tokens where it is known, else over requests."""
    return middle(point.itl) or middle(point.tpot)


def request_rate(point: Point) -> float | None:
    """Return completed requests a second, from the output rate where they were not published."""
    output = output_length(point)
    if point.request_throughput is not None:
        return point.request_throughput
    return point.output_tps / output if point.output_tps is not None and output else None


def response(point: Point) -> tuple[float, bool] | None:
    """Return the mean response time, and whether it is one: a median or a sum of means stands in for it."""
    if point.e2e is not None and point.e2e.mean:
        return point.e2e.mean, True
    if point.e2e is not None and point.e2e.p50:
        return point.e2e.p50, False
    first, between, output = middle(point.ttft), gap(point), output_length(point)
    if first is None or between is None or output is None:
        return None
    whole = first + max(0.0, output - 1) * between
    return (whole, False) if whole > 0 else None


def in_flight(point: Point) -> float | None:
    """Return the mean number of requests in flight by Little's law, None where a figure is missing."""
    rate, time = request_rate(point), response(point)
    return rate * time[0] if rate is not None and time is not None else None


def apart(a: float, b: float) -> float:
    """Return how far two figures are apart, as a share of the larger one."""
    return abs(a - b) / max(abs(a), abs(b)) if a or b else 0.0


def thousandfold(ratio: float) -> bool:
    """Whether two figures that should agree differ about as much as seconds and milliseconds do."""
    return 300 < ratio < 3_000 or 1 / 3_000 < ratio < 1 / 300
