"""One benchmark run, as it was run: the load, the lengths, the figures that came out; and how it is played again.

A closed loop starts with all its users at once, an open one sends a finite number of requests and drains, a static
batch starts together. Lengths whose mean was published keep that mean in every replay: it is a fact of the run. What
is left out: failures, retries and client overhead other than a fixed time per request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fleetcast.sim.contract import POOL, Demand, Outcome, Replica
from fleetcast.sim.kernel import Plane, bin_edges

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Key = tuple[str, str]
"""A figure: metric (ttft, tpot, itl, e2e, output_tps, request_rate, latency) and statistic (mean, p50, p99, …)."""

ASSUMED_REQUESTS = 500
"""Requests of a run that does not say how many there were."""


@dataclass(frozen=True)
class Lengths:
    """Token counts of a run: lognormal with this mean and cv within [low, high], or the values with their weights."""

    mean: float
    cv: float = 0.6
    low: int = 1
    high: int = 2**31 - 1
    values: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()

    def draw(self, n: int, rng: np.random.Generator, even: bool) -> Ints:
        """Return *n* token counts whose mean is the run's; *even* takes evenly spaced quantiles in random order."""
        if not self.values and (self.cv <= 0 or n == 1):
            return np.full(n, max(self.low, round(self.mean)), np.int32)
        u = (rng.permutation(n) + 0.5) / n if even else rng.random(n)
        if self.values:
            steps = np.cumsum(self.weights)
            at = np.searchsorted(steps, u * steps[-1], side="right")
            chosen = np.rint(np.array(self.values)[np.minimum(at, len(steps) - 1)])
            return np.asarray(np.maximum(self.low, chosen), np.int32)
        from scipy.special import ndtri

        sigma = math.sqrt(math.log1p(self.cv**2))
        raw = np.exp(sigma * ndtri(u))
        drawn = np.clip(raw * self.mean / raw.mean(), self.low, self.high)
        for _ in range(3):  # what the limits cut off is given back to the rest
            drawn = np.clip(drawn * self.mean / drawn.mean(), self.low, self.high)
        return np.asarray(np.rint(drawn), np.int32)


@dataclass(frozen=True, eq=False)
class Bench:
    """How one point was run, and its figures in seconds and per second.

    `load` is users (closed), requests per second (open) or sequences (static). `stop_s` ends a run by the clock: what
    is unanswered then is not counted. `same_span` says that the tool stretches its arrivals to requests / rate.
    `burstiness` is the shape of gamma gaps.
    A recorded run gives every request in `arrival_s`, `inputs`, `outputs`, and `counted` picks those of the figures.
    """

    name: str
    kind: str
    load: float
    inputs: Lengths | Ints
    outputs: Lengths | Ints
    figures: Mapping[Key, float]
    requests: int = ASSUMED_REQUESTS
    arrivals: str = "poisson"
    burstiness: float = 1.0
    same_span: bool = True
    stop_s: float = math.inf
    skip: int = 0
    think_s: float = 0.0
    repeats: int = 1
    noise: Mapping[Key, float] = field(default_factory=dict)
    arrival_s: Floats | None = None
    counted: NDArray[np.bool_] | None = None

    @property
    def mean_input(self) -> float:
        """Mean prompt tokens of a request."""
        return self.inputs.mean if isinstance(self.inputs, Lengths) else float(self.inputs.mean())

    @property
    def mean_output(self) -> float:
        """Mean output tokens of a request."""
        return self.outputs.mean if isinstance(self.outputs, Lengths) else float(self.outputs.mean())

    @property
    def request_rate(self) -> float | None:
        """Answered requests per second, as measured; None where nothing tells."""
        rate = self.figures.get(("request_rate", "mean"))
        tokens = self.figures.get(("output_tps", "mean"))
        return rate if rate is not None else None if tokens is None else tokens / self.mean_output

    @property
    def batch(self) -> float | None:
        """Mean sequences that decoded at once, by Little's law from the figures; None where they do not tell."""
        if self.kind == "static":
            return self.load
        rate = self.figures.get(("request_rate", "mean"))
        tokens = self.figures.get(("output_tps", "mean"))
        token_s = self.token_s
        if tokens is None and rate is not None:
            tokens = rate * self.mean_output
        if tokens is not None and token_s is not None:
            return tokens * token_s
        return self.load if self.kind == "closed" else None

    @property
    def token_s(self) -> float | None:
        """Seconds between tokens, from TPOT, ITL or the difference of E2E and TTFT; None where nothing tells."""
        for key in (("tpot", "mean"), ("itl", "mean"), ("tpot", "p50"), ("itl", "p50")):
            if key in self.figures:
                return self.figures[key]
        e2e = self.figures.get(("e2e", "mean"), self.figures.get(("e2e", "p50")))
        if e2e is None:
            return None
        ttft = self.figures.get(("ttft", "mean"), self.figures.get(("ttft", "p50"), 0.0))
        return max(e2e - ttft, 0.2 * e2e) / max(1.0, self.mean_output - 1)


def demand_of(bench: Bench, seed: int, even: bool) -> Demand:
    """Return the requests of one run of *bench*; *even* lays lengths and gaps out evenly, for fits."""
    rng = np.random.Generator(np.random.PCG64([seed, 77]))
    n = bench.requests
    if bench.kind == "closed" and math.isfinite(bench.stop_s):
        n = math.ceil(1.5 * n) + int(bench.load)
    if bench.kind == "static":
        n = int(bench.load)
    if bench.arrival_s is not None:
        n = len(bench.arrival_s)
    inputs = bench.inputs.draw(n, rng, even) if isinstance(bench.inputs, Lengths) else bench.inputs
    outputs = bench.outputs.draw(n, rng, even) if isinstance(bench.outputs, Lengths) else bench.outputs
    if bench.kind == "closed":
        start = np.full(n, np.nan)
        start[: int(bench.load)] = 0.0
        # a client that answers late does so at random: equal gaps would keep the users in step
        gaps = np.full(n, bench.think_s)
        none = np.zeros(0, np.int64)
        return Demand(start, inputs, outputs, none, np.full(n, POOL, np.int32), gaps, np.zeros(n), bench.stop_s)
    return Demand(_arrivals(bench, n, rng, even), inputs, outputs)


def _arrivals(bench: Bench, n: int, rng: np.random.Generator, even: bool) -> Floats:
    if bench.arrival_s is not None:
        return bench.arrival_s
    if bench.kind == "static":
        return np.zeros(n)
    if bench.arrivals == "constant":
        return np.arange(n) / bench.load
    if bench.arrivals == "gamma":
        gaps = rng.gamma(bench.burstiness, 1.0 / bench.burstiness, n)
    else:
        gaps = -np.log1p(-(rng.permutation(n) + 0.5) / n) if even else rng.exponential(size=n)
    times = np.cumsum(gaps)
    if bench.same_span or even:
        times *= n / times[-1]
    return np.asarray(times / bench.load)


def play(
    bench: Bench, replica: Replica, seed: int, even: bool = False, keys: Iterable[Key] | None = None
) -> dict[Key, float]:
    """Run *bench* on *replica* and return the figures named by *keys* (left out: the ones the bench has)."""
    demand = demand_of(bench, seed, even)
    plane = Plane(demand, replica, 1, seed=seed)
    plane.advance(bench.stop_s)
    wanted = list(bench.figures if keys is None else keys)
    return statistics(bench, demand, plane.outcome(), wanted, plane)


def statistics(
    bench: Bench, demand: Demand, outcome: Outcome, keys: Iterable[Key], plane: Plane | None = None
) -> dict[Key, float]:
    """Return the figures of a run that was played, NaN where no request tells."""
    with np.errstate(invalid="ignore"):
        done = outcome.finish_s <= bench.stop_s
    if bench.skip:
        done &= np.arange(len(done)) >= bench.skip
    if bench.counted is not None:
        done &= bench.counted
    sent, first, finish = outcome.server_s[done], outcome.first_token_s[done], outcome.finish_s[done]
    tokens = demand.output_tokens[done]
    found: dict[Key, float] = {}
    if not len(sent):
        return {key: math.nan for key in keys}
    more = tokens > 1
    span = bench.stop_s if math.isfinite(bench.stop_s) else float(finish.max() - sent.min())
    for key in keys:
        metric, statistic = key
        if metric == "output_tps":
            found[key] = float(tokens.sum()) / span
        elif metric == "request_rate":
            found[key] = len(sent) / span
        elif metric == "latency":
            found[key] = float(finish.max() - sent.min())
        elif metric == "ttft":
            found[key] = _statistic(first - sent, statistic)
        elif metric == "e2e":
            found[key] = _statistic(finish - sent, statistic)
        elif metric == "tpot":
            found[key] = _statistic((finish - first)[more] / (tokens[more] - 1), statistic) if more.any() else math.nan
        elif metric == "itl" and statistic == "mean":
            found[key] = float((finish - first)[more].sum() / max(1, (tokens[more] - 1).sum()))
        elif metric == "itl" and plane is not None:
            found[key] = _of_histogram(plane.histogram, statistic)
        else:
            found[key] = math.nan
    return found


def _statistic(values: Floats, statistic: str) -> float:
    if statistic == "mean":
        return float(values.mean())
    if statistic == "std":
        return float(values.std())
    if statistic in ("min", "max"):
        return float(values.min() if statistic == "min" else values.max())
    return float(np.quantile(values, float(statistic[1:].replace("_", ".")) / 100))


_EDGES: list[Floats] = []


def _of_histogram(counts: NDArray[np.int64], statistic: str) -> float:
    if not _EDGES:
        _EDGES.append(bin_edges())
    total = np.cumsum(counts)
    if not total[-1] or not statistic.startswith("p"):
        return math.nan
    at = int(np.searchsorted(total, total[-1] * float(statistic[1:].replace("_", ".")) / 100))
    low, high = _EDGES[0][at], _EDGES[0][at + 1]
    return float((low + high) / 2)
