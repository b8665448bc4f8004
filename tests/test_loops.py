"""Closed loops: users, sessions and agents wait for their answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fleetcast.errors import ScenarioError
from fleetcast.profiles.read import load_profile
from fleetcast.sim.replicate import play_day
from fleetcast.sim.scenario import scenario_from
from fleetcast.sim.study import Case, make_case
from fleetcast.traffic.trace import Trace, make_trace

PROFILE = """
schema = 1
name = "hand"
[model]
name = "test"
max_context = 4096
[hardware]
instance = "g6e.xlarge"
[engine]
policy = "chunked"
max_num_seqs = 32
[step]
batch = [1, 32]
time = ["10 ms", "20 ms"]
prefill_per_token = "20 us"
"""


@pytest.fixture
def traffic() -> Trace:
    rng = np.random.default_rng(3)
    n = 2_000
    times = np.sort(rng.uniform(0, 6 * 3_600, n))
    return make_trace(times, rng.integers(10, 400, n), rng.integers(1, 120, n), name="pool")


def case(folder: Path, trace: Trace, **keys: object) -> Case:
    file = folder / "hand.toml"
    file.write_text(PROFILE)
    tables = {"profile": str(file), "traffic": {"file": "pool", "day_cv": 0.0}, **keys}
    return make_case(scenario_from(tables, "test"), load_profile(str(file)), trace, ())


@pytest.mark.parametrize(("users", "think"), [(1, "0 s"), (20, "3 s"), (150, {"mean": "8 s", "cv": 1.0})])
def test_the_interactive_response_time_law(tmp_path: Path, traffic: Trace, users: int, think: object) -> None:
    made = case(tmp_path, traffic, users={"count": users, "think": think})
    day = play_day(made.study, 1, 0, keep=True)
    assert day.requests is not None and day.completed == day.offered
    horizon = made.study.days.horizon_s
    rate = day.offered / horizon
    mean_think = 0.0 if think == "0 s" else 3.0 if think == "3 s" else 8.0
    response = float(np.mean(day.e2e_s))
    assert rate * (response + mean_think) == pytest.approx(users, rel=0.005)
    # never more requests under way than users
    sent, done = np.sort(day.requests.trace.arrival_s), np.sort(day.requests.finish_s)
    under_way = np.arange(1, len(sent) + 1) - np.searchsorted(done, sent + 1e-9, side="right")
    assert under_way.max() <= users


def test_a_longer_way_lowers_the_rate_by_the_right_amount(tmp_path: Path, traffic: Trace) -> None:
    def played(round_trip: str) -> tuple[float, float]:
        network = {"round_trip": round_trip, "new_connection_share": 0, "tail": 1}
        made = case(tmp_path, traffic, users={"count": 10, "think": "2 s"}, network=network)
        day = play_day(made.study, 1, 0)
        return day.offered / made.study.days.horizon_s, float(np.mean(day.e2e_s))

    (near, quick), (far, slow) = played("0 ms"), played("100 ms")
    assert slow - quick == pytest.approx(0.1, rel=0.05)
    assert near / far == pytest.approx((slow + 2) / (quick + 2), rel=0.002)
    assert near > far


@pytest.mark.parametrize("think", ["0 s", "5 s"])
def test_the_next_turn_never_starts_before_the_answer(tmp_path: Path, traffic: Trace, think: str) -> None:
    sessions = {"turns": 4, "fixed": True, "think": think}
    made = case(tmp_path, traffic, sessions=sessions, network={"client_region": "eu-west-1"})
    day = play_day(made.study, 2, 0, keep=True)
    requests = day.requests
    assert requests is not None
    trace = requests.trace
    assert (np.diff(trace.arrival_s) >= 0).all()
    table = pl.DataFrame({
        "session": trace.labels["session"].codes, "turn": trace.labels["turn"].codes, "sent": trace.arrival_s,
        "answered": requests.finish_s, "prompt": trace.input_tokens, "output": trace.output_tokens,
    }).sort("session", "turn")  # fmt: skip
    later = table.with_columns(
        before=pl.col("answered").shift(1).over("session"),
        history=(pl.col("prompt") + pl.col("output")).shift(1).over("session"),
    ).filter(pl.col("turn") > 0)
    wait = (later["sent"] - later["before"]).to_numpy()
    assert len(wait) > 3 * 1_500 and wait.min() >= 0.0
    np.testing.assert_allclose(wait, 0.0 if think == "0 s" else 5.0, atol=1e-6)
    assert (later["prompt"] > later["history"]).mean() > 0.99  # grown by all that was said (or cut at the context)
    assert table.group_by("session").len()["len"].max() == 4


def test_sessions_of_one_turn_are_the_open_loop(tmp_path: Path, traffic: Trace) -> None:
    open_ = play_day(case(tmp_path, traffic).study, 1, 0)
    one = play_day(case(tmp_path, traffic, sessions={"turns": 1}).study, 1, 0)
    np.testing.assert_array_equal(open_.e2e_s, one.e2e_s)


def test_mean_turns(tmp_path: Path, traffic: Trace) -> None:
    made = case(tmp_path, traffic, sessions={"turns": 3}, replay=True)
    day = play_day(made.study, 2, 0)
    assert abs(day.offered / len(traffic) - 3) < 4.5 * (6 / len(traffic)) ** 0.5  # the variance of this law is 6


def test_users_and_sessions_exclude_each_other(tmp_path: Path, traffic: Trace) -> None:
    with pytest.raises(ScenarioError, match="close the loop"):
        case(tmp_path, traffic, users={"count": 3}, sessions={"turns": 2})
