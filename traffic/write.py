"""Traces to the native file: Parquet with a column per array, and what the arrays cannot say in its metadata.

Equal traces give equal bytes (with the same version of pyarrow): no date, no path and no machine goes into
the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fleetcast.errors import ScenarioError
from fleetcast.traffic.trace import COLUMNS, LABELS, MISSING, Labels, Trace

SCHEMA = 1
METADATA = "fleetcast."
"""What the file's metadata keys begin with: schema, start, time_zone, recipe, block_tokens."""

BLOCKS = "prefix_blocks"
"""The column of lists that holds the ids of the prompts' blocks, where they are known."""

ROW_GROUP = 1 << 20


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write *trace* as a native file: to a temporary name in the same folder first, then renamed.

    The name and the notes are not kept: they belong to the file that was read.
    """
    import pyarrow.parquet as parquet

    target = Path(path)
    table = _table(trace)
    try:
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                parquet.write_table(table, file, compression="zstd", row_group_size=ROW_GROUP, write_page_checksum=True)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(
            f"cannot write {path}",
            why=why,
            fix="name a file in a folder that exists and that you may write to",
        ) from None


def write_text(text: str, path: str | Path) -> None:
    """Write a text file: to a temporary name in the same folder first, then renamed."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        fix = "name a file in a folder that exists and that you may write to"
        raise ScenarioError(f"cannot write {path}", why=error.strerror or str(error), fix=fix) from None


def _table(trace: Trace) -> Any:
    import pyarrow as pa

    columns = {name: pa.array(getattr(trace, name)) for name in COLUMNS}
    columns |= {key: _labels(trace.labels[key]) for key in LABELS if key in trace.labels}
    if trace.blocks:
        lists = pa.LargeListArray.from_arrays(pa.array(trace.blocks.offsets), pa.array(trace.blocks.ids))
        columns[BLOCKS] = lists
    facts = {
        "block_tokens": str(trace.blocks.tokens) if trace.blocks else "",
        "schema": str(SCHEMA),
        "start": trace.start.isoformat() if trace.start else "",
        "time_zone": trace.time_zone or "",
        "recipe": trace.recipe,
    }
    return pa.table(columns).replace_schema_metadata({METADATA + key: text for key, text in facts.items() if text})


def _labels(column: Labels) -> Any:
    import pyarrow as pa

    missing = column.codes == MISSING
    codes = pa.array(column.codes, mask=missing)
    if not column.names:
        return codes
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.names, pa.string())).cast(pa.string())
