"""What the figures of a profile say about each other, and what they cannot all say at once.

Little's law ties users, rate and response time; a whole answer is its first token and the gaps after it; a static batch
gives every sequence throughput / batch tokens a second. Where figures break such a law, one of them is not what it is
called. Only points are looked at: nothing is fitted. `check` tells everything, `remarks` what a curve rests on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from fleetcast.profiles.check_runs import runs
from fleetcast.profiles.check_series import series
from fleetcast.profiles.finding import (
    CODES,
    Finding,
    apart,
    gap,
    in_flight,
    middle,
    output_length,
    request_rate,
    response,
    thousandfold,
    where,
)
from fleetcast.profiles.profile import Assumption, Point, Profile

__all__ = ["CODES", "Finding", "check", "middle", "remarks", "tokens_meanwhile"]

TOLERANCE = 0.05  # figures of one run, rounded and averaged by different tools, agree to within this
EXACT = 0.005  # and to within this where nothing but rounding is between them
SEVERE = 0.20
LOOSE = 0.15  # allowed of a product of means, or of a median instead of a mean
COMPLETION_TOKENS = 16.0  # a "first token" that lasts as long as this many tokens of the whole batch is none
WHOLE = 0.8  # of an answer: a first token that takes so much of it is none
SOONEST_TOKEN = 1e-4  # seconds; no server answers over a network in less
SOONEST_GAP = 2e-5
REMARKED = ("ttft-is-completion", "batch-completion", "output-length", "littles-law", "e2e-sum", "units")


def check(profile: Profile) -> tuple[Finding, ...]:
    """Return every finding about the points of *profile*: of each point in the order of the file, then of all."""
    found: list[Finding] = []
    for point in profile.point:
        found += _laws(point)
        found += runs(point)
    return (*found, *series(profile.point))


def remarks(profile: Profile) -> tuple[Assumption, ...]:
    """Return what a curve through the points rests on, in the order of the file."""
    found = [finding for point in profile.point for finding in _laws(point) if finding.code in REMARKED]
    return tuple(Assumption(f"{one.where}: {one.what}", one.value, one.law) for one in found)


def tokens_meanwhile(point: Point, span: float) -> float | None:
    """Return the output tokens that each sequence of a static batch gets in *span* seconds."""
    if point.kind != "static" or point.output_tps is None or point.batch is None:
        return None
    return span * point.output_tps / point.batch


def _laws(point: Point) -> Iterator[Finding]:
    if point.errors is not None and point.errors >= 1:
        why = "a run in which no request completed measures nothing"
        yield Finding("all-failed", "severe", where(point), "all requests failed", why, "leave the point out")
        return
    units = list(_units(point))
    yield from units
    if units:
        return
    counted = list(_prompt_tokens(point))
    yield from counted
    if point.kind == "static":
        yield from _static(point)
    elif not counted:
        yield from _little(point)
    yield from _sum(point)


# --- a static batch -----------------------------------------------------------------------------------------------


def _static(point: Point) -> Iterator[Finding]:
    first = middle(point.ttft)
    tokens = tokens_meanwhile(point, first) if first is not None else None
    if first is not None and tokens is not None and tokens >= _tokens_of_a_completion(point, first):
        what = "its ttft looks like a completion time (write it as latency): every sequence gets meanwhile"
        why = "a batch completion time taken for a time to first token makes users wait for whole answers"
        do = "write it as latency, which is the time until the whole batch is done"
        yield Finding("ttft-is-completion", "severe", where(point), what, why, do, f"{tokens:.1f} tokens",
                      "throughput × ttft / batch (Little's law)")  # fmt: skip
    tokens = tokens_meanwhile(point, point.latency) if point.latency is not None else None
    if tokens is None:
        return
    what = "latency is a batch completion time, not a time to first token (TTFT): every sequence gets meanwhile"
    why = "a first token takes one iteration of the batch; this is the time until all of it is done"
    do = "nothing: it is used as the time of the whole batch"
    law = "throughput × latency / batch (Little's law)"
    if first is None:  # else the source tells the two apart
        yield Finding("batch-completion", "info", where(point), what, why, do, f"{tokens:.1f} tokens", law)
    output = output_length(point)
    if output is not None and apart(tokens, output) > TOLERANCE:
        what = "but output_tokens says otherwise"
        why = f"throughput × latency / batch gives {tokens:.4g} tokens a sequence"
        do = "correct output_tokens, the throughput or the batch"
        yield Finding("output-length", "warning", where(point), what, why, do, f"{output:g} tokens", "the point itself")


def _tokens_of_a_completion(point: Point, first: float) -> float:
    """Return how many tokens of the whole batch make a time to first token a completion time.

    A long prompt lasts many decode steps as well: where the length of answers is known, most of it must fit in, and
    where the whole batch's time is known, that must be about the same.
    """
    if point.latency is not None:
        return 0.0 if first >= WHOLE * point.latency else math.inf
    output = output_length(point)
    return COMPLETION_TOKENS if output is None else WHOLE * output


def _prompt_tokens(point: Point) -> Iterator[Finding]:
    """Compare the output rate with requests a second × length, with and without the prompt."""
    output = output_length(point)
    prompt = point.input_tokens.average if point.input_tokens is not None else 0.0
    rate, time = point.request_throughput, response(point)
    if rate is None and point.kind == "closed" and time is not None and point.concurrency:
        rate = point.concurrency / time[0]
    if rate is None and point.kind == "static" and point.latency and point.batch:
        rate = point.batch / point.latency
    if point.output_tps is None or output is None or rate is None:
        return
    told, mine, both = point.output_tps, rate * output, rate * (output + prompt)
    if apart(told, mine) > 2 * TOLERANCE and apart(told, both) <= TOLERANCE:
        what = f"output_tps = {told:.4g} counts prompt tokens: without them it is {mine:.4g}"
        why = f"it is {rate:.4g} requests/s × ({prompt:.4g} + {output:.4g}) tokens; cost and speed would be too good"
        do = "write it as total_tps, and the output tokens alone as output_tps"
        yield Finding("prompt-tokens", "severe", where(point), what, why, do)
    elif point.request_throughput is not None and apart(told, mine) > SEVERE:
        what = f"output_tps = {told:.4g}, but {rate:.4g} requests/s × {output:.4g} tokens make {mine:.4g}"
        why = "throughput, request rate and output length are not of one run, or of other requests"
        yield Finding("throughput", "warning", where(point), what, why, "see which of the three the tool averages how")


# --- Little's law -------------------------------------------------------------------------------------------------


def _little(point: Point) -> Iterator[Finding]:
    """Compare requests a second × response time with the users, or with what was measured to be in flight."""
    found, time = in_flight(point), response(point)
    told = float(point.concurrency) if point.concurrency else point.mean_concurrency
    if found is None or time is None or told is None or not told:
        return
    low = _while_draining(point, told, time[0]) if point.kind == "closed" else told
    off = max(0.0, found / told - 1, 1 - found / low)
    rate = request_rate(point) or 0.0
    law = "Little's law"
    users = where(point) if point.kind == "closed" else f"{told:.4g} in flight"
    if thousandfold(found / told):
        yield _mixed(
            point, f"{rate:.4g} requests/s × {time[0]:.4g} s are {found:.4g} in flight, not {told:.4g}", found / told
        )
        return
    allowed = TOLERANCE if time[1] else LOOSE
    if off <= allowed and apart(found, told) > SEVERE:
        what = f"{users}, of whom {found:.3g} were busy on average: the run was over before the load was steady"
        each = (point.requests or 0) / told
        why = f"{point.requests} requests are {each:.2g} of each user: a start and an end, with little between"
        do = "measure at least ten requests of each user; until then only a replay of the very run can use it"
        yield Finding("short-run", "warning", where(point), what, why, do)
        return
    if off <= allowed:
        exact = "exactly" if apart(found, told) <= EXACT else f"to {apart(found, told):.1%}"
        what = f"Little's law holds {exact}: {users} / {time[0]:.4g} s = {told / time[0]:.3g} requests/s"
        what += f", measured {rate:.3g}"
        why = "users, rate and response time are of one run, and the load was really applied"
        yield Finding("littles-law-holds", "info", where(point), what, why, "nothing")
        return
    output = output_length(point)
    what = "throughput differs from users / mean response time × output tokens"
    if point.kind == "open":
        what = "throughput differs from requests in flight / mean response time × output tokens"
    scale = output if output is not None and point.output_tps is not None else 1.0
    unit = "tok/s" if scale != 1.0 else "requests/s"
    value = f"{rate * scale:g} against {told / time[0] * scale:.4g} {unit}"
    drains = " beyond what an ending run explains" if low < told and found < low else ""
    why = f"{value}: {off:.0%} off{drains}, so one of load, throughput and response time is of something else"
    do = "see that all three are of the same run and requests, and that the clients were never idle"
    severe = off > SEVERE and time[1]
    yield Finding("littles-law", "severe" if severe else "warning", where(point), what, why, do, value, law)


def _while_draining(point: Point, users: float, mean: float) -> float:
    """Return the fewest that may be in flight on average in a closed run of few requests.

    The last answers leave seats empty for up to the longest one L: n R / (n R / N + L) for n requests of mean R.
    """
    if point.requests is None or point.e2e is None:
        return users
    longest = point.e2e.max or point.e2e.p99 or 3 * mean
    return users / (1 + users * longest / (point.requests * mean))


def _sum(point: Point) -> Iterator[Finding]:
    """Compare first token + further tokens × gap with the whole answer."""
    first, between, whole, output = middle(point.ttft), gap(point), middle(point.e2e), output_length(point)
    if not (first and between and whole and output and output > 1):
        return
    total = first + (output - 1) * between
    off = apart(total, whole)
    if off <= TOLERANCE:
        return
    what = "first token + further tokens × time between them differs from the whole response"
    value = f"{total:.4g} s against {whole:.4g} s"
    why = f"{value}: {off:.0%} off; one of them counts something else (chunks for tokens, or other requests)"
    do = "see how the tool defines its time between tokens, or leave that figure out"
    level = "warning" if off > LOOSE else "info"
    yield Finding("e2e-sum", level, where(point), what, why, do, value, "sum of the point's own means")  # type: ignore[arg-type]


# --- units --------------------------------------------------------------------------------------------------------


def _units(point: Point) -> Iterator[Finding]:
    """Find times that are a thousand times too long or too short for the others, or for any server."""
    first, between, whole, output = middle(point.ttft), gap(point), middle(point.e2e), output_length(point)
    if first is not None and whole and first > (1 + TOLERANCE) * whole:
        yield _mixed(point, f"ttft {first:.4g} s is longer than the whole answer's {whole:.4g} s", first / whole)
    elif first and whole and between and output and output > 8 and whole > first:
        ratio = between * (output - 1) / (whole - first)
        if thousandfold(ratio):
            yield _mixed(point, f"{output:.4g} tokens every {between:.4g} s are no answer of {whole:.4g} s", ratio)
    for name, value, soonest in (("ttft", first, SOONEST_TOKEN), ("the time between tokens", between, SOONEST_GAP)):
        if value is not None and 0 < value < soonest:
            yield _mixed(point, f"{name} = {value:.4g} s is sooner than any server answers", 1e-3)
    if whole and point.duration and whole > (1 + TOLERANCE) * point.duration:
        yield _mixed(point, f"answers of {whole:.4g} s in a run of {point.duration:.4g} s", whole / point.duration)


def _mixed(point: Point, what: str, ratio: float) -> Finding:
    times = f"{ratio:.3g} times" if ratio >= 1 else f"one {1 / ratio:.3g}th"
    guess = "seconds and milliseconds were mixed up" if thousandfold(ratio) else "a unit or a name is wrong"
    why = f"{times} what the other figures allow: {guess}"
    do = "correct the unit of that figure in the file or in --columns"
    return Finding("units", "severe", where(point), what, why, do, what, "the point's own figures")
