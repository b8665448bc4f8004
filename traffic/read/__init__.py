"""Files to traces: the format is told from the content, not from the name.

A file of fleetcast's own is read whole or refused. In the files of others a row that is no request is dropped, counted
and told; nothing else is mended silently: see `report.ReadReport`. A count series becomes a trace only with a length
model.
"""

from __future__ import annotations

import lzma
import os
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path

from fleetcast.errors import DataError, nearest
from fleetcast.traffic.lengths import PRESETS, LengthModel, preset
from fleetcast.traffic.read import (
    azure,
    burstgpt,
    cloudwatch,
    data_capture,
    generic,
    monitoring,
    mooncake,
    native,
    ragpulse,
    servegen,
    splitwise,
)
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.tables import column_names, document, json_lines, loads, separator_of
from fleetcast.traffic.trace import COLUMNS, Trace, shown

FORMATS = (
    f"read are Parquet files with the columns {', '.join(COLUMNS)}; Azure LLM inference CSV"
    f" ({','.join(azure.COLUMNS)}), BurstGPT, Mooncake, Bailian, ServeGen, RAGPulse, Vidur, Splitwise, SageMaker Data"
    " Capture, CloudWatch and monitoring counts, and any CSV, JSON lines or Parquet with columns of such names"
)
_HEAD = 1 << 18
_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


def read_trace(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    time_zone: str | None = None,
    sampling: float = 1.0,
    spread_ticks: bool = True,
    strict: bool = False,
    failures: str = "drop",
    values: str | None = None,
    missing: str | None = None,
    lengths: LengthModel | str | None = None,
    seed: int = 0,
) -> Trace:
    """Return the trace in the file at *path*; DataError says what is wrong with it and what to do.

    The keywords are those of `options.Options`; *lengths* may be the name of a preset. The trace's notes say what was
    dropped, sorted or spread.
    """
    options = Options(
        columns=dict(columns or {}),
        time_unit=time_unit,
        time_zone=time_zone,
        sampling=sampling,
        spread_ticks=spread_ticks,
        strict=strict,
        failures=failures,
        values=values,
        missing=missing,
        lengths=preset(lengths) if isinstance(lengths, str) else lengths,
        seed=seed,
    )
    reading = read_traffic(path, options)
    if reading.trace is None:
        raise no_lengths(path, reading)
    return reading.trace


def read_traffic(path: str | Path, options: Options | None = None) -> Reading:
    """Return what the file or folder at *path* holds, a trace or counts, with its report."""
    path, options = Path(path), options or Options()
    if _is_folder(path):
        return _read_folder(path, options)
    head = _head(path)
    if head.startswith(native.MAGIC):
        names = native.names_in(path)
        own = set(COLUMNS) <= set(names) and not options.columns
        near = set(COLUMNS) & set(names) and not generic.recognises(names, options)
        if own or near:
            return native.read(path, options)
        return generic.read_parquet(path, names, options)
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)
    if packed:
        return _read_packed(path, packed, options)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path} is text in UTF-16", why="traffic files are read in UTF-8", fix="save it as UTF-8")
    line = _first_line(head)
    if line.startswith(("{", "[")):
        return _read_json(path, line, options)
    return _read_csv(path, head, line, options)


def _read_csv(path: Path, head: bytes, line: str, options: Options) -> Reading:
    separator = separator_of(line)
    header = column_names(line, separator)
    if "," not in line and not line:
        raise _not_a_trace(path, line)
    if azure.recognises(header) and "arrival" not in options.columns:
        return azure.read(path, header, options)
    if burstgpt.recognises(header):
        return burstgpt.read(path, header, options)
    if splitwise.recognises(header):
        return splitwise.read(path, header, options)
    if servegen.recognises(line):
        return servegen.read(path, options)
    if servegen.recognises_totals(header):
        return servegen.read_totals(path, header, options)
    if len(header) > 1 and monitoring.recognises_wide(header):
        return monitoring.read_wide(path, header, options)
    if generic.recognises(header, options):
        return generic.read_csv(path, header, separator, options)
    lines = head.decode("utf-8-sig", errors="replace").splitlines()[:50]
    if cloudwatch.recognises_console(lines):
        return cloudwatch.read_console(path, lines, options)
    if options.lengths is not None and options.values is None and _arrivals_only(header):
        return generic.read_csv(path, header, separator, options)
    if monitoring.recognises(header):
        return monitoring.read(path, header, separator, options)
    raise _not_a_trace(path, line)


def _read_json(path: Path, line: str, options: Options) -> Reading:
    first = loads(line)
    if first is None or cloudwatch.recognises(first) or isinstance(first, list):
        whole = document(path) if first is None or isinstance(first, list) else first
        if cloudwatch.recognises(whole):
            return cloudwatch.read(path, whole, options)
        raise _not_a_trace(path, line)
    if data_capture.recognises(first):
        return data_capture.read(path, [path], options)
    lines = json_lines(path)
    if ragpulse.recognises(first):
        return ragpulse.read(path, lines, options)
    if mooncake.recognises(first) and not options.columns:
        return mooncake.read(path, lines, first, options)
    return generic.read_json(path, lines, options)


def _read_packed(path: Path, packed: str, options: Options) -> Reading:
    import tarfile

    try:
        archive = packed in ("gzip", "bzip2", "xz") and tarfile.is_tarfile(path)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
        archive = False
    if archive:
        return servegen.read(path, options)
    raise DataError(f"{path} is packed with {packed}", why="how much it holds cannot be seen", fix="unpack it first")


def _read_folder(path: Path, options: Options) -> Reading:
    files = data_capture.files_of(path)
    if files and data_capture.recognises_folder(files):
        return data_capture.read(path, files, options)
    if servegen.recognises_folder(path):
        return servegen.read(path, options)
    why = "a trace is one file; a folder is read where it is a Data Capture tree or holds ServeGen clients"
    raise DataError(f"{path} is a folder", why=why, fix=_offer(path))


def _arrivals_only(header: list[str]) -> bool:
    """Tell whether there is a time but no count."""
    return len(header) == 1 or not any(name.lower() in monitoring.COUNTS for name in header)


def no_lengths(path: str | Path, reading: Reading) -> DataError:
    """Return the error of counts that were taken for requests."""
    return DataError(
        f"{path} holds counts, not requests ({reading.report.format})",
        why="counts say when requests come, not how long they are",
        fix=f"add a length model, one of {', '.join(PRESETS)} or a file:\n"
        f"  simulate traffic convert {path} day.parquet --lengths chat\n"
        "  simulate … --set traffic.read.lengths=chat",
    )


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _head(path: Path) -> bytes:
    """Return the first bytes of the file, or say why there are none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
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
    kinds = (".parquet", ".csv", ".jsonl", ".json")
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(kinds))
    except OSError:
        names = []
    if not names:
        return "make one with: simulate traffic make weekday.parquet"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"it holds {', '.join(str(folder / name) for name in names[:5])}{more}"


def _first_line(head: bytes) -> str:
    """Return the first line, or nothing when it is not text (or longer than any line should be)."""
    try:
        first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0]
        line = first.decode("utf-8").strip()
    except UnicodeDecodeError:
        return ""
    return line if line.replace("\t", " ").isprintable() else ""


def _not_a_trace(path: Path, line: str) -> DataError:
    fix = "say which columns it has with --columns arrival=…,input=…,output=…, or start from:"
    starts = f"it starts with {shown(line)}" if line else "it does not start with text"
    return DataError(
        f"{path} is not a trace that fleetcast reads: {starts}",
        why=FORMATS,
        fix=f"{fix} simulate traffic make weekday.parquet",
    )


__all__ = ["FORMATS", "Options", "Reading", "no_lengths", "read_trace", "read_traffic"]
