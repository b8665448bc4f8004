"""Text files to columns of text: CSV of any delimiter, and JSON lines, within bounds and without guessing types.

Everything stays text, so that a number in a JSON string, a file without a final newline and a date in a column of
numbers come to the same place: the readers judge values, this module only finds them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError
from fleetcast.traffic.trace import shown

MOST_COLUMNS = 20_000
LONGEST_DOCUMENT = 1 << 28
"""The largest single JSON document, which is read whole; JSON lines may be longer."""


def csv_table(path: Path, header: list[str] | None, separator: str = ",") -> Any:
    """Return the file as columns of text named by *header* (None: it has no header), less blank lines at its end."""
    import polars as pl

    if header is not None and len(header) > MOST_COLUMNS:
        raise DataError(f"{path} has {len(header):,} columns", why=f"a table has at most {MOST_COLUMNS:,}")
    try:
        table = pl.read_csv(path, infer_schema=False, separator=separator, has_header=header is not None)
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: no requests", why="the file ends after its header") from None
    except pl.exceptions.PolarsError as error:
        why = _ragged(path, len(header or ()), separator) or str(error).splitlines()[0]
        fix = "save it as UTF-8" if "utf" in why.lower() else "copy or export it again"
        raise DataError(f"{path} is not a whole CSV file", why=why, fix=fix) from None
    filled = table.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    if not len(filled):
        raise DataError(f"{path}: no requests", why="the file ends after its header")
    return table.head(int(filled[-1]) + 1)


def column_names(line: str, separator: str = ",") -> list[str]:
    """Return the names in the first line of a text file."""
    return [name.strip().strip('"').strip() for name in line.split(separator)]


def separator_of(line: str) -> str:
    """Return what parts the names of a header: comma, semicolon or tab."""
    return max((",", ";", "\t"), key=line.count)


def json_lines(path: Path) -> Any:
    """Return the lines of the file that are not blank, as one column of text."""
    import polars as pl

    try:
        table = pl.read_csv(
            path, has_header=False, infer_schema=False, separator="\x01", quote_char=None, truncate_ragged_lines=True
        )
    except pl.exceptions.PolarsError as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{path} is not a text file in UTF-8", why=why, fix="save it as UTF-8") from None
    lines = table.to_series(0).drop_nulls().str.strip_chars().str.strip_chars("\ufeff")
    return lines.filter(lines != "")


def decode(lines: Any, fields: Iterable[str], lists: Mapping[str, Any] | None = None) -> tuple[Any, int]:
    """Return a frame with the dotted *fields* of JSON *lines* as text (null where absent), and how many are no objects.

    *lists* gives the types of fields that are no text.
    """
    import polars as pl

    tree: dict[str, Any] = {}
    for field in fields:
        _put(tree, field.split("."), pl.String)
    for field, kind in (lists or {}).items():
        _put(tree, field.split("."), kind)
    kind = _struct(tree)
    try:
        rows = lines.str.json_decode(kind)
        unread = 0
    except pl.exceptions.PolarsError:
        good = pl.Series([_whole(line) for line in lines.to_list()], dtype=pl.Boolean)
        unread = int((~good).sum())
        try:
            rows = lines.filter(good).str.json_decode(kind)
        except pl.exceptions.PolarsError as error:
            raise DataError("these lines are not JSON of one shape", why=str(error).splitlines()[0]) from None
    frame = rows.to_frame("row")
    wanted = [*fields, *(lists or {})]
    return frame.select(_path(field).alias(field) for field in wanted), unread


def keys_of(lines: Any, count: int = 50) -> list[str]:
    """Return the dotted keys of the first lines that hold one value each, in order of appearance."""
    found: dict[str, None] = {}
    for line in lines.head(count).to_list():
        _walk(loads(line), "", found, 4)
    return list(found)


def loads(text: str | bytes) -> Any:
    """Return what a JSON text holds; None where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def document(path: Path) -> Any:
    """Return the single JSON document in the file; DataError when it is none."""
    size = path.stat().st_size
    if size > LONGEST_DOCUMENT:
        why = f"a document of {size:,} bytes is read whole; at most {LONGEST_DOCUMENT:,} are"
        raise DataError(f"{path} is too large for one JSON document", why=why, fix="export a shorter time")
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DataError(f"{path} is not whole JSON", why=why, fix="copy or export it again") from None


def _put(tree: dict[str, Any], path: list[str], kind: Any) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree[path[-1]] = kind


def _struct(tree: Mapping[str, Any]) -> Any:
    import polars as pl

    return pl.Struct({name: _struct(kind) if isinstance(kind, dict) else kind for name, kind in tree.items()})


def _path(field: str) -> Any:
    import polars as pl

    found = pl.col("row")
    for name in field.split("."):
        found = found.struct.field(name)
    return found


def _whole(line: str) -> bool:
    return isinstance(loads(line), dict)


def _walk(value: Any, at: str, found: dict[str, None], depth: int) -> None:
    if isinstance(value, dict) and depth:
        for key, inner in value.items():
            if "." not in key:
                _walk(inner, f"{at}.{key}" if at else key, found, depth - 1)
    elif not isinstance(value, list | dict) and at:
        found[at] = None


def _ragged(path: Path, fields: int, separator: str) -> str:
    """Return which row has more fields than the header, or nothing."""
    if not fields:
        return ""
    with path.open("rb") as file:
        for line, text in enumerate(file):
            if text.count(separator.encode()) >= fields:
                row = shown(text[:200].decode(errors="replace").strip())
                return f"row {line - 1} (counting from 0) has more fields than the {fields} of the header: {row}"
    return ""
