"""The scenario: file, settings and flags say one thing in three ways; what is wrong is named where it stands."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from small import simulate, write_crowd, write_profile

from fleetcast.errors import DataError, FleetcastError, ScenarioError
from fleetcast.sim.scenario import Scenario, put, read_scenario, scenario_from, setting

PLAIN = {"profile": "p.toml", "traffic": "t.parquet"}


def made(tables: dict[str, Any], *thresholds: str) -> Scenario:
    return scenario_from({**PLAIN, **tables}, "s.toml", thresholds)


def refused(tables: dict[str, Any], *thresholds: str, typed: tuple[str, ...] = ()) -> FleetcastError:
    with pytest.raises(ScenarioError) as caught:
        scenario_from({**PLAIN, **tables}, "s.toml", thresholds, typed)
    return caught.value


def test_the_defaults_are_the_documented_ones() -> None:
    found = made({}).resolved()
    assert found == {
        "schema": 1,
        "profile": "p.toml",
        "traffic": {"file": "t.parquet", "day_cv": 0.3, "drain": "21600.0 s"},
        "runs": 20,
        "seed": 0,
        "replay": False,
        "fleet": {"region": "us-east-1", "routing": "least-outstanding"},
        "engine": {"beyond": "refuse"},
        "step": {},
        "network": {
            "kind": "privatelink", "privatelink_latency": "0.0003 s", "tail": 1.06, "new_connection_share": 0.01,
            "tls": "1.3", "endpoint_zones": 1,
        },
        "purchase": {"option": "on-demand"},
        "thresholds": {},
    }  # fmt: skip


RICH = {
    "runs": 3,
    "seed": 5,
    "replay": True,
    "as_of": "2026-11",
    "traffic": {"file": "t.parquet", "day_cv": 0.1, "drain": "90 min"},
    "fleet": {"replicas": 7, "region": "eu-west-1", "instance": "g6e.2xlarge", "routing": "two-choices"},
    "engine": {"max_num_seqs": 9, "max_batched_tokens": 512, "kv_blocks": 77, "max_context": 99,
               "beyond": "extrapolate"},
    "step": {"prefill_fixed": "1 ms", "prefill_per_token": "3 us", "kv_per_token": "2 ns", "mixing": "max",
             "request_overhead": "4 ms", "noise_cv": 0.25},
    "network": {"kind": "public", "client_region": "us-east-1", "round_trip": "18 ms", "tail": 1.1,
                "new_connection_share": "5 %", "tls": "none"},
    "thresholds": {"p99(ttft)": "< 500 ms", "errors": "<= 0.1 %", "cost": "< $1.20/Mtok"},
}  # fmt: skip


def test_a_resolved_scenario_reads_back_as_itself() -> None:
    once = made(RICH)
    assert Scenario.model_validate(once.resolved()) == once
    assert once.traffic.drain == 5_400.0 and once.step.prefill_per_token == 3e-6
    assert once.resolved()["step"]["mixing"] == "max"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("fleet.replicas=4", "fleet.replicas", 4),
        (" seed = 3 ", "seed", 3),
        ("replay=true", "replay", True),
        ("fleet.routing=random", "fleet.routing", "random"),
        ('fleet.routing="random"', "fleet.routing", "random"),
        ("network.round_trip=18 ms", "network.round_trip", "18 ms"),
        ("thresholds.cost=<= $1/Mtok", "thresholds.cost", "<= $1/Mtok"),
        ("thresholds.p99.9(ttft)=< 1 s", "thresholds.p99.9(ttft)", "< 1 s"),
        ('thresholds."p99(ttft)"="< 1 s"', 'thresholds."p99(ttft)"', "< 1 s"),
        ("out=", "out", ""),
    ],
)
def test_a_setting_is_a_key_and_a_value(text: str, key: str, value: object) -> None:
    assert setting(text) == (key, value)


@pytest.mark.parametrize("text", ["", "seed", "=3", "a b=3", "p99(ttft)=< 1 s", "1x=2", "fleet-replicas=2"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"not key=value\n.*--set fleet\.replicas=4"):
        setting(text)


def test_a_key_is_put_where_its_dots_lead() -> None:
    tables: dict[str, Any] = {"traffic": "a.parquet", "network": "none", "fleet": {"replicas": 2}}
    fleet = tables["fleet"]
    for key, value in (
        ("traffic.day_cv", 0.1), ("network.client_region", "eu-west-1"), ("fleet.region", "eu-west-1"),
        ("thresholds.p99.9(ttft)", "< 1 s"), ('thresholds."p50(ttft)"', "< 1 s"), ("seed", 3),
    ):  # fmt: skip
        put(tables, key, value)
    assert tables == {
        "traffic": {"file": "a.parquet", "day_cv": 0.1},
        "network": {"kind": "none", "client_region": "eu-west-1"},
        "fleet": {"replicas": 2, "region": "eu-west-1"},
        "thresholds": {"p99.9(ttft)": "< 1 s", "p50(ttft)": "< 1 s"},
        "seed": 3,
    }
    assert fleet == {"replicas": 2}  # what was read stays as it was


def test_a_flag_does_not_hide_a_table_that_is_none() -> None:
    with pytest.raises(ScenarioError, match=r"fleet = 3\n  a table is expected, for fleet\.replicas"):
        put({"fleet": 3}, "fleet.replicas", 2)


def test_flags_lie_over_the_thresholds_of_the_file() -> None:
    found = made({"thresholds": {"P99 (ttft)": "< 2 s", "errors": "< 1 %"}}, "p99(ttft) < 500 ms", "cost < $2/Mtok")
    assert found.thresholds == {"p99(ttft)": "< 500 ms", "errors": "< 1 %", "cost": "< $2/Mtok"}
    assert [t.limit for t in found.limits()] == pytest.approx([0.5, 0.01, 2.0])


@pytest.mark.parametrize(
    ("table", "flags"),
    [
        ({}, ("utilisation > 40 %", "utilisation < 80 %")),
        ({"p99(ttft)": "< 1 s", "P99(ttft)": "< 2 s"}, ()),
    ],
)
def test_a_second_threshold_on_a_metric_is_not_dropped_in_silence(
    table: dict[str, str], flags: tuple[str, ...]
) -> None:
    error = refused({"thresholds": table}, *flags)
    assert error.why.startswith("there is") and error.fix == "keep one of them"


@pytest.mark.parametrize(
    ("tables", "what", "rest"),
    [
        ({"fleet": {"replica": 2}}, "fleet.replica = 2", "closest: replicas"),
        ({"seeed": 2}, "seeed = 2", "closest: seed"),
        ({"network": {"tsl": "1.3"}}, 'network.tsl = "1.3"', "closest: tls"),
        ({"fleet": {"replicas": 1.5}}, "fleet.replicas = 1.5", "a whole number is expected"),
        ({"fleet": {"replicas": 2.0}}, "fleet.replicas = 2.0", "a whole number is expected"),
        ({"fleet": {"replicas": True}}, "fleet.replicas = true", "a whole number is expected"),
        ({"fleet": {"replicas": "3"}}, 'fleet.replicas = "3"', "a whole number is expected"),
        ({"fleet": {"replicas": 0}}, "fleet.replicas = 0", "it must be ≥ 1"),
        ({"fleet": {"replicas": 20_000}}, "fleet.replicas = 20000", "it must be ≤ 10000"),
        ({"runs": 0}, "runs = 0", "it must be ≥ 1"),
        ({"runs": float("inf")}, "runs = inf", "a whole number is expected"),
        ({"seed": -1}, "seed = -1", "it must be ≥ 0"),
        ({"replay": 1}, "replay = 1", "true or false"),
        ({"replay": "yes"}, 'replay = "yes"', "true or false"),
        ({"fleet": {"routing": "lest-outstanding"}}, 'fleet.routing = "lest-outstanding"', "closest: least-outst"),
        ({"fleet": {"routing": 3}}, "fleet.routing = 3", "known: "),
        ({"network": {"kind": "privat"}}, 'network.kind = "privat"', 'write "privatelink"'),
        ({"network": {"round_trip": 18}}, "network.round_trip = 18", 'write "18 ms"'),
        ({"network": {"tls": 1.1}}, 'network.tls = "1.1"', "known: 1.3, 1.2, none"),
        ({"network": {"tail": 0.9}}, "network.tail = 0.9", "it must be ≥ 1"),
        ({"network": {"tail": 1e300}}, "network.tail = 1e+300", "it must be ≤ 1000"),
        ({"network": {"round_trip": "1e9 s"}}, 'network.round_trip = "1e9 s"', "it must be ≤ 86400"),
        ({"traffic": {"file": "t", "day_cv": float("nan")}}, "traffic.day_cv = nan", "finite number"),
        ({"traffic": {"file": "t", "drain": "-1 s"}}, 'traffic.drain = "-1 s"', "cannot be negative"),
        ({"traffic": 3}, "traffic = 3", "a table is expected"),
        ({"traffic": {}}, "traffic.file is missing", ""),
        ({"profile": ""}, 'profile = ""', "empty"),
        ({"engine": {"kv_blocks": 0}}, "engine.kv_blocks = 0", "it must be ≥ 1"),
        ({"engine": {"kv_blocks": 10**23}}, f"engine.kv_blocks = {10**23}", "it must be ≤ 2.14748e+09"),
        ({"engine": {"beyond": "guess"}}, 'engine.beyond = "guess"', "known: refuse, extrapolate"),
        ({"step": {"noise_cv": 1.5}}, "step.noise_cv = 1.5", "it must be ≤ 1"),
        ({"step": {"mixing": 0.5}}, "step.mixing = 0.5", "max"),
        ({"as_of": "2026-13"}, 'as_of = "2026-13"', '"2026-11"'),
        ({"as_of": 2026}, "as_of = 2026", '"2026-11"'),
        ({"schema": 2}, "schema = 2", "write schema = 1"),
        ({"schema": True}, "schema = true", "write schema = 1"),
        ({"thresholds": 3}, "thresholds = 3", "a table is expected"),
        ({"purchase": {"option": "spot"}}, 'purchase.option = "spot"', "known: on-demand"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tables: dict[str, Any], what: str, rest: str) -> None:
    error = refused(tables)
    assert error.what == f"s.toml: {what}"
    assert rest in f"{error.why}\n{error.fix}"
    key = what.split(" ")[0]
    assert refused(tables, typed=(key,)).what == f"the command line: {what}"
    assert refused(tables, typed=("something.else",)).what == f"s.toml: {what}"


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ({"p99(ttft)": 1}, "thresholds.p99(ttft) = 1"),
        ({"p99(ttft)": "< 500"}, 'threshold "p99(ttft) < 500"'),
        ({"p99(ttft)": "< nan s"}, 'threshold "p99(ttft) < nan s"'),
        ({"p99(tfft)": "< 1 s"}, 'threshold "p99(tfft) < 1 s"'),
    ],
)
def test_a_wrong_threshold_is_named(table: dict[str, Any], what: str) -> None:
    assert refused({"thresholds": table}).what == what


def test_a_shell_may_strip_the_quotes_of_a_version() -> None:
    assert made({"network": {"tls": 1.2}}).network.tls == "1.2"
    assert made({"network": {"tls": "1.2"}}).network.tls == "1.2"


def test_a_file_that_is_no_scenario(tmp_path: Path) -> None:
    cut = tmp_path / "cut.toml"
    cut.write_text('seed = 3\n[fleet\nreplicas = 3\nregion = "x"\n')
    with pytest.raises(DataError, match=r"cut\.toml:2: Expected '\]'"):
        read_scenario(cut)
    cut.write_text("seed = 3\n[fleet]\nreplicas =")
    with pytest.raises(DataError, match=r"cut\.toml:3: .*\n.*is it complete"):
        read_scenario(cut)
    cut.write_bytes(b"PAR1\xff\xfe")
    with pytest.raises(DataError, match="is not a text file"):
        read_scenario(cut)
    with pytest.raises(DataError, match="Is a directory"):
        read_scenario(tmp_path)
    with pytest.raises(ScenarioError, match=r"no file .*none\.toml"):
        read_scenario(tmp_path / "none.toml")
    for name in ("a" * 5_000, "\0"):
        with pytest.raises(DataError, match="cannot be read"):
            read_scenario(tmp_path / name)


# ---- through the command ----


def test_default_file_setting_flag(tmp_path: Path) -> None:
    profile, traffic = write_profile(tmp_path), write_crowd(tmp_path, n=100)
    file = tmp_path / "s.toml"
    file.write_text(
        f'profile = "{profile}"\ntraffic = "{traffic}"\nruns = 2\nseed = 7\nworkers = 1\nformat = "json"\n'
        '[fleet]\nreplicas = 2\nrouting = "random"\n[thresholds]\n"p50(ttft)" = "< 9 s"\n'
    )

    def told(*words: str) -> dict[str, Any]:
        said = simulate("--scenario", file, *words)
        assert said.code in (0, 3), said.err
        found: dict[str, Any] = said.result["scenario"]
        return found

    found = told()
    assert (found["runs"], found["seed"], found["fleet"]["replicas"], found["fleet"]["routing"]) == (2, 7, 2, "random")
    found = told("--set", "seed=8", "--set", "fleet.replicas=3", "--set", "thresholds.p50(ttft)=< 8 s")
    assert (found["seed"], found["fleet"]["replicas"], found["fleet"]["routing"]) == (8, 3, "random")
    assert found["thresholds"] == {"p50(ttft)": "< 8 s"}
    found = told("--seed", "9", "--set", "seed=8", "--set", "fleet.routing=round-robin", "--threshold",
                 "p50(ttft) < 7 s", "--set", "thresholds.p50(ttft)=< 8 s")  # fmt: skip
    assert (found["seed"], found["fleet"]["routing"], found["runs"]) == (9, "round-robin", 2)
    assert found["thresholds"] == {"p50(ttft)": "< 7 s"}


def test_a_file_settings_and_flags_give_the_same_result(tmp_path: Path) -> None:
    profile, traffic = write_profile(tmp_path), write_crowd(tmp_path, n=100)
    file = tmp_path / "s.toml"
    file.write_text(
        f'schema = 1\nprofile = "{profile}"\ntraffic = "{traffic}"\nruns = 2\nseed = 3\nreplay = true\n'
        'as_of = "2026-11"\nworkers = 1\nformat = "json"\n'
        '[fleet]\nreplicas = 2\nrouting = "two-choices"\nregion = "us-east-2"\n'
        '[network]\nkind = "public"\nclient_region = "us-west-2"\n[thresholds]\n"p50(ttft)" = "< 9 s"\n'
    )
    by_file = simulate("--scenario", file)
    by_flag = simulate(
        "--profile", profile, "--traffic", traffic, "--runs", 2, "--seed", 3, "--replay", "--set", "as_of=2026-11",
        "--workers", 1, "--format", "json", "--replicas", 2, "--routing", "two-choices", "--region", "us-east-2",
        "--network", "public", "--client-region", "us-west-2", "--threshold", "p50(ttft) < 9 s",
    )  # fmt: skip
    by_setting = simulate(*(
        word
        for text in (
            f"profile={profile}", f"traffic={traffic}", "runs=2", "seed=3", "replay=true", 'as_of="2026-11"',
            "workers=1", "format=json", "fleet.replicas=2", "fleet.routing=two-choices", "fleet.region=us-east-2",
            "network=public", "network.client_region=us-west-2", "thresholds.p50(ttft)=< 9 s",
        )
        for word in ("--set", text)
    ))  # fmt: skip
    assert by_file.code == by_flag.code == by_setting.code == 0, by_file.err
    assert by_file.out == by_flag.out == by_setting.out


MANY = (
    "network.tls=1.2", "step.mixing=max", "step.noise_cv=0.1", "network.round_trip=18 ms",
    "engine.beyond=extrapolate", "traffic.drain=1 h", "fleet.instance=g6e.2xlarge", "as_of=2026-11-30",
    "engine.max_context=120", "fleet.replicas=2", "thresholds.p50(ttft)=< 9 s", "thresholds.cost=≤ $99/Mtok",
)  # fmt: skip
LOOP = ("sessions.turns=2", "sessions.fixed=true", "sessions.think.mean=1 s", "sessions.history=false", "replay=true")
CHANGE = ('traffic_change=[{change = "spike", at = "1 min", lasts = "30 s", factor = 3.0}]', "as_of=2026-11")


@pytest.mark.parametrize("settings", [MANY, LOOP, CHANGE])
def test_the_command_in_the_result_gives_it_again(tmp_path: Path, settings: tuple[str, ...]) -> None:
    profile = write_profile(tmp_path, "hand made.toml", seats=12)
    told = ("--profile", profile, "--traffic", write_crowd(tmp_path, n=100), "--workers", 1, "--format", "json")
    words = (word for text in settings for word in ("--set", text))
    said = simulate(*told, "--runs", 2, "--seed", 5, "--set", "engine.beyond=extrapolate", *words)
    assert said.code in (0, 1, 3), said.err
    first, *again = shlex.split(said.result["command"])
    assert first == "simulate"
    assert simulate(*again, "--workers", 1, "--format", "json")[:2] == said[:2]


def test_files_are_looked_for_here_and_then_beside_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir(), here.mkdir()
    monkeypatch.chdir(here)
    write_profile(there), write_crowd(there, n=50), write_crowd(here, "other.parquet", n=60)
    file = there / "s.toml"
    file.write_text(
        'profile = "hand.toml"\ntraffic = "crowd.parquet"\nreplay = true\nruns = 1\nworkers = 1\nformat = "json"\n'
        "[fleet]\nreplicas = 1\n"
    )

    def requests(*words: object) -> int:
        said = simulate("--scenario", file, *words)
        assert said.code == 0, said.err
        found: int = said.result["summary"]["traffic"]["requests"]
        return found

    assert requests() == 50
    assert requests("--traffic", "other.parquet") == 60  # a flag is not looked for beside the file
    write_crowd(here, n=70)
    assert requests() == 70
    assert requests("--set", "traffic.file=other.parquet") == 60
