"""The step model as a vector of numbers without limits of sign, so that a fit can move freely.

The step is piecewise linear in the batch with slopes >= 0: its first value and every slope are logarithms, neighbouring
slopes are thought to be alike. A mixture of experts reads more weights the more experts a batch calls upon: a term that
rises as 1 - (1 - share)^n and saturates, with the share of the weights that one token reads. A prompt of mean length
takes Q, of which a share is fixed. `mixing` is kept as 1/m: 1 is the sum of prompt and decode parts, 0 the longer of
both. Priors are wide: they decide only what no figure tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fleetcast.profiles.curve import StepModel
from fleetcast.sim.calibration.bench import Bench, Floats
from fleetcast.sim.contract import Replica

LIKE_NEIGHBOUR = 0.35  # sd of the difference of neighbouring log slopes
MAX_BELOW = 0.03  # 1/mixing below this counts as "max"
LEAST_SLOPE = 1e-9


@dataclass(frozen=True, eq=False)
class Shape:
    """What is fixed while a vector is fitted: the curve's nodes, the engine's limits, which terms there are.

    `centre` and `spread` are the prior of every number but the slopes after the first, which lean on their neighbour.
    """

    nodes: Floats
    limits: Replica
    mean_prompt: float
    mean_context: float
    with_kv: bool
    with_noise: bool
    centre: Floats
    spread: Floats
    active_share: float | None = None

    @property
    def slopes(self) -> int:
        """Number of segments of the curve."""
        return len(self.nodes) - 1

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a vector are, in order."""
        slopes = tuple(f"log slope above {node:g}" for node in self.nodes[:-1])
        tail = ("log prompt", "logit fixed share", "log overhead", "1/mixing")
        return (
            "log step 1",
            *slopes,
            *tail,
            *(("kv",) if self.with_kv else ()),
            *(("log noise",) if self.with_noise else ()),
        )

    @property
    def times(self) -> list[int]:
        """Which numbers are logarithms of an iteration's time: all move together when a machine runs slower."""
        return [
            i
            for i, name in enumerate(self.names)
            if name.startswith(("log step", "log slope", "log prompt", "log exp"))
        ]

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest value of every number."""
        low, high = self.centre - 12.0 * self.spread, self.centre + 12.0 * self.spread
        k = 1 + self.slopes
        low[k + 1], high[k + 1] = -6.0, 6.0
        low[k + 3], high[k + 3] = 0.0, 1.0
        if self.with_kv:
            low[k + 4], high[k + 4] = 0.0, 8.0
        if self.with_noise:
            low[-1], high[-1] = math.log(1e-3), math.log(0.6)
        return low, high

    def prior(self, x: Floats) -> Floats:
        """Return how far *x* lies from what is thought likely, in standard deviations."""
        z = (x - self.centre) / self.spread
        last = self.slopes + 1
        z[2:last] = np.diff(x[1:last]) / LIKE_NEIGHBOUR
        return z

    def model(self, x: Floats) -> StepModel:
        """Return the step model of *x*, with an entry for every node."""
        k = 1 + self.slopes
        nodes = self.nodes
        times = math.exp(x[0]) + np.concatenate(([0.0], np.cumsum(np.exp(x[1:k]) * np.diff(nodes))))
        if self.active_share is not None:
            more = 2.0 ** np.arange(1, math.floor(math.log2(max(2.0, nodes[-1]))) + 1)
            fine = np.unique(np.concatenate([nodes, more[more < nodes[-1]]]))
            full = math.exp(x[k + 4 + self.with_kv])
            times = np.interp(fine, nodes, times) + full * (covered(fine, self.active_share) - self.active_share)
            nodes = fine
        prompt, share = math.exp(x[k]), 1.0 / (1.0 + math.exp(-x[k + 1]))
        inverse = float(np.clip(x[k + 3], 0.0, 1.0))
        return StepModel(
            batch=nodes.astype(np.int64),
            time_s=times,
            prefill_fixed_s=prompt * share,
            prefill_per_token_s=prompt * (1.0 - share) / self.mean_prompt,
            kv_per_token_s=self._kv_unit(x) * float(x[k + 4]) if self.with_kv else 0.0,
            mixing=math.inf if inverse < MAX_BELOW else 1.0 / inverse,
            request_overhead_s=math.exp(x[k + 2]),
            noise_cv=math.exp(x[-1]) if self.with_noise else 0.0,
        )

    def _kv_unit(self, x: Floats) -> float:
        """A tenth of the first step, for one sequence of mean context: what the number 1 of "kv" adds."""
        return 0.1 * math.exp(self.centre[0]) / self.mean_context

    def replica(self, x: Floats) -> Replica:
        """Return a replica that runs at the speed of *x*, also above the last node."""
        return replica_of(self.model(x), self.limits)


def covered(batch: Floats, share: float) -> Floats:
    """Return the share of a mixture's weights that a batch reads if every token picks its own *share* at random."""
    return np.asarray(1.0 - (1.0 - share) ** batch)


def replica_of(speed: StepModel, limits: Replica) -> Replica:
    """Return *limits* at *speed*, the curve's last slope going on above its last entry."""
    return replace(
        limits,
        step_s=extended(speed, limits.max_num_seqs),
        prefill_fixed_s=speed.prefill_fixed_s,
        prefill_per_token_s=speed.prefill_per_token_s,
        kv_per_token_s=speed.kv_per_token_s,
        mixing=speed.mixing,
        request_overhead_s=speed.request_overhead_s,
        noise_cv=speed.noise_cv,
    )


def extended(speed: StepModel, top: int) -> Floats:
    """Return the steps of batches 0 … *top*, on the last two entries' line above the last."""
    sizes = np.arange(top + 1)
    steps = np.interp(sizes, speed.batch, speed.time_s)
    if len(speed.batch) > 1 and top > speed.batch[-1]:
        slope = (speed.time_s[-1] - speed.time_s[-2]) / float(speed.batch[-1] - speed.batch[-2])
        beyond = sizes > speed.batch[-1]
        steps[beyond] = speed.time_s[-1] + slope * (sizes[beyond] - speed.batch[-1])
    steps[0] = 0.0
    return np.asarray(steps)


def nodes_of(benches: Sequence[Bench], cap: int, apart: float = 1.3) -> Floats:
    """Return the batches at which the curve may bend: one, and wherever a point decoded in the mean."""
    found = sorted(min(batch, float(cap)) for bench in benches if (batch := bench.batch) is not None)
    nodes = [1.0]
    for batch in (round(value) for value in found):
        if batch >= max(2.0, nodes[-1] * apart):
            nodes.append(float(batch))
    if len(nodes) == 1:
        nodes.append(float(max(2, *(round(b) for b in found), 2)) if found else 2.0)
    return np.array(nodes)


def guess(
    benches: Sequence[Bench],
    limits: Replica,
    *,
    with_kv: bool,
    with_noise: bool,
    first_step: tuple[float, float] | None = None,
    active_share: float | None = None,
) -> tuple[Shape, Floats]:
    """Return the shape of a fit of *benches* and a vector to start from, read off their figures.

    *first_step* is what the hardware says of the step of one sequence: seconds and the sd of their logarithm.
    """
    nodes = nodes_of(benches, limits.max_num_seqs)
    pairs = sorted((b.batch, b.token_s) for b in benches if b.batch is not None and b.token_s)
    if pairs:
        token = np.interp(nodes, [max(1.0, p[0]) for p in pairs], [p[1] for p in pairs])
    else:
        whole = [b.figures.get(("latency", "mean"), 1.0) / max(1.0, b.mean_output) for b in benches]
        token = np.full(len(nodes), max(whole) if whole else 0.02)
    token = np.maximum.accumulate(token)
    start = 0.97 * token[0]
    rise = np.maximum(np.diff(token) / np.diff(nodes), LEAST_SLOPE + 0.002 * token[0])
    whole_rise = max(LEAST_SLOPE, (token[-1] - token[0]) / (nodes[-1] - nodes[0]), 0.003 * token[0])
    ttft = [v for b in benches for k in (("ttft", "mean"), ("ttft", "p50")) if (v := b.figures.get(k)) is not None]
    prompt = 0.7 * min(ttft) if ttft else 2.0 * start
    context = float(np.mean([b.mean_input + b.mean_output / 2 for b in benches]))
    mean_prompt = max(1.0, float(np.mean([b.mean_input for b in benches])))
    overhead = min(0.1 * min(ttft), 0.004) if ttft else 0.002
    centre = [math.log(start), *([math.log(whole_rise)] * len(rise)), math.log(prompt), -1.0, math.log(overhead), 0.0]
    spread = [1.5, *([1.5] * len(rise)), 1.5, 1.2, 1.2, 0.6]
    if first_step is not None:
        centre[0], spread[0] = math.log(first_step[0]), first_step[1]
    x = [math.log(start), *np.log(rise), math.log(prompt), -1.0, math.log(overhead), 0.1]
    if with_kv:
        centre, spread, x = [*centre, 0.0], [*spread, 1.0], [*x, 0.1]
    if active_share is not None:
        full = math.log(max(0.3 * start, 0.3 * (token[-1] - token[0])))
        centre, spread, x = [*centre, full], [*spread, 1.2], [*x, full]
    if with_noise:
        centre, spread, x = [*centre, math.log(0.02)], [*spread, 0.7], [*x, math.log(0.02)]
    shape = Shape(
        nodes,
        limits,
        mean_prompt,
        context,
        with_kv,
        with_noise,
        np.array(centre, float),
        np.array(spread, float),
        active_share,
    )
    return shape, np.array(x, float)


def ordered(draws: Sequence[StepModel]) -> list[StepModel]:
    """Return step models from the fastest to the slowest by their mean over the curve."""
    return sorted(draws, key=lambda speed: float(np.mean(speed.time_s / draws[0].time_s)))


def stack(draws: Sequence[StepModel]) -> NDArray[np.float64]:
    """Return the step times of draws with equal batches, shape (draws, batches)."""
    return np.array([speed.time_s for speed in draws])
