"""The fit: every figure of every point at once, weighted by how sure it is, robust to an outlier.

A residual is the logarithm of played over measured, in standard deviations: those of a run as short as the real one
(found by replaying it with other random numbers) and a floor for what no model of this kind explains. Large residuals
count linearly (soft L1). Random numbers are common to all vectors, so that the objective is smooth enough for
Gauss-Newton with differences. What is discrete (policy, seats, token budget) is tried out and chosen by the objective.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fleetcast.sim.calibration.bench import Bench, Floats, Key, play
from fleetcast.sim.calibration.speed import Shape, guess
from fleetcast.sim.contract import Replica

REPLAYED = 2_500  # requests a point's replays hold in all, at least one replay
SOFT = 2.0  # residuals beyond this many standard deviations count linearly
OUTLIER = 4.0
DIFFERENCE = 0.02  # of a logarithm: what Jacobians are taken with
RUN_SPEED = 0.03  # two runs of one set-up differ by up to 6 % in throughput (g7-qwen3-4b-fp8, repeat of 2026-09-30)
SEATS = (8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024)
FLOOR: Mapping[str, float] = {"ttft": 0.03, "tpot": 0.015, "itl": 0.015, "e2e": 0.015, "output_tps": 0.015,
                              "request_rate": 0.015, "latency": 0.015}  # fmt: skip
TAIL: Mapping[str, float] = {"mean": 1.0, "p50": 1.0, "p75": 1.2, "p25": 1.2, "p90": 1.6, "p95": 2.0, "p99": 3.0,
                             "p10": 1.6, "p5": 2.0, "std": 4.0}  # fmt: skip
WEIGHTLESS = frozenset({"min", "max", "p1", "p99_9", "p0_1", "std"})


@dataclass(frozen=True)
class Choice:
    """One combination of what is discrete, and the objective that it reached (lower is better)."""

    policy: str
    max_num_seqs: int
    max_batched_tokens: int
    max_prompts_per_iteration: int | None
    objective: float

    @property
    def label(self) -> str:
        """The policy as a person writes it."""
        one = "" if self.max_prompts_per_iteration is None else f", {self.max_prompts_per_iteration} prompt at a time"
        return f"{self.policy}{one}, {self.max_num_seqs} seats, {self.max_batched_tokens} tokens"


@dataclass(frozen=True)
class Open:
    """What the benchmark does not tell and the fit is to find."""

    policy: bool = False
    seats: bool = False
    tokens: bool = False


@dataclass(frozen=True)
class Residual:
    """One figure: measured, as the fitted model plays it, and how far apart in standard deviations."""

    bench: str
    metric: str
    statistic: str
    measured: float
    played: float
    z: float

    @property
    def error(self) -> float:
        """Played over measured, minus one."""
        return self.played / self.measured - 1.0


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted step model: the vector `x` of `shape`, its covariance, and what is left over."""

    benches: tuple[Bench, ...]
    shape: Shape
    x: Floats
    covariance: Floats
    residuals: tuple[Residual, ...]
    discrepancy: Mapping[str, float]
    tried: tuple[Choice, ...]
    top: int

    @property
    def outliers(self) -> tuple[Residual, ...]:
        """Figures that the fit does not believe."""
        return tuple(row for row in self.residuals if abs(row.z) > OUTLIER)

    def vectors(self, n: int, seed: int = 0) -> Floats:
        """Return *n* vectors that the figures allow, in pairs around the best, shape (n, numbers)."""
        rng = np.random.Generator(np.random.PCG64([seed, 4242]))
        half = np.clip(rng.standard_normal(((n + 1) // 2, len(self.x))), -2.5, 2.5)
        values, axes = np.linalg.eigh(self.covariance)
        away = (half * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        low, high = self.shape.bounds()
        x = self.x + np.concatenate([away, -away])[:n]
        day = RUN_SPEED * rng.standard_normal(((n + 1) // 2, 1))
        x[:, self.shape.times] += np.concatenate([day, -day])[:n]
        return np.asarray(np.clip(x, low, high), np.float64)


@dataclass(eq=False)
class Objective:
    """Residuals of a vector: one for every figure that has a weight, then the priors'."""

    benches: Sequence[Bench]
    shape: Shape
    effort: float = 1.0
    sigma: list[Floats] = field(default_factory=list)
    keys: list[list[Key]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = [[k for k in b.figures if k[1] not in WEIGHTLESS] for b in self.benches]
        if not self.sigma:
            self.sigma = [
                np.array([first_sigma(b, k) for k in ks]) for b, ks in zip(self.benches, self.keys, strict=True)
            ]

    def played(self, x: Floats) -> list[Floats]:
        """Return the figures as the model of *x* plays them, per bench, in the order of `keys`."""
        replica = self.shape.replica(x)
        found = []
        for bench, keys in zip(self.benches, self.keys, strict=True):
            times = max(1, round(self.effort * min(8.0, REPLAYED / bench.requests)))
            runs = [play(bench, replica, seed, True, keys) for seed in range(times)]
            found.append(np.array([np.mean([run[key] for run in runs]) for key in keys]))
        return found

    def data(self, x: Floats) -> Floats:
        """Return log(played / measured) / sigma of every figure."""
        parts = []
        for bench, keys, sigma, played in zip(self.benches, self.keys, self.sigma, self.played(x), strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                z = np.log(played / np.array([bench.figures[key] for key in keys])) / sigma
            parts.append(np.nan_to_num(z, nan=20.0, posinf=60.0, neginf=-60.0))
        return np.concatenate(parts)

    def __call__(self, x: Floats) -> Floats:
        """Return every residual, data first."""
        return np.concatenate([self.data(x), self.shape.prior(x)])

    def jacobian(self, x: Floats) -> Floats:
        """Return the derivative of the residuals by forward differences."""
        _low, high = self.shape.bounds()
        base = self(x)
        columns = []
        for i in range(len(x)):
            step = DIFFERENCE if x[i] + DIFFERENCE <= high[i] else -DIFFERENCE
            moved = x.copy()
            moved[i] += step
            columns.append((self(moved) - base) / step)
        return np.array(columns).T

    def cost(self, x: Floats) -> float:
        """Return what is minimised: soft-L1 of the residuals."""
        return float(np.sum(SOFT**2 * (np.sqrt(1.0 + (self(x) / SOFT) ** 2) - 1.0)))


def first_sigma(bench: Bench, key: Key) -> float:
    """Return a standard deviation of a figure before any replay has told: its floor and one for few requests."""
    wide = 0.6 if key[0] == "ttft" else 0.25
    return math.hypot(
        floor(key, bench), wide * TAIL.get(key[1], 2.0) / math.sqrt(max(8, bench.requests) * bench.repeats)
    )


def floor(key: Key, bench: Bench) -> float:
    """Return the standard deviation below which no figure is believed.

    The first tokens of a closed loop hang on how its users keep in step, which no parameter of the server explains.
    """
    together = 2.0 if key[0] == "ttft" and bench.kind == "closed" and bench.load > 1 else 1.0
    return FLOOR.get(key[0], 0.03) * TAIL.get(key[1], 2.0) * together


def run_sigma(
    benches: Sequence[Bench], replica: Replica, keys: Sequence[Sequence[Key]], runs: int = 10
) -> list[Floats]:
    """Return the spread of every figure between runs as short as the real ones: sd of logarithms, per bench."""
    found = []
    for bench, wanted in zip(benches, keys, strict=True):
        played = [play(bench, replica, 1_000 + seed, False, wanted) for seed in range(runs)]
        table = np.array([[run[key] for key in wanted] for run in played])
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.std(np.log(table), axis=0, ddof=1)
        found.append(np.nan_to_num(np.minimum(spread, 0.7), nan=0.5, posinf=0.5) / math.sqrt(bench.repeats))
    return found


def solve(objective: Objective, x: Floats, rounds: int) -> tuple[Floats, float]:
    """Return the best vector from *x* within *rounds* Jacobians, and its objective."""
    from scipy.optimize import least_squares

    low, high = objective.shape.bounds()
    inside = np.clip(x, low + 1e-6, high - 1e-6)
    jacobian: Any = objective.jacobian
    found = least_squares(
        objective, inside, jac=jacobian, bounds=(low, high), loss="soft_l1", f_scale=SOFT,
        max_nfev=rounds, xtol=2e-3, ftol=2e-3, gtol=1e-3,
    )  # fmt: skip
    return np.asarray(found.x), objective.cost(found.x)


def calibrate(
    benches: Sequence[Bench],
    limits: Replica,
    unknown: Open = Open(),
    *,
    first_step: tuple[float, float] | None = None,
    with_kv: bool | None = None,
    active_share: float | None = None,
) -> Fit:
    """Fit a step model to *benches*, played on a replica with these *limits* (its step times are not read).

    *first_step* is the hardware's prior of one sequence's step, *active_share* what a token reads of a mixture.
    """
    benches = tuple(benches)
    kv = _lengths_differ(benches) if with_kv is None else with_kv
    noise = any(
        key[1] not in ("mean", "p50", "min", "max") for b in benches for key in b.figures if key[0] != "latency"
    )
    most = max(1024, limits.max_num_seqs) if unknown.seats else limits.max_num_seqs
    tried: list[Choice] = []
    best: tuple[float, Shape, Floats] | None = None

    def attempt(engine: Replica, x: Floats | None, rounds: int) -> tuple[float, Shape, Floats]:
        shape, start = guess(
            benches, engine, with_kv=kv, with_noise=noise, first_step=first_step, active_share=active_share
        )
        objective = Objective(benches, shape, 0.4)
        starts = [x] if x is not None and len(x) == len(start) else [start]
        if x is None and engine.policy in ("chunked", "no-evict"):
            starts = [_with_mixing(shape, start, inverse) for inverse in (0.1, 0.8)]
        x, cost = min((solve(objective, one, rounds) for one in starts), key=lambda found: found[1])
        tried.append(Choice(engine.policy, engine.max_num_seqs, engine.max_batched_tokens,
                            engine.max_prompts_per_iteration, cost))  # fmt: skip
        return cost, shape, x

    def better(found: tuple[float, Shape, Floats]) -> bool:
        nonlocal best
        if best is None or found[0] < best[0] - 1e-9:
            best = found
            return True
        return False

    for engine in _engines(replace(limits, max_num_seqs=most), unknown):
        better(attempt(engine, None, 8))
    assert best is not None
    benches = with_gaps(benches, best[1].replica(best[2]))
    best = None
    for engine in _engines(replace(limits, max_num_seqs=most), unknown):
        better(attempt(engine, None, 8))
    assert best is not None
    if unknown.seats:
        _, shape, x = best
        peak = peak_batch(benches, shape.replica(x))
        for _ in range(2):
            at = best[1].limits
            for seats in [seats for seats in SEATS if seats <= 1.3 * peak and seats != at.max_num_seqs]:
                better(attempt(replace(at, max_num_seqs=seats), best[2], 4))
            if not (unknown.policy or unknown.tokens):
                break
            at = best[1].limits
            for engine in _engines(at, unknown):
                better(attempt(engine, None, 6))
            break
    _, shape, x = best
    benches = with_gaps(benches, shape.replica(x))
    objective = Objective(benches, shape)
    spread = run_sigma(benches, shape.replica(x), objective.keys)
    objective.sigma = [
        np.hypot([floor(key, bench) for key in keys], own)
        for bench, keys, own in zip(benches, objective.keys, spread, strict=True)
    ]
    x, _ = solve(objective, x, 14)
    return _finish(objective, x, spread, tuple(tried))


def with_gaps(benches: Sequence[Bench], replica: Replica) -> tuple[Bench, ...]:
    """Return *benches* with the client's gap between an answer and the next request, by Little's law.

    N users that see E2E seconds make N / (E2E + gap) requests per second: what throughput and E2E leave over, beyond
    what a run played without it leaves over as well (start and drain), is the gap.
    """
    found = []
    for bench in benches:
        rate = bench.request_rate
        e2e = bench.figures.get(("e2e", "mean"))
        if bench.kind == "closed" and rate is not None and e2e is not None:
            keys = (("request_rate", "mean"), ("e2e", "mean"))
            bare = replace(bench, think_s=0.0)
            played = [play(bare, replica, seed, True, keys) for seed in range(3)]
            ends = float(np.mean([bench.load / run[keys[0]] - run[keys[1]] for run in played]))
            gap = bench.load / rate - e2e - ends
            bench = replace(bench, think_s=min(max(0.0, gap), 0.3 * e2e))
        found.append(bench)
    return tuple(found)


def _with_mixing(shape: Shape, x: Floats, inverse: float) -> Floats:
    """Return *x* with another law of mixed iterations: the objective has a valley for each."""
    moved = x.copy()
    moved[shape.slopes + 4] = inverse
    return moved


def _finish(objective: Objective, x: Floats, spread: list[Floats], tried: tuple[Choice, ...]) -> Fit:
    benches, shape = tuple(objective.benches), objective.shape
    z = objective(x)
    data = objective.data(x)
    weight = (1.0 + (z / SOFT) ** 2) ** -0.25  # square root of soft L1's weight
    jacobian = objective.jacobian(x) * weight[:, None]
    inverse = np.linalg.pinv(jacobian.T @ jacobian, rcond=1e-10, hermitian=True)
    used = float(np.trace(jacobian[: len(data)] @ inverse @ jacobian[: len(data)].T))
    free = max(1.0, len(data) - used)
    scale = max(1.0, float(np.sum((weight[: len(data)] * data) ** 2)) / free)
    residuals: list[Residual] = []
    left: dict[str, list[float]] = {}
    at = 0
    for bench, keys, sigma, own, played in zip(
        benches, objective.keys, objective.sigma, spread, objective.played(x), strict=True
    ):
        for key, value, s, o in zip(keys, played, sigma, own, strict=True):
            residuals.append(Residual(bench.name, *key, bench.figures[key], float(value), float(data[at])))
            left.setdefault(family(key), []).append(max(0.0, (data[at] * s) ** 2 - o**2) if math.isfinite(s) else 0.0)
            at += 1
    inflate = len(data) / free
    wide = {
        name: math.sqrt((len(rows) * min(0.04, inflate * _trimmed(rows)) + 3.0 * (1.0 * base) ** 2) / (len(rows) + 3.0))
        for name, rows in left.items()
        for base in [FLOOR.get(name.split()[0], 0.02) * (2.0 if name.endswith("tail") else 1.0)]
    }
    spread_of = np.asarray(inverse * scale, np.float64)
    return Fit(benches, shape, x, spread_of, tuple(residuals), wide, tried, peak_batch(benches, shape.replica(x)))


def _trimmed(rows: Sequence[float]) -> float:
    """Mean of the squares but for the largest sixth: an outlier is not the model's width."""
    kept = sorted(rows)[: max(1, math.ceil(len(rows) * 5 / 6))]
    return math.fsum(kept) / len(kept)


def family(key: Key) -> str:
    """Return the group of figures that miss alike: a metric, its tail apart."""
    metric = {"itl": "tpot", "request_rate": "output_tps"}.get(key[0], key[0])
    return f"{metric} tail" if key[1] in ("p90", "p95", "p99", "p99_9", "max") else metric


def peak_batch(benches: Sequence[Bench], replica: Replica) -> int:
    """Return the largest batch that any of the benches reached."""
    from fleetcast.sim.calibration.bench import demand_of
    from fleetcast.sim.kernel import Plane

    top = 1
    for bench in benches:
        plane = Plane(demand_of(bench, 0, True), replica, 1)
        plane.advance(bench.stop_s)
        top = max(top, int(np.flatnonzero(plane.occupancy.sum(axis=0)).max(initial=1)))
    return top


def _engines(limits: Replica, unknown: Open) -> list[Replica]:
    found = [limits]
    if unknown.policy:
        found = [
            replace(limits, policy="chunked", max_prompts_per_iteration=None),
            replace(limits, policy="prefill-first", max_prompts_per_iteration=None),
            replace(limits, policy="prefill-first", max_prompts_per_iteration=1),
        ]
    if unknown.tokens:
        found = [replace(e, max_batched_tokens=tokens) for e in found for tokens in (2048, 8192)]
    return found


def _lengths_differ(benches: Sequence[Bench]) -> bool:
    context = [b.mean_input + b.mean_output / 2 for b in benches]
    return max(context) > 1.5 * min(context)
