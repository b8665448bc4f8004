"""From a profile of points to a calibrated one: its points as benches, and the fit as the profile's [step].

Long runs are replayed in part. What the profile only assumes of its engine (`engine.assumed`) is searched for. Left
out: points of static batches that tell no more than a latency are fitted, but tell step and prompt apart only together.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fleetcast.errors import DataError, NotMeasured, ScenarioError
from fleetcast.profiles.calibrated import Draws, Residual
from fleetcast.profiles.curve import StepModel
from fleetcast.profiles.modelled import model as modelled
from fleetcast.profiles.profile import ASSUMED_TOKEN_CV, Durations, Point, Profile, Step, TokenCount
from fleetcast.sim.calibration.bench import Bench, Key, Lengths
from fleetcast.sim.calibration.fit import Fit, Open, calibrate
from fleetcast.sim.calibration.speed import extended
from fleetcast.sim.contract import Replica

DRAWS = 32
LONGEST = 6_000  # requests of a run that are replayed at most
ROUNDS = 12  # of a closed loop that tells no request count
DIGITS = 6


def calibrate_profile(profile: Profile) -> tuple[Profile, Fit]:
    """Return *profile* with a [step] that gives its points back when they are replayed, and the fit.

    NotMeasured where it has no points, or points that tell neither a time nor a length of answers.
    """
    benches = benches_of(profile)
    engine = profile.engine
    limits = Replica(
        step_s=np.zeros(2),
        max_num_seqs=engine.max_num_seqs,
        max_batched_tokens=engine.max_batched_tokens,
        kv_blocks=engine.kv_blocks,
        max_context=profile.model.max_context,
        policy=engine.policy,
        max_prompts_per_iteration=engine.max_prompts_per_iteration,
        batch_delay_s=engine.batch_delay or 0.0,
    )
    unknown = Open(policy="policy" in engine.assumed, seats="max_num_seqs" in engine.assumed)
    fit = calibrate(benches, limits, unknown, first_step=_first_step(profile), active_share=active_share(profile))
    return profile.model_copy(update={"step": step_of(fit, profile), "engine": _engine(profile, fit, unknown)}), fit


def active_share(profile: Profile) -> float | None:
    """Return the share of the weights that one token reads, None for a model that is no mixture of experts."""
    whole, active = profile.model.parameters, profile.model.active_parameters
    return active / whole if whole and active and active < 0.5 * whole else None


def benches_of(profile: Profile) -> tuple[Bench, ...]:
    """Return the points of *profile* as runs that can be replayed."""
    points = [point for point in profile.point if point.errors is None or point.errors < 1]
    if not points:
        why = "a calibration replays what was measured, and this profile has no points"
        raise NotMeasured(f"nothing to calibrate {profile.name} on", why=why, fix="simulate profile import FILES")
    labels = [f"{point.kind} {point.load:g}" for point in points]
    found = []
    for at, point in enumerate(points):
        again = labels[:at].count(labels[at])
        found.append(bench_of(point, labels[at] + (f" #{again + 1}" if again else "")))
    return tuple(found)


def bench_of(point: Point, name: str) -> Bench:
    """Return one point as a run that can be replayed; NotMeasured where it tells no time or no length of answers."""
    figures = figures_of(point)
    inputs, outputs = lengths_of(point.input_tokens, 512.0), lengths_of(point.output_tokens, _output(point, name))
    if not figures:
        raise NotMeasured(f"point {name} tells no time", why="only latencies and rates can be replayed")
    requests = point.requests or _requests(point)
    by_clock = point.kind != "static" and point.duration is not None and bool(point.unfinished)
    stop = point.duration if by_clock and point.duration else math.inf
    if requests > LONGEST:
        stop, requests = stop * LONGEST / requests, LONGEST
    tool = point.provenance.tool.casefold() if point.provenance else ""
    return Bench(
        name,
        point.kind,
        point.achieved_rate or point.load,
        inputs,
        outputs,
        figures,
        requests,
        arrivals=point.arrivals or "poisson",
        burstiness=point.burstiness or 1.0,
        same_span="vllm" in tool,
        stop_s=stop,
    )


def figures_of(point: Point) -> dict[Key, float]:
    """Return what a point measured, by metric and statistic."""
    found: dict[Key, float] = {}
    for metric in ("ttft", "tpot", "itl", "e2e"):
        table: Durations | None = getattr(point, metric)
        if table is not None:
            for statistic in ("mean", "p50", "p90", "p95", "p99"):
                value = getattr(table, statistic)
                if value:
                    found[metric, statistic] = value
    if point.output_tps is not None:
        found["output_tps", "mean"] = point.output_tps
    elif point.request_throughput is not None:
        found["request_rate", "mean"] = point.request_throughput
    if point.latency is not None:
        found["latency", "mean"] = point.latency
    return found


def lengths_of(count: TokenCount | None, otherwise: float) -> Lengths:
    """Return the law of a point's token counts: a bare mean spreads like cv 0.6."""
    if count is None:
        return Lengths(otherwise, ASSUMED_TOKEN_CV)
    if count.tokens is not None and count.count is not None:
        return Lengths(count.average, 0.0, values=count.tokens, weights=count.count)
    return Lengths(count.average, ASSUMED_TOKEN_CV if count.cv is None else count.cv)


def _output(point: Point, name: str) -> float:
    """Mean output tokens of a point that does not state them, from its rates."""
    if point.output_tokens is not None:
        return point.output_tokens.average
    if point.output_tps is not None and point.request_throughput is not None:
        return point.output_tps / point.request_throughput
    if point.kind == "static" and point.output_tps is not None and point.latency is not None and point.batch:
        return point.output_tps * point.latency / point.batch
    why = "without the length of its answers a run cannot be replayed"
    raise NotMeasured(f"point {name} has no output_tokens", why=why, fix="add output_tokens = 128 to the point")


def _requests(point: Point) -> int:
    if point.kind == "static":
        return int(point.load)
    if point.duration is not None and point.request_throughput is not None:
        return max(1, round(point.duration * point.request_throughput))
    return max(100, ROUNDS * int(point.load)) if point.kind == "closed" else 500


def _first_step(profile: Profile) -> tuple[float, float] | None:
    """Return what the hardware says of one sequence's step: seconds, and the sd of their logarithm."""
    try:
        found = modelled(profile)
    except (NotMeasured, ScenarioError, DataError):
        return None
    fast, slow = float(found.fast[0]), float(found.slow[0])
    if int(found.batch[0]) != 1 or fast <= 0:
        return None
    return math.sqrt(fast * slow), max(0.25, math.log(slow / fast) / 2.0)


def step_of(fit: Fit, profile: Profile) -> Step:
    """Return a fit as a profile's [step]: the curve up to the largest batch that was reached, residuals, draws."""
    central = _reaching(fit.shape.model(fit.x), fit.top)
    draws = [_reaching(fit.shape.model(x), fit.top) for x in fit.vectors(DRAWS)]
    batches = [batch for bench in fit.benches if (batch := bench.batch) is not None]
    low = min((max(1, round(batch)) for batch in batches), default=1)
    limits = fit.shape.limits
    one = limits.max_prompts_per_iteration
    found = [
        f"policy {limits.policy}" + (f", {one} prompt at a time" if one else ""),
        f"max_num_seqs {limits.max_num_seqs}",
        *(f"not believed: {row.statistic}({row.metric}) of {row.bench}" for row in fit.outliers),
    ]
    return Step.model_validate(
        dict(
            batch=tuple(int(batch) for batch in central.batch),
            time=tuple(_said(time) for time in np.maximum.accumulate(central.time_s)),
            prefill_fixed=_said(central.prefill_fixed_s),
            prefill_per_token=_said(central.prefill_per_token_s),
            kv_per_token=_said(central.kv_per_token_s),
            mixing="max" if math.isinf(central.mixing) else max(1.0, _short(central.mixing)),
            request_overhead=_said(central.request_overhead_s),
            noise_cv=_short(central.noise_cv),
            points=profile.points_hash,
            measured=(low, max(low, fit.top)),
            found=tuple(found),
            residual=tuple(
                Residual(
                    point=row.bench,
                    figure=f"{row.statistic}({row.metric})",
                    error=round(row.error, 4),
                    deviations=round(row.z, 2),
                )
                for row in fit.residuals
            ),
            draws=Draws(
                time=tuple(tuple(_short(f, 5) for f in one.time_s / central.time_s) for one in draws),
                prefill_fixed=_factors(draws, central, "prefill_fixed_s"),
                prefill_per_token=_factors(draws, central, "prefill_per_token_s"),
                kv_per_token=_factors(draws, central, "kv_per_token_s"),
                request_overhead=_factors(draws, central, "request_overhead_s"),
                inverse_mixing=tuple(0.0 if math.isinf(one.mixing) else _short(1.0 / one.mixing, 5) for one in draws),
                noise_cv=tuple(_short(one.noise_cv, 5) for one in draws),
            ),
        )
    )


def _engine(profile: Profile, fit: Fit, unknown: Open) -> object:
    limits = fit.shape.limits
    changed: dict[str, object] = {}
    if unknown.policy:
        changed |= {"policy": limits.policy, "max_prompts_per_iteration": limits.max_prompts_per_iteration}
    if unknown.seats:
        changed["max_num_seqs"] = min(limits.max_num_seqs, max(1, fit.top))
    return profile.engine.model_copy(update=changed)


def _reaching(speed: StepModel, top: int) -> StepModel:
    """Return *speed* with a last entry at batch *top*, on the line of the two before."""
    if top <= speed.batch[-1]:
        return speed
    last = extended(speed, top)[top]
    return replace(speed, batch=np.append(speed.batch, top), time_s=np.append(speed.time_s, last))


def _factors(draws: list[StepModel], central: StepModel, name: str) -> tuple[float, ...]:
    base = float(getattr(central, name))
    return tuple(_short(float(getattr(one, name)) / base, 5) if base > 0 else 1.0 for one in draws)


def _said(seconds: float) -> str:
    return f"{_short(seconds)!r} s"


def _short(value: float, digits: int = DIGITS) -> float:
    return float(f"{value:.{digits}g}")
