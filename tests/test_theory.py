"""The kernel against queueing theory: fixed seeds, independent runs, five standard errors.

Where iterations are discrete and the formula is continuous, the tolerance adds the size of the grain and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from fleetcast.sim.contract import ROUTINGS, Demand, Replica
from fleetcast.sim.kernel import Plane

Sample = tuple[Demand, Replica, int]


def poisson(rng: np.random.Generator, rate: float, n: int) -> np.ndarray:
    return np.cumsum(rng.exponential(1 / rate, n))


def mean_and_error(
    make: Callable[[np.random.Generator], tuple[Demand, Replica]], statistic: str, runs: int = 30, warm: float = 0.1
) -> tuple[float, float]:
    means = []
    for run in range(runs):
        demand, replica = make(np.random.default_rng(run))
        plane = Plane(demand, replica, 1)
        plane.advance()
        times = {"ttft": plane.outcome().first_token_s, "e2e": plane.outcome().finish_s}[statistic] - demand.server_s
        means.append(times[int(warm * len(times)) :].mean())
    return float(np.mean(means)), float(np.std(means, ddof=1) / math.sqrt(runs))


def served_in_the_prompt(lengths: np.ndarray, arrivals: np.ndarray, per_token: float) -> tuple[Demand, Replica]:
    n = len(lengths)
    demand = Demand(arrivals, lengths.astype(np.int32), np.ones(n, np.int32))
    return demand, Replica(np.zeros(2), 1, max_batched_tokens=2**31 - 1, prefill_per_token_s=per_token)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_d_1(load: float) -> None:
    service = 0.1

    def make(rng: np.random.Generator) -> tuple[Demand, Replica]:
        n = 100_000
        return served_in_the_prompt(np.full(n, 100), poisson(rng, load / service, n), service / 100)

    mean, error = mean_and_error(make, "e2e")
    assert abs(mean - (service + load * service / (2 * (1 - load)))) < 5 * error


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_m_1(load: float) -> None:
    service, p = 0.1, 1e-3  # geometric lengths of 1,000 tokens: exponential to one part in a thousand
    grain = service * p

    def make(rng: np.random.Generator) -> tuple[Demand, Replica]:
        n = 200_000
        return served_in_the_prompt(rng.geometric(p, n), poisson(rng, load / service, n), grain)

    mean, error = mean_and_error(make, "e2e")
    assert abs(mean - service / (1 - load)) < 5 * error + grain


def erlang_c(servers: int, load: float) -> float:
    """Return the probability of waiting in M/M/c; *load* = arrival rate / (servers x service rate)."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.8), (8, 0.9), (32, 0.95)])
def test_m_m_c(servers: int, load: float) -> None:
    tokens, step = 500, 0.001
    service = tokens * step

    def make(rng: np.random.Generator) -> tuple[Demand, Replica]:
        n = 200_000
        arrivals = poisson(rng, servers * load / service, n)
        demand = Demand(arrivals, np.zeros(n, np.int32), rng.geometric(1 / tokens, n).astype(np.int32))
        return demand, Replica(np.r_[0.0, np.full(servers, step)], servers)

    mean, error = mean_and_error(make, "e2e")
    wait = erlang_c(servers, load) * service / (servers * (1 - load))
    # a seat is taken at an iteration's end, half a step late on average; at worst a whole step per service
    grain = step + wait / tokens
    assert abs(mean - service - wait) < 5 * error + grain


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_m_g_1_processor_sharing_is_insensitive(load: float) -> None:
    step = 1e-4  # an iteration of n sequences takes n steps: each gets 1/n of the server
    sizes, weights = np.array([500, 1000, 8000]), np.array([0.6, 0.3, 0.1])
    service = float(sizes @ weights) * step

    def make(rng: np.random.Generator) -> tuple[Demand, Replica]:
        n = 60_000
        seats = 400
        demand = Demand(
            poisson(rng, load / service, n), np.zeros(n, np.int32), rng.choice(sizes, n, p=weights).astype(np.int32)
        )
        return demand, Replica(step * np.arange(seats + 1), seats)

    mean, error = mean_and_error(make, "e2e")
    expected = service / (1 - load)
    # the first token is computed beside the n others, and the batch changes at whole iterations only
    grain = 2 * step / (1 - load) ** 2
    assert abs(mean - expected) < 5 * error + grain


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("kv_blocks", [None, 220])
def test_little_and_conservation_inside_a_run(routing: str, kv_blocks: int | None) -> None:
    rng = np.random.default_rng(11)
    n, replicas, every = 20_000, 3, 0.02
    demand = Demand(
        poisson(rng, 60.0, n),
        rng.integers(1, 300, n).astype(np.int32),
        rng.geometric(1 / 50, n).astype(np.int32),
        rng.integers(0, 2**63 - 1, n),
    )
    replica = Replica(
        np.r_[0.0, np.linspace(0.01, 0.02, 32)], 32, prefill_per_token_s=1e-5, kv_blocks=kv_blocks, noise_cv=0.1
    )
    plane = Plane(demand, replica, replicas, routing, seed=1)
    inside = 0.0
    clock = 0.0
    while plane.reached < n or np.isfinite(plane.next_event_s):
        plane.advance(clock)
        running, waiting, _, _ = plane.sample(clock)
        inside += (running + waiting) * every
        clock += every
    outcome = plane.outcome()
    assert (outcome.replica >= 0).all() and np.isfinite(outcome.finish_s).all()
    assert (outcome.preemptions.sum() > 0) == (kv_blocks is not None)
    times = outcome.finish_s - demand.server_s
    # L = lambda W; the integral of L is a Riemann sum whose error is at most one sample per request, at random
    assert abs(inside - times.sum()) < 5 * every * math.sqrt(n)
    # every token is counted once: the first of each request apart, all others in the histogram
    assert plane.histogram.sum() + n == demand.output_tokens.sum()
    if kv_blocks is None:  # decoding sequences x time = the sum of the decode times
        decode = (plane.occupancy.sum(axis=0) * np.arange(33)).sum()
        assert decode == pytest.approx((outcome.finish_s - outcome.first_token_s).sum(), rel=1e-9)
