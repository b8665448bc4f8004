"""fleetcast's own traffic file: Parquet with arrival_s, input_tokens, output_tokens and optional labels.

Any file with these columns is one, whoever wrote it; its metadata may add the start, the time zone and how
it was made. Numbers may have any numeric type. Labels may be text or whole numbers (session ids), and are
kept as text.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from fleetcast.errors import DataError
from fleetcast.traffic.read.columns import missing_columns
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.report import ReadReport, caps_of, gaps_of, peak_of, tick_of
from fleetcast.traffic.read.rows import finish
from fleetcast.traffic.trace import COLUMNS, LABELS, MISSING, Blocks, Labels, make_trace, refuse
from fleetcast.traffic.write import BLOCKS, METADATA, SCHEMA

MAGIC = b"PAR1"
FORMAT = "fleetcast Parquet"
MOST_BYTES = 1 << 35
"""The most that a file's columns may say they take in memory."""


def names_in(path: Path) -> list[str]:
    """Return the columns of the Parquet file at *path*; DataError when it is not whole, or has no rows."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    _complete(path)
    try:
        with parquet.ParquetFile(path) as file:
            names = [str(name) for name in file.schema_arrow.names]
            rows, groups = file.metadata.num_rows, file.metadata.num_row_groups
            size = sum(file.metadata.row_group(place).total_byte_size for place in range(groups))
    except (pa.ArrowException, OSError) as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{path} is damaged", why=why, fix="copy or make it again") from None
    if not rows:
        raise DataError(f"{path}: no requests", why=f"its columns are {', '.join(names) or 'none'}, without a row")
    if size > MOST_BYTES or rows > MOST_BYTES // 16:
        why = f"it says {rows:,} rows of {size:,} bytes in all; at most {MOST_BYTES:,} bytes are read"
        raise DataError(f"{path} is too large", why=why, fix="split the file by day")
    return names


def read(path: Path, options: Options | None = None) -> Reading:
    """Return the trace in the Parquet file at *path*; its values are taken as they are, or refused."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    options = options or Options()
    _complete(path)
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            _check_columns(path, schema.names)
            table = file.read([name for name in (*COLUMNS, *LABELS, BLOCKS) if name in schema.names])
    except (pa.ArrowException, OSError) as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{path} is damaged", why=why, fix="copy or make it again") from None
    facts = {
        key.decode().removeprefix(METADATA): value.decode(errors="replace")
        for key, value in (schema.metadata or {}).items()
        if key.startswith(METADATA.encode())
    }
    _check_schema(path, facts)
    unused = tuple(name for name in schema.names if name not in (*COLUMNS, *LABELS, BLOCKS))
    trace = make_trace(
        *(_numbers(path, name, table[name]) for name in COLUMNS),
        labels={name: _label(path, name, table[name]) for name in LABELS if name in table.column_names},
        name=path.name,
        start=_start(path, facts),
        time_zone=facts.get("time_zone"),
        recipe=facts.get("recipe", ""),
        blocks=_blocks(path, table[BLOCKS], facts) if BLOCKS in table.column_names else None,
        where=str(path),
    )
    stamps = trace.arrival_s
    late, inversions = _late(table[COLUMNS[0]])
    gap, gaps = gaps_of(stamps)
    report = ReadReport(
        format=FORMAT,
        kind="requests",
        read=len(trace),
        kept=len(trace),
        span_s=trace.span_s,
        mean_rate=len(trace) / (trace.span_s or 60.0),
        peak_rate=peak_of(stamps),
        start=trace.start,
        time_zone=trace.time_zone,
        out_of_order=late,
        inversions=inversions,
        tick_s=tick_of(stamps) if unused else None,  # what fleetcast wrote was spread when it was read
        longest_gap_s=gap,
        long_gaps=gaps,
        sampling=options.sampling,
        caps=caps_of({"input_tokens": trace.input_tokens, "output_tokens": trace.output_tokens}) if unused else {},
        unused=unused,
    )
    return Reading(report, finish(trace, report, options))


def _late(column: Any) -> tuple[int, int]:
    """Return how many rows came after a later one, and in how many places a row is earlier than the one before."""
    values = column.to_numpy()
    back = int(np.count_nonzero(values[1:] < values[:-1]))
    return (int(np.count_nonzero(values < np.maximum.accumulate(values))), back) if back else (0, 0)


def _blocks(path: Path, column: Any, facts: dict[str, str]) -> Blocks:
    import pyarrow as pa

    kind = column.type
    if not ((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_integer(kind.value_type)):
        raise DataError(f"{path}: column `{BLOCKS}` holds {kind}, not lists of whole numbers")
    whole = column.cast(pa.large_list(pa.int64())).combine_chunks()
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    sizes = whole.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    text = facts.get("block_tokens", "0")
    ids = whole.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    return Blocks(offsets, ids.astype(np.int64), int(text) if text.isdecimal() else 0)


def _complete(path: Path) -> None:
    """Refuse a file that lost its end, where Parquet keeps its index."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(MAGIC)))
        whole = file.read() == MAGIC and size > 2 * len(MAGIC)
    if not whole:
        why = f"it starts as a Parquet file but its end is missing; it holds {size:,} bytes"
        raise DataError(f"{path} is truncated", why=why, fix="copy or make it again")


def _check_columns(path: Path, names: list[str]) -> None:
    absent = [column for column in COLUMNS if column not in names]
    if absent:
        raise missing_columns(path, absent, names)
    for name in (*COLUMNS, *LABELS):
        if names.count(name) > 1:
            raise DataError(f"{path} has {names.count(name)} columns named `{name}`", fix="keep one of them")


def _check_schema(path: Path, facts: dict[str, str]) -> None:
    version = facts.get("schema", str(SCHEMA))
    if version != str(SCHEMA):
        why = f"this version of fleetcast reads schema {SCHEMA}"
        raise DataError(f"{path} says schema {version}", why=why, fix="update fleetcast")


def _start(path: Path, facts: dict[str, str]) -> datetime | None:
    text = facts.get("start")
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        fix = 'write for example "2026-03-04T00:00:00+01:00"'
        raise DataError(f"{path}: start = {text!r} in its metadata", why="not an ISO 8601 time", fix=fix) from None


def _numbers(path: Path, name: str, column: Any) -> Any:
    """Return a column as numpy has it; make_trace judges the values."""
    import pyarrow as pa

    if pa.types.is_nested(column.type):
        raise DataError(f"{path}: column `{name}` holds {column.type}, not one number per request")
    _refuse_nulls(path, name, column)
    return column.to_numpy()


def _refuse_nulls(path: Path, name: str, column: Any) -> None:
    import pyarrow.compute as compute

    if column.null_count:
        row = compute.index(compute.is_null(column), True).as_py()
        refuse(str(path), name, row, None, "the value is missing (null)", "fill it or drop the row")


def _label(path: Path, name: str, column: Any) -> Labels:
    """Return a label column as codes and names, names in order of first appearance."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if name == "turn":
        if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise DataError(f"{path}: column `turn` holds {kind}, not whole numbers")
        try:
            return Labels(column.cast(pa.int32()).fill_null(MISSING).to_numpy())
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: column `turn` holds a number that is too large", why=str(error)) from None
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (text or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise DataError(f"{path}: column `{name}` holds {kind}", why="labels are text or whole numbers")
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    codes = coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False).astype(np.int32)
    return Labels(codes, tuple(coded.dictionary.to_pylist()))
