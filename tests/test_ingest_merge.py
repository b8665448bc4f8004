"""From result files of any form to a profile, as a user types it: what is left out, and what stops an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_files import AIPERF_CSV, FILES, PERF_ANALYZER, VLLM_SWEEP_CSV, aggregate, aiperf, sglang, sweep, trtllm, vllm
from typer.testing import CliRunner

from fleetcast.cli.app import app
from fleetcast.errors import FleetcastError
from fleetcast.profiles.profile import Point, Profile
from fleetcast.profiles.read import load_profile

RUN = CliRunner()
TABLE = "users,x,tok/s,first token (ms),lat,gpu,model\n4,a,100,50,2,L40S,m\n8,a,180,60,2.5,L40S,m\n"


class Import:
    """`simulate profile import` in a folder: what it wrote, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out, self.said = folder, folder / "out" / "mine.toml", ""
        self.out.parent.mkdir()

    def put(self, name: str, data: Any) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        return str(path)

    def __call__(self, *words: str) -> Profile:
        """Import and read the profile back."""
        usual = ["--instance", "g6e.xlarge", "--precision", "int8", "--name", "g6e-int8-mine", "-o", str(self.out)]
        result = RUN.invoke(app, ["profile", "import", *words, *usual], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        self.said = result.stderr
        return load_profile(str(self.out)).profile

    def refused(self, *words: str, usual: bool = True) -> str:
        """Import what must be refused; return what is said. No profile may be written."""
        rest = ["--instance", "g6e.xlarge", "--name", "x", "-o", str(self.out)] if usual else ["-o", str(self.out)]
        before = {path: path.read_bytes() for path in self.out.parent.iterdir()}
        with pytest.raises(FleetcastError) as caught:
            RUN.invoke(app, ["profile", "import", *words, *rest], catch_exceptions=False)
        assert {path: path.read_bytes() for path in self.out.parent.iterdir()} == before
        return str(caught.value)


@pytest.fixture
def imported(tmp_path: Path) -> Import:
    return Import(tmp_path)


def loads(profile: Profile) -> list[tuple[str, float]]:
    return [(point.kind, point.load) for point in profile.point]


# --- what is merged ---------------------------------------------------------------------------------------------


def test_a_folder_of_runs_becomes_one_profile_with_its_origin(imported: Import) -> None:
    for users in (16, 4, 8):
        imported.put(f"runs/c{users}/run.json", aiperf(users))
    profile = imported(str(imported.folder / "runs"))
    assert loads(profile) == [("closed", 4), ("closed", 8), ("closed", 16)]
    assert (profile.name, profile.model.name, profile.model.precision) == ("g6e-int8-mine", "my-model", "int8")
    assert (profile.hardware.instance, profile.hardware.accelerator) == ("g6e.xlarge", "L40S")
    point = profile.point[1]
    assert point.ttft is not None and point.e2e is not None
    assert (point.output_tps, point.ttft.mean, point.e2e.p99) == (656.0, 0.1, 0.9)
    assert (point.requests, point.warmup_requests, point.request_throughput, point.errors) == (400, 16, 16.0, 0)
    told = point.provenance
    assert told is not None and told.sha256 is not None
    assert (told.tool, told.version, told.file, told.date) == ("AIPerf", "0.13.0", "run.json", "2026-07-03")
    assert "secret" not in imported.out.read_text(encoding="utf-8")


def test_what_nobody_told_of_the_engine_is_assumed_and_said_so(imported: Import) -> None:
    path = imported.put("run.json", aiperf(8))
    engine = imported(path).engine
    assert (engine.policy, engine.max_num_seqs, engine.assumed) == ("chunked", 8, ("policy", "max_num_seqs"))
    assert "assumed: max_num_seqs 8" in imported.said
    engine = imported(path, "--max-num-seqs", "64", "--policy", "prefill-first").engine
    assert (engine.policy, engine.max_num_seqs, engine.assumed) == ("prefill-first", 64, ())


def test_repeats_of_one_load_stay_apart(imported: Import) -> None:
    one = imported.put("a.json", aiperf(8))
    other = imported.put("b.json", aiperf(8, output_token_throughput={"unit": "tokens/sec", "avg": 650.0}))
    profile = imported(one, other)
    assert [point.output_tps for point in profile.point] == [656.0, 650.0]
    lines = imported.put("c.jsonl", "\n".join(json.dumps(vllm(8, duration=25.0 + n)) for n in range(3)))
    assert loads(imported(lines)) == [("closed", 8)] * 3


def test_averages_over_repeats_are_no_further_repeat(imported: Import) -> None:
    for trial in (1, 2):
        speed = {"unit": "tokens/sec", "avg": 650.0 + trial}
        imported.put(f"x/profile_runs/trial_{trial}/concurrency_8/a.json", aiperf(8, output_token_throughput=speed))
    imported.put("x/aggregate/concurrency_8/b.json", aggregate())
    imported.put("x/sweep_aggregate/c.json", sweep())
    profile = imported(str(imported.folder / "x"))
    # Users 4 were swept as well, and their runs are not at hand: there the average is all there is.
    assert [(point.load, point.output_tps) for point in profile.point] == [(4, 328.0), (8, 651.0), (8, 652.0)]
    assert "averages over runs" in imported.said


def test_the_same_file_twice_is_no_repeat(imported: Import) -> None:
    one, other = imported.put("runs/a.json", aiperf(8)), imported.put("runs/b.json", aiperf(8))
    for sources in ([one, other], [str(imported.folder / "runs")]):
        assert "b.json has the same bytes as" in imported.refused(*sources)


def test_the_load_may_stand_in_the_name_or_be_told(imported: Import) -> None:
    path = imported.put("c8/run.csv", AIPERF_CSV)
    assert "no load" in imported.refused(path, "--model", "m")
    for words in (("--from-name", "c{concurrency}/"), ("--fill", "concurrency=8")):
        assert loads(imported(path, "--model", "m", *words)) == [("closed", 8)]


def test_a_static_batch_gets_its_rate_from_batch_length_and_time(imported: Import) -> None:
    bench = FILES["vllm latency"]
    paths = [imported.put(f"latency_ip128_op{n}_np8.json", bench.text.replace("4.0", str(n / 32))) for n in (128, 256)]
    pattern = "ip{input_tokens}_op{output_tokens}_np{batch}"
    profile = imported(*paths, "--from-name", pattern, "--model", "m")
    assert [(p.kind, p.batch, p.latency, p.output_tps) for p in profile.point] == [
        ("static", 8, 4.0, 256.0),
        ("static", 8, 8.0, 256.0),
    ]


def test_a_table_by_its_columns(imported: Import) -> None:
    path = imported.put("t.csv", TABLE)
    columns = "concurrency=users, output_tps=tok/s, ttft.mean=first token (ms), e2e.mean=lat:s"
    assert "users2" in imported.refused(path, "--columns", "concurrency=users2")
    assert "needs its unit" in imported.refused(path, "--columns", "concurrency=users,e2e.mean=lat")
    assert "a number is expected" in imported.refused(path, "--columns", f"{columns},output_tokens=x")
    words = ("--columns", columns, "--fill", "output_tokens=50")
    profile = imported(path, *words)
    assert [(p.load, p.output_tps, p.ttft.mean, p.e2e.mean) for p in profile.point if p.ttft and p.e2e] == [
        (4, 100, 0.05, 2.0),
        (8, 180, 0.06, 2.5),
    ]
    assert profile.model.name == "m"
    assert loads(imported(path, *words, "--where", "users=8")) == [("closed", 8)]


def test_an_instance_of_sagemaker_is_known_by_its_ec2_name(imported: Import) -> None:
    path = imported.put("t.csv", "users,speed,osl,instance\n4,100,20,ml.g6e.xlarge\n")
    columns = "concurrency=users,output_tps=speed,output_tokens=osl"
    assert imported(path, "--model", "m", "--columns", columns).hardware.instance == "g6e.xlarge"


def test_loads_written_as_words_in_a_table(imported: Import) -> None:
    path = imported.put("t.csv", "point,speed,osl\nc4,100,20\nr1.5,30,20\nb8,300,20\n")
    profile = imported(path, "--model", "m", "--columns", "load=point,output_tps=speed,output_tokens=osl")
    assert loads(profile) == [("static", 8), ("closed", 4), ("open", 1.5)]


def test_json_and_csv_of_one_run_count_once(imported: Import) -> None:
    data = aiperf(8)
    data["request_latency"] |= {"avg": 1500.004, "p50": 1450.0}
    data["time_to_first_token"] |= {"avg": 1099.996}
    data["output_token_throughput"]["avg"] = 218.6702
    data["request_throughput"]["avg"] = 5.33
    data["benchmark_duration"]["avg"] = 75.0
    for stats in (data["request_latency"], data["time_to_first_token"]):
        for key in ("min", "p90", "p99", "max"):
            del stats[key]
    imported.put("c8/run.json", data)
    imported.put("c8/run.csv", AIPERF_CSV)
    profile = imported(str(imported.folder / "c8"), "--max-num-seqs", "8")
    assert loads(profile) == [("closed", 8)]
    assert "is the same run as" in imported.said


def test_requests_all_at_once_count_prompt_tokens_until_told_how_long_they_are(imported: Import) -> None:
    path = imported.put("t.json", FILES["vllm throughput"].text)
    assert "tokens of prompts" in imported.refused(path, "--model", "m")
    (point,) = imported(path, "--model", "m", "--fill", "input_tokens=128", "--fill", "output_tokens=128").point
    assert (point.concurrency, point.requests, point.output_tps, point.total_tps) == (8, 8, 102.4, 204.8)


def test_every_form_of_file_that_tells_enough_makes_a_profile(imported: Import) -> None:
    for name, bench in FILES.items():
        if name == "recommender":  # of another instance than the one that is said here
            continue
        path = imported.put(bench.name, bench.text)
        fill = {"output_tokens": 41, "input_tokens": 100, "max_num_seqs": 64}
        loads_told = bench.load.get("concurrency") or bench.load.get("rate")
        fill |= {} if loads_told else {"batch" if bench.load else "concurrency": 8}
        words = [word for key, value in fill.items() for word in ("--fill", f"{key}={value}")]
        accept = ["--accept", "littles-law", "--accept", "units"]
        where = ["--where", "max_num_seqs=8"] if name == "vllm sweep" else []
        profile = imported(path, "--model", "m", "--count", "1", *words, *accept, *where)
        assert profile.point and all(point.provenance for point in profile.point), name
        if "responses" not in name:  # single answers do not tell how long all of them took
            assert all(point.output_tps for point in profile.point), name


# --- what is refused --------------------------------------------------------------------------------------------


def test_settings_that_differ_are_refused_with_both_unless_one_is_picked(imported: Import) -> None:
    text = VLLM_SWEEP_CSV
    path = imported.put("summary.csv", text)
    said = imported.refused(path)
    assert "max_num_seqs is 4" in said and " and 8 " in said and '--where "max_num_seqs=4"' in said
    profile = imported(path, "--where", "max_num_seqs=4", "--accept", "littles-law")
    assert loads(profile) == [("closed", 4), ("closed", 8)]
    assert (profile.engine.max_num_seqs, profile.engine.assumed) == (4, ("policy",))
    said = imported.refused(path, "--where", "max_num_seqs=5")
    assert "picks nothing" in said and "max_num_seqs is 4, 8" in said
    said = imported.refused(path, "--where", "max_num_seqs=4", "--max-num-seqs", "8")
    assert "--max-num-seqs 8, but the files say 4" in said


def test_models_and_instances_that_differ_are_refused_with_both(imported: Import) -> None:
    one, other = imported.put("a.json", vllm(8)), imported.put("b.json", vllm(8, model_id="another"))
    text = imported.refused(one, other)
    assert "model is my-model" in text and "another" in text and "b.json" in text
    path = imported.put("r.json", FILES["recommender"].text)
    text = imported.refused(path, "--model", "m", "--fill", "output_tokens=10")
    assert "--instance g6e.xlarge" in text and "g5.xlarge" in text


def test_what_the_profile_needs_and_no_file_tells_is_asked_for(imported: Import) -> None:
    path = imported.put("r.json", sglang(8))
    assert "--model is missing" in imported.refused(path)
    assert "--instance is missing" in imported.refused(path, "--model", "m", usual=False)
    assert "ml.g5" not in imported.refused(path, "--model", "m", "--fill", "batch=many")


def test_images_have_no_tokens(imported: Import) -> None:
    text = imported.refused(imported.put("p.csv", PERF_ANALYZER), "--model", "resnet")
    assert "no tokens (perf_analyzer)" in text and "images" in text


@pytest.mark.parametrize("code", ["units", "littles-law", "prompt-tokens"])
def test_what_cannot_be_true_stops_an_import_unless_accepted(imported: Import, code: str) -> None:
    def scaled(key: str, factor: float) -> dict[str, Any]:
        return {name: value * factor if isinstance(value, float) else value for name, value in data[key].items()}

    data = aiperf(8)
    if code == "units":
        data["time_to_first_token"] = scaled("time_to_first_token", 1e3)
    elif code == "littles-law":
        for key in ("request_latency", "time_to_first_token", "inter_token_latency"):
            data[key] = scaled(key, 1.5)
    else:
        data["output_token_throughput"] = data["total_token_throughput"]
    path = imported.put("run.json", data)
    assert f"--accept {code}" in imported.refused(path)
    assert len(imported(path, "--accept", code).point) == 1
    assert "severe: 8 users: " in imported.said and code in imported.said


def test_a_run_in_which_all_failed_stops_an_import_or_is_left_out(imported: Import) -> None:
    good = imported.put("a.json", vllm(8))
    bad = imported.put("b.json", vllm(8, completed=0, num_prompts=400, request_throughput=0.0, output_throughput=0.0))
    assert "b.json: all requests failed" in imported.refused(good, bad)
    assert loads(imported(good, bad, "--accept", "all-failed")) == [("closed", 8)]
    assert "left out" in imported.said
    assert "no run is left" in imported.refused(bad, "--accept", "all-failed")


def test_words_that_mean_nothing_are_refused_with_the_nearest(imported: Import) -> None:
    path = imported.put("a.json", vllm(8))
    for words, told in {
        ("--accept", "unit"): "units",
        ("--fill", "output_token=3"): "output_tokens",
        ("--fill", "concurrency=0"): "above 0",
        ("--columns", "ttft.p98=x"): "ttft.p9",
        ("--from-name", "c8"): "c{concurrency}",
        ("--where", "model"): "key=value",
        ("--parameters", "many"): "8e9",
    }.items():
        assert told in imported.refused(path, *words), words
    assert "holds no result file" in imported.refused(str(imported.out.parent))


def test_a_tensor_parallel_engine_uses_that_many_accelerators(imported: Import) -> None:
    path = imported.put("report.json", trtllm())
    assert "2" in imported.refused(path)  # g6e.xlarge has one
    result = RUN.invoke(
        app, ["profile", "import", path, "--name", "x", "--instance", "g6e.12xlarge"], catch_exceptions=False
    )
    assert result.exit_code == 0 and "count = 2" in result.stdout and "max_num_seqs = 64" in result.stdout


def test_a_broken_file_of_a_folder_is_left_out_with_its_reason_but_not_a_named_one(imported: Import) -> None:
    imported.put("runs/a.json", vllm(8))
    bad = imported.put("runs/b.json", '{"half": ')
    assert loads(imported(str(imported.folder / "runs"))) == [("closed", 8)]
    assert "left out" in imported.said and "b.json" in imported.said
    assert "b.json is not JSON" in imported.refused(str(imported.folder / "runs" / "a.json"), bad)


def test_a_profile_that_was_imported_can_be_shown_and_has_a_curve(imported: Import) -> None:
    from fleetcast.profiles.curve import curve_of

    paths = [imported.put(f"c{n}.json", aiperf(n)) for n in (4, 8, 8, 16)]
    profile = imported(*paths, "--parameters", "8B", "--max-num-seqs", "16")
    assert [int(batch) for batch in curve_of(profile).central.batch] == [1, 4, 8, 16]
    shown = RUN.invoke(app, ["profile", "show", str(imported.out)], catch_exceptions=False)
    assert shown.exit_code == 0 and "16 users" in shown.stdout
    assert all(isinstance(point, Point) for point in profile.point)
