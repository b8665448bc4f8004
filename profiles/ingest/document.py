"""A benchmark's result file as plain values: JSON, JSON lines or CSV, told apart by content and not by name.

Nothing is known of any tool here. A file is read whole, so one that is too large is refused with that reason; whatever
else is wrong with its bytes (not text, cut off, nested without end) becomes a DataError that names the place.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError, ScenarioError, nearest

LARGEST = 64 * 2**20  # bytes; parsed JSON takes about ten times the room
ROWS = 100_000


@dataclass(frozen=True, eq=False)
class Document:
    """What one file says: `records` of JSON (one, or one a line), or the `rows` of a CSV; the other is empty."""

    path: str
    sha256: str
    records: tuple[Any, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def tables(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The blocks of a CSV that empty lines part."""
        blocks: list[list[tuple[str, ...]]] = [[]]
        for row in self.rows:
            if any(cell.strip() for cell in row):
                blocks[-1].append(row)
            elif blocks[-1]:
                blocks.append([])
        return tuple(tuple(block) for block in blocks if block)

    @cached_property
    def objects(self) -> tuple[Mapping[str, Any], ...]:
        """The records that are objects, or the rows of the first table under its header: what generic readers look at.

        A list of objects counts as its items.
        """
        if self.rows:
            header, *body = self.tables[0]
            names = [cell.strip() for cell in header]
            return tuple(dict(zip(names, row, strict=False)) for row in body)
        found: list[Mapping[str, Any]] = []
        for record in self.records:
            items = record if isinstance(record, list) else [record]
            found += [item for item in items if isinstance(item, dict)]
        return tuple(found)

    @property
    def first(self) -> Mapping[str, Any]:
        """The first object of a JSON file, empty where there is none."""
        return self.objects[0] if self.objects and not self.rows else {}

    @cached_property
    def header(self) -> tuple[str, ...]:
        """The column names of a CSV."""
        return tuple(cell.strip() for cell in self.tables[0][0]) if self.rows else ()


def read_document(path: str) -> Document:
    """Read the file at *path*; ScenarioError where there is none, DataError where it is not JSON or CSV."""
    raw = _bytes_of(Path(path).expanduser(), path)
    text = _text_of(raw, path)
    digest = hashlib.sha256(raw).hexdigest()
    start = text.lstrip()[:1]
    if not start:
        raise DataError(f"{path} is empty", fix="run the benchmark to its end, then import what it wrote")
    if start in "{[":
        return Document(path, digest, records=_json(text, path))
    found = Document(path, digest, rows=_csv(text, path))
    if not found.tables:
        raise DataError(
            f"{path} holds no cell", why="every line is empty or commas alone", fix="import what the tool wrote"
        )
    return found


def _bytes_of(file: Path, path: str) -> bytes:
    try:
        if file.is_dir():
            raise DataError(f"{path} is a directory", why="one file is read at a time here")
        size = file.stat().st_size
        if size > LARGEST:
            why = f"it holds {size / 2**20:,.0f} MiB and is read whole, which is refused above {LARGEST // 2**20} MiB"
            fix = "let the tool write its summary, without the text and the timing of each request, or split the file"
            raise DataError(f"{path} is too large", why=why, fix=fix)
        with file.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except FileNotFoundError:
        others = [p.name for p in file.parent.iterdir()] if file.parent.is_dir() else []
        close = [str(Path(path).with_name(name)) for name in nearest(file.name, others)]
        raise ScenarioError(f"there is no file {path}", fix=f"closest: {', '.join(close)}" if close else "") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{path} cannot be read", why=why) from None


def _text_of(raw: bytes, path: str) -> str:
    wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8 text"
        fix = "import the JSON or CSV that the benchmark wrote"
        raise DataError(f"{path} is not a text file", why=why, fix=fix) from None


def _json(text: str, path: str) -> tuple[Any, ...]:
    try:
        return (json.loads(text),)
    except RecursionError:
        raise _too_deep(path) from None
    except json.JSONDecodeError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2 or "Extra data" not in error.msg:
            raise _bad_json(path, text, error) from None
    except ValueError as error:  # an integer with more digits than Python converts
        raise DataError(f"{path} is not a benchmark's JSON", why=str(error).split(";")[0]) from None
    records = []
    for number, line in lines:
        try:
            records.append(json.loads(line))
        except RecursionError:
            raise _too_deep(path) from None
        except json.JSONDecodeError as error:
            raise _bad_json(f"{path}:{number}", line, error) from None
        except ValueError as error:
            raise DataError(f"{path}:{number}: not a benchmark's JSON", why=str(error).split(";")[0]) from None
    return tuple(records)


def _bad_json(where: str, text: str, error: json.JSONDecodeError) -> DataError:
    cut = error.pos >= len(text.rstrip()) - 1 or "Unterminated" in error.msg
    why = f"{error.msg} at line {error.lineno}, column {error.colno}" + (": the file ends too early" if cut else "")
    return DataError(f"{where} is not JSON", why=why, fix="copy the file again, or run the benchmark to its end")


def _too_deep(path: str) -> DataError:
    return DataError(f"{path} is not a benchmark's JSON", why="it is nested deeper than any tool writes")


def _csv(text: str, path: str) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            rows.append(tuple(row))
            if len(rows) > ROWS:
                why = f"it has more than {ROWS:,} rows; a benchmark has a few hundred at most"
                raise DataError(f"{path} is too long", why=why, fix="import a summary, one row a run")
    except csv.Error as error:
        raise DataError(f"{path}:{len(rows) + 1}: not CSV", why=str(error)) from None
    if max((len(row) for row in rows), default=0) < 2:
        why = "it is neither JSON nor a table with commas"
        raise DataError(f"{path} is no benchmark result", why=why, fix="import the JSON or CSV that the tool wrote")
    return tuple(rows)
