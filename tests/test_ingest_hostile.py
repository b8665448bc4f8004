"""Whatever a file holds, an import ends in a profile that reads back or in one clear error, never in a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from bench_files import FILES
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleetcast.errors import FleetcastError
from fleetcast.profiles.ingest.document import Document, read_document
from fleetcast.profiles.ingest.gather import TOOLS, Hints, read_runs, tool_of
from fleetcast.profiles.ingest.merge import System, import_profile
from fleetcast.profiles.ingest.table import parse_columns
from fleetcast.profiles.read import parse_profile
from fleetcast.profiles.write import to_toml

SYSTEM = System("x", instance="g6e.xlarge", model="m", count=1)
FILL = Hints(
    {"concurrency": "8", "batch": "8", "output_tokens": "41", "input_tokens": "100"},
    columns=parse_columns(["output_tps=a", "concurrency=b"]),
)
ACCEPT = frozenset({"units", "littles-law", "prompt-tokens"})
EVIL: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1.5, -0.0, 1e-320, 1e300, 10**30, 10**400, float("nan"), float("inf"), "", "-", "NaN",
    "1,146.31", "1,2,3", "12 ms", "inf", "\x00", "\ud800", "ü" * 300, [], [[]], [None], [-1.0], [1e308, 1e308], {},
    {"avg": None}, {"successful": []}, {"mean": "x"}, ["a", {"b": []}],
)  # fmt: skip
# A surrogate cannot be in a file; in JSON it can be written as an escape, which is what json.dumps does.


def outcome(path: Path) -> None:
    """Import one file; a FleetcastError is fine, anything else escapes."""
    try:
        found = import_profile([str(path)], SYSTEM, FILL, accept=ACCEPT)
    except FleetcastError as error:
        assert str(error).strip() and len(str(error)) < 2_000
        return
    assert parse_profile(to_toml(found.profile).encode("utf-8"), "x.toml") == found.profile


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into nested objects and lists, the first three items of a list."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value[:3]):
            found += places(item, (*path, at))
    return found


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    found = copy.deepcopy(value)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return found


JSON = {form: json.loads(bench.text) for form, bench in FILES.items() if bench.name.endswith(".json")}
CSV = {form: bench.text for form, bench in FILES.items() if bench.name.endswith(".csv")}


@pytest.mark.parametrize("form", JSON)
def test_no_value_of_a_json_file_gives_a_traceback(tmp_path: Path, form: str) -> None:
    path = tmp_path / "x.json"
    every = places(JSON[form])
    for number, place in enumerate(every[:: max(1, len(every) // 60)]):
        for evil in EVIL[number % 17 :: 17]:
            path.write_text(json.dumps(changed(JSON[form], place, evil)), encoding="utf-8")
            outcome(path)


@pytest.mark.parametrize("form", CSV)
def test_no_cell_of_a_csv_file_gives_a_traceback(tmp_path: Path, form: str) -> None:
    path = tmp_path / "x.csv"
    rows = [line.split(",") for line in CSV[form].splitlines()]
    cells = [(row, at) for row, line in enumerate(rows) for at in range(len(line))]
    evil = ("", "-1", "nan", "1e999", "x", '"', '"a', "1,2", "\x00", "9" * 5_000, "[[[[", "{}", "\u2028")
    for number, (row, at) in enumerate(cells[:: max(1, len(cells) // 60)]):
        for value in evil[number % 7 :: 7]:
            bad = copy.deepcopy(rows)
            bad[row][at] = value
            path.write_text("\n".join(",".join(line) for line in bad), encoding="utf-8")
            outcome(path)


@pytest.mark.parametrize("form", FILES)
def test_a_file_that_is_cut_off_anywhere_gives_no_traceback(tmp_path: Path, form: str) -> None:
    text = FILES[form].text
    path = tmp_path / "x"
    for end in range(0, len(text), max(1, len(text) // 15)):
        path.write_text(text[:end], encoding="utf-8", newline="")
        outcome(path)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["inf", "poisson"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(data=st.data())
def test_anything_in_several_places_gives_no_traceback(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from(sorted(JSON)))
    bad = JSON[form]
    for _ in range(data.draw(st.integers(1, 4))):
        options = places(bad)
        if options:
            bad = changed(bad, data.draw(st.sampled_from(options)), data.draw(anything))
    path = tmp_path_factory.mktemp("hostile") / "x.json"
    path.write_text(json.dumps(bad), encoding="utf-8")
    outcome(path)


@settings(max_examples=100)
@example(text=",")
@given(text=st.text(st.sampled_from('{}[]",:0123456789.-+eE\n \tabMetric\r'), max_size=60) | st.text(max_size=60))
def test_any_text_gives_no_traceback(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("text") / "x.csv"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    outcome(path)


@settings(max_examples=100)
@given(records=st.lists(anything, max_size=3), rows=st.lists(st.lists(st.text(max_size=5), max_size=4), max_size=4))
def test_asking_who_wrote_it_never_fails(records: list[Any], rows: list[list[str]]) -> None:
    assert tool_of(Document("x", "0" * 64, records=tuple(records))) in (None, *TOOLS)
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    if filled:
        assert tool_of(Document("x", "0" * 64, rows=tuple(map(tuple, filled)))) in (None, *TOOLS)


def test_a_table_of_many_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "1,2\n" * 100_001, encoding="utf-8")
    with pytest.raises(FleetcastError, match="too long"):
        read_document(str(path))


def test_a_field_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('a,b\n1,"' + "x" * 200_000 + '"\n', encoding="utf-8")
    with pytest.raises(FleetcastError, match="not CSV"):
        read_runs(str(path))
