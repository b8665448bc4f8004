"""The Azure LLM inference traces of 2023 and 2024: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

The 2023 files have CRLF line ends, no final newline, and times without a zone and with seven fractional
digits (`2023-11-16 18:17:03.9799600`); the 2024 files have six or no fractional digits and a zone
(`+00:00`). Arrivals count from the earliest stamp, which becomes the start; a zone that a file does not
state stays unknown.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError
from fleetcast.traffic.read.columns import missing_columns
from fleetcast.traffic.trace import Trace, make_trace, refuse

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_ZONE = r"\s*(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$"
_YEAR = "^(19[7-9]|20|21)"  # nanoseconds in 64 bits end in 2262, and wrap
_EXAMPLE = "write it as 2023-11-16 18:17:03.9799600, or with a zone as 2024-05-10 00:00:00.009930+00:00"


def recognises(header: list[str]) -> bool:
    """Tell whether a file whose first line has these names is an Azure trace, if perhaps not a whole one."""
    names = {name.lower() for name in header}
    return bool(names & {column.lower() for column in COLUMNS[1:]})


def read(path: Path, header: list[str]) -> Trace:
    """Return the trace in the CSV file at *path*, whose first line has the names *header*."""
    places = {name.lower(): place for place, name in reversed(list(enumerate(header)))}
    absent = [column for column in COLUMNS if column.lower() not in places]
    if absent:
        raise missing_columns(path, absent, header, COLUMNS)
    table = _table(path, header)
    stamp, inputs, outputs = (table.to_series(places[column.lower()]) for column in COLUMNS)
    elapsed_s, start, zone = _times(path, stamp)
    unused = [name for name in header if name.lower() not in {column.lower() for column in COLUMNS}]
    return make_trace(
        elapsed_s,
        _numbers(path, COLUMNS[1], inputs),
        _numbers(path, COLUMNS[2], outputs),
        name=path.name,
        start=start,
        time_zone=zone,
        notes=(f"columns not used: {', '.join(unused)}",) if unused else (),
        where=str(path),
        columns=COLUMNS,
    )


def _table(path: Path, header: list[str]) -> Any:
    """Return the file as columns of text, without blank lines at its end."""
    import polars as pl

    try:
        table = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        why = _ragged(path, len(header)) or str(error).splitlines()[0]
        raise DataError(f"{path} is not a whole CSV file", why=why, fix="copy or export it again") from None
    filled = table.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    if not len(filled):
        raise DataError(f"{path}: no requests", why="the file ends after its header")
    return table.head(int(filled[-1]) + 1)


def _ragged(path: Path, fields: int) -> str:
    """Return which row has more fields than the header, or nothing."""
    with path.open("rb") as file:
        for line, text in enumerate(file):
            if text.count(b",") >= fields:
                return f"row {line - 1} (counting from 0) has more fields than the {fields} of the header"
    return ""


def _numbers(path: Path, column: str, text: Any) -> Any:
    """Return text as float64 numbers."""
    import polars as pl

    numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
    _refuse_nulls(path, column, text, numbers, "this is not a number", "correct it or drop the row")
    return numbers.to_numpy()


def _refuse_nulls(path: Path, column: str, text: Any, parsed: Any, why: str, fix: str) -> None:
    if parsed.null_count():
        row = parsed.is_null().arg_max()
        if text[row] is None:
            why, fix = "the value is missing", "fill it or drop the row"
        refuse(str(path), column, row, text[row], why, fix)


def _times(path: Path, text: Any) -> tuple[Any, datetime, str | None]:
    """Return the seconds since the earliest stamp, that stamp, and the zone if every row states one."""
    zones = text.str.extract(_ZONE, 1)
    clock = text.str.replace(_ZONE, "").str.strip_chars().str.replace("T", " ", literal=True)
    parsed = clock.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ns", strict=False)
    parsed = parsed.set(~clock.str.contains(_YEAR), None)
    _refuse_nulls(path, COLUMNS[0], text, parsed, "this is not a date and time", _EXAMPLE)
    stated = zones.drop_nulls().unique().sort().to_list()
    if stated and zones.null_count():
        row = zones.is_null().arg_max()
        refuse(str(path), COLUMNS[0], row, text[row], "other rows state a zone, this one does not", _EXAMPLE)

    offsets = {zone: _offset(zone) for zone in stated}
    stamps = parsed.to_physical()
    if any(offsets.values()):
        stamps = stamps - zones.replace_strict({zone: offsets[zone] * 1_000_000_000 for zone in stated})
    first: int = stamps.min()
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=first // 1_000)
    elapsed_s = (stamps - first).to_numpy() / 1e9
    if not stated:
        return elapsed_s, start.replace(tzinfo=None), None
    apart = set(offsets.values())
    zone = timezone(timedelta(seconds=apart.pop())) if len(apart) == 1 else UTC
    return elapsed_s, start.astimezone(zone), str(zone)


def _offset(zone: str) -> int:
    """Return the seconds that a zone such as `Z`, `+0530` or `-08:00` is ahead of UTC."""
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (-1 if zone[0] == "-" else 1) * (hours * 3_600 + minutes * 60)
