"""Files to traces and back: what is read is what was written, and what cannot be read is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic.describe import describe
from fleetcast.traffic.read import read_trace
from fleetcast.traffic.trace import Labels, Trace, make_trace
from fleetcast.traffic.write import write_trace

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens"
# The shape of 2023: CRLF, seven fractional digits, no zone, no final newline; and of 2024: a zone, a fraction at times.
AZURE_2023 = (
    f"{HEADER}\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8"
    "\r\n2023-11-16 18:17:05.0000001,110,27"
)
AZURE_2024 = (
    f"{HEADER}\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n"
    "2024-05-10 00:00:01.250000+00:00,76,15\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes text, bytes or an Arrow table to a file and returns its path."""

    def write(content: str | bytes | dict[str, Any], name: str = "traffic") -> Path:
        path = tmp_path / name
        if isinstance(content, dict):
            parquet.write_table(pa.table(content), path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def table(**changes: Any) -> dict[str, Any]:
    """Columns of a good trace of four requests, with *changes*; None takes a column away."""
    columns = {"arrival_s": [0.0, 0.5, 1.5, 9.0], "input_tokens": [5, 6, 7, 8], "output_tokens": [1, 2, 3, 4]}
    return {name: values for name, values in {**columns, **changes}.items() if values is not None}


def refusal(path: str | Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_trace(path, **options)
    return str(caught.value)


# --- Azure -----------------------------------------------------------------------------------------------------------


def test_azure_2023_has_seven_digits_no_zone_and_no_last_newline(file: Callable[..., Path]) -> None:
    trace = read_trace(file(AZURE_2023, "code.csv"))
    assert trace.arrival_s.tolist() == [0.0, 0.052, 1.0200401]
    assert trace.input_tokens.tolist() == [4808, 3180, 110]
    assert trace.output_tokens.tolist() == [10, 8, 27]
    assert trace.start == datetime(2023, 11, 16, 18, 17, 3, 979960)
    assert (trace.time_zone, trace.notes, trace.name) == (None, (), "code.csv")


def test_azure_2024_states_a_zone_and_not_always_a_fraction(file: Callable[..., Path]) -> None:
    trace = read_trace(file(AZURE_2024))
    assert trace.arrival_s.tolist() == [0.0, 0.99007, 1.24007]
    assert trace.start == datetime(2024, 5, 10, 0, 0, 0, 9930, UTC)
    assert trace.time_zone == "UTC"


@pytest.mark.parametrize(
    ("stamps", "elapsed", "zone", "start"),
    [
        (
            ["2024-05-10T06:00:00+05:30", "2024-05-10T06:00:02.5+0530"],
            [0.0, 2.5],
            "UTC+05:30",
            datetime(2024, 5, 10, 6, tzinfo=timezone(timedelta(hours=5.5))),
        ),
        (
            ["2024-05-10 01:00:00+01:00", "2024-05-10 00:00:03Z", "2024-05-09 23:00:04 -01:00"],
            [0.0, 3.0, 4.0],
            "UTC",
            datetime(2024, 5, 10, tzinfo=UTC),
        ),
    ],
)
def test_zones_are_honoured(
    file: Callable[..., Path], stamps: list[str], elapsed: list[float], zone: str, start: datetime
) -> None:
    trace = read_trace(file("\n".join([HEADER, *(f"{stamp},1,1" for stamp in stamps)])))
    assert trace.arrival_s.tolist() == elapsed
    assert trace.time_zone == zone
    assert trace.start is not None
    assert trace.start.isoformat() == start.isoformat()


def test_azure_rows_out_of_order_are_sorted_and_the_start_is_the_earliest(file: Callable[..., Path]) -> None:
    trace = read_trace(file(f"{HEADER}\n2024-01-01 00:00:02,2,2\n2024-01-01 00:00:00,0,1\n"))
    assert trace.arrival_s.tolist() == [0.0, 2.0]
    assert trace.input_tokens.tolist() == [0, 2]
    assert trace.start == datetime(2024, 1, 1)
    assert trace.notes == ("1 of 2 arrivals was out of order (1 inversion): sorted",)


def test_columns_are_found_by_name_and_blank_lines_at_the_end_do_not_count(file: Callable[..., Path]) -> None:
    text = "\ufeffGeneratedTokens,NumImages,timestamp, ContextTokens\r\n7,2,2024-01-01 00:00:00,9.0\r\n\r\n\r\n"
    trace = read_trace(file(text))
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([9], [7])
    assert trace.notes == ("columns not used: NumImages",)


ROW = "2024-01-01 00:00:00,5,5"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([ROW, "yesterday,5,5"], ["`TIMESTAMP`, row 1 (counting from 0): 'yesterday'", "2023-11-16 18:17:03.9799600"]),
        ([ROW, "2024-01-01,5,5"], ["`TIMESTAMP`, row 1", "not a date and time"]),
        ([ROW, "2024-01-01 00:00:00+99:00,5,5"], ["`TIMESTAMP`, row 1", "+99:00"]),
        ([ROW, "2999-01-01 00:00:00,5,5"], ["`TIMESTAMP`, row 1", "2999"]),
        ([ROW, "2024-01-01 00:00:00Z,5,5"], ["`TIMESTAMP`, row 0", "other rows state a zone"]),
        ([ROW, ROW, "2024-01-01 00:00:00,many,5"], ["`ContextTokens`, row 2 (counting from 0): 'many'"]),
        ([ROW, '2024-01-01 00:00:00,"1,374",5'], ["`ContextTokens`, row 1", "'1,374'"]),
        ([ROW, "2024-01-01 00:00:00,12.5,5"], ["`ContextTokens`, row 1", "12.5", "whole"]),
        ([ROW, "2024-01-01 00:00:00,nan,5"], ["`ContextTokens`, row 1", "nan"]),
        ([ROW, "2024-01-01 00:00:00,inf,5"], ["`ContextTokens`, row 1", "inf"]),
        ([ROW, "2024-01-01 00:00:00,-1,5"], ["`ContextTokens`, row 1", "-1"]),
        ([ROW, "2024-01-01 00:00:00,5000000000,5"], ["`ContextTokens`, row 1", "5000000000", "at most"]),
        ([ROW, "2024-01-01 00:00:00,5,0"], ["`GeneratedTokens`, row 1", "at least one token"]),
        ([ROW, "2024-01-01 00:00:00,,5"], ["`ContextTokens`, row 1", "missing"]),
        ([ROW, "", ROW], ["`TIMESTAMP`, row 1", "missing"]),
        ([ROW, "2024-01-01 00:00:00,5"], ["`GeneratedTokens`, row 1", "missing"]),
        ([ROW, "2024-01-01 00:00:00,5,5,5"], ["row 1 (counting from 0) has more fields than the 3"]),
        ([ROW, '2024-01-01 00:00:00,"5,5'], ["not a whole CSV file"]),
        ([], ["no requests"]),
    ],
)
def test_a_bad_azure_row_is_named_where_reading_is_strict(
    file: Callable[..., Path], rows: list[str], says: list[str]
) -> None:
    path = file("\n".join([HEADER, *rows]))
    words = refusal(path, strict=True)
    assert words.startswith(str(path))
    for part in says:
        assert part in words


def test_azure_text_that_is_not_utf8_is_refused(file: Callable[..., Path]) -> None:
    assert "not a whole CSV file" in refusal(file(f"{HEADER}\n{ROW}".encode() + b"\xff"))


def test_a_missing_azure_column_is_named_with_its_likely_self(file: Callable[..., Path]) -> None:
    words = refusal(file("TIMESTAMP,ContextTokens,Response tokens\n2024-01-01 00:00:00,5,5"))
    assert "has no column `GeneratedTokens`" in words
    assert "its columns are `TIMESTAMP`, `ContextTokens`, `Response tokens`" in words
    assert (
        "it has `Response tokens`; say so with --columns output=Response tokens, or rename it to `GeneratedTokens`"
        in words
    )


# Rows, span, mean input, mean output (facts of the published files) and the statistics computed from them.
@pytest.mark.parametrize(
    ("name", "rows", "span_s", "means", "second", "peak_over_mean", "dispersion", "start", "cap"),
    [
        (
            "conv", 19_366, 3501.722, (1154.6974, 211.1259), 4.314579, 1.52,
            {1: 1.39, 10: 3.87, 60: 16.4}, datetime(2023, 11, 16, 18, 15, 46, 680590),
            "1,000 `output_tokens`: cut off there?",
        ),
        (
            "code", 8_819, 3435.948, (2047.8483, 27.8825), 0.052, 4.18,
            {1: 13.2, 10: 71.9, 60: 166.9}, datetime(2023, 11, 16, 18, 17, 3, 979960),
            "7,437 `input_tokens`: cut off there?",
        ),
    ],
)  # fmt: skip
def test_the_published_azure_traces(
    shared_data: Path,
    name: str,
    rows: int,
    span_s: float,
    means: tuple[float, float],
    second: float,
    peak_over_mean: float,
    dispersion: dict[int, float],
    start: datetime,
    cap: str,
) -> None:
    trace = read_trace(shared_data / "traces" / f"AzureLLMInferenceTrace_{name}.csv")
    seen = describe(trace)
    assert len(trace) == seen.rows == rows
    assert trace.span_s == pytest.approx(span_s, abs=0.001)
    assert seen.input_tokens.mean == pytest.approx(means[0], abs=5e-5)
    assert seen.output_tokens.mean == pytest.approx(means[1], abs=5e-5)
    assert trace.arrival_s[1] == pytest.approx(second, abs=1e-9)
    assert trace.start == start
    assert [note.split(" pile up at ")[1] for note in trace.notes] == [cap]
    assert seen.peak_over_mean == pytest.approx(peak_over_mean, abs=0.005)
    for window, value in dispersion.items():
        assert seen.iod[window] == pytest.approx(value, rel=0.004)


def test_the_quantiles_of_the_chat_trace(shared_data: Path) -> None:
    seen = describe(read_trace(shared_data / "traces" / "AzureLLMInferenceTrace_conv.csv"))
    assert [round(value) for value in seen.input_tokens.quantile.values()] == [
        29, 396, 1020, 1189, 2734, 4083, 4142, 6179,
    ]  # fmt: skip
    assert [round(value) for value in seen.output_tokens.quantile.values()] == [
        16, 85, 129, 395, 424, 451, 601, 954,
    ]  # fmt: skip
    assert (seen.input_tokens.most, seen.output_tokens.most) == (14_050, 1_000)
    assert round(seen.input_tokens.cv, 2) == 0.96
    assert round(seen.output_tokens.cv, 2) == 0.77
    assert seen.spearman is not None
    assert round(seen.spearman, 2) == 0.07
    assert seen.minute_counts.reshape(-1)[:10].sum() == 2_867
    assert seen.minute_counts.sum() == 19_366


# --- native ----------------------------------------------------------------------------------------------------------


def full_trace() -> Trace:
    rng = np.random.default_rng(7)
    rows = 3_000
    return make_trace(
        np.sort(rng.uniform(0, 86_400, rows)),
        rng.integers(0, 900, rows),
        rng.integers(1, 400, rows),
        labels={
            "session": Labels(rng.integers(-1, 40, rows, np.int32), tuple(f"s{k}" for k in range(40))),
            "turn": Labels(rng.integers(-1, 9, rows, np.int32)),
            "tenant": Labels(rng.integers(0, 3, rows, np.int32), ("Ärzte", "acme", "")),
        },
        start=datetime(2026, 3, 4, 5, 6, 7, 89, timezone(timedelta(hours=1))),
        time_zone="Europe/Berlin",
        recipe="by hand",
    )


def names_of(trace: Trace, key: str) -> list[str | None]:
    column = trace.labels[key]
    return [column.names[code] if code >= 0 else None for code in column.codes]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    trace = full_trace()
    write_trace(trace, tmp_path / "day.parquet")
    back = read_trace(str(tmp_path / "day.parquet"))
    for column in ("arrival_s", "input_tokens", "output_tokens"):
        assert np.array_equal(getattr(back, column), getattr(trace, column))
        assert getattr(back, column).dtype == getattr(trace, column).dtype
    assert set(back.labels) == set(trace.labels)
    assert np.array_equal(back.labels["turn"].codes, trace.labels["turn"].codes)
    for key in ("session", "tenant"):
        assert names_of(back, key) == names_of(trace, key)
    assert (back.start, back.time_zone, back.recipe) == (trace.start, "Europe/Berlin", "by hand")
    assert (back.name, back.notes) == ("day.parquet", ())


def test_equal_traces_give_equal_bytes_and_nothing_else_in_the_folder(tmp_path: Path) -> None:
    write_trace(full_trace(), tmp_path / "a.parquet")
    write_trace(full_trace(), tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    write_trace(read_trace(tmp_path / "a.parquet"), tmp_path / "c.parquet")
    write_trace(read_trace(tmp_path / "c.parquet"), tmp_path / "d.parquet")
    assert (tmp_path / "c.parquet").read_bytes() == (tmp_path / "d.parquet").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "c.parquet", "d.parquet"]


def test_the_native_file_has_exactly_the_promised_columns(tmp_path: Path) -> None:
    write_trace(full_trace(), tmp_path / "day.parquet")
    schema = parquet.read_schema(tmp_path / "day.parquet")
    assert schema.names == ["arrival_s", "input_tokens", "output_tokens", "session", "turn", "tenant"]
    assert [str(kind) for kind in schema.types] == ["double", "int32", "int32", "string", "int32", "string"]
    assert {key.decode(): value.decode() for key, value in schema.metadata.items()} == {
        "fleetcast.schema": "1",
        "fleetcast.start": "2026-03-04T05:06:07.000089+01:00",
        "fleetcast.time_zone": "Europe/Berlin",
        "fleetcast.recipe": "by hand",
    }
    row = parquet.ParquetFile(tmp_path / "day.parquet").metadata.row_group(0)
    assert {row.column(place).compression for place in range(row.num_columns)} == {"ZSTD"}


def test_writing_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "day.parquet"
    path.write_text("something else")
    write_trace(make_trace([0.0], [1], [1]), path)
    assert len(read_trace(path)) == 1


@pytest.mark.parametrize("name", ["no/such/folder/day.parquet", "a file/day.parquet", "a folder", "x" * 300])
def test_what_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").write_text("")
    (tmp_path / "a folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ScenarioError, match="cannot write") as caught:
        write_trace(make_trace([0.0], [1], [1]), tmp_path / name)
    assert caught.value.why
    assert "folder that exists" in caught.value.fix
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "day.parquet"
    write_trace(make_trace([0.0], [1], [1]), path)

    def full(_: Any, file: Any, **__: Any) -> None:
        file.write(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet, "write_table", full)
    with pytest.raises(ScenarioError, match="No space left"):
        write_trace(full_trace(), path)
    assert len(read_trace(path)) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(25, 2)]
)
def test_any_numeric_column_type_is_read(file: Callable[..., Path], kind: Any) -> None:
    trace = read_trace(
        file({name: pa.array(values).cast(kind) for name, values in table(arrival_s=[0, 1, 2, 9]).items()})
    )
    assert trace.arrival_s.tolist() == [0.0, 1.0, 2.0, 9.0]
    assert trace.input_tokens.tolist() == [5, 6, 7, 8]


def test_other_columns_are_noted_and_unsorted_rows_sorted(file: Callable[..., Path]) -> None:
    trace = read_trace(file(table(arrival_s=[3.0, 1.0, 2.0, 4.0], latency=[1, 1, 1, 1], cost=[1, 1, 1, 1])))
    assert trace.arrival_s.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert trace.input_tokens.tolist() == [6, 7, 5, 8]
    assert trace.notes == ("columns not used: latency, cost", "2 of 4 arrivals were out of order (1 inversion): sorted")


def test_labels_may_be_numbers_categories_or_missing(file: Callable[..., Path]) -> None:
    trace = read_trace(
        file(
            table(
                session=[70, 70, None, 9],
                tenant=pa.array(["b", "a", None, "b"]).dictionary_encode(),
                region=pa.nulls(4),
                turn=pa.array([0, None, 2, 3], pa.int64()),
            )
        )
    )
    assert names_of(trace, "session") == ["70", "70", None, "9"]
    assert names_of(trace, "tenant") == ["b", "a", None, "b"]
    assert trace.labels["tenant"].names == ("b", "a")
    assert names_of(trace, "region") == [None] * 4
    assert trace.labels["turn"].codes.tolist() == [0, -1, 2, 3]
    assert trace.labels["turn"].names == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"input_tokens": None}, ["has no column `input_tokens`", "its columns are `arrival_s`, `output_tokens`"]),
        ({"output_tokens": None, "output_tokns": [1, 2, 3, 4]}, ["`output_tokns`; say so with --columns output="]),
        (
            {"arrival_s": None, "Timestamp": [1, 2, 3, 4]},
            ["`Timestamp` counts from an unknown time in an unknown unit", "as seconds it spans 3 s", "--time-unit s"],
        ),
        ({"input_tokens": ["5", "6", "many", "8"]}, ["`input_tokens`, row 2 (counting from 0): 'many'"]),
        ({"input_tokens": ["5", "6", "7", "8"]}, ["`input_tokens`, row 0 (counting from 0): '5'", "is text"]),
        ({"input_tokens": [5, None, 7, 8]}, ["`input_tokens`, row 1 (counting from 0): no value", "null"]),
        ({"arrival_s": [0.0, 1.0, None, 3.0]}, ["`arrival_s`, row 2", "null"]),
        ({"arrival_s": [0.0, 1.0, float("nan"), 3.0]}, ["`arrival_s`, row 2", "nan"]),
        ({"arrival_s": [0.0, 1.0, 2.0, float("inf")]}, ["`arrival_s`, row 3", "inf", "finite"]),
        ({"arrival_s": [0.0, -1.0, 2.0, 3.0]}, ["`arrival_s`, row 1", "-1"]),
        ({"arrival_s": [datetime(2026, 1, day) for day in (1, 2, 3, 4)]}, ["holds times", "seconds", "float"]),
        ({"arrival_s": [timedelta(seconds=k) for k in range(4)]}, ["holds durations", "seconds"]),
        ({"arrival_s": ["0", "1", "2", "3"]}, ["`arrival_s`, row 0", "'0'"]),
        ({"input_tokens": [[1], [2], [3], [4]]}, ["`input_tokens` holds list"]),
        ({"input_tokens": [True, False, True, True]}, ["true and false"]),
        ({"input_tokens": [1, 2, -3, 4]}, ["`input_tokens`, row 2", "-3"]),
        ({"output_tokens": [1, 2, 3, 0]}, ["`output_tokens`, row 3", "at least one token"]),
        ({"output_tokens": [1.0, 12.5, 3.0, 4.0]}, ["`output_tokens`, row 1", "12.5"]),
        ({"output_tokens": [1, 2, 2**31, 4]}, ["`output_tokens`, row 2", "2147483648"]),
        ({"turn": [0, 1, -5, 2]}, ["`turn`, row 2", "-5"]),
        ({"turn": [0.5, 1, 2, 3]}, ["`turn` holds double"]),
        ({"turn": [0, 1, 2, 2**40]}, ["`turn` holds a number that is too large"]),
        ({"tenant": [1.5, 2.5, 3.5, 4.5]}, ["`tenant` holds double", "text or whole numbers"]),
        ({"prefix": [[1], [2], [3], [4]]}, ["`prefix` holds list"]),
        ({"arrival_s": [], "input_tokens": [], "output_tokens": []}, ["no requests"]),
        (
            {"arrival_s": np.array([]), "input_tokens": np.array([], "i4"), "output_tokens": np.array([], "i4")},
            ["no requests"],
        ),
    ],
)  # fmt: skip
def test_a_bad_native_file_is_refused(file: Callable[..., Path], changes: dict[str, Any], says: list[str]) -> None:
    path = file(table(**changes))
    words = refusal(path)
    assert words.startswith(str(path))
    for part in says:
        assert part in words


def test_doubled_columns_are_refused(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays(
        [pa.array([1])] * 4, names=["arrival_s", "input_tokens", "output_tokens", "output_tokens"]
    )
    parquet.write_table(twice, tmp_path / "t.parquet")
    assert "2 columns named `output_tokens`" in refusal(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("facts", "says"),
    [({"fleetcast.schema": "2"}, "says schema 2"), ({"fleetcast.start": "noon"}, "start = 'noon'")],
)
def test_metadata_that_cannot_be_understood_is_refused(tmp_path: Path, facts: dict[str, str], says: str) -> None:
    parquet.write_table(pa.table(table()).replace_schema_metadata(facts), tmp_path / "t.parquet")
    assert says in refusal(tmp_path / "t.parquet")


# --- what is no trace ------------------------------------------------------------------------------------------------


def test_a_truncated_or_damaged_parquet_file_is_named_so(tmp_path: Path) -> None:
    path = tmp_path / "day.parquet"
    write_trace(full_trace(), path)
    whole = path.read_bytes()
    for size in (4, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        words = refusal(path)
        assert "is truncated" in words
        assert f"{size:,} bytes" in words
    spoilt = bytearray(whole)
    spoilt[200:230] = bytes(30)
    path.write_bytes(spoilt)
    assert "is damaged" in refusal(path)
    path.write_bytes(whole[:-30] + whole[-20:])
    assert "is damaged" in refusal(path)


def test_a_missing_file_offers_its_neighbours(tmp_path: Path) -> None:
    write_trace(make_trace([0.0], [1], [1]), tmp_path / "weekday.parquet")
    (tmp_path / "notes.txt").write_text("")
    words = refusal(tmp_path / "wekday.parquet")
    assert "no file named" in words
    assert f"closest: {tmp_path / 'weekday.parquet'}" in words
    assert f"it holds {tmp_path / 'weekday.parquet'}" in refusal(tmp_path / "zzz")
    assert "there is no folder" in refusal(tmp_path / "nowhere" / "weekday.parquet")
    assert "no file named" in refusal(tmp_path / "notes.txt" / "weekday.parquet")


def test_a_folder_offers_what_it_holds(tmp_path: Path) -> None:
    assert "simulate traffic make" in refusal(tmp_path)
    write_trace(make_trace([0.0], [1], [1]), tmp_path / "weekday.parquet")
    words = refusal(tmp_path)
    assert "is a folder" in words
    assert str(tmp_path / "weekday.parquet") in words


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02\xff", "does not start with text"),
        ("one,two,three\n0,1,1\n", "it starts with 'one,two,three'"),
        ("[1, 2, 3]\n", "it starts with '[1, 2, 3]'"),
    ],
)
def test_another_file_is_told_what_is_read(file: Callable[..., Path], content: str | bytes, says: str) -> None:
    words = refusal(file(content))
    assert says in words
    if content:
        assert "arrival_s, input_tokens, output_tokens" in words
        assert HEADER in words


def test_what_is_not_a_file_on_disk_is_refused(tmp_path: Path) -> None:
    assert "not a regular file" in refusal("/dev/null")
    assert "cannot read" in refusal(tmp_path / ("x" * 300))
    assert "cannot read" in refusal("nul\0.parquet")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(file: Callable[..., Path]) -> None:
    path = file(AZURE_2023)
    path.chmod(0)
    assert "cannot read" in refusal(path)
