"""The command as a user types it: what goes well, what goes wrong, and what is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small import Said, requests_of, simulate, write_crowd, write_profile, write_rows

from fleetcast.sim import result


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a profile and a trace in it."""
    write_profile(tmp_path)
    write_crowd(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


INPUTS = ("--profile", "hand.toml", "--traffic", "crowd.parquet")
FIXED = ("--replicas", "2", "--runs", "2", "--workers", "1")


def entries(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def refused(place: Path, *words: object) -> str:
    """Type a mistake that asks for output; return what was said about it."""
    before = entries(place)
    said = simulate(*words)
    assert said.code == 2, said
    assert said.out == ""
    assert "Traceback" not in said.err and said.err.count("\n") < 12
    assert entries(place) == before  # nothing written, no folder, no temporary file
    return " ".join(said.err.replace("│", " ").split())  # a usage error stands in a box


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--profile", "g6e-int4"), ('no profile named "g6e-int4"', "g6e-int8", "simulate profile list")),
        (("--profile", "hnad.toml"), ("no file hnad.toml", "hand.toml")),
        (("--profile", "/"), ("/ is a directory", "one TOML file")),
        (("--traffic", "crwd.parquet"), ("no file named crwd.parquet", "crowd.parquet")),
        (("--traffic", "."), (". is a folder", "crowd.parquet")),
        (("--traffic", "hand.toml"), ("hand.toml is not a trace", "arrival_s, input_tokens, output_tokens")),
        (("--traffic", "a" * 3_000), ("File name too long",)),
        (("--replicas", "0"), ("fleet.replicas = 0", "≥ 1")),
        (("--replicas", "-3"), ("fleet.replicas = -3", "≥ 1")),
        (("--replicas", "1.5"), ("--replicas", '"1.5" is not a whole number', "write for example 4")),
        (("--replicas", "two"), ("--replicas", '"two" is not a whole number')),
        (("--runs", "0"), ("runs = 0", "≥ 1")),
        (("--runs", "1e3"), ("--runs", '"1e3" is not a whole number')),
        (("--seed", "-1"), ("seed = -1", "≥ 0")),
        (("--workers", "0"), ("workers = 0", "--workers 2")),
        (("--workers", "many"), ("--workers", '"many" is not a whole number')),
        (("--routing", "rand"), ('fleet.routing = "rand"', "no such routing", "closest: random")),
        (("--network", "privat"), ('network.kind = "privat"', "privatelink")),
        (("--region", "us-est-1"), ('fleet.region = "us-est-1"', "us-east-1")),
        (("--client-region", "us-est-1"), ('network.client_region = "us-est-1"', "us-east-1")),
        (("--set", "fleet.instance=p9.huge"), ('"p9.huge"',)),
        (("--format", "xml"), ("--format", "'xml'", "json")),
        (("--keep-requests", "al"), ("keep_requests = 'al'", "all")),
        (("--set", "fleet.replica=4"), ("fleet.replica = 4", "no such key", "closest: replicas")),
        (("--set", "sed=4"), ("sed = 4", "no such key", "seed")),
        (("--set", "runs=many"), ('runs = "many"', "whole number")),
        (("--set", "traffic.drain=3"), ("traffic.drain = 3", "needs a unit", "3 ")),
        (("--set", "engine.max_num_seqs=100000"), ("engine.max_num_seqs = 100000", "65,536")),
        (("--set", "engine.kv_blocks=99999999999999999999999"), ("engine.kv_blocks", "≤")),
        (("--set", "step.prefill_per_token=1e300 s"), ("step.prefill_per_token = 1e+300 s", "longer than a day")),
        (("--set", "fleet"), ('--set "fleet"', "key=value")),
        (("--set", "out=3"), ()),
        (("--threshold", "p99(ttft) < 500"), ("p99(ttft) needs a unit", '"p99(ttft) < 500 ms"')),
        (("--threshold", "p99(tttf) < 500 ms"), ('no metric named "p99(tttf)"', "p99(ttft)")),
        (("--threshold", "p99(ttft) < nan ms"), ('"nan ms" is not a number', "500 ms")),
        (("--threshold", "cost < 3"), ("cost needs a unit", "$3/Mtok")),
        (("--threshold", "errors > 110 %"), ("between 0 and 100 %",)),
        (("--threshold", "p99(ttft)"), ("a metric, one of < <= > >=",)),
        (("--replica", "3"), ("No such option: --replica", "--replicas")),
        (("--scenario", "none.toml"), ("no file none.toml",)),
        (("--scenario", "."), ("Is a directory",)),
        (("--scenario", "crowd.parquet"), ("is not a text file",)),
        (("--scenario", "hand.toml"), ("hand.toml: name = ", "no such key")),
        (("crowd.parquet",), ("No such command 'crowd.parquet'",)),
        (("--replicas",), ("--replicas", "requires an argument")),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(place: Path, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    if words == ("--set", "out=3"):
        assert "out = 3" in refused(place, *INPUTS, *FIXED, *words)
        return
    plain = [*INPUTS, "--out", "no/such/out"]
    plain += () if any("fleet.replica" in word for word in words) else FIXED[:2]
    plain += () if any(word.startswith("runs") for word in words) else FIXED[2:]
    said = refused(place, *plain, *words)
    for part in parts:
        assert part in said


def test_what_is_missing_is_named(place: Path) -> None:
    assert "--traffic is missing" in refused(place, *INPUTS[:2])
    assert "--profile is missing" in refused(place, *INPUTS[2:])
    assert "before the verb" in refused(place, "--seed", "3", "profile", "list")


@pytest.mark.parametrize("out", ["hand.toml", "hand.toml/x", "/proc/nowhere/x", "new/" + "a" * 300, "a" * 5_000])
def test_a_folder_that_cannot_be_written(place: Path, out: str) -> None:
    said = refused(place, *INPUTS, *FIXED, "--out", out)
    assert said.startswith(f"error: --out {out} ") and "folder" in said


def test_results_are_not_written_over_what_they_come_from(place: Path) -> None:
    inside = place / "out"
    inside.mkdir()
    write_crowd(inside, "requests.parquet")
    was = (inside / "requests.parquet").read_bytes()
    said = refused(place, *INPUTS[:2], "--traffic", "out/../out/requests.parquet", *FIXED, "--out", "out")
    assert "is an input of this simulation" in said and "requests.parquet" in said
    assert (inside / "requests.parquet").read_bytes() == was


# ---- files that are wrong ----

ROWS = {"arrival_s": [0.0, 1.0, 2.0], "input_tokens": [1, 2, 3], "output_tokens": [1, 2, 3]}


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ({"input_tokens": None}, ("no column `input_tokens`", "arrival_s", "output_tokens")),
        ({"arrival_s": [0.0, float("nan"), 2.0]}, ("arrival_s", "row 1", "nan")),
        ({"arrival_s": [0.0, 1.0, float("inf")]}, ("arrival_s", "row 2", "inf")),
        ({"arrival_s": [-1.0, 1.0, 2.0]}, ("arrival_s", "row 0", "-1")),
        ({"input_tokens": [1, -2, 3]}, ("input_tokens", "row 1", "-2")),
        ({"input_tokens": [1, None, 3]}, ("input_tokens", "row 1")),
        ({"input_tokens": ["1", "x", "3"]}, ("input_tokens", "row 1", "'x'")),
        ({"input_tokens": [1.0, 2.5, 3.0]}, ("input_tokens", "row 1", "2.5")),
        ({"output_tokens": [1, 2, 0]}, ("output_tokens", "row 2", "at least one token")),
        ({"output_tokens": [1, 2, 3_000_000_000]}, ("output_tokens", "row 2", "3000000000")),
        ({"arrival_s": [0.0, 1.0, 1e12]}, ("more than ten years", "milliseconds")),
        ({name: [] for name in ROWS}, ("no requests",)),
    ],
)
def test_a_trace_with_a_mistake(place: Path, columns: dict[str, Any], parts: tuple[str, ...]) -> None:
    pl.DataFrame(
        {name: column for name, column in {**ROWS, **columns}.items() if column is not None},
        schema_overrides=dict.fromkeys(ROWS, pl.Float64) if columns == {name: [] for name in ROWS} else None,
    ).write_parquet("wrong.parquet")
    said = refused(place, *INPUTS[:2], "--traffic", "wrong.parquet", *FIXED, "--out", "out")
    for part in ("wrong.parquet", *parts):
        assert part in said


@pytest.mark.parametrize("kept", [0, 3, 2_000, -1])
def test_a_trace_cut_short(place: Path, kept: int) -> None:
    Path("cut.parquet").write_bytes(Path("crowd.parquet").read_bytes()[:kept])
    said = refused(place, *INPUTS[:2], "--traffic", "cut.parquet", *FIXED, "--out", "out")
    assert "cut.parquet" in said


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda text: text.replace('"16 ms"', '"9 ms"'), ("step.time[1]", "a larger batch is not faster")),
        (lambda text: text.replace("prefill_fixed", "prefil_fixed"), ("step.prefil_fixed", "closest: prefill_fixed")),
        (lambda text: text.replace('"10 ms"', "10"), ("step.time", "needs a unit", '"10 ms"')),
        (lambda text: text.replace("max_num_seqs = 4", ""), ("engine.max_num_seqs is missing",)),
        (lambda text: text[:-12], ("is it complete",)),
        (lambda text: "", ("wrong.toml is empty",)),
        (lambda text: text.replace("schema = 1", "schema = 9"), ("schema = 9", "write schema = 1")),
        (lambda text: text.replace("max_num_seqs = 4", "max_num_seqs = 100000"), ("max_num_seqs", "65,536")),
        (
            lambda text: text.replace("max_num_seqs = 4", f"max_num_seqs = 4\nkv_blocks = {10**20}"),
            ("engine.kv_blocks", "2,147,483,647"),
        ),
        (lambda text: text.replace('"16 ms"', '"16 d"'), ("step.time = 1.3824e+06 s", "longer than a day")),
    ],
)
def test_a_profile_with_a_mistake(place: Path, change: Callable[[str], str], parts: tuple[str, ...]) -> None:
    Path("wrong.toml").write_text(change(Path("hand.toml").read_text()))
    said = refused(place, "--profile", "wrong.toml", *INPUTS[2:], *FIXED, "--out", "out")
    for part in parts:
        assert part in said


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_batch_that_was_not_measured_stops_the_run_and_leaves_nothing(place: Path, workers: str) -> None:
    write_profile(place, "short.toml", seats=8, time=("100 ms", "160 ms"))
    words = ("--profile", "short.toml", *INPUTS[2:], "--replicas", "1", "--runs", "3", "--workers", workers)
    said = refused(place, *words, "--out", "new/out")
    assert "needs a batch of 5 sequences, but the profile ends at 4" in said
    assert "not measured" in said and "--set engine.max_num_seqs=4" in said
    (place / "old").mkdir()
    (place / "old" / "results.json").write_text("of before")
    refused(place, *words, "--out", "old")
    assert (place / "old" / "results.json").read_text() == "of before"
    # what the message says to type is right
    for setting in ("engine.max_num_seqs=4", "engine.beyond=extrapolate"):
        assert simulate(*words, "--set", setting).code == 0


def test_arrivals_out_of_order_are_sorted_and_said_so(place: Path) -> None:
    rng = np.random.default_rng(5)
    arrival, order = np.sort(rng.uniform(0, 60, 50)), rng.permutation(50)
    prompt = np.arange(1, 51)
    write_rows(place, "sorted.parquet", arrival, prompt, np.full(50, 3))
    pl.DataFrame(
        {"arrival_s": arrival[order], "input_tokens": prompt[order], "output_tokens": np.full(50, 3)}
    ).write_parquet("shuffled.parquet")
    words = ("--profile", "hand.toml", "--replicas", "1", "--runs", "1", "--replay", "--workers", "1", "--traffic")
    said = simulate(*words, "shuffled.parquet", "--out", "a")
    late = int((arrival[order] < np.maximum.accumulate(arrival[order])).sum())
    assert f"note: {late} of 50 arrivals were out of order" in said.err and ": sorted\n" in said.err
    assert "out of order" in (place / "a" / "results.json").read_text()
    plain = simulate(*words, "sorted.parquet", "--out", "b")
    assert "out of order" not in plain.err
    assert requests_of(place / "a").equals(requests_of(place / "b"))


# ---- what goes well ----


def test_the_result_is_the_same_for_any_number_of_workers(place: Path) -> None:
    words = (*INPUTS, "--runs", "3", "--seed", "4", "--set", "as_of=2026-11", "--set", "step.noise_cv=0.1",
             "--keep-requests", "all", "--threshold", "p50(ttft) < 9 s")  # fmt: skip
    said: dict[str, Said] = {}
    for workers in ("1", "2"):
        for form in ("json", "table"):
            said[workers + form] = simulate(*words, "--workers", workers, "--out", "out", "--format", form)
            assert said[workers + form].code == 0, said[workers + form].err
        os.rename("out", f"out{workers}")
    assert said["1json"].out == said["2json"].out
    assert said["1table"].out == said["2table"].out
    names = sorted(file.name for file in (place / "out1").iterdir())
    assert names == ["report.html", "requests.parquet", "results.json", "timeline.parquet"]
    for name in names:
        assert (place / "out1" / name).read_bytes() == (place / "out2" / name).read_bytes(), name
    assert said["1json"].out == (place / "out1" / "results.json").read_text()
    other = simulate(*words, "--workers", "1", "--format", "json", "--seed", "5")
    assert other.result["metrics"] != said["1json"].result["metrics"]


def test_the_report_itself_is_the_same_each_time(place: Path) -> None:
    found = []
    for out in ("a", "b"):
        said = simulate(*INPUTS, *FIXED, "--set", "as_of=2026-11", "--out", out, report=True)
        assert said.code == 0, said.err
        found.append((place / out / "report.html").read_bytes())
    assert found[0] == found[1] and len(found[0]) > 100_000


def test_nothing_of_the_machine_or_the_moment_is_in_the_result(place: Path) -> None:
    said = simulate(*INPUTS, *FIXED, "--out", "a-folder-of-mine", "--format", "json")
    assert "a-folder-of-mine" not in said.out and str(place) not in said.out
    assert not {"out", "workers", "format", "keep_requests"} & set(said.result["scenario"])
    keys = set(said.result)
    assert keys >= {"schema", "versions", "inputs", "scenario", "seed", "metrics", "thresholds", "alerts", "exit_code"}
    assert not {word for key in keys for word in ("wall", "time_s", "elapsed", "host", "user") if word in key}
    assert " s on 1 worker" in said.err  # that is where the wall clock is told
    again = simulate(*INPUTS, *FIXED, "--out", "b", "--format", "json")
    assert again.out == said.out


def test_requests_are_kept_as_asked(place: Path) -> None:
    for keep, runs in (("first", {0}), ("all", {0, 1}), ("none", None)):
        said = simulate(*INPUTS, *FIXED, "--keep-requests", keep, "--out", "out")
        assert said.code == 0
        file = place / "out" / "requests.parquet"
        if runs is None:  # nor does it keep those of the run before, which are of another result
            assert not file.exists()
        else:
            assert set(requests_of(place / "out")["run"]) == runs


@pytest.mark.parametrize(
    ("thresholds", "code", "verdicts"),
    [
        (("p50(ttft) < 9 s", "errors < 2 %"), 0, ["holds", "holds"]),
        (("p50(ttft) < 9 s", "p50(ttft) > 1 s"), 2, []),
        (("p50(ttft) < 1 us", "errors < 2 %"), 1, ["crossed", "holds"]),
        (("p99.9(ttft) < 9 s",), 3, ["undecided"]),  # 2,400 samples: too few
        (("p99.9(ttft) < 9 s", "mean(e2e) < 1 us"), 1, ["undecided", "crossed"]),
        (("p99.9(ttft) < 9 s", "mean(e2e) < 9 s"), 3, ["undecided", "holds"]),
    ],
)
def test_the_exit_code_is_the_verdict(place: Path, thresholds: tuple[str, ...], code: int, verdicts: list[str]) -> None:
    words = [word for text in thresholds for word in ("--threshold", text)]
    said = simulate(*INPUTS, *FIXED, *words, "--format", "json")
    assert said.code == code, said.err
    if verdicts:
        assert said.result["exit_code"] == code
        assert [row["verdict"] for row in said.result["thresholds"]] == verdicts
        assert [row["text"] for row in said.result["thresholds"]] == list(thresholds)
        screen = simulate(*INPUTS, *FIXED, *words)
        assert screen.code == code
        signs = {"holds": "✓", "crossed": "✗", "undecided": "?"}
        for row, verdict in zip(thresholds, verdicts, strict=True):
            assert f"{signs[verdict]} {row.split(' ')[0]}" in screen.out


def test_an_interval_across_the_limit_is_undecided_and_a_single_run_is_not(place: Path) -> None:
    told = simulate(*INPUTS, *FIXED[:2], "--runs", "6", "--workers", "1", "--format", "json").result
    between = told["metrics"]["throughput"]
    assert between["low"] < between["value"] < between["high"]
    limit = f"throughput > {(between['low'] + between['value']) / 2:.6f} tok/s"
    said = simulate(*INPUTS, *FIXED[:2], "--runs", "6", "--workers", "1", "--threshold", limit, "--format", "json")
    assert (said.code, said.result["thresholds"][0]["verdict"]) == (3, "undecided")
    one = ("--runs", "1", "--workers", "1", "--format", "json")
    value = simulate(*INPUTS, *FIXED[:2], *one).result["metrics"]["throughput"]
    assert (value["low"], value["high"]) == (None, None)
    for factor, code in ((0.999, 0), (1.001, 1)):
        said = simulate(*INPUTS, *FIXED[:2], *one, "--threshold", f"throughput > {value['value'] * factor:.6f} tok/s")
        assert said.code == code
    said = simulate(*INPUTS, *FIXED[:2], *one, "--threshold", "throughput > 1 tok/s")
    assert said.result["thresholds"][0]["verdict"] == "holds"


def test_the_default_threshold_is_for_a_chosen_fleet_alone(place: Path) -> None:
    fixed = simulate(*INPUTS, *FIXED, "--format", "json")
    assert fixed.code == 0 and fixed.result["thresholds"] == []
    assert fixed.result["summary"]["fleet"]["chosen"] is False
    chosen = simulate(*INPUTS, *FIXED[2:], "--format", "json").result
    assert [row["text"] for row in chosen["thresholds"]] == ["p99(ttft) < 1 s"]
    assert chosen["thresholds"][0]["default"] is True and chosen["summary"]["fleet"]["chosen"] is True
    assert "chosen" in simulate(*INPUTS, *FIXED[2:]).out
    own = simulate(*INPUTS, *FIXED[2:], "--format", "json", "--threshold", "p50(ttft) < 2 s").result
    assert [(row["text"], row["default"]) for row in own["thresholds"]] == [("p50(ttft) < 2 s", False)]


# ---- when it is not the user's fault ----


def test_a_bug_of_ours_is_101(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(result, "simulate", broken)
    before = entries(place)
    said = simulate(*INPUTS, *FIXED, "--out", "new/out")
    assert said.code == 101 and said.out == ""
    assert "Traceback" in said.err and "RuntimeError: boom" in said.err
    assert "This is a bug of fleetcast 0.1.0, not of yours. Please report it" in said.err
    assert entries(place) == before


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, "stopped; nothing was written\n"),
        (MemoryError(), 2, "error: not enough memory\n  play fewer days at once: --workers 1\n"),
    ],
)
def test_a_stop_in_the_middle(
    place: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, text: str
) -> None:
    def stopped(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(result, "play_days", stopped)
    before = entries(place)
    assert simulate(*INPUTS, *FIXED, "--out", "new/out") == (code, "", text)
    assert entries(place) == before


def test_through_a_pipe_that_closes_and_a_terminal_without_signs(place: Path) -> None:
    command = [str(Path(sys.executable).with_name("simulate")), *INPUTS, *FIXED, "--threshold", "errors < 2 %"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u2713 errors < 2 %" in done.stdout
    read, write = os.pipe()
    os.close(read)  # as `| head -0`: whoever listened is gone
    closed = subprocess.run(
        [*command, "--format", "json"], cwd=place, stdout=write, stderr=subprocess.PIPE, check=False
    )  # fmt: skip
    os.close(write)
    assert closed.returncode == 0, closed.stderr
    assert b"Traceback" not in closed.stderr and b"Broken" not in closed.stderr


def test_json_is_json(place: Path) -> None:
    said = simulate(*INPUTS, *FIXED, "--format", "json")
    assert said.out.endswith("}\n") and said.out.count("\n}\n") == 1

    def refuse(text: str) -> float:
        raise AssertionError(text)

    json.loads(said.out, parse_constant=refuse)  # no NaN, no Infinity
