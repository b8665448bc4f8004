"""The smallest fixed fleet that meets the thresholds, found on days of its own.

A size passes when every threshold that more replicas can help (latency, errors, goodput, utilisation) holds by its
whole interval on the choosing days; those are drawn apart from the days that are reported. Sizes are doubled until one
passes, then bisected: more replicas are taken never to hurt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fleetcast.sim.metrics import metric_of
from fleetcast.sim.replicate import Day, Study, play_days
from fleetcast.sim.scenario import MOST_REPLICAS
from fleetcast.sim.thresholds import Threshold, Verdict, judge

CHOOSING_DAYS = 20
FIRST_LOOK = 4
WORLD = "choosing"
NO_LONGER_HELPS = 0.01
"""A doubling that improves every missed threshold by less than this share is the last one tried."""


@dataclass(frozen=True)
class Choice:
    """The chosen fleet, whether it met the thresholds on the choosing days, and how many days those were."""

    replicas: int
    meets: bool
    days: int


def helped(threshold: Threshold) -> bool:
    """Tell whether more replicas can help a threshold."""
    upper = threshold.op.startswith("<")
    statistic, _, latency = threshold.metric.partition("(")
    if latency:
        return upper and bool(statistic)
    if threshold.metric in ("errors", "unfinished", "utilisation", "occupancy_full", "preemptions", "batch"):
        return upper
    return threshold.metric in ("goodput", "completed") and not upper


def choose(
    study: Study,
    thresholds: Sequence[Threshold],
    workers: int,
    tell: Callable[[str], None] = lambda text: None,
) -> Choice:
    """Return the smallest fleet that holds the *thresholds*, or the one where more replicas stop helping."""
    wanted = [threshold for threshold in thresholds if helped(threshold)]
    seen: dict[int, tuple[bool, float]] = {}

    def passes(replicas: int) -> bool:
        if replicas not in seen:
            tell(f"choosing the fleet: trying {replicas} replica{'s' if replicas > 1 else ''}")
            seen[replicas] = _try(study, wanted, replicas, workers)
        return seen[replicas][0]

    size = first_guess(study)
    if passes(size):
        low, high = 0, size
        while high > 1 and passes(max(1, high // 2)):
            high = max(1, high // 2)
        low = high // 2 if high > 1 else 0
    else:
        low, high = size, min(2 * size, MOST_REPLICAS)
        while not passes(high):
            if high == MOST_REPLICAS or seen[high][1] > (1 - NO_LONGER_HELPS) * seen[low][1]:
                return Choice(low, False, choosing_days(study))
            low, high = high, min(2 * high, MOST_REPLICAS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return Choice(high, True, choosing_days(study))


def choosing_days(study: Study) -> int:
    """Return how many days choose: one where every day is the same."""
    return 1 if study.certain else CHOOSING_DAYS


def first_guess(study: Study) -> int:
    """Return the replicas that the recorded mean rate keeps busy at the best batch, prompts included."""
    trace, replica = study.days.trace, study.replica
    seats = np.arange(1, len(replica.step_s))
    pace = float(np.nanmin(replica.step_s[1:] / seats))
    work = float(trace.output_tokens.sum(dtype=np.int64)) * pace
    work += float(trace.input_tokens.sum(dtype=np.int64)) * replica.prefill_per_token_s
    return min(MOST_REPLICAS, max(1, math.ceil(work / study.days.horizon_s)))


def _try(study: Study, thresholds: Sequence[Threshold], replicas: int, workers: int) -> tuple[bool, float]:
    """Play a size on the choosing days; return whether it passes, and by how much its worst threshold misses."""
    days: list[Day] = []
    for day in play_days(study, replicas, range(choosing_days(study)), workers, WORLD):
        days.append(day)
        if len(days) == FIRST_LOOK and _hopeless(_verdicts(days, thresholds, study)):
            break
    verdicts = _verdicts(days, thresholds, study)
    return all(verdict == "holds" for verdict, _ in verdicts), max((miss for _, miss in verdicts), default=0.0)


def _hopeless(verdicts: Sequence[tuple[Verdict, float]]) -> bool:
    return any(verdict == "crossed" for verdict, _ in verdicts)


def _verdicts(days: Sequence[Day], thresholds: Sequence[Threshold], study: Study) -> list[tuple[Verdict, float]]:
    found = []
    for threshold in thresholds:
        estimate = metric_of(days, threshold.metric, study.replica.noise_cv)
        found.append((judge(threshold, estimate), _miss(threshold, estimate.value)))
    return found


def _miss(threshold: Threshold, value: float | None) -> float:
    """Return how many times its limit a value is (or the limit the value, for a lower limit)."""
    if value is None:
        return math.inf
    above, below = (value, threshold.limit) if threshold.op.startswith("<") else (threshold.limit, value)
    return above / below if below > 0 else math.inf
