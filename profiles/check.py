"""What the figures of a profile say about each other: Little's law tells a latency from a completion time.

In a static batch every sequence gets throughput / batch tokens a second, so a latency times that is the number of
tokens produced meanwhile. In a closed loop users / mean response time is the rate. Only points are looked at.
"""

from __future__ import annotations

from fleetcast.profiles.profile import Assumption, Durations, Point, Profile

TOLERANCE = 0.05  # figures of one run, rounded and averaged by different tools, agree to within this
COMPLETION_TOKENS = 16.0  # a "first token" that lasts as long as this many tokens of the whole batch is none


def middle(durations: Durations | None) -> float | None:
    """Return the mean of a latency, or its median where no mean was published."""
    if durations is None:
        return None
    return durations.mean if durations.mean is not None else durations.p50


def tokens_meanwhile(point: Point, span: float) -> float | None:
    """Return the output tokens that each sequence of a static batch gets in *span* seconds."""
    if point.kind != "static" or point.output_tps is None or point.batch is None:
        return None
    return span * point.output_tps / point.batch


def remarks(profile: Profile) -> tuple[Assumption, ...]:
    """Return what a careful reader of the points would notice, in the order of the file."""
    found: list[Assumption] = []
    for point in profile.point:
        found += _static(point) if point.kind == "static" else _served(point)
    return tuple(found)


def _static(point: Point) -> list[Assumption]:
    found = []
    where = f"static batch of {point.batch}"
    first = middle(point.ttft)
    tokens = tokens_meanwhile(point, first) if first is not None else None
    if tokens is not None and tokens >= COMPLETION_TOKENS:
        text = f"{where}: its ttft looks like a completion time (write it as latency): every sequence gets meanwhile"
        found.append(Assumption(text, f"{tokens:.1f} tokens", "throughput × ttft / batch (Little's law)"))
    tokens = tokens_meanwhile(point, point.latency) if point.latency is not None else None
    if tokens is not None:
        text = f"{where}: latency is the time until all of it is done, and every sequence gets meanwhile"
        found.append(Assumption(text, f"{tokens:.1f} tokens", "throughput × latency / batch (Little's law)"))
        if point.output_tokens is not None and not _agree(tokens, point.output_tokens.average):
            text = f"{where}: but output_tokens says otherwise"
            found.append(Assumption(text, f"{point.output_tokens.average:g} tokens", "the point itself"))
    return found


def _served(point: Point) -> list[Assumption]:
    found = []
    output = point.output_tokens.average if point.output_tokens is not None else None
    first, gap, whole = middle(point.ttft), middle(point.itl) or middle(point.tpot), middle(point.e2e)
    where = f"{point.concurrency} users" if point.kind == "closed" else f"{point.load:g} requests/s"
    if point.kind == "closed" and output and whole and point.output_tps and point.concurrency:
        expected = point.concurrency / whole * output
        if not _agree(point.output_tps, expected):
            text = f"{where}: throughput differs from users / mean response time × output tokens"
            found.append(Assumption(text, f"{point.output_tps:g} against {expected:.4g} tok/s", "Little's law"))
    if output and output > 1 and whole and first and gap:
        total = first + (output - 1) * gap
        if not _agree(whole, total):
            text = f"{where}: first token + further tokens × time between them differs from the whole response"
            found.append(Assumption(text, f"{total:.4g} s against {whole:.4g} s", "sum of the point's own means"))
    return found


def _agree(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
