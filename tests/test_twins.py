"""reference == kernel == interpreted kernel, on workloads that hypothesis makes up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.errors import DataError, NotMeasured
from fleetcast.sim.contract import POLICIES, POOL, ROUTINGS, Demand, Outcome, Replica
from fleetcast.sim.kernel import Plane, bin_edges
from fleetcast.sim.reference import play

TOLERANCE_S = 1e-9


@st.composite
def replicas(draw: st.DrawFn, policies: tuple[str, ...] = ("chunked",)) -> Replica:
    seats = draw(st.sampled_from([1, 2, 3, 8, 17, 64]))
    first = draw(st.floats(1e-4, 0.02))
    slope = draw(st.sampled_from([0.0, 1e-4, 1e-3]))
    return Replica(
        step_s=np.concatenate([[0.0], first + slope * np.arange(seats)]),
        max_num_seqs=seats,
        max_batched_tokens=draw(st.sampled_from([1, 5, 40, 300, 2048])),
        prefill_fixed_s=draw(st.sampled_from([0.0, 0.001])),
        prefill_per_token_s=draw(st.sampled_from([0.0, 1e-5, 3e-4])),
        kv_per_token_s=draw(st.sampled_from([0.0, 1e-7, 1e-5])),
        mixing=draw(st.sampled_from([1.0, 2.0, 3.7, math.inf])),
        request_overhead_s=draw(st.sampled_from([0.0, 0.01, 0.25])),
        kv_blocks=draw(st.sampled_from([None, 6, 12, 30, 200])),
        max_context=draw(st.sampled_from([None, None, 150])),
        policy=draw(st.sampled_from(policies)),
        max_prompts_per_iteration=draw(st.sampled_from([None, 1, 3])),
        batch_delay_s=draw(st.sampled_from([0.0, 0.05, 1.0])),
    )


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    n = draw(st.integers(1, 150))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    span = draw(st.sampled_from([0.0, 0.1, 2.0, 20.0]))
    arrival = np.sort(rng.uniform(0.0, span, n))
    grid = draw(st.sampled_from([0.0, 0.001, 0.25]))
    if grid:
        arrival = np.round(arrival / grid) * grid
    longest = draw(st.sampled_from([1, 2, 30, 120]))
    return Demand(
        server_s=arrival,
        input_tokens=rng.integers(0, draw(st.sampled_from([2, 40, 400])), n).astype(np.int32),
        output_tokens=rng.integers(1, longest + 1, n).astype(np.int32),
        pick=rng.integers(0, 2**63 - 1, n),
    )


@st.composite
def loops(draw: st.DrawFn) -> Demand:
    """Closed loops: users who share a pool of requests, or sessions of some turns, on clock arrivals or a burst."""
    open_ = draw(demands())
    n = len(open_)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    clocked = draw(st.integers(1, n))
    server = open_.server_s.copy()
    server[clocked:] = np.nan
    if draw(st.booleans()):
        after = np.full(n, POOL, np.int32)
    else:  # every later request follows one that was sent before it, in a turn of its own
        after = np.full(n, -1, np.int32)
        for row in range(clocked, n):
            free = np.flatnonzero(after[:row] == -1)
            after[int(rng.choice(free))] = row
    gap = rng.choice([0.0, 0.01, 0.25, 3.0], n) * draw(st.sampled_from([0.0, 1.0]))
    gap *= rng.choice([1.0, rng.random()], n)
    stop = draw(st.sampled_from([math.inf, math.inf, 5.0]))
    home = draw(st.sampled_from([None, rng.choice([0.0, 0.05], n)]))
    return Demand(server, open_.input_tokens, open_.output_tokens, open_.pick, after, gap, home, stop)


def played(demand: Demand, replica: Replica, count: int, routing: str, interpreted: bool) -> Plane:
    plane = Plane(demand, replica, count, routing, seed=7, interpreted=interpreted)
    with np.errstate(over="ignore"):
        plane.advance()
    return plane


def assert_same_bits(one: Plane, other: Plane) -> None:
    for name in ("first_token_s", "finish_s", "replica", "preemptions", "server_s"):
        np.testing.assert_array_equal(getattr(one.outcome(), name), getattr(other.outcome(), name))
    np.testing.assert_array_equal(one.histogram, other.histogram)
    np.testing.assert_array_equal(one.occupancy, other.occupancy)


def assert_close(one: Outcome, other: Outcome) -> None:
    np.testing.assert_array_equal(one.replica, other.replica)
    np.testing.assert_array_equal(one.preemptions, other.preemptions)
    np.testing.assert_allclose(one.server_s, other.server_s, rtol=0, atol=TOLERANCE_S)
    np.testing.assert_allclose(one.first_token_s, other.first_token_s, rtol=0, atol=TOLERANCE_S)
    np.testing.assert_allclose(one.finish_s, other.finish_s, rtol=0, atol=TOLERANCE_S)


@settings(max_examples=400)
@given(demands(), replicas(), st.integers(1, 8), st.sampled_from(ROUTINGS))
def test_kernel_equals_reference(demand: Demand, replica: Replica, count: int, routing: str) -> None:
    agree(demand, replica, count, routing)


@settings(max_examples=400)
@given(demands(), replicas(POLICIES[1:]), st.integers(1, 4), st.sampled_from(ROUTINGS))
def test_kernel_equals_reference_for_every_policy(demand: Demand, replica: Replica, count: int, routing: str) -> None:
    agree(demand, replica, count, routing)


@settings(max_examples=400)
@given(loops(), replicas(POLICIES), st.integers(1, 4), st.sampled_from(ROUTINGS))
def test_kernel_equals_reference_in_closed_loops(demand: Demand, replica: Replica, count: int, routing: str) -> None:
    agree(demand, replica, count, routing)


def agree(demand: Demand, replica: Replica, count: int, routing: str) -> None:
    expected, requests, servers = play(demand, replica, count, routing)
    plane = played(demand, replica, count, routing, interpreted=False)
    assert_close(plane.outcome(), expected)
    for request in requests:  # every request ends, with all its tokens
        assert request.state in ("completed", "rejected")
        assert len(request.tokens_s) == (request.output if request.state == "completed" else 0)
    busy = np.zeros(replica.max_num_seqs + 1)
    for server in servers:
        for n, seconds in server.busy_s.items():
            busy[n] += seconds
    np.testing.assert_allclose(plane.occupancy.sum(axis=0), busy, rtol=1e-9, atol=1e-9)
    gaps = np.concatenate([np.diff(request.tokens_s) for request in requests] or [np.zeros(0)])
    assert plane.histogram.sum() == len(gaps)
    edges = bin_edges()
    middle = np.repeat((edges[1:] + edges[:-1]) / 2, plane.histogram)
    np.testing.assert_allclose(middle, np.sort(gaps), rtol=0.005, atol=1e-6)


@settings(max_examples=120)
@given(
    st.one_of(demands(), loops()), replicas(POLICIES), st.integers(1, 8), st.sampled_from(ROUTINGS),
    st.sampled_from([0.0, 0.05, 0.6, 1.0]),
)  # fmt: skip
def test_kernel_equals_interpreted_kernel(
    demand: Demand, replica: Replica, count: int, routing: str, noise: float
) -> None:
    noisy = Replica(**{**vars(replica), "noise_cv": noise})
    compiled = played(demand, noisy, count, routing, interpreted=False)
    assert_same_bits(compiled, played(demand, noisy, count, routing, interpreted=True))
    outcome = compiled.outcome()
    assert (np.isfinite(outcome.finish_s) == (outcome.replica >= 0)).all()


@settings(max_examples=100)
@given(
    st.one_of(demands(), loops()), replicas(POLICIES), st.integers(1, 4), st.sampled_from([0.0, 0.2]),
    st.floats(0.001, 0.5),
)  # fmt: skip
def test_stopping_in_between_changes_nothing(
    demand: Demand, replica: Replica, count: int, noise: float, every: float
) -> None:
    noisy = Replica(**{**vars(replica), "noise_cv": noise})
    whole = played(demand, noisy, count, "least-outstanding", interpreted=False)
    parts = Plane(demand, noisy, count, "least-outstanding", seed=7)
    busy = 0.0
    for k in range(200):
        parts.advance(k * every)
        running, waiting, blocks, seconds = parts.sample(k * every)
        assert running >= 0 and waiting >= 0 and blocks >= 0 and seconds >= busy - 1e-9
        assert replica.kv_blocks is None or blocks <= count * replica.kv_blocks
        busy = seconds
    parts.advance()
    assert_same_bits(whole, parts)


def crowd(n: int, rate: float, seed: int = 0) -> Demand:
    rng = np.random.default_rng(seed)
    return Demand(
        np.cumsum(rng.exponential(1 / rate, n)),
        rng.integers(1, 400, n).astype(np.int32),
        rng.geometric(1 / 60, n).astype(np.int32),
        rng.integers(0, 2**63 - 1, n),
    )


SPEED = Replica(np.r_[0.0, np.linspace(0.005, 0.01, 16)], 16, prefill_per_token_s=2e-5, kv_per_token_s=1e-8)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("noise", [0.3, 1.0])
@pytest.mark.parametrize("rate", [4.0, 14.0])
def test_noise_has_the_same_law_in_both(noise: float, rate: float) -> None:
    noisy = Replica(**{**vars(SPEED), "noise_cv": noise})
    runs: dict[str, dict[str, list[float]]] = {"kernel": {}, "reference": {}}
    for run in range(40):
        demand = crowd(300, rate, seed=run)
        plane = Plane(demand, noisy, 2, seed=run)
        plane.advance()
        expected, _, _ = play(demand, noisy, 2, "least-outstanding", np.random.default_rng(1000 + run))
        for name, outcome in (("kernel", plane.outcome()), ("reference", expected)):
            kept = runs[name]
            ttft, e2e = outcome.first_token_s - demand.server_s, outcome.finish_s - demand.server_s
            for key, value in (
                ("mean ttft", ttft.mean()), ("p95 ttft", np.quantile(ttft, 0.95)), ("sd ttft", ttft.std()),
                ("mean e2e", e2e.mean()), ("p95 e2e", np.quantile(e2e, 0.95)), ("sd e2e", e2e.std()),
            ):  # fmt: skip
                kept.setdefault(key, []).append(float(value))
    for key, values in runs["kernel"].items():  # paired: the same arrivals in both
        gap, error = mean_and_error([a - b for a, b in zip(values, runs["reference"][key], strict=True)])
        assert abs(gap) < 5 * error, key


def test_a_run_of_noisy_iterations_has_the_law_of_the_sum() -> None:
    # one request alone: 200 iterations of 10 ms, each a Gamma of mean one and cv 0.5
    noisy = Replica(np.array([0.0, 0.01]), 1, noise_cv=0.5)
    n = 4000
    demand = Demand(np.arange(n) * 100.0, np.full(n, 1, np.int32), np.full(n, 201, np.int32))
    plane = Plane(demand, noisy, 1, seed=3)
    plane.advance()
    decode = plane.outcome().finish_s - plane.outcome().first_token_s
    assert abs(decode.mean() - 2.0) < 5 * decode.std() / math.sqrt(n)
    variance = 200 * (0.5 * 0.01) ** 2
    assert abs(decode.var() / variance - 1) < 5 * math.sqrt(2 / n)


def test_the_noise_of_a_replica_does_not_depend_on_the_others() -> None:
    noisy = Replica(**{**vars(SPEED), "noise_cv": 0.3})
    demand = crowd(400, 12.0)
    two, again = Plane(demand, noisy, 2, "round-robin", seed=5), Plane(demand, noisy, 2, "round-robin", seed=5)
    two.advance()
    for until in np.linspace(0, 40, 977):
        again.advance(float(until))
    again.advance()
    np.testing.assert_array_equal(two.outcome().finish_s, again.outcome().finish_s)
    other = Plane(demand, noisy, 2, "round-robin", seed=6)
    other.advance()
    assert (other.outcome().finish_s != two.outcome().finish_s).mean() > 0.9


def test_a_batch_above_the_profile_stops_both() -> None:
    step = np.r_[0.0, np.full(4, 0.01), np.full(12, np.nan)]
    short = Replica(step, 16)
    demand = Demand(np.zeros(8), np.full(8, 10, np.int32), np.full(8, 10, np.int32))
    with pytest.raises(NotMeasured, match=r"batch of 8 .* ends at 4"):
        play(demand, short, 1, "round-robin")
    with pytest.raises(NotMeasured, match=r"batch of 8 .* ends at 4"):
        Plane(demand, short, 1).advance()
    play(Demand(demand.server_s[:4], demand.input_tokens[:4], demand.output_tokens[:4]), short, 1, "round-robin")


def test_more_iterations_than_32_bits_hold() -> None:
    # one request of 2**31 - 1 tokens, then others: the count of iterations passes 2**31
    step = np.array([0.0, 0.001, 0.001])
    most = 2**31 - 1
    demand = Demand(np.array([0.0, 1.0, 3e6]), np.full(3, 10, np.int32), np.array([most, most, 100], np.int32))
    outcome = played(demand, Replica(step, 2), 1, "round-robin", interpreted=False).outcome()
    np.testing.assert_allclose(
        outcome.finish_s - outcome.first_token_s, [(most - 1) * 0.001, (most - 1) * 0.001, 0.099]
    )
    assert (outcome.first_token_s >= demand.server_s).all()


def test_more_tokens_than_can_be_counted_are_refused() -> None:
    n = 1_000_000
    demand = Demand(np.zeros(n), np.zeros(n, np.int32), np.full(n, 2**31 - 1, np.int32))
    with pytest.raises(DataError, match="more than one run can count"):
        Plane(demand, SPEED, 1)
