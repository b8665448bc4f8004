"""Monte Carlo: every candidate meets the same days, runs are independent, and nothing else is drawn by the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small import requests_of, simulate, write_crowd, write_profile, write_rows

from fleetcast.profiles.read import load_profile
from fleetcast.sim.replicate import Study, play_day, play_days, replica_of
from fleetcast.sim.scenario import scenario_from
from fleetcast.sim.streams import SOURCES, key, stream
from fleetcast.sim.study import make_case
from fleetcast.traffic.read import read_trace

ARRIVALS = ("run", "request", "arrival_s", "input_tokens", "output_tokens")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replicate")
    write_profile(folder)
    write_profile(folder, "fast.toml", seats=32, batch=(1, 32), time=("3 ms", "6 ms"))
    write_crowd(folder, n=600)
    return folder


def requests(folder: Path, *words: object) -> pl.DataFrame:
    said = simulate(
        "--profile", folder / "hand.toml", "--traffic", folder / "crowd.parquet", "--replicas", 3, "--runs", 2,
        "--workers", 1, "--keep-requests", "all", "--out", folder / "out", *words,
    )  # fmt: skip
    assert said.code == 0, said.err
    return requests_of(folder / "out")


@pytest.fixture(scope="module")
def base(folder: Path) -> pl.DataFrame:
    return requests(folder)


def study_of(folder: Path, **keys: Any) -> Study:
    tables = {"profile": str(folder / "hand.toml"), "traffic": str(folder / "crowd.parquet"), **keys}
    scenario = scenario_from(tables, "test")
    return make_case(scenario, load_profile(scenario.profile), read_trace(scenario.traffic.file), []).study


def same(one: pl.DataFrame, other: pl.DataFrame, *columns: str) -> bool:
    return one.select(columns).equals(other.select(columns))


@pytest.mark.parametrize(
    "words",
    [
        ("--profile", "fast.toml"),
        ("--replicas", 5),
        ("--routing", "random"),
        ("--routing", "two-choices"),
        ("--set", "step.noise_cv=0.3"),
        ("--set", "engine.kv_blocks=9"),
        ("--set", "step.prefill_per_token=0 s"),
        ("--set", "fleet.instance=g6e.2xlarge"),
        ("--threshold", "p50(ttft) < 9 s"),
    ],
)
def test_every_candidate_meets_the_same_requests_and_the_same_way_there(
    folder: Path, base: pl.DataFrame, words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    other = requests(folder, *words)
    assert same(base, other, *ARRIVALS, "server_arrival_s")
    changed = words[0] not in ("--threshold",) and "instance" not in str(words)
    assert same(base, other, "finish_s") is not changed


def test_another_network_changes_the_way_and_nothing_else_of_the_demand(folder: Path, base: pl.DataFrame) -> None:
    none, far = requests(folder, "--network", "none"), requests(folder, "--client-region", "eu-west-1")
    for other in (none, far):
        assert same(base, other, *ARRIVALS)
    assert (none["server_arrival_s"] == none["arrival_s"]).all()
    near = (base["server_arrival_s"] - base["arrival_s"]).to_numpy()
    away = (far["server_arrival_s"] - far["arrival_s"]).to_numpy()
    assert (away > near).all() and (near > 0).all()
    assert np.corrcoef(near, away)[0, 1] > 0.99  # the same requests are the late ones


def test_another_seed_is_another_world(folder: Path, base: pl.DataFrame) -> None:
    other = requests(folder, "--seed", 1)
    assert len(other) != len(base) or not same(base, other, "arrival_s")
    assert not set(base["arrival_s"]) & set(other["arrival_s"])
    first, second = (base.filter(pl.col("run") == run) for run in (0, 1))
    assert not set(first["arrival_s"]) & set(second["arrival_s"])


def test_a_run_is_the_same_however_many_are_played(folder: Path, base: pl.DataFrame) -> None:
    more = requests(folder, "--runs", 4)
    assert more.filter(pl.col("run") < 2).equals(base)


def test_what_is_not_drawn_does_not_shift_what_is(folder: Path, base: pl.DataFrame) -> None:
    noisy = requests(folder, "--set", "step.noise_cv=0.3", "--routing", "two-choices")
    assert same(base, noisy, *ARRIVALS, "server_arrival_s")
    steady = requests(folder, "--set", "traffic.day_cv=0")
    assert len(steady) != len(base)  # other counts, for the level of the day is another


def test_a_replay_is_the_trace_in_every_run(folder: Path) -> None:
    rows = requests(folder, "--replay")
    trace = read_trace(folder / "crowd.parquet")
    for run in (0, 1):
        mine = rows.filter(pl.col("run") == run)
        np.testing.assert_array_equal(mine["arrival_s"], trace.arrival_s)
        np.testing.assert_array_equal(mine["input_tokens"], trace.input_tokens)
        np.testing.assert_array_equal(mine["output_tokens"], trace.output_tokens)
    first, second = (rows.filter(pl.col("run") == run) for run in (0, 1))
    assert not same(first, second, "server_arrival_s")  # the network is drawn all the same


def test_arrivals_are_never_rebased(folder: Path, tmp_path: Path) -> None:
    late = 1_000_000.0 + np.sort(np.random.default_rng(0).uniform(0, 90, 50))
    trace = write_rows(tmp_path, "late.parquet", late, np.full(50, 9), np.full(50, 3))
    rows = requests(folder, "--traffic", trace, "--replay", "--runs", 1)
    np.testing.assert_array_equal(rows["arrival_s"], late)
    random = requests(folder, "--traffic", trace)
    assert float(random["arrival_s"].min()) >= 999_960.0  # type: ignore[arg-type]  # its minute begins there


def test_the_way_back_is_on_the_clients_clock(folder: Path, base: pl.DataFrame) -> None:
    # the same order at the servers, the same speed: what differs is the way back, at least a millisecond's half
    none = requests(folder, "--network", "none", "--replay", "--runs", 1, "--routing", "round-robin")
    there = requests(folder, "--replay", "--runs", 1, "--routing", "round-robin",
                     "--set", "network.new_connection_share=0", "--set", "network.tail=1")  # fmt: skip
    way = (there["server_arrival_s"] - there["arrival_s"]).to_numpy()
    # one region: 1 ms there and back, and 0.3 ms of PrivateLink in each direction
    assert way == pytest.approx(np.full(len(way), 0.0008), abs=1e-9)
    first = (there["first_token_s"] - none["first_token_s"]).to_numpy()
    assert first == pytest.approx(np.full(len(first), 0.0016), abs=1e-9)
    assert (there["finish_s"] - none["finish_s"]).to_numpy() == pytest.approx(first, abs=1e-9)
    assert there["tpot_s"].drop_nulls().to_numpy() == pytest.approx(none["tpot_s"].drop_nulls().to_numpy(), abs=1e-9)


def test_requests_that_overtake_each_other_on_the_way_keep_their_rows(folder: Path) -> None:
    rows = requests(folder, "--client-region", "ap-southeast-2", "--set", "network.new_connection_share=50 %",
                    "--replay", "--runs", 1)  # fmt: skip
    trace = read_trace(folder / "crowd.parquet")
    np.testing.assert_array_equal(rows["arrival_s"], trace.arrival_s)
    np.testing.assert_array_equal(rows["output_tokens"], trace.output_tokens)
    server = rows["server_arrival_s"].to_numpy()
    assert (np.diff(server) < 0).sum() > 50
    assert (rows["first_token_s"].to_numpy() > server).all()
    assert (rows["finish_s"].to_numpy() >= rows["first_token_s"].to_numpy()).all()
    # who has one token is finished by its first, who has more by as many steps of at least 10 ms
    lasted = (rows["finish_s"] - rows["first_token_s"]).to_numpy()
    assert (lasted >= 0.01 * (trace.output_tokens - 1) - 1e-9).all()


def test_requests_of_a_session_meet_one_replica(folder: Path, tmp_path: Path) -> None:
    n, sessions = 400, 40
    rng = np.random.default_rng(2)
    pl.DataFrame({
        "arrival_s": np.sort(rng.uniform(0, 100, n)),
        "input_tokens": rng.integers(1, 50, n),
        "output_tokens": rng.integers(1, 20, n),
        "session": [f"s{k}" for k in rng.integers(0, sessions, n)],
    }).write_parquet(tmp_path / "sessions.parquet")  # fmt: skip
    rows = requests(folder, "--traffic", tmp_path / "sessions.parquet", "--routing", "session", "--replay")
    names = pl.read_parquet(tmp_path / "sessions.parquet")["session"]
    for run in (0, 1):
        mine = rows.filter(pl.col("run") == run).with_columns(names)
        assert (mine.group_by("session").agg(pl.col("replica").n_unique())["replica"] == 1).all()
        assert mine["replica"].n_unique() == 3


def test_an_uncertain_profile_is_drawn_anew_in_every_run_and_within_its_range(folder: Path) -> None:
    study = study_of(folder, profile="g6e-int8")
    assert study.curve.uncertain
    fast, slow = (speed.table(16) for speed in (study.curve.fast, study.curve.slow))
    drawn = np.stack([replica_of(study, run).step_s[:17] for run in range(50)])
    assert (drawn >= fast - 1e-12).all() and (drawn <= slow + 1e-12).all()
    place = (drawn[:, 1] - fast[1]) / (slow[1] - fast[1])
    assert len(set(place.tolist())) == 50 and abs(place.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 50)
    again = replica_of(study_of(folder, profile="g6e-int8", fleet={"replicas": 9}), 7).step_s[:17]
    np.testing.assert_array_equal(drawn[7], again)
    certain = study_of(folder)
    assert (replica_of(certain, 0).step_s == replica_of(certain, 1).step_s).all()


def test_days_do_not_depend_on_who_plays_them(folder: Path) -> None:
    study = study_of(folder, step={"noise_cv": 0.2}, fleet={"routing": "random"})
    one, two = (list(play_days(study, 2, range(5), workers)) for workers in (1, 2))
    for mine, theirs, run in zip(one, two, range(5), strict=True):
        assert mine.run == theirs.run == run
        np.testing.assert_array_equal(mine.e2e_s, theirs.e2e_s)
        np.testing.assert_array_equal(mine.occupancy, theirs.occupancy)
    lone = play_day(study, 2, 3)
    np.testing.assert_array_equal(lone.e2e_s, one[3].e2e_s)


def test_streams_are_named_and_apart() -> None:
    draws = {
        (seed, source, run, world): stream(seed, source, run, world).integers(0, 2**63)
        for seed in (0, 1) for source in SOURCES for run in (0, 1) for world in ("days", "choosing")
    }  # fmt: skip
    assert len(set(draws.values())) == len(draws)
    keys = {key(seed, "noise", run) for seed in (0, 1) for run in range(50)}
    assert len(keys) == 100
    assert stream(3, "arrivals", 2).integers(0, 2**63) == stream(3, "arrivals", 2).integers(0, 2**63)
    with pytest.raises(ValueError, match="no random stream named 'weather'"):
        stream(0, "weather", 0)
