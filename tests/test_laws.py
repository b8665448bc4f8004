"""Laws that hold whatever the traffic, the profile and the fleet: conservation, causality, scale, order, load."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fleetcast.profiles.curve import Curve, StepModel
from fleetcast.sim import network as net
from fleetcast.sim.contract import ROUTINGS, Demand, Replica
from fleetcast.sim.fleet import FleetRun, run_fleet
from fleetcast.sim.lifecycle import COMPLETED, REJECTED, UNFINISHED
from fleetcast.sim.metrics import fleet_metric, latency_metrics
from fleetcast.sim.replicate import Day, Study, play_day, with_speed
from fleetcast.traffic.resample import fit_days
from fleetcast.traffic.trace import Labels, Trace, make_trace

REGIONS = ("us-east-1", "eu-west-1", "ap-southeast-2")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    n = draw(st.integers(1, 120))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    span = draw(st.sampled_from([0.0, 2.0, 40.0, 200.0]))
    arrival = np.sort(rng.uniform(0, span, n))
    longest = draw(st.sampled_from([1, 2, 30, 100]))
    tenants = rng.integers(-1, 3, n).astype(np.int32)
    return make_trace(
        arrival, rng.integers(0, draw(st.sampled_from([2, 200])), n), rng.integers(1, longest + 1, n),
        labels={"tenant": Labels(tenants, ("a", "b", "c"))},
    )  # fmt: skip


@st.composite
def studies(draw: st.DrawFn) -> Study:
    seats = draw(st.sampled_from([1, 2, 5, 24]))
    first, slope = draw(st.floats(0.001, 0.03)), draw(st.sampled_from([0.0, 0.001]))
    speed = StepModel(
        np.array([1, seats + 1]), np.array([first, first + slope * seats]),
        prefill_fixed_s=draw(st.sampled_from([0.0, 0.002])), prefill_per_token_s=draw(st.sampled_from([0.0, 1e-4])),
        kv_per_token_s=draw(st.sampled_from([0.0, 1e-6])), mixing=draw(st.sampled_from([1.0, 2.0, math.inf])),
        request_overhead_s=draw(st.sampled_from([0.0, 0.01])), noise_cv=draw(st.sampled_from([0.0, 0.3])),
    )  # fmt: skip
    limits = Replica(
        np.zeros(seats + 1), seats, max_batched_tokens=draw(st.sampled_from([30, 2048])),
        kv_blocks=draw(st.sampled_from([None, 12, 40])), max_context=draw(st.sampled_from([None, 120])),
    )  # fmt: skip
    network = net.NO_NETWORK
    if draw(st.booleans()):
        network = net.network_for(draw(st.sampled_from(REGIONS)), "us-east-1", new_connection_share=0.2)
    return Study(
        days=fit_days(draw(traces()), 0.3), replay=draw(st.booleans()),
        curve=Curve(speed, speed, speed, ("stated",) * 2, "stated", (), False),
        replica=with_speed(limits, speed, False, {}), extrapolate=False, routing=draw(st.sampled_from(ROUTINGS)),
        network=network, seed=draw(st.integers(0, 2**32)), drain_s=draw(st.sampled_from([0.0, 5.0, 1e6])),
        latency_limits=(("e2e", 1.0),),
    )  # fmt: skip


def whole(study: Study, replicas: int) -> tuple[Day, Any]:
    day = play_day(study, replicas, 0, keep=True)
    assert day.requests is not None
    return day, day.requests


@settings(max_examples=200)
@given(studies(), st.integers(1, 5))
def test_every_request_and_every_second_is_accounted_for(study: Study, replicas: int) -> None:
    day, rows = whole(study, replicas)
    status = rows.status
    assert day.offered == len(rows.trace) == len(status)
    assert day.completed + day.rejected + day.unfinished == day.offered
    assert set(np.unique(status)) <= {COMPLETED, REJECTED, UNFINISHED}
    assert study.replay <= (day.unfinished == 0)  # a replay waits for the last
    assert day.good <= day.completed
    assert day.output_tokens == rows.trace.output_tokens[status == COMPLETED].sum()
    assert (rows.replica[status == REJECTED] == -1).all() and rows.replica.max(initial=-1) < replicas
    assert (rows.replica[status == COMPLETED] >= 0).all()
    # tokens: every one but a request's first is one entry of the histogram
    after_first = (rows.trace.output_tokens[status == COMPLETED] - 1).sum()
    if study.replay or day.unfinished == 0:
        assert day.histogram.sum() == after_first
    else:
        assert day.histogram.sum() >= after_first
    # time: busy within what was billed, and the sum over batch sizes
    assert day.busy_s == pytest.approx(day.occupancy.sum())
    assert 0 <= day.busy_s <= sum(day.lives_s) * (1 + 1e-9)
    assert day.lives_s == (day.span_s,) * replicas and day.span_s >= study.days.horizon_s
    line, step = day.timeline, np.diff(day.timeline.t_s, prepend=study.days.begin_s)
    if day.unfinished == 0:  # where a day is cut off, what its replicas are in the middle of is not summed up
        assert (line.busy * step).sum() * replicas == pytest.approx(day.busy_s, rel=1e-9, abs=1e-9)
    assert line.arrivals @ step <= day.offered * (1 + 1e-9)
    for name in ("ttft_s", "e2e_s"):
        assert len(getattr(day, name)) == day.offered - day.rejected
    assert sum(tenant.requests for tenant in day.tenants) == day.offered
    assert sum(tenant.output_tokens for tenant in day.tenants) == day.output_tokens


@settings(max_examples=200)
@given(studies(), st.integers(1, 5))
def test_nothing_happens_before_its_cause(study: Study, replicas: int) -> None:
    _, rows = whole(study, replicas)
    sent, output = rows.trace.arrival_s, rows.trace.output_tokens
    assert (np.diff(sent) >= 0).all()
    assert (rows.server_arrival_s >= sent).all()
    has_first, done = ~np.isnan(rows.first_token_s), rows.status == COMPLETED
    overhead = study.replica.request_overhead_s
    assert (rows.first_token_s[has_first] >= rows.server_arrival_s[has_first] + overhead - 1e-9).all()
    lasted = (rows.finish_s - rows.first_token_s)[done]
    assert (lasted[output[done] == 1] == 0).all()
    if study.replica.noise_cv == 0:  # each further token takes at least a step of one
        assert (lasted >= study.replica.step_s[1] * (output[done] - 1) - 1e-9).all()
    assert np.isnan(rows.finish_s[~done]).all() and not np.isnan(rows.finish_s[done]).any()
    np.testing.assert_array_equal(np.isnan(rows.tpot_s), ~done | (output == 1))


# ---- scale: another unit of time changes the numbers and nothing else ----


def scaled(demand: Demand, replica: Replica, by: float) -> tuple[Demand, Replica]:
    times = {
        name: getattr(replica, name) * by
        for name in ("step_s", "prefill_fixed_s", "prefill_per_token_s", "kv_per_token_s", "request_overhead_s")
    }
    return replace(demand, server_s=demand.server_s * by), replace(replica, **times)


def fleet(demand: Demand, replica: Replica, replicas: int, routing: str, by: float = 1.0) -> FleetRun:
    times = {"begin_s": 0.0, "horizon_s": 256.0 * by, "every_s": 4.0 * by}
    return run_fleet(demand, replica, replicas, routing, seed=11, **times)


def demand_of(study: Study) -> Demand:
    trace = study.days.trace
    pick = np.random.default_rng(study.seed).integers(0, 2**63 - 1, len(trace))
    return Demand(trace.arrival_s, trace.input_tokens, trace.output_tokens, pick)


@settings(max_examples=100)
@given(studies(), st.integers(1, 4), st.sampled_from([2.0**-7, 0.5, 2.0, 2.0**11]))
def test_all_times_times_k_scale_the_answers_times_k(study: Study, replicas: int, by: float) -> None:
    # powers of two, whose products are exact: not one branch may turn out otherwise
    one = fleet(demand_of(study), study.replica, replicas, study.routing)
    other = fleet(*scaled(demand_of(study), study.replica, by), replicas, study.routing, by)
    for name in ("first_token_s", "finish_s"):
        np.testing.assert_array_equal(getattr(other.outcome, name), getattr(one.outcome, name) * by)
    np.testing.assert_array_equal(other.outcome.replica, one.outcome.replica)
    np.testing.assert_array_equal(other.outcome.preemptions, one.outcome.preemptions)
    np.testing.assert_array_equal(other.occupancy, one.occupancy * by)
    assert other.span_s == one.span_s * by
    np.testing.assert_array_equal(other.timeline.t_s, one.timeline.t_s * by)
    np.testing.assert_array_equal(other.timeline.arrivals, one.timeline.arrivals / by)
    for name in ("running", "waiting", "busy", "kv_use"):
        np.testing.assert_array_equal(getattr(other.timeline, name), getattr(one.timeline, name))
    assert other.histogram.sum() == one.histogram.sum()


@settings(max_examples=30)
@given(studies(), st.floats(0.3, 3.0))
def test_scaling_by_any_factor_scales_the_mean(study: Study, by: float) -> None:
    still = replace(study.replica, noise_cv=0.0, kv_blocks=None)
    one = fleet(demand_of(study), still, 2, "round-robin")
    other = fleet(*scaled(demand_of(study), still, by), 2, "round-robin", by)
    if np.isfinite(one.outcome.finish_s).any():
        sojourn = np.nanmean(one.outcome.finish_s - study.days.trace.arrival_s)
        assert np.nanmean(other.outcome.finish_s - by * study.days.trace.arrival_s) == pytest.approx(
            by * sojourn, rel=0.02, abs=1e-9
        )


# ---- order: names and the order of a file mean nothing ----


@settings(max_examples=60)
@given(studies(), st.permutations([0, 1, 2]))
def test_names_of_tenants_change_nothing_but_the_names(study: Study, order: list[int]) -> None:
    trace = study.days.trace
    codes = trace.labels["tenant"].codes
    renamed = np.where(codes >= 0, np.array(order, np.int32)[codes], codes)
    names = tuple(np.array(["a", "b", "c"])[np.argsort(order)])
    other = replace(trace, labels={"tenant": Labels(renamed.astype(np.int32), names)})
    one, two = play_day(study, 2, 0), play_day(replace(study, days=replace(study.days, trace=other)), 2, 0)
    for name in ("ttft_s", "e2e_s", "histogram", "occupancy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    found = [{t.name: (t.requests, t.output_tokens, *t.ttft_s) for t in day.tenants} for day in (one, two)]
    assert found[0] == found[1]


@settings(max_examples=60)
@given(studies(), st.randoms(use_true_random=False))
def test_the_order_of_rows_in_a_file_means_nothing(study: Study, shuffle: Any) -> None:
    trace = study.days.trace
    order = list(range(len(trace)))
    shuffle.shuffle(order)
    arrival = trace.arrival_s + np.arange(len(trace)) * 1e-6  # all apart, or their order would matter
    sorted_, shuffled = (
        make_trace(arrival[rows], trace.input_tokens[rows], trace.output_tokens[rows])
        for rows in (np.arange(len(trace)), np.array(order))
    )
    found = [play_day(replace(study, days=fit_days(each, 0.3)), 3, 0) for each in (sorted_, shuffled)]
    np.testing.assert_array_equal(found[0].e2e_s, found[1].e2e_s)
    assert found[0].offered == found[1].offered


@settings(max_examples=60)
@given(studies())
def test_runs_may_be_pooled_in_any_order(study: Study) -> None:
    days = [play_day(study, 2, run) for run in range(3)]
    there, back = (
        {
            **latency_metrics(each, study.replica.noise_cv),
            **{name: fleet_metric(each, name) for name in ("errors", "throughput")},
        }
        for each in (days, days[::-1])
    )
    for name, estimate in there.items():
        assert (estimate.value is None) == (back[name].value is None)
        if estimate.value is not None:
            assert back[name].value == pytest.approx(estimate.value, rel=1e-12)
        assert (estimate.n, estimate.note) == (back[name].n, back[name].note)


# ---- load: more of it, or fewer to bear it, is no better in the mean ----

SPEED = Replica(np.r_[0.0, np.linspace(0.005, 0.012, 8)], 8, prefill_per_token_s=2e-5)


def crowd(rate: float, seed: int, n: int = 600) -> Demand:
    rng = np.random.default_rng(seed)
    gaps, prompt, output = rng.exponential(1.0, n), rng.integers(1, 200, n), rng.geometric(1 / 40, n)
    picks = rng.integers(0, 2**63 - 1, n)
    return Demand(np.cumsum(gaps / rate), prompt.astype(np.int32), output.astype(np.int32), picks)


def means(rate: float, replicas: int, routing: str, speed: Replica = SPEED) -> NDArray[np.float64]:
    """Mean TTFT and E2E of 12 crowds, which are the same for every rate, fleet and routing; shape (12, 2)."""
    found = []
    for seed in range(12):
        demand = crowd(rate, seed)
        run = run_fleet(demand, speed, replicas, routing, begin_s=0.0, horizon_s=60.0)
        outcome = run.outcome
        found.append([(outcome.first_token_s - demand.server_s).mean(), (outcome.finish_s - demand.server_s).mean()])
    return np.array(found)


@pytest.mark.parametrize("routing", ROUTINGS)
def test_more_load_is_slower_in_the_mean(routing: str) -> None:
    found = [means(rate, 3, routing).mean(axis=0) for rate in (5.0, 20.0, 35.0, 50.0)]
    assert (np.diff(found, axis=0) > 0).all()


@pytest.mark.parametrize("routing", ROUTINGS)
def test_more_replicas_are_quicker_in_the_mean(routing: str) -> None:
    found = [means(30.0, replicas, routing).mean(axis=0) for replicas in (2, 3, 4, 8)]
    assert (np.diff(found, axis=0) < 0).all()


def test_a_slower_step_a_dearer_prompt_and_fewer_seats_are_slower_in_the_mean() -> None:
    base = means(25.0, 3, "least-outstanding")
    for worse in (
        replace(SPEED, step_s=SPEED.step_s * 1.1),
        replace(SPEED, prefill_per_token_s=1e-4),
        replace(SPEED, prefill_fixed_s=0.005),
        replace(SPEED, request_overhead_s=0.01),
        replace(SPEED, kv_per_token_s=1e-5),
    ):
        gap = means(25.0, 3, "least-outstanding", worse) - base
        assert (gap.mean(axis=0) > 4 * gap.std(axis=0, ddof=1) / math.sqrt(12)).all()


def test_joining_the_shortest_queue_beats_two_choices_beats_chance() -> None:
    best, two, chance = (means(35.0, 4, name)[:, 1] for name in ("least-outstanding", "two-choices", "random"))
    for better, worse in ((best, two), (two, chance)):
        gap = worse - better
        assert gap.mean() > 4 * gap.std(ddof=1) / math.sqrt(12)
