"""Files are written whole or not at all, and what earlier runs left never mixes with them."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small import requests_of, simulate, timeline_of, write_crowd, write_profile, write_rows

from fleetcast.errors import DataError
from fleetcast.sim.output import FILES, RESULTS, as_json, output_folder
from fleetcast.sim.result import rounded


def test_files_arrive_together(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with output_folder(out) as folder:
        folder.write(RESULTS, "{}\n")
        folder.path("report.html").write_text("page")
        assert not (out / RESULTS).exists()
    assert {file.name: file.read_text() for file in out.iterdir()} == {RESULTS: "{}\n", "report.html": "page"}


@pytest.mark.parametrize("there", [False, True])
def test_a_failure_leaves_things_as_they_were(tmp_path: Path, there: bool) -> None:
    out = tmp_path / "a" / "b"
    if there:
        out.mkdir(parents=True)
        (out / RESULTS).write_text("of before")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(ZeroDivisionError), output_folder(out) as folder:
        folder.write(RESULTS, "{}\n")
        raise ZeroDivisionError
    assert set(tmp_path.rglob("*")) == before
    assert not there or (out / RESULTS).read_text() == "of before"


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    class Full:
        def close(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    text = r"--out .*out cannot be written\n  No space left"
    with pytest.raises(DataError, match=text), output_folder(tmp_path / "out") as folder:
        folder.write(RESULTS, "{}\n")
        folder._timeline = Full()  # type: ignore[assignment]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_a_file_stops_before_anything_is_moved(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    (tmp_path / RESULTS).write_text("of before")
    with pytest.raises(DataError, match=r"report\.html is a folder"), output_folder(tmp_path) as folder:
        folder.write(RESULTS, "{}\n")
    assert (tmp_path / RESULTS).read_text() == "of before"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["report.html", RESULTS]


def test_a_run_takes_away_what_an_earlier_one_left_and_nothing_else(tmp_path: Path) -> None:
    for name in (*FILES, "notes.txt"):
        (tmp_path / name).write_text("of before")
    with output_folder(tmp_path) as folder:
        folder.write(RESULTS, "{}\n")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {RESULTS: "{}\n", "notes.txt": "of before"}


@pytest.mark.parametrize("name", ["file/x", "\0", "x" * 300, "new/" + "x" * 300])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"), output_folder(tmp_path / name):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_rounding_keeps_ten_digits_and_no_infinity() -> None:
    value = {"a": (1 / 3, np.float64(2e-9 / 3)), "b": [float("inf"), float("nan"), 7, True, None, "x"], 3: np.int64(4)}
    assert rounded(value) == {
        "a": [0.3333333333, 6.666666667e-10], "b": [None, None, 7, True, None, "x"], "3": 4.0
    }  # fmt: skip
    assert json.loads(as_json(rounded(value)))["b"][:2] == [None, None]
    with pytest.raises(ValueError, match="JSON"):
        as_json({"a": float("nan")})


def test_rows_are_in_order_and_labels_in_their_place(tmp_path: Path) -> None:
    write_profile(tmp_path)
    traffic = write_crowd(tmp_path, n=300, span=100)
    words = ("--profile", tmp_path / "hand.toml", "--traffic", traffic, "--replicas", 3, "--runs", 3, "--workers", 2)
    assert simulate(*words, "--keep-requests", "all", "--out", tmp_path / "out", "--set", "engine.max_context=100",
                    "--set", "traffic.drain=0 s").code == 0  # fmt: skip
    table, line = requests_of(tmp_path / "out"), timeline_of(tmp_path / "out")
    result = json.loads((tmp_path / "out" / RESULTS).read_text())
    for run, rows in table.group_by("run", maintain_order=True):
        assert rows["request"].to_list() == list(range(len(rows))), run
        assert rows["arrival_s"].is_sorted()
    assert table["run"].is_sorted() and line["run"].is_sorted()
    assert table["run"].unique().to_list() == line["run"].unique().to_list() == [0, 1, 2]
    counts = dict(table["status"].value_counts().iter_rows())
    assert set(counts) == {"completed", "rejected"} | ({"unfinished"} & set(counts))
    for status in ("completed", "rejected", "unfinished"):
        assert counts.get(status, 0) / 3 == pytest.approx(result["metrics"][status]["value"])
    assert len(table) / 3 == pytest.approx(result["metrics"]["offered"]["value"])
    rejected = table.filter(pl.col("status") == "rejected")
    too_long = table["input_tokens"] + table["output_tokens"] > 100
    assert too_long.sum() == len(rejected) > 0
    assert rejected["replica"].is_null().all() and rejected["ttft_s"].is_null().all()
    assert set(table["replica"].drop_nulls()) == {0, 1, 2}


def test_a_day_without_requests_is_written_like_any_other(tmp_path: Path) -> None:
    write_profile(tmp_path)
    traffic = write_rows(tmp_path, "one.parquet", [5.0], [10], [3])
    out = tmp_path / "out"
    said = simulate("--profile", tmp_path / "hand.toml", "--traffic", traffic, "--replicas", 1, "--runs", 6,
                    "--keep-requests", "all", "--workers", 1, "--out", out, "--format", "json")  # fmt: skip
    assert said.code == 0, said.err
    table = requests_of(out)
    empty = set(range(6)) - set(table["run"])
    assert empty, "no run of these six is empty: choose another seed"
    assert set(timeline_of(out)["run"]) == set(range(6))
    assert said.result["metrics"]["offered"]["value"] == pytest.approx(len(table) / 6)
    assert said.result["metrics"]["p50(ttft)"]["note"].startswith("needs 20 samples")
