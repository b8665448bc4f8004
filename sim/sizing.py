"""The smallest fixed fleet that meets the thresholds, found on days of its own.

A size passes when every threshold that more replicas can help (latency, errors, goodput, utilisation) holds twice. On
hard days, by its value: these are laid out, not drawn; the level of the day, the profile's step times and its prompt
cost are stratified (a Latin hypercube), and the first day is harder than almost all that will be drawn (the heaviest
level on the slowest speed), since a fleet chosen on twenty random days alone fails on the next twenty whenever those
hold a heavier day. And on as many random days, by its whole interval: an interval over days supposes that they are
independent draws, which those laid out are not.

Sizes are doubled until one passes, then bisected: more replicas are taken never to hurt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from fleetcast.errors import NotMeasured
from fleetcast.sim.estimate import ONE_SOURCE, Estimate
from fleetcast.sim.metrics import LATENCIES, QUANTILES, metric_of
from fleetcast.sim.replicate import Day, Layout, Study, play_days
from fleetcast.sim.scenario import MOST_REPLICAS
from fleetcast.sim.thresholds import Threshold, judge

CHOOSING_DAYS = 20
HEAVIEST = 0.995
"""Quantile of the first choosing day's level: nine in ten sets of twenty random days stay below it."""

FIRST_LOOK = 4
"""So many of the hardest days are played before a size is given up; whatever the workers, the same days."""

WORLD = "choosing"
NEARLY = 0.05
"""Where no size passes, one that misses by so little more than the best is taken for as good."""

NO_LONGER_HELPS = 0.01
"""A doubling that improves what is missed by less than this share is the last one tried."""


@dataclass(frozen=True)
class Choice:
    """The chosen fleet, whether it met the thresholds on the choosing days, and how many days of each kind those were.

    `unmeasured` tells that one replica less would do but for a batch above what was measured.
    """

    replicas: int
    meets: bool
    days: int
    unmeasured: bool = False


@dataclass(frozen=True)
class Attempt:
    """One size on the choosing days: did it pass; else how many requests it left unfinished (a share), how many times
    its limit the worst metric is (inf: beyond telling), the mean TTFT of the rest; or it met a batch not measured.
    """

    passes: bool
    unfinished: float = 0.0
    miss: float = 0.0
    ttft_s: float = 0.0
    measured: bool = True

    def no_better_than(self, other: Attempt) -> bool:
        """Tell whether this attempt, with more replicas, is hardly any nearer to passing."""
        if not self.measured or not other.measured:
            return False
        pairs = [(self.unfinished, other.unfinished), (self.miss, other.miss)]
        if math.isinf(self.miss) and math.isinf(other.miss):
            pairs.append((self.ttft_s, other.ttft_s))
        return all(mine >= (1 - NO_LONGER_HELPS) * theirs for mine, theirs in pairs)


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
    """Return the smallest fleet that holds the *thresholds*, or the one where more replicas stop helping.

    A size that would need a batch above what was measured does not pass: a larger one may never need it.
    """
    wanted = [threshold for threshold in thresholds if helped(threshold)]
    seen: dict[int, Attempt] = {}

    def passes(replicas: int) -> bool:
        if replicas not in seen:
            tell(f"choosing the fleet: trying {replicas} replica{'s' if replicas > 1 else ''}")
            try:
                seen[replicas] = _try(study, wanted, replicas, workers)
            except NotMeasured:
                seen[replicas] = Attempt(False, measured=False)
        return seen[replicas].passes

    size = first_guess(study)
    if passes(size):
        low, high = 0, size
        while high > 1 and passes(max(1, high // 2)):
            high = max(1, high // 2)
        low = high // 2 if high > 1 else 0
    else:
        low, high = size, min(2 * size, MOST_REPLICAS)
        while not passes(high):
            if high == MOST_REPLICAS or seen[high].no_better_than(seen[low]):
                return Choice(_least_of_the_best(seen), False, choosing_days(study))
            low, high = high, min(2 * high, MOST_REPLICAS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return Choice(high, True, choosing_days(study), unmeasured=low > 0 and not seen[low].measured)


def _least_of_the_best(seen: Mapping[int, Attempt]) -> int:
    """Return the smallest size that misses hardly more than the best one tried: more would buy next to nothing."""
    tried = {size: attempt for size, attempt in seen.items() if attempt.measured}
    if not tried:
        return max(seen)
    fewest = min(attempt.unfinished for attempt in tried.values())
    least = min(attempt.miss for attempt in tried.values())
    slack = 1 + NEARLY
    return min(
        size
        for size, one in tried.items()
        if one.unfinished <= slack * fewest + NEARLY**2 and one.miss <= slack * least
    )


def choosing_days(study: Study) -> int:
    """Return how many days choose: one where they are all the same."""
    return 1 if study.certain else CHOOSING_DAYS


def choosing_layout(study: Study) -> Layout:
    """Return the hard days: one stratum each of level and speed, the heaviest and slowest first."""
    runs, columns = choosing_days(study), study.days.days + 2
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(study.seed, spawn_key=(CHOOSING_DAYS,))))
    strata = (np.arange(runs, 0, -1) - 0.5) / runs
    places = np.column_stack([np.concatenate([strata[:1], rng.permutation(strata[1:])]) for _ in range(columns)])
    places[0, :-2] = HEAVIEST
    return Layout(WORLD, ndtri(places[:, :-2]), places[:, -2:])


def first_guess(study: Study) -> int:
    """Return the replicas that the recorded mean rate keeps busy at the best batch, prompts included."""
    trace, replica = study.days.trace, study.replica
    seats = np.arange(1, len(replica.step_s))
    pace = float(np.nanmin(replica.step_s[1:] / seats))
    work = float(trace.output_tokens.sum(dtype=np.int64)) * pace
    work += float(trace.input_tokens.sum(dtype=np.int64)) * replica.prefill_per_token_s
    return min(MOST_REPLICAS, max(1, math.ceil(work / study.days.horizon_s)))


def _try(study: Study, thresholds: Sequence[Threshold], replicas: int, workers: int) -> Attempt:
    """Play a size on the hard days, or on the hardest of them where those settle it, then on the random ones."""
    days: list[Day] = []
    runs = choosing_days(study)
    layout = choosing_layout(study)
    for some in (range(min(FIRST_LOOK, runs)), range(FIRST_LOOK, runs)):
        if not any(_hopeless(days, runs, threshold) for threshold in thresholds):
            days += play_days(study, replicas, some, workers, layout=layout)
    noise = study.replica.noise_cv
    values = [(t, replace(metric_of(days, t.metric, noise, enough=False), low=None, high=None)) for t in thresholds]
    if len(days) == runs and all(judge(*pair) == "holds" for pair in values):
        days.clear()  # a day is some 20 MB: not both kinds at once
        days += play_days(study, replicas, range(runs), workers, layout=Layout(WORLD))
        drawn = [
            (t, _settled(_bounded(metric_of(days, t.metric, noise, enough=False), t, days), t)) for t in thresholds
        ]
        if all(judge(*pair) == "holds" for pair in drawn):
            return Attempt(True)
        values = [
            (t, estimate if estimate.high is None else replace(estimate, value=estimate.high)) for t, estimate in drawn
        ]
    offered = sum(day.offered for day in days)
    ttft = [day.ttft_s[np.isfinite(day.ttft_s)] for day in days]
    return Attempt(
        False,
        sum(day.unfinished for day in days) / offered if offered else 0.0,
        max((_miss(threshold, estimate.value) for threshold, estimate in values), default=0.0),
        float(np.sum([np.sum(run) for run in ttft])) / max(1, sum(len(run) for run in ttft)),
    )


def _bounded(estimate: Estimate, threshold: Threshold, days: Sequence[Day]) -> Estimate:
    """Cut the upper bound of a percentile at the worst single day's own: what is beyond, the hard days tell.

    Where a percentile lies on a step of its distribution, the jackknife overstates it many times.
    """
    statistic, _, latency = threshold.metric.rstrip(")").partition("(")
    if latency not in LATENCIES or statistic == "mean" or estimate.value is None or estimate.high is None:
        return estimate
    runs = [run for day in days if len(run := getattr(day, f"{latency}_s"))]
    worst = max(float(np.quantile(run, QUANTILES[statistic])) for run in runs)
    return replace(estimate, high=min(estimate.high, max(worst, estimate.value)))


def _settled(estimate: Estimate, threshold: Threshold) -> Estimate:
    """Judge by its value what no fleet could make surer on these days: no error at all, or all samples of one run."""
    best = 0.0 if threshold.op.startswith("<") else 1.0
    if estimate.note == ONE_SOURCE or (threshold.unit == "1" and estimate.value == best):
        return replace(estimate, low=None, high=None, note="")
    return estimate


def _hopeless(days: Sequence[Day], runs: int, threshold: Threshold) -> bool:
    """Tell whether a percentile is lost whatever the days to come bring, even if each were twice the mean so far."""
    statistic, _, latency = threshold.metric.rstrip(")").partition("(")
    if latency not in LATENCIES or statistic == "mean" or not days:
        return False
    samples = [getattr(day, f"{latency}_s") for day in days]
    above = sum(len(run) - int(np.searchsorted(run, threshold.limit)) for run in samples)
    expected = sum(len(run) for run in samples) * (1 + 2 * (runs / len(days) - 1))
    return above > (1 - QUANTILES[statistic]) * expected


def _miss(threshold: Threshold, value: float | None) -> float:
    """Return how many times its limit a value is (or the limit the value, for a lower limit); the value at limit 0."""
    if value is None:
        return math.inf
    if threshold.op.startswith("<"):
        return value / threshold.limit if threshold.limit > 0 else value
    return threshold.limit / value if value > 0 else math.inf
