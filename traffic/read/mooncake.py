"""Mooncake and Bailian JSON lines: timestamp, input_length, output_length, hash_ids.

Mooncake stamps in milliseconds and hashes blocks of 512 tokens; Bailian (chat_id, parent_chat_id, turn, type) in
seconds and blocks of 16, and its input_length of later turns holds the history already. Ids are kept in order as the
trace's prefix blocks; the `prefix` label names the first block, so that requests which begin alike share a label. The
conversation trace of Mooncake is stamped every 3 s, which a replay would turn into batches: see the report's tick.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fleetcast.errors import DataError
from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import decode
from fleetcast.traffic.trace import Blocks

COLUMNS = ("timestamp", "input_length", "output_length")
MOONCAKE_BLOCK, BAILIAN_BLOCK = 512, 16


def recognises(first: Any) -> bool:
    """Tell whether a line's object is a request of one of the two."""
    return isinstance(first, dict) and set(COLUMNS) <= set(first) and isinstance(first.get("hash_ids", []), list)


def read(path: Path, lines: Any, first: dict[str, Any], options: Options) -> Reading:
    """Return the trace with its prefix blocks, where it has them."""
    import polars as pl

    bailian = "chat_id" in first
    fields = [*COLUMNS, *(("chat_id", "parent_chat_id", "turn", "type") if bailian else ())]
    lists = {"hash_ids": pl.List(pl.Int64)} if "hash_ids" in first else {}
    try:
        table, unread = decode(lines, fields, lists)
    except DataError:
        table, unread = decode(lines, fields)
        lists = {}
    unit = options.time_unit or ("s" if bailian else "ms")
    stamp = table["timestamp"]
    clock = read_clock(stamp, where=str(path), name="timestamp", unit=unit, zone=options.time_zone, aligned=False)
    labels: dict[str, Any] = {}
    if bailian:
        labels = {"session": _sessions(table), "turn": table["turn"], "tenant": table["type"]}
    blocks = None
    if lists and table["hash_ids"].list.len().sum():
        size = BAILIAN_BLOCK if bailian else MOONCAKE_BLOCK
        blocks = blocks_of(table["hash_ids"], size)
        labels["prefix"] = table["hash_ids"].list.first().cast(pl.String)
    rows = Rows(clock, stamp, table["input_length"], table["output_length"], COLUMNS, labels, blocks, unread=unread)
    format = "Bailian JSON lines" if bailian else "Mooncake JSON lines"
    return requests(rows, where=str(path), name=path.name, format=format, options=options)


def blocks_of(ids: Any, tokens: int) -> Blocks:
    """Return a list column of ids as blocks."""
    sizes = ids.list.len().fill_null(0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    flat = ids.drop_nulls().explode(empty_as_null=False).fill_null(-1).to_numpy().astype(np.int64)
    return Blocks(offsets, flat, tokens)


def _sessions(table: Any) -> Any:
    """Return the first chat of each request's conversation, following parents as far as they are in the file."""
    parents = dict(zip(table["chat_id"].to_list(), table["parent_chat_id"].to_list(), strict=True))
    root: dict[Any, Any] = {}
    for chat in parents:
        way = []
        at = chat
        while at not in root and parents.get(at) in parents and at not in way:
            way.append(at)
            at = parents[at]
        top = root.get(at, at)
        root.update(dict.fromkeys([*way, at], top))
    import polars as pl

    return pl.Series([root.get(chat) for chat in table["chat_id"].to_list()], dtype=pl.String)
