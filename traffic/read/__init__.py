"""Files to traces: the format is told from the content, not from the name.

Read are fleetcast's own Parquet files (`native`) and the Azure LLM inference traces (`azure`). A file is
read whole or not at all: no row is skipped, mended or guessed, and what is wrong is named with its column,
row and value.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fleetcast.errors import DataError, nearest
from fleetcast.traffic.read import azure, native
from fleetcast.traffic.trace import COLUMNS, Trace, shown

FORMATS = (
    f"read are Parquet files with the columns {', '.join(COLUMNS)},"
    f" and Azure LLM inference CSV files with the header {','.join(azure.COLUMNS)}"
)
_HEAD = 65_536


def read_trace(path: str | Path) -> Trace:
    """Return the trace in the file at *path*; DataError says what is wrong with it and what to do."""
    path = Path(path)
    head = _head(path)
    if head.startswith(native.MAGIC):
        return native.read(path)
    line = _first_line(head)
    if azure.recognises(_header(line)):
        return azure.read(path, _header(line))
    raise _not_a_trace(path, line)


def _head(path: Path) -> bytes:
    """Return the first bytes of the file, or say why there are none."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path} is a folder", why="a trace is one file", fix=_offer(path))
        if not stat.S_ISREG(mode):
            raise DataError(f"{path} is not a regular file", why="a trace is read from a file on disk")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(path) from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"cannot read {path}", why=why, fix="name a file that you may read") from None
    if not head:
        raise DataError(f"{path} is empty", why="it holds 0 bytes", fix="copy or record it again")
    return head


def _missing(path: Path) -> DataError:
    folder = path.parent
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_file()]
    except OSError:
        return DataError(f"no file named {path}", why=f"there is no folder {folder}", fix="check the path")
    close = nearest(path.name, names)
    fix = f"closest: {', '.join(str(folder / name) for name in close)}" if close else _offer(folder)
    return DataError(f"no file named {path}", fix=fix)


def _offer(folder: Path) -> str:
    """Return what in *folder* could be a trace, by its name."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith((".parquet", ".csv")))
    except OSError:
        names = []
    if not names:
        return "make one with: simulate traffic make weekday.parquet"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"it holds {', '.join(str(folder / name) for name in names[:5])}{more}"


def _header(line: str) -> list[str]:
    """Return the comma-separated names in the first line of a text file."""
    return [name.strip().strip('"') for name in line.split(",")]


def _first_line(head: bytes) -> str:
    """Return the first line, or nothing when it is not text."""
    try:
        line = head.split(b"\n", 1)[0].decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return ""
    return line if line.replace("\t", " ").isprintable() else ""


def _not_a_trace(path: Path, line: str) -> DataError:
    fix = "convert it, or start from: simulate traffic make weekday.parquet"
    if set(COLUMNS) & set(_header(line)):
        code = f"polars.read_csv({str(path)!r}).write_parquet('trace.parquet')"
        fix = f'fleetcast\'s own columns come as Parquet; convert with: python -c "import polars; {code}"'
    starts = f"it starts with {shown(line)}" if line else "it does not start with text"
    return DataError(f"{path} is not a trace that fleetcast reads: {starts}", why=FORMATS, fix=fix)
