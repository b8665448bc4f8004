"""`simulate traffic`, as a user types it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fleetcast.cli.traffic import app
from fleetcast.cli.traffic_screen import BARS, spark
from fleetcast.errors import DataError, FleetcastError, ScenarioError
from fleetcast.traffic.read import read_trace
from fleetcast.traffic.template import make_day
from fleetcast.traffic.trace import Labels, make_trace
from fleetcast.traffic.write import write_trace


def run(*arguments: object) -> tuple[str, str]:
    """What `simulate traffic ARGUMENTS` prints on stdout and stderr, if it does not fail."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(done.exception, FleetcastError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.fixture
def hour(tmp_path: Path) -> Path:
    """An hour at 2/s, busier in its second half, all requests alike but one."""
    arrival = np.concatenate([np.arange(0.0, 1_800, 1.0), 1_800 + (np.arange(5_400) + 0.5) / 3])
    tokens = np.full(len(arrival), 100)
    tokens[7] = 20
    path = tmp_path / "hour.parquet"
    tenants = Labels(np.arange(len(arrival), dtype=np.int32) % 3 - 1, ("a", "b"))
    write_trace(make_trace(arrival, tokens, tokens // 2, labels={"tenant": tenants}, time_zone="UTC"), path)
    return path


def test_show_prints_rate_burstiness_and_lengths(hour: Path) -> None:
    out, err = run("show", hour)
    assert err == ""
    assert out.splitlines() == [
        "  hour.parquet",
        "    7,200 requests, 1 h · 2.00/s mean, 3.00/s peak · 100 in, 50 out (mean)",
        "    start not stated",
        "    read as fleetcast Parquet: 7,200 of 7,200 rows",
        "",
        "  RATE  peak minute 1.51 × mean",
        f"    {'▃' * 30}{'█' * 30}",
        "    a column is 1 min, the highest 3.00/s",
        "    variance over mean of counts: 0.500 in 1 s · 5.02 in 10 s · 30.8 in 60 s (Poisson: 1)",
        "",
        "  TOKENS    mean      cv   p1  p25  p50  p75  p90  p95  p99  p99.9  max",
        "    input    100  0.0094  100  100  100  100  100  100  100    100  100",
        "    output    50  0.0094   50   50   50   50   50   50   50     50   50",
        "    rank correlation of input and output 1.0",
        "    median input by window: 100 100 100 100 100 100 100 100",
        "    median output by window: 50 50 50 50 50 50 50 50",
        "    peak minute over mean: requests 1.51 × · input 1.51 × · output 1.51 ×",
        "",
        "  LABELS  tenant (2)",
    ]


def test_show_fits_into_94_columns(tmp_path: Path) -> None:
    path = tmp_path / "day.parquet"
    write_trace(make_day("weekday", 1.0, 0), path)
    out, _ = run("show", path)
    assert max(len(line) for line in out.splitlines()) <= 94
    assert "from Wed 2026-01-07 00:00:00, time zone not stated" in out
    assert "made from template weekday, mean rate 1/s, seed 0" in out
    assert "a column is 20 min" in out


def test_show_says_what_was_put_right(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:02,1,1\n2024-01-01 00:00:00,1,1\n")
    out, _ = run("show", path)
    assert "  ! 1 of 2 arrivals was out of order (1 inversion): sorted" in out.splitlines()


def test_show_json_holds_the_numbers_and_nothing_else(hour: Path) -> None:
    out, err = run("show", hour, "--format", "json")
    seen = json.loads(out)
    assert err == ""
    assert seen["schema"] == 1
    assert (seen["name"], seen["requests"], seen["start"], seen["time_zone"]) == ("hour.parquet", 7_200, None, "UTC")
    assert seen["span_s"] == pytest.approx(3_600 - 1 / 6)
    assert seen["mean_rate"] == pytest.approx(7_200 / (3_600 - 1 / 6))
    assert seen["peak_rate"] == 3.0
    assert seen["minute_rate"] == [1.0] * 30 + [3.0] * 30
    assert set(seen["index_of_dispersion"]) == {"1 s", "10 s", "60 s"}
    assert seen["input_tokens"]["p50"] == 100
    assert (seen["input_tokens"]["min"], seen["input_tokens"]["max"]) == (20, 100)
    assert list(seen["output_tokens"]) == [
        "mean", "cv", "min", "p1", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max",
    ]  # fmt: skip
    assert seen["spearman"] == 1.0
    assert seen["labels"] == {"tenant": 2}
    assert run("show", hour, "--format", "json")[0] == out


def test_one_request_can_be_shown(tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    write_trace(make_trace([5.0], [0], [1]), path)
    out, _ = run("show", path)
    assert "    1 request, 0 s · " in out
    assert "rank correlation" not in out
    seen = json.loads(run("show", path, "--format", "json")[0])
    assert seen["index_of_dispersion"] == {"1 s": None, "10 s": None, "60 s": None}
    assert (seen["span_s"], seen["spearman"]) == (0.0, None)


def test_make_writes_the_day_of_the_template(tmp_path: Path) -> None:
    path = tmp_path / "weekday.parquet"
    out, err = run("make", path, "--template", "weekday", "--mean-rate", "0.5", "--seed", "3")
    day, made = read_trace(path), make_day("weekday", 0.5, 3)
    assert np.array_equal(day.arrival_s, made.arrival_s)
    assert np.array_equal(day.output_tokens, made.output_tokens)
    assert (day.start, day.recipe) == (made.start, made.recipe)
    assert out.startswith(f"wrote {path}: ")
    assert "24 h" in out
    assert err == ""


def test_make_gives_the_same_bytes_for_the_same_seed(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        run("make", tmp_path / name, "--mean-rate", "0.1")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_make_takes_any_name_but_says_what_the_file_is(tmp_path: Path) -> None:
    _, err = run("make", tmp_path / "weekday.csv", "--mean-rate", "0.1")
    assert "is a Parquet file" in err
    assert len(read_trace(tmp_path / "weekday.csv")) > 0


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (["show", "no-such.parquet"], DataError, "no file named no-such.parquet"),
        (["make", "x.parquet", "--template", "weekend"], ScenarioError, "closest: weekday"),
        (["make", "x.parquet", "--mean-rate", "nan"], ScenarioError, "mean rate = nan"),
        (["make", "x.parquet", "--mean-rate", "100000"], ScenarioError, "memory"),
        (["make", "x.parquet", "--seed", "-1"], ScenarioError, "seed = -1"),
        (["make", "no/folder/x.parquet", "--mean-rate", "0.1"], ScenarioError, "cannot write no/folder/x.parquet"),
    ],
)
def test_mistakes_reach_the_front_door_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], kind: type[FleetcastError], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=says):
        run(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_the_spark_line_is_relative_to_the_highest_and_leaves_out_what_is_empty() -> None:
    assert spark([0, 1, 4, 8, 0, 0], 1) == (f" {BARS[1]}{BARS[4]}{BARS[7]}", 8.0)
    assert spark([2, 2, 4, 4, 1], 2) == (f"{BARS[4]}{BARS[7]}{BARS[2]}", 4.0)


# --- fit, make --model, convert, plots -------------------------------------------------------------------------------


@pytest.fixture
def fortnight(tmp_path: Path) -> Path:
    """Two weeks of hourly-stamped counts, 60 an hour by day and 6 by night, in CloudWatch's JSON, newest first."""
    hours = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=k) for k in range(336)]
    values = [60.0 if 8 <= hour.hour < 20 else 6.0 for hour in hours]
    rows = {"Id": "m", "Label": "Invocations", "StatusCode": "Complete"}
    rows |= {"Timestamps": [hour.isoformat() for hour in reversed(hours)], "Values": list(reversed(values))}
    path = tmp_path / "calls.json"
    path.write_text(json.dumps({"MetricDataResults": [rows], "Messages": []}, indent=2))
    return path


def test_counts_are_fitted_and_days_made_of_them(fortnight: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model.toml", tmp_path / "days.parquet"
    said, noted = run("fit", fortnight, "-o", model, "--lengths", "rag", "--steps")
    assert said.startswith(f"wrote {model}: week of 1 h cells, 0.00917/s mean")
    assert "bursts inside 3600 s cannot be told from counts" in noted
    said, _ = run("make", out, "--model", model, "--days", 7, "--seed", 3, "--first", "2026-03-02")
    trace = read_trace(out)
    assert (trace.start, trace.time_zone) == (datetime(2026, 3, 2, tzinfo=UTC), "UTC")
    by_day = trace.arrival_s % 86_400
    daytime = np.count_nonzero((by_day >= 8 * 3_600) & (by_day < 20 * 3_600)) / len(trace)
    assert abs(daytime - 10 / 11) < 4 * (10 / 121 / len(trace)) ** 0.5
    run("make", tmp_path / "again.parquet", "--model", model, "--days", 7, "--seed", 3, "--first", "2026-03-02")
    assert out.read_bytes() == (tmp_path / "again.parquet").read_bytes()


def test_a_trace_is_fitted_with_its_lengths_beside(hour: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.toml"
    run("fit", hour, "-o", model, "--day-cv", "0")
    assert (tmp_path / "m.lengths.parquet").exists()
    run("make", tmp_path / "o.parquet", "--model", model)
    trace = read_trace(tmp_path / "o.parquet")
    assert set(trace.input_tokens.tolist()) <= {100, 20}
    assert trace.labels["tenant"].names == ("a", "b")
    with pytest.raises(ScenarioError, match="no whole day"):
        run("make", tmp_path / "o.parquet", "--model", model, "--days", 3)
    (tmp_path / "m.lengths.parquet").write_bytes(hour.read_bytes())
    with pytest.raises(DataError, match="is not the file"):
        run("make", tmp_path / "o.parquet", "--model", model)


def test_a_model_with_an_unknown_key_or_a_broken_value_is_refused(fortnight: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.toml"
    run("fit", fortnight, "-o", model, "--lengths", "chat")
    good = model.read_text()
    for change, says in (
        (('shape = "smooth"', 'shpae = "smooth"'), "closest: shape"),
        (("[day]\ncv = 0.0", "[day]\ncv = -1"), "day.cv"),
        (('cell = "3600 s"', 'cell = "7 s"'), "whole minutes"),
        (('cell = "3600 s"', "cell = 3600"), "needs a unit"),
        (("schema = 1", "schema = 9"), "schema 1"),
        (('preset = "chat"', 'preset = "chatt"'), "closest: chat"),
        (("all = [", "all = [nan, "), "rate.monday"),
    ):
        assert change[0] in good
        model.write_text(good.replace(*change))
        with pytest.raises(FleetcastError) as caught:
            run("make", tmp_path / "o.parquet", "--model", model)
        assert says in str(caught.value)


def test_convert_makes_a_native_file_of_anything(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("when;p;q\n0;5;6\n1500;7;8\n")
    out = tmp_path / "day.parquet"
    run("convert", log, out, "--columns", "arrival=when,input=p", "--columns", "output=q", "--time-unit", "ms")
    assert read_trace(out).arrival_s.tolist() == [0.0, 1.5]
    with pytest.raises(ScenarioError, match="not ROLE=NAME"):
        run("convert", log, out, "--columns", "arrival")


def test_convert_of_counts_asks_for_lengths(fortnight: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds counts, not requests") as caught:
        run("convert", fortnight, tmp_path / "day.parquet")
    assert "--lengths chat" in str(caught.value)
    run("convert", fortnight, tmp_path / "day.parquet", "--lengths", "chat")
    assert len(read_trace(tmp_path / "day.parquet")) == 14 * 12 * 66


def test_show_draws_one_offline_page(fortnight: Path, hour: Path, tmp_path: Path) -> None:
    for path, charts in ((fortnight, ("rate", "hours", "weekdays")), (hour, ("rate", "dispersion", "lengths"))):
        out, err = run("show", path, "--plot", tmp_path / "page.html", "--format", "json")
        assert json.loads(out)["read"]["rows_kept"]
        assert err == f"wrote {tmp_path / 'page.html'}\n"
        page = (tmp_path / "page.html").read_text()
        assert [f'data-chart="{chart}"' in page for chart in charts] == [True] * 3
        assert "default-src 'none'" in page
        assert 'src="http' not in page
        first = page
        run("show", path, "--plot", tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text() == first


def test_show_of_counts_tells_hours_and_what_was_missing(fortnight: Path) -> None:
    out, _ = run("show", fortnight)
    assert "read as CloudWatch get-metric-data JSON: 336 of 336 rows" in out
    assert "by hour, from 0:" in out
    assert "by weekday, × mean: Mon 1.00  Tue 1.00" in out
    assert max(map(len, out.splitlines())) <= 94
