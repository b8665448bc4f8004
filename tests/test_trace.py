"""A trace is sorted, finite and whole, or it is refused with its row, column and value."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.errors import DataError
from fleetcast.traffic.trace import MISSING, Labels, make_trace

ROWS = st.lists(
    st.tuples(
        st.floats(0, 1e9, allow_nan=False), st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1), st.integers(-1, 2)
    ),
    min_size=1,
    max_size=40,
)


@given(ROWS)
def test_a_trace_is_its_rows_sorted_stably_by_arrival(rows: list[tuple[float, int, int, int]]) -> None:
    arrival, inputs, outputs, codes = (list(column) for column in zip(*rows, strict=True))
    trace = make_trace(arrival, inputs, outputs, labels={"tenant": Labels(np.array(codes), ("a", "b", "c"))})
    got = zip(
        trace.arrival_s.tolist(),
        trace.input_tokens.tolist(),
        trace.output_tokens.tolist(),
        trace.labels["tenant"].codes.tolist(),
        strict=True,
    )
    assert list(got) == sorted(rows, key=lambda row: row[0])
    assert len(trace) == len(rows)
    assert trace.span_s == max(arrival) - min(arrival)
    columns = (trace.arrival_s, trace.input_tokens, trace.output_tokens)
    assert [str(column.dtype) for column in columns] == ["float64", "int32", "int32"]
    assert trace.labels["tenant"].codes.dtype == np.int32


@given(ROWS)
def test_late_arrivals_are_counted(rows: list[tuple[float, int, int, int]]) -> None:
    arrival = [row[0] for row in rows]
    late = sum(time < max(arrival[: place + 1]) for place, time in enumerate(arrival))
    notes = make_trace(arrival, [1] * len(rows), [1] * len(rows)).notes
    verb = "was" if late == 1 else "were"
    assert notes == ((f"{late} of {len(rows)} arrivals {verb} out of order: sorted",) if late else ())


def test_a_note_is_added_to_those_of_the_reader() -> None:
    trace = make_trace([2.0, 1.0], [1, 2], [3, 4], notes=("columns not used: a",), name="n", recipe="r")
    assert trace.notes == ("columns not used: a", "1 of 2 arrivals was out of order: sorted")
    assert (trace.name, trace.recipe) == ("n", "r")
    assert trace.input_tokens.tolist() == [2, 1]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i8", "u8", "f2", "f4", "f8"])
def test_any_numeric_type_will_do(kind: str) -> None:
    trace = make_trace(np.array([0, 1, 2], kind), np.array([5, 6, 0], kind), np.array([1, 2, 3], kind))
    assert trace.arrival_s.tolist() == [0.0, 1.0, 2.0]
    assert trace.input_tokens.tolist() == [5, 6, 0]
    assert trace.output_tokens.tolist() == [1, 2, 3]


def test_decimals_and_python_numbers_will_do() -> None:
    trace = make_trace(
        np.array([Decimal("0.5"), 1], object), np.array([2**20, 3.0], object), np.array([Decimal(7), 1], object)
    )
    assert trace.arrival_s.tolist() == [0.5, 1.0]
    assert trace.input_tokens.tolist() == [2**20, 3]
    assert trace.output_tokens.tolist() == [7, 1]


def test_the_caller_keeps_its_arrays() -> None:
    arrival, tokens = np.array([0.0, 1.0]), np.array([1, 2], np.int32)
    trace = make_trace(arrival, tokens, tokens)
    arrival[0], tokens[0] = 0.5, 9
    assert trace.arrival_s[0] == 0.0
    assert trace.input_tokens[0] == trace.output_tokens[0] == 1


GOOD: dict[str, list[Any]] = {"arrival_s": [0.0, 1.0, 2.0], "input_tokens": [5, 6, 7], "output_tokens": [1, 2, 3]}


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("arrival_s", np.nan, ["nan", "not a number"]),
        ("arrival_s", np.inf, ["inf", "finite"]),
        ("arrival_s", -np.inf, ["-inf", "finite"]),
        ("arrival_s", -0.25, ["-0.25", "earliest one 0"]),
        ("arrival_s", "soon", ["'soon'", "not a number"]),
        ("arrival_s", None, ["no value", "missing"]),
        ("input_tokens", -1, ["-1", "not negative"]),
        ("input_tokens", 12.5, ["12.5", "whole", "write 12"]),
        ("input_tokens", np.nan, ["nan", "not a number"]),
        ("input_tokens", np.inf, ["inf", "at most 2,147,483,647"]),
        ("input_tokens", 2**31, ["2147483648", "at most 2,147,483,647"]),
        ("input_tokens", 2**70, ["at most 2,147,483,647"]),
        ("input_tokens", -(2**70), ["not negative"]),
        ("input_tokens", "374", ["'374'", "text", "numeric type"]),
        ("input_tokens", "many", ["'many'", "not a number"]),
        ("input_tokens", None, ["no value", "missing"]),
        ("output_tokens", 0, ["0", "at least one token", "drop the row"]),
        ("output_tokens", -3, ["-3", "not negative"]),
        ("output_tokens", 0.5, ["0.5", "whole"]),
    ],
)
def test_a_bad_value_is_named_with_row_column_and_remedy(column: str, value: object, says: list[str]) -> None:
    columns = {name: list(values) for name, values in GOOD.items()}
    columns[column][2] = value
    arrays = [np.array(v, object) if value is None or isinstance(value, str) else v for v in columns.values()]
    with pytest.raises(DataError) as caught:
        make_trace(*arrays, where="day.parquet")
    assert caught.value.what.startswith(f"day.parquet: column `{column}`, row 2 (counting from 0): ")
    for words in says:
        assert words in str(caught.value)


def test_the_first_bad_row_is_named() -> None:
    with pytest.raises(DataError, match=r"`input_tokens`, row 1 \(counting from 0\): -4"):
        make_trace([0, 1, 2], [1, -4, -5], [1, 1, 1])


def test_of_a_text_column_the_value_unlike_a_number_is_named() -> None:
    with pytest.raises(DataError, match=r"row 2 \(counting from 0\): 'x'"):
        make_trace([0, 1, 2], ["1", "2", "x"], [1, 1, 1])
    with pytest.raises(DataError, match=r"row 0 \(counting from 0\): '1'\n  the column is text"):
        make_trace([0, 1, 2], ["1", "2", "3"], [1, 1, 1])


@pytest.mark.parametrize(
    ("arrival", "says"),
    [
        (np.array(["2026-01-01", "2026-01-02"], "M8[us]"), r"holds times \(datetime64\[us\]\)\n.*seconds.*\n.*float"),
        (np.array([1, 2], "m8[s]"), r"holds durations \(timedelta64\[s\]\)"),
        (np.array([True, False]), "holds true and false"),
        (np.array([[0.0], [1.0]]), "has 2 dimensions"),
        ([[0.0], [1.0, 2.0]], "is not a list of numbers"),
        (np.array([1j, 2j]), "not a number"),
        ([0.0, 1.0, 2.0], "`input_tokens` has 2 rows, `arrival_s` has 3"),
    ],
)
def test_a_column_of_another_kind_is_refused(arrival: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make_trace(arrival, [1, 1], [1, 1])


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(DataError, match=r"day\.csv: no requests"):
        make_trace([], [], [], name="day.csv")


@pytest.mark.parametrize(
    ("key", "column", "says"),
    [
        ("tenants", Labels(np.zeros(3, np.int32), ("a",)), "closest: tenant"),
        ("tenant", Labels(np.zeros(2, np.int32), ("a",)), "one integer code for each of 3"),
        ("tenant", Labels(np.zeros(3), ("a",)), "one integer code"),  # type: ignore[arg-type]
        (
            "tenant",
            Labels(np.array([0, 1, 2], np.int32), ("a", "b")),
            r"`tenant`, row 2 .*: 2\n  the column has 2 names",
        ),
        ("turn", Labels(np.array([0, 1, -2], np.int32)), r"`turn`, row 2 .*: -2"),
    ],
)
def test_a_bad_label_column_is_refused(key: str, column: Labels, says: str) -> None:
    with pytest.raises(DataError, match=says):
        make_trace([0, 1, 2], [1, 1, 1], [1, 1, 1], labels={key: column})


def test_take_keeps_rows_and_labels_together() -> None:
    turns = Labels(np.array([0, MISSING, 2, 3], np.int32))
    trace = make_trace([0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23], labels={"turn": turns}, name="n")
    part = trace.take(trace.input_tokens != 12)
    assert part.arrival_s.tolist() == [0, 1, 3]
    assert part.output_tokens.tolist() == [20, 21, 23]
    assert part.labels["turn"].codes.tolist() == [0, MISSING, 3]
    assert part.name == "n"
    drawn = trace.take(np.array([3, 3, 0]), np.array([0.5, 0.5, 9.0]))
    assert drawn.input_tokens.tolist() == [13, 13, 10]
    assert drawn.arrival_s.tolist() == [0.5, 0.5, 9.0]
    with pytest.raises(ValueError, match="in order of arrival"):
        trace.take(np.array([2, 1]))
