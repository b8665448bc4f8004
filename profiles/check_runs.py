"""How a benchmark was run: whether its load was applied, whether all its requests counted, whether they were enough."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fleetcast.profiles.finding import Finding, in_flight, request_rate, where
from fleetcast.profiles.profile import Point

SHORT = 0.9  # of the rate that was asked for: less than this completed is an overload
SENT = 0.95
SOME = 0.01
BEYOND = 10  # samples beyond a percentile that make it one
TIMEOUTS = (10, 15, 20, 30, 45, 60, 90, 100, 120, 180, 240, 300, 600, 900, 1_200, 1_800, 3_600)


def runs(point: Point) -> Iterator[Finding]:
    """Find what makes a run of a point less than it looks."""
    yield from _saturated(point)
    yield from _client(point)
    yield from _censored(point)
    yield from _few(point)


def _saturated(point: Point) -> Iterator[Finding]:
    rate, asked = request_rate(point), point.rate
    if point.kind != "open" or asked is None or rate is None:
        return
    floor = asked
    if point.requests is not None:
        # The last answers are awaited after the last request was sent: a short run completes less than it sends.
        tail = (point.e2e.max or point.e2e.p99 or point.e2e.mean or 0.0) if point.e2e is not None else 0.0
        queued = _queues(point)
        if queued and point.e2e is not None:
            tail = point.e2e.mean or tail
        floor = point.requests / (point.requests / asked + tail)
    at_once = in_flight(point)
    if rate >= SHORT * floor:
        return
    if at_once is not None and at_once < 1:
        what = f"{rate:.4g} requests/s completed of {asked:.4g} asked for, and the server was idle in between"
        why = "the client did not send at the rate it was asked to, so the load is not what it is called"
        yield Finding("client-cap", "warning", where(point), what, why, "give the client more workers, or a longer run")
        return
    what = f"{rate:.4g} requests/s completed of {asked:.4g} sent: the server was saturated"
    why = "its waiting line grew for as long as the run lasted, so latencies tell the run's length, not the server's"
    do = "use it for the capacity alone; measure latencies at less load"
    yield Finding("saturated", "warning", where(point), what, why, do)


def _queues(point: Point) -> bool:
    """Whether first tokens came so late on average that requests must have waited for seats."""
    first = point.ttft
    if first is None or first.mean is None:
        return False
    return first.mean > 5 * (first.min or math.inf) or first.mean > 2.5 * (first.p50 or math.inf)


def _client(point: Point) -> Iterator[Finding]:
    if point.kind != "open" or point.rate is None:
        return
    do = "let the client keep more requests in flight, or take the load that was really sent"
    if point.achieved_rate is not None and point.achieved_rate < SENT * point.rate:
        what = f"the client sent {point.achieved_rate:.4g} requests/s, not {point.rate:.4g}"
        why = "it was held back (a cap on requests in flight, or too few workers): the load is not what it is called"
        yield Finding("client-cap", "warning", where(point), what, why, do)
        return
    at_once = in_flight(point)
    cap = point.max_concurrency
    if at_once is not None and cap is not None and at_once >= SHORT * cap:
        what = f"{at_once:.4g} requests were in flight of {cap} that the client allows"
        why = "the client waited for answers: this is a closed loop in disguise"
        yield Finding("client-cap", "warning", where(point), what, why, do)


def _censored(point: Point) -> Iterator[Finding]:
    made = (point.requests or 0) + (point.unfinished or 0)
    if point.unfinished and point.unfinished >= SOME * made:
        what = f"{point.unfinished} of {made} requests were cut off when the run ended"
        why = "those that take long are cut off most: the tail and the output lengths look better than they are"
        do = "let the run drain, or make it long against an answer"
        yield Finding("censored", "warning", where(point), what, why, do)
    if point.empty and point.empty >= SOME * made:
        what = f"{point.empty} of {made} answers had no token, and were counted with a first token after 0 s"
        why = "they make every latency look shorter, and the mean output length too"
        yield Finding(
            "empty-answers", "warning", where(point), what, why, "ask why the model said nothing, measure again"
        )
    e2e = point.e2e
    if e2e is not None and e2e.max and e2e.p99 and e2e.p50 and e2e.max <= 1.01 * e2e.p99 and e2e.p99 > 2 * e2e.p50:
        limit = next((limit for limit in TIMEOUTS if abs(e2e.max - limit) <= 0.01 * limit), None)
        if limit is not None:
            what = f"the slowest answers all took {limit:g} s"
            why = "that looks like a timeout: how long they would have taken is not known"
            do = "raise the client's timeout, or take the percentiles below it alone"
            yield Finding("censored", "warning", where(point), what, why, do)
    if point.errors is not None and SOME <= point.errors < 1:
        what = f"{point.errors:.1%} of the requests failed"
        why = "failed requests make the server faster for the others, and their latencies are not counted"
        yield Finding("failed-requests", "warning", where(point), what, why, "find out why, and measure again")


def _few(point: Point) -> Iterator[Finding]:
    if point.requests is None:
        return
    told = [latency for latency in (point.ttft, point.tpot, point.e2e) if latency is not None]
    shares = {"p99.9": 0.001, "p99": 0.01, "p95": 0.05, "p90": 0.1}
    for name, share in shares.items():
        needed = round(BEYOND / share)
        if point.requests < needed and any(getattr(one, name.replace(".", "_")) is not None for one in told):
            enough = next((n for n, s in shares.items() if point.requests >= round(BEYOND / s)), "the median")
            what = f"{point.requests} requests are few for a {name}: it needs {needed:,}"
            why = f"a {name} with fewer than {BEYOND} requests beyond it is mostly chance"
            do = f"trust up to {enough}, or measure longer"
            # Tools print a p99.9 whatever the run; only what is used in earnest is worth a warning.
            yield Finding("few-requests", "info" if name == "p99.9" else "warning", where(point), what, why, do)
            return
