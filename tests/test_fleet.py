"""One fleet, one trace: times worked out by hand, the reference's times, the timeline, and the lives of both."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small import PROMPTS, requests_of, simulate, timeline_of, write_crowd, write_profile, write_rows

from fleetcast.errors import NotMeasured
from fleetcast.sim import fleet, reference
from fleetcast.sim.contract import Demand, Replica
from fleetcast.sim.fleet import FleetRun, run_fleet
from fleetcast.sim.lifecycle import COMPLETED, FAILED, REJECTED, REPLICA, REQUEST, STATUSES, TIMED_OUT, UNFINISHED

EXACT = ("--replicas", "1", "--network", "none", "--replay", "--runs", "1", "--workers", "1")


def played(profile: Path, trace: Path, out: Path, *words: object) -> pl.DataFrame:
    said = simulate("--profile", profile, "--traffic", trace, *EXACT, "--out", out, *words)
    assert said.code == 0, said.err
    return requests_of(out)


# Steps 10, 12, 14, 16 ms at 1 to 4 sequences; a prompt costs 2 ms + 0.1 ms per token; 5 ms before the engine.
# Each row: arrival, input, output, first token, finish.
BY_HAND = [
    # the prompt alone: 2 + 10 ms; then the decode that the next request's prompt makes longer: 10 + 2 + 5 ms
    (0.000, 100, 3, 0.017, 0.044),
    (0.020, 50, 2, 0.044, 0.054),  # at the engine at 25 ms, in the middle of the decode that ends at 27 ms
    (1.000, 30, 1, 1.010, 1.010),  # one token: the first is the last
    # two at once share the prompt iteration (2 + 3 ms), then a step of two, then a step of one
    (2.000, 10, 2, 2.010, 2.022),
    (2.000, 20, 3, 2.010, 2.032),
    (3.000, 2_100, 2, 3.219, 3.229),  # 2,048 tokens (206.8 ms), then the other 52 (7.2 ms)
    # five at once on four seats: the last waits for a seat, then 2 + 1 ms and a step of one
    *[(5.000, 10, 2, 5.011, 5.027)] * 4,
    (5.000, 10, 2, 5.030, 5.040),
    (6.000, 0, 2, 6.005, 6.015),  # no prompt to compute: an iteration of no length
    (10.000, 1_000_000, 1, 110.983, 110.983),  # 489 iterations; no limit on memory or length was given
]


def test_a_small_trace_is_played_as_worked_out_by_hand(tmp_path: Path) -> None:
    arrival, prompt, output, first, finish = (list(column) for column in zip(*BY_HAND, strict=True))
    trace = write_rows(tmp_path, "hand.parquet", arrival, prompt, output)
    found = played(write_profile(tmp_path), trace, tmp_path / "out")
    assert len(found) == len(BY_HAND)
    for name, expected in (
        ("arrival_s", arrival), ("server_arrival_s", arrival), ("first_token_s", first), ("finish_s", finish),
        ("ttft_s", np.subtract(first, arrival)), ("e2e_s", np.subtract(finish, arrival)),
    ):  # fmt: skip
        np.testing.assert_allclose(found[name].to_numpy(), expected, rtol=0, atol=1e-9, err_msg=name)
    one_token = np.array(output) == 1
    assert found["tpot_s"].is_null().to_list() == one_token.tolist()
    tpot = (np.array(finish) - first)[~one_token] / (np.array(output)[~one_token] - 1)
    np.testing.assert_allclose(found["tpot_s"].drop_nulls().to_numpy(), tpot, rtol=0, atol=1e-9)
    assert found["input_tokens"].to_list() == prompt and found["output_tokens"].to_list() == output
    assert found["request"].to_list() == list(range(len(BY_HAND)))
    for name, value in {
        "run": 0, "region": "us-east-1", "replica": 0, "status": "completed", "attempts": 1, "preemptions": 0
    }.items():  # fmt: skip
        assert found[name].unique().to_list() == [value], name


def test_kv_and_context_limits_are_played_as_worked_out_by_hand(tmp_path: Path) -> None:
    # Four blocks of 16 tokens, at most 60 tokens in a request. Two prompts of 30 and 31 tokens hold two blocks each:
    # the first can grow to 32 tokens, the second to 32; neither needs a third block before it ends.
    # The prompt of 20 + 13 tokens needs its third block for its 33rd token and has it, alone.
    arrival = [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]
    prompt, output = [30, 31, 20, 59, 50, 30], [2, 1, 13, 2, 15, 10]
    trace = write_rows(tmp_path, "kv.parquet", arrival, prompt, output)
    profile = write_profile(tmp_path, engine="kv_blocks = 4", model="max_context = 64")
    said = simulate("--profile", profile, "--traffic", trace, *EXACT, "--out", tmp_path / "out",
                    "--set", "engine.max_context=60")  # fmt: skip
    assert said.code == 0, said.err
    found = requests_of(tmp_path / "out")
    assert found["status"].to_list() == ["completed", "completed", "completed", "rejected", "rejected", "completed"]
    # 5 ms + 2 + 6.1 ms; a step; 5 + 2 + 2 ms and 12 steps; rejected: 61 and 65 tokens; 5 + 2 + 3 ms and 9 steps
    first = [0.0131, 0.0131, 1.009, None, None, 3.010]
    finish = [0.0231, 0.0131, 1.129, None, None, 3.100]
    for name, expected in (("first_token_s", first), ("finish_s", finish)):
        values = found[name].to_list()
        assert [value is None for value in values] == [value is None for value in expected]
        assert [v for v in values if v is not None] == pytest.approx([e for e in expected if e is not None], abs=1e-9)
    refused = found.filter(pl.col("status") == "rejected")
    for name in ("replica", "first_token_s", "finish_s", "ttft_s", "tpot_s", "e2e_s"):
        assert refused[name].null_count() == len(refused), name
    assert refused["server_arrival_s"].to_list() == refused["arrival_s"].to_list() == [2.0, 3.0]


@pytest.mark.parametrize("kv", ["0 ns", "20 ns"])
def test_a_larger_trace_is_played_as_the_reference_says(tmp_path: Path, kv: str) -> None:
    rng = np.random.default_rng(1)
    n = 500
    arrival = np.round(np.sort(rng.uniform(0, 12, n)), 2)  # many at the same moment
    prompt, output = rng.integers(0, 300, n), rng.integers(1, 60, n)
    trace = write_rows(tmp_path, "large.parquet", arrival, prompt, output)
    profile = write_profile(
        tmp_path, seats=16, batch=[1, 8, 16], time=["5 ms", "7 ms", "12 ms"], engine="kv_blocks = 120",
        step=f'{PROMPTS}\nkv_per_token = "{kv}"\nmixing = 2',
    )  # fmt: skip
    found = played(profile, trace, tmp_path / "out", "--replicas", "2")
    step = np.concatenate([[0.0], np.interp(np.arange(1, 17), [1, 8, 16], [0.005, 0.007, 0.012])])
    replica = Replica(
        step, 16, 2048, prefill_fixed_s=0.002, prefill_per_token_s=1e-4, kv_per_token_s=float(kv.split()[0]) * 1e-9,
        mixing=2.0, request_overhead_s=0.005, kv_blocks=120,
    )  # fmt: skip
    demand = Demand(arrival, prompt.astype(np.int32), output.astype(np.int32))
    expected = reference.play(demand, replica, 2, "least-outstanding")[0]
    np.testing.assert_allclose(found["first_token_s"].to_numpy(), expected.first_token_s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found["finish_s"].to_numpy(), expected.finish_s, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found["replica"].to_numpy(), expected.replica)
    np.testing.assert_array_equal(found["preemptions"].to_numpy(), expected.preemptions)
    assert expected.preemptions.sum() > 0


def test_the_files_have_the_promised_columns(tmp_path: Path) -> None:
    trace = write_crowd(tmp_path, n=60, span=90)
    found = played(write_profile(tmp_path), trace, tmp_path / "out")
    assert dict(found.schema) == {
        "run": pl.Int32, "request": pl.Int64, "region": pl.String, "replica": pl.Int32, "status": pl.String,
        "attempts": pl.Int32, "preemptions": pl.Int32, "arrival_s": pl.Float64, "server_arrival_s": pl.Float64,
        "first_token_s": pl.Float64, "finish_s": pl.Float64, "ttft_s": pl.Float64, "tpot_s": pl.Float64,
        "e2e_s": pl.Float64, "input_tokens": pl.Int32, "output_tokens": pl.Int32,
    }  # fmt: skip
    assert found.columns[:5] == ["run", "request", "region", "replica", "status"]
    timeline = timeline_of(tmp_path / "out")
    assert dict(timeline.schema) == {
        "run": pl.Int32, "t_s": pl.Float64, "arrivals": pl.Float64, "running": pl.Float64, "waiting": pl.Float64,
        "kv_use": pl.Float64, "busy": pl.Float64, "replicas": pl.Int64,
    }  # fmt: skip
    assert timeline["kv_use"].null_count() == len(timeline)  # memory is unlimited here


# ---- the control plane by itself ----

STEADY = Replica(np.array([0.0, 0.01, 0.011, 0.012, 0.013]), 4, prefill_per_token_s=1e-4, request_overhead_s=0.002)


def crowd(n: int, span: float, seed: int = 0, longest: int = 60) -> Demand:
    rng = np.random.default_rng(seed)
    return Demand(
        np.sort(rng.uniform(0, span, n)),
        rng.integers(1, 200, n).astype(np.int32),
        rng.integers(1, longest, n).astype(np.int32),
    )


def run(demand: Demand, replica: Replica = STEADY, replicas: int = 3, **how: Any) -> FleetRun:
    return run_fleet(demand, replica, replicas, **{"begin_s": 0.0, "horizon_s": 120.0, **how})


def test_the_timeline_adds_up() -> None:
    found = run(crowd(1_000, 115.0), every_s=0.5)
    line = found.timeline
    assert line.arrivals.sum() * 0.5 == pytest.approx(1_000)
    assert line.busy.sum() * 0.5 * 3 == pytest.approx(found.occupancy.sum(), rel=1e-12)
    assert set(line.replicas) == {3}
    assert (line.busy >= 0).all() and (line.busy <= 1 + 1e-12).all()
    assert line.t_s == pytest.approx(0.5 * np.arange(1, 241))
    assert found.span_s == 120.0 and found.lives_s == (120.0,) * 3


def test_littles_law() -> None:
    demand = crowd(4_000, 395.0, seed=2)
    found = run(demand, horizon_s=400.0, every_s=0.1)
    inside = found.timeline.running + found.timeline.waiting
    sojourn = (found.outcome.finish_s - demand.server_s).sum()
    # 4,000 looks a tenth of a second apart; a look is right on average, and 50 blocks of 8 s say how sure it is
    blocks = inside.reshape(50, -1).mean(axis=1) * 8 - np.array([
        np.clip(np.minimum(found.outcome.finish_s, t + 8) - np.maximum(demand.server_s, t), 0, None).sum()
        for t in 8.0 * np.arange(50)
    ])  # fmt: skip
    assert found.span_s == 400.0
    assert abs(inside.mean() * 400.0 - sojourn) < 4 * blocks.std(ddof=1) * math.sqrt(50) + 1e-9
    assert inside.mean() * 400.0 == pytest.approx(sojourn, rel=0.01)


def test_a_replay_ends_when_the_last_request_has_left() -> None:
    demand = Demand(np.array([0.0, 100.0]), np.ones(2, np.int32), np.array([1, 10_000], np.int32))
    found = run(demand, Replica(np.array([0.0, 0.01]), 1), 1)
    # the last token is the 10,000th: 9,999 steps of 10 ms after the first
    assert found.outcome.finish_s[-1] == pytest.approx(100 + 99.99)
    assert found.span_s == pytest.approx(199.99) and found.lives_s == (found.span_s,)
    assert found.timeline.t_s[-1] == 240.0


@pytest.mark.parametrize(("drain", "done"), [(0.0, 2), (7.0, 2), (25.0, 3), (math.inf, 4)])
def test_the_drain_is_as_long_as_asked(drain: float, done: int) -> None:
    # two end in the day, one 20 s after it and one 80 s after it
    demand = Demand(
        np.array([0.0, 10.0, 115.0, 119.0]), np.zeros(4, np.int32), np.array([101, 101, 2501, 8101], np.int32)
    )
    found = run(demand, Replica(np.array([0.0, 0.01]), 1), 4, drain_s=drain)
    assert np.isfinite(found.outcome.finish_s).sum() == done
    assert found.outcome.finish_s[:done] == pytest.approx([1.0, 11.0, 140.0, 200.0][:done])
    assert np.isfinite(found.outcome.first_token_s).all()  # also of those that do not end
    assert found.span_s == pytest.approx(120.0 + min(drain, 80.0))
    assert found.timeline.t_s[-1] == (120.0 + drain if math.isfinite(drain) else 240.0)
    if drain == 7.0:  # the last sample is about seven seconds, through which two of four are busy
        assert found.timeline.busy[-1] == pytest.approx(0.5)


def test_arrivals_after_the_limit_are_nobodys() -> None:
    demand = Demand(np.array([0.0, 130.0]), np.zeros(2, np.int32), np.ones(2, np.int32))
    found = run(demand, drain_s=5.0)
    assert found.outcome.replica.tolist() == [0, -1] and np.isnan(found.outcome.finish_s[1])


def test_an_endless_drain_is_sampled_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "MOST_SAMPLES", 10)
    demand = Demand(np.zeros(3), np.zeros(3, np.int32), np.ones(3, np.int32))
    slow = Replica(np.array([0.0, 1.0]), 1, request_overhead_s=1e9)
    found = run(demand, slow, 1, horizon_s=600.0)
    assert found.span_s == pytest.approx(1e9)
    assert len(found.timeline.t_s) < 40
    gaps = np.diff(found.timeline.t_s)
    assert found.timeline.arrivals[1:] @ gaps + found.timeline.arrivals[0] * 60 == pytest.approx(3)


def test_an_error_inside_keeps_its_reason_and_its_remedy() -> None:
    short = Replica(np.array([0.0, 0.01, np.nan]), 2)
    with pytest.raises(NotMeasured) as caught:
        run(crowd(50, 1.0), short, 1)
    assert "batch of 2" in caught.value.what
    assert "not measured" in caught.value.why and "--set engine.max_num_seqs=1" in caught.value.fix


# ---- the lives of requests and replicas ----


@pytest.mark.parametrize("life", [REQUEST, REPLICA])
def test_every_event_leads_to_a_state_and_every_state_but_the_first_is_reached(life: dict[str, dict[str, str]]) -> None:
    reached = {state for events in life.values() for state in events.values()}
    assert reached <= set(life)
    never = set(life) - reached - {next(iter(life))}
    assert never <= {"timed_out", "failed", "unfinished"}  # given from outside: a clock or a fault


def test_final_states_are_the_statuses() -> None:
    assert {state for state, events in REQUEST.items() if not events} == set(STATUSES)
    assert STATUSES == ("completed", "rejected", "timed_out", "failed", "unfinished")
    codes = (COMPLETED, REJECTED, TIMED_OUT, FAILED, UNFINISHED)
    assert [STATUSES[code] for code in codes] == list(STATUSES)


def test_the_reference_walks_the_whole_table_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[tuple[str, str]] = set()
    true_after = reference.after

    def after(state: str, event: str) -> str:
        seen.add((state, event))
        return true_after(state, event)

    monkeypatch.setattr(reference, "after", after)
    tight = Replica(STEADY.step_s, 4, max_batched_tokens=40, prefill_per_token_s=1e-4, kv_blocks=14)
    reference.play(crowd(300, 3.0), tight, 1, "least-outstanding")
    table = {(state, event) for state, events in REQUEST.items() for event in events}

    assert table == seen


def test_a_fixed_fleet_lives_from_launch_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, str]] = []
    true_live = fleet.Life.live

    def live(self: fleet.Life, event: str) -> None:
        seen.append((self.index, event))
        true_live(self, event)

    monkeypatch.setattr(fleet.Life, "live", live)
    run(crowd(20, 30.0), replicas=2)
    for index in (0, 1):
        assert [event for who, event in seen if who == index] == ["launch", "ready", "drain", "stop"]
