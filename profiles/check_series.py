"""What points say together: repeats of one load, throughput that should grow with load, and where it stops growing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from fleetcast.profiles.finding import Finding, middle, where
from fleetcast.profiles.profile import Point, TokenCount

SAME_LENGTH = 0.1
FALL = 0.05
NOISE = {"throughput": 0.1, "E2E": 0.1, "TTFT": 0.2}  # two repeats of one published set-up: 6 % and 9 %
KNEE = 0.25  # share of a doubling of load that throughput still gains


def series(points: Sequence[Point]) -> Iterator[Finding]:
    """Compare the points of one kind and of about the same lengths."""
    for group in _groups(points):
        levels = _levels(group)
        for level in levels:
            if len(level) > 1:
                yield _repeats(level)
        if group[0].kind != "static":
            yield from _monotone(levels)
        yield from _knee(levels)


def _groups(points: Sequence[Point]) -> list[list[Point]]:
    groups: list[list[Point]] = []
    for point in points:
        home = next((group for group in groups if _alike(group[0], point)), None)
        if home is None:
            groups.append([point])
        else:
            home.append(point)
    return groups


def _alike(a: Point, b: Point) -> bool:
    def close(x: TokenCount | None, y: TokenCount | None) -> bool:
        if x is None or y is None:
            return x is y
        return abs(x.average - y.average) <= SAME_LENGTH * max(x.average, y.average, 1.0)

    same = a.kind == b.kind and a.max_concurrency == b.max_concurrency and a.arrivals == b.arrivals
    return same and close(a.input_tokens, b.input_tokens) and close(a.output_tokens, b.output_tokens)


def _levels(group: Sequence[Point]) -> list[list[Point]]:
    """Return the points of a group by rising load, repeats together."""
    found: dict[float, list[Point]] = {}
    for point in sorted(group, key=lambda point: point.load):
        found.setdefault(point.load, []).append(point)
    return list(found.values())


def _figures(point: Point) -> dict[str, float]:
    all_of_them = {"throughput": point.output_tps, "E2E": middle(point.e2e), "TTFT": middle(point.ttft)}
    return {name: value for name, value in all_of_them.items() if value}


def _repeats(level: Sequence[Point]) -> Finding:
    spread: dict[str, float] = {}
    for name in NOISE:
        values = [figures[name] for point in level if name in (figures := _figures(point))]
        if len(values) > 1:
            spread[name] = (max(values) - min(values)) / (sum(values) / len(values))
    at = f"{where(level[0])}, {len(level)} repeats"
    told = ", ".join(f"{name} {share:.1%}" for name, share in spread.items()) or "no figure in common"
    if any(share > NOISE[name] for name, share in spread.items()):
        why = "repeats of one set-up differ by less than that: something else changed between them"
        do = "look for a cold start, another user of the machine or other settings; leave the odd one out"
        return Finding("repeats-disagree", "warning", at, f"repeats differ by {told}", why, do)
    why = "this is the noise of the measurement; no prediction can be asked to be better"
    return Finding("repeats-agree", "info", at, f"repeats differ by {told}", why, "nothing")


def _mean(level: Sequence[Point], name: str) -> float | None:
    values = [figures[name] for point in level if name in (figures := _figures(point))]
    return sum(values) / len(values) if values else None


def _monotone(levels: Sequence[Sequence[Point]]) -> Iterator[Finding]:
    for name in ("throughput", "E2E"):
        told = [(level, value) for level in levels if (value := _mean(level, name)) is not None]
        for (before, low), (after, high) in pairwise(told):
            if high < (1 - FALL) * low:
                unit = "tok/s" if name == "throughput" else "s"
                what = f"{name} falls from {low:.4g} to {high:.4g} {unit} as load grows from {where(before[0])}"
                why = "more load does not make a server faster, nor give fewer tokens while seats are free"
                do = "look for a cold start in the one, or preemption and errors in the other; measure both again"
                yield Finding("not-monotone", "warning", where(after[0]), what, why, do)


def _knee(levels: Sequence[Sequence[Point]]) -> Iterator[Finding]:
    told = [(level, value) for level in levels if (value := _mean(level, "throughput")) is not None]
    for (before, low), (after, high) in pairwise(told):
        load = math.log2(after[0].load / before[0].load)
        gain = math.log2(high / low) / load
        if gain < KNEE:
            what = (
                f"the knee: up to {where(after[0])} throughput gains {high / low - 1:+.0%} for {2**load:.3g} × the load"
            )
            why = "beyond it more load buys waiting, not tokens"
            yield Finding("knee", "info", where(before[0]), what, why, "plan for less load than this")
            return
