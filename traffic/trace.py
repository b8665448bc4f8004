"""A trace: when requests arrive and how many tokens each brings and asks for.

A trace is a set of parallel arrays, sorted by arrival, plus optional label columns. It holds what users
send and nothing that a server did with it: no latencies, no failures, no texts. `make_trace` is the door:
what came through it is sorted, finite and whole, so that nothing behind it has to check again.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fleetcast.errors import DataError, suggest
from fleetcast.units import Seconds

COLUMNS = ("arrival_s", "input_tokens", "output_tokens")
"""The columns every trace has, by their names in the native file."""

LABELS = ("session", "turn", "model", "tenant", "region", "prefix")
"""The columns a trace may have besides."""

MISSING = -1
"""The code of a label that a request does not have."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = 72

MOST_TOKENS = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, eq=False)
class Labels:
    """One label column: a code per request into `names`, or `MISSING`; the codes of `turn` are the turns."""

    codes: NDArray[np.int32]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Blocks:
    """What the prompts begin with, as blocks of tokens by their ids: equal ids at equal places are equal prefixes.

    Request k has the ids from `offsets[k]` to `offsets[k + 1]`; `tokens` is the size of a block, 0 where the file does
    not say.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    tokens: int = 0

    def take(self, rows: NDArray[Any]) -> Blocks:
        """Return the blocks of the requests at *rows* (indices or a mask)."""
        first, size = self.offsets[:-1][rows], np.diff(self.offsets)[rows]
        offsets = np.concatenate(([0], np.cumsum(size)))
        places = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], size)
        return Blocks(offsets.astype(np.int64), self.ids[places], self.tokens)


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests in order of arrival; made and checked by `make_trace`.

    `arrival_s` counts seconds from `start`, where that is known. `recipe` says how a made trace was made.
    """

    arrival_s: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    labels: Mapping[str, Labels] = field(default_factory=dict)
    name: str = ""
    start: datetime | None = None
    time_zone: str | None = None
    notes: tuple[str, ...] = ()
    recipe: str = ""
    blocks: Blocks | None = None

    def __len__(self) -> int:
        return len(self.arrival_s)

    @property
    def span_s(self) -> Seconds:
        """Return the time from the first arrival to the last."""
        return float(self.arrival_s[-1] - self.arrival_s[0]) if len(self) else 0.0

    def take(self, rows: NDArray[Any], arrival_s: NDArray[np.float64] | None = None) -> Trace:
        """Return the requests at *rows* (indices or a mask), arriving at *arrival_s* where given.

        Raises ValueError when the result would not be sorted by arrival.
        """
        times = self.arrival_s[rows] if arrival_s is None else arrival_s
        if np.any(times[1:] < times[:-1]):
            raise ValueError("the rows of a trace are taken in order of arrival")
        return Trace(
            times,
            self.input_tokens[rows],
            self.output_tokens[rows],
            {name: Labels(column.codes[rows], column.names) for name, column in self.labels.items()},
            self.name,
            self.start,
            self.time_zone,
            self.notes,
            self.recipe,
            self.blocks.take(rows) if self.blocks else None,
        )


def make_trace(
    arrival: ArrayLike,
    input: ArrayLike,
    output: ArrayLike,
    *,
    labels: Mapping[str, Labels] | None = None,
    name: str = "",
    start: datetime | None = None,
    time_zone: str | None = None,
    notes: tuple[str, ...] = (),
    recipe: str = "",
    blocks: Blocks | None = None,
    where: str = "",
    columns: tuple[str, str, str] = COLUMNS,
) -> Trace:
    """Return the trace of these columns, sorted stably by arrival; DataError names the first bad row.

    Any numeric type will do, floats too where token counts are whole. *where* and *columns* are what the
    error calls the place and its columns, for files whose names differ.
    """
    where = where or name or "trace"
    given = [_numbers(values, column, where) for values, column in zip((arrival, input, output), columns, strict=True)]
    rows = len(given[0])
    for column, values in zip(columns, given, strict=True):
        if len(values) != rows:
            raise DataError(f"{where}: column `{column}` has {len(values)} rows, `{columns[0]}` has {rows}")
    if not rows:
        raise DataError(f"{where}: no requests", why="the trace has its columns, but not one row")

    times = _arrivals(given[0], columns[0], where)
    inputs = _tokens(given[1], columns[1], where, least=0)
    outputs = _tokens(given[2], columns[2], where, least=1)
    checked = {key: _label(key, column, rows, where) for key, column in (labels or {}).items()}
    if blocks is not None and (len(blocks.offsets) != rows + 1 or blocks.offsets[-1] != len(blocks.ids)):
        raise DataError(f"{where}: prefix blocks of {len(blocks.offsets) - 1} requests, not of {rows}")
    trace = Trace(times, inputs, outputs, checked, name, start, time_zone, tuple(notes), recipe, blocks)

    late = int(np.count_nonzero(times < np.maximum.accumulate(times)))
    if not late:
        return trace
    order = np.argsort(times, kind="stable")
    was = "was" if late == 1 else "were"
    note = f"{late:,} of {rows:,} arrivals {was} out of order: sorted"
    return Trace(**{**vars(trace.take(order)), "notes": (*trace.notes, note)})


def refuse(where: str, column: str, row: int, value: object, why: str, fix: str = "") -> NoReturn:
    """Raise the DataError of one value: *row* is a data row, counted from 0."""
    raise DataError(f"{where}: column `{column}`, row {row} (counting from 0): {shown(value)}", why=why, fix=fix)


def shown(value: object) -> str:
    """Return *value* as an error shows it: whole numbers without a point, long texts cut in the middle."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 1e15:
        plain = int(plain)
    return "no value" if plain is None else _SHORT.repr(plain)


def _first(bad: NDArray[np.bool_]) -> int | None:
    row = int(np.argmax(bad))
    return row if bad[row] else None


def _numbers(values: ArrayLike, column: str, where: str) -> NDArray[Any]:
    """Return *values* as a new one-dimensional array of integers or floats."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{where}: column `{column}` is not a list of numbers", why=str(error)) from None
    if array.ndim != 1:
        raise DataError(f"{where}: column `{column}` has {array.ndim} dimensions; a column has one")
    kind = array.dtype.kind
    if kind in "iu":
        return array
    if kind == "f":
        return array.astype(np.float64)
    if kind in "mM":
        fix = "write the seconds since the trace's start as a float; keep the date in the file's metadata"
        wants = "seconds (float64)" if column == COLUMNS[0] else "numbers"
        raise DataError(
            f"{where}: column `{column}` holds {'times' if kind == 'M' else 'durations'} ({array.dtype})",
            why=f"`{column}` is {wants}",
            fix=fix if column == COLUMNS[0] else "",
        )
    if not len(array):
        return array.astype(np.float64)
    if kind == "b":
        raise DataError(f"{where}: column `{column}` holds true and false, not numbers")
    return _from_objects(array, column, where)


def _from_objects(array: NDArray[Any], column: str, where: str) -> NDArray[np.float64]:
    """Return objects that are numbers as floats; of texts, refuse first one that is not like a number."""
    numbers = np.empty(len(array), np.float64)
    text: tuple[int, object] | None = None
    for row, value in enumerate(array.tolist()):
        if value is None:
            refuse(where, column, row, value, "the value is missing", "fill it or drop the row")
        try:
            numbers[row] = float(value)
        except (TypeError, ValueError, OverflowError):
            refuse(where, column, row, value, "this is not a number", "correct it or drop the row")
        if text is None and (isinstance(value, bool) or not isinstance(value, Real | Decimal)):
            text = row, value
    if text is not None:
        refuse(where, column, *text, "the column is text, not numbers", f"store `{column}` with a numeric type")
    return numbers


def _arrivals(values: NDArray[Any], column: str, where: str) -> NDArray[np.float64]:
    times = values.astype(np.float64)
    if (row := _first(np.isnan(times))) is not None:
        refuse(where, column, row, times[row], "the arrival is not a number", "drop the row")
    if (row := _first(np.isinf(times))) is not None:
        refuse(where, column, row, times[row], "an arrival is finite", "drop the row")
    if (row := _first(times < 0)) is not None:
        why = "arrivals count seconds from the trace's start"
        refuse(where, column, row, times[row], why, "add to every arrival what makes the earliest one 0")
    return times


def _tokens(values: NDArray[Any], column: str, where: str, least: int) -> NDArray[np.int32]:
    if values.dtype.kind == "f":
        if (row := _first(np.isnan(values))) is not None:
            refuse(where, column, row, values[row], "the token count is not a number", "drop the row")
        if (row := _first(np.isfinite(values) & (values != np.floor(values)))) is not None:
            refuse(where, column, row, values[row], "tokens come whole", f"write {float(values[row]):.0f}")
    if (row := _first(values < 0)) is not None:
        refuse(where, column, row, values[row], "a token count is not negative", "drop the row")
    if (row := _first(values < least)) is not None:
        why = "every request is answered with at least one token"
        refuse(where, column, row, values[row], why, "drop the row: it is a failed or cancelled request")
    if (row := _first(values > MOST_TOKENS)) is not None:
        refuse(where, column, row, values[row], f"a token count is at most {MOST_TOKENS:,}", "drop the row")
    return values.astype(np.int32)


def _label(key: str, column: Labels, rows: int, where: str) -> Labels:
    if key not in LABELS:
        raise DataError(f"{where}: no label column is named `{key}`", fix=suggest(key, LABELS))
    codes = np.array(column.codes)
    if codes.shape != (rows,) or codes.dtype.kind not in "iu":
        raise DataError(f"{where}: label column `{key}` needs one integer code for each of {rows} requests")
    top = MOST_TOKENS if key == "turn" else len(column.names) - 1
    if (row := _first((codes < MISSING) | (codes > top))) is not None:
        why = "a turn is 0 or more" if key == "turn" else f"the column has {len(column.names)} names"
        refuse(where, key, row, codes[row], why)
    return Labels(codes.astype(np.int32), tuple(column.names))
