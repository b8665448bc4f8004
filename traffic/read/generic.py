"""Any table of requests, as CSV, JSON lines or Parquet, whose columns have names that other tools use.

The names known are listed in `columns.ALIASES`; others are said with the options. A file that has arrivals but no
lengths needs a length model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fleetcast.errors import DataError
from fleetcast.traffic.read.clock import read_clock, unit_of
from fleetcast.traffic.read.columns import ENDS, UPPER_BOUNDS, find_columns, missing_columns
from fleetcast.traffic.read.native import MOST_BYTES
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import csv_table, decode, keys_of
from fleetcast.traffic.trace import COLUMNS, LABELS


def recognises(names: list[str], options: Options) -> bool:
    """Tell whether *names* hold a length column, or the options say which columns do."""
    found = find_columns(names, {}, "")
    return "input_tokens" in found or "output_tokens" in found or "arrival" in options.columns


def read_csv(path: Path, header: list[str], separator: str, options: Options) -> Reading:
    """Return the trace in a CSV file."""
    roles = _roles(path, header, options)
    table = csv_table(path, header, separator)
    columns = {role: table.to_series(header.index(name)) for role, name in roles.items()}
    return _requests(path, header, roles, columns, 0, "CSV", options)


def read_json(path: Path, lines: Any, options: Options) -> Reading:
    """Return the trace in JSON lines; nested fields have dotted names (usage.prompt_tokens)."""
    names = keys_of(lines)
    if not names:
        raise DataError(f"{path} has no JSON objects", why="its first lines hold no named values")
    roles = _roles(path, names, options)
    table, unread = decode(lines, list(dict.fromkeys(roles.values())))
    columns = {role: table[name] for role, name in roles.items()}
    return _requests(path, names, roles, columns, unread, "JSON lines", options)


def read_parquet(path: Path, names: list[str], options: Options) -> Reading:
    """Return the trace in a Parquet file of other columns than fleetcast's."""
    import polars as pl

    roles = _roles(path, names, options)
    try:
        frame = pl.scan_parquet(path).select(list(dict.fromkeys(roles.values())))
        table = frame.collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is damaged", why=str(error).splitlines()[0], fix="copy or make it again") from None
    nested = [name for name, kind in table.schema.items() if kind.is_nested()]
    if nested:
        raise DataError(f"{path}: column `{nested[0]}` holds {table.schema[nested[0]]}, not one value per request")
    if table.estimated_size() > MOST_BYTES:
        raise DataError(f"{path}: {table.estimated_size():,} bytes in memory", fix="split the file by day")
    columns = {role: table[name] for role, name in roles.items()}
    return _requests(path, names, roles, columns, 0, "Parquet", options)


def _roles(path: Path, names: list[str], options: Options) -> dict[str, str]:
    given = {role: name for role, name in options.columns.items() if role != "value"}
    roles = find_columns(names, given, str(path))
    lengths = COLUMNS[1:]
    wanted = COLUMNS[:1] if options.lengths else COLUMNS
    absent = [column for column in wanted if column not in roles]
    if absent:
        error = missing_columns(path, absent, names)
        if set(absent) == set(lengths):
            error = DataError(
                error.what, why=error.why, fix=f"{error.fix}\n  or draw its lengths from a model: --lengths chat"
            )
        raise error
    return roles


def _requests(
    path: Path,
    names: list[str],
    roles: dict[str, str],
    columns: dict[str, Any],
    unread: int,
    format: str,
    options: Options,
) -> Reading:
    import polars as pl

    arrival = roles[COLUMNS[0]]
    unit = options.time_unit or ("s" if arrival == COLUMNS[0] else unit_of(arrival))
    clock = read_clock(
        columns[COLUMNS[0]],
        where=str(path),
        name=arrival,
        unit=unit,
        zone=options.time_zone,
        aligned=arrival != COLUMNS[0],
    )
    remarks = [f"columns taken: {', '.join(f'`{roles[column]}`' for column in COLUMNS if column in roles)}"]
    if _plain(roles.get(COLUMNS[2], "")) in map(_plain, UPPER_BOUNDS):
        remarks.append(f"`{roles[COLUMNS[2]]}` is an upper bound of the output, not the output")
    if _plain(arrival) in map(_plain, ENDS):
        remarks.append(f"`{arrival}` is when a request ended, not when it came")
    labels = {}
    for key in LABELS:
        if key in columns:
            kind = columns[key].dtype
            labels[key] = columns[key] if kind in (pl.String, pl.Categorical) or kind.is_integer() else None
    labels = {key: column for key, column in labels.items() if column is not None}
    rows = Rows(
        clock,
        columns[COLUMNS[0]],
        columns.get(COLUMNS[1]),
        columns.get(COLUMNS[2]),
        (arrival, roles.get(COLUMNS[1], COLUMNS[1]), roles.get(COLUMNS[2], COLUMNS[2])),
        labels,
        unused=tuple(name for name in names if name not in roles.values()),
        remarks=tuple(remarks),
        unread=unread,
    )
    return requests(rows, where=str(path), name=path.name, format=format, options=options)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
