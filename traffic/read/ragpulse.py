"""RAGPulse JSON lines: a week of retrieval-augmented questions, stamped in whole seconds from a noon on.

The stamp is a number in a string, hash_ids an object (system prompt, passages, history, web search, user input), and a
session's name holds the millisecond at which it began. Session less stamp gives two clusters for the published file,
the noons (UTC+8) of Wednesday 10 and of Wednesday 17 September 2025: the week is laid over two, and the later one is
taken. The `prefix` label names the first block of the system prompt.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.traffic.read.clock import known_zone, read_clock
from fleetcast.traffic.read.mooncake import blocks_of
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import decode

COLUMNS = ("timestamp", "input_length", "output_length")
PARTS = ("sys_prompt", "passages_ids", "history", "web_search", "user_input")
ZONE = "Asia/Shanghai"


def recognises(first: Any) -> bool:
    """Tell whether a line's object has hash ids by part of the prompt."""
    return isinstance(first, dict) and set(COLUMNS) <= set(first) and isinstance(first.get("hash_ids"), dict)


def read(path: Path, lines: Any, options: Options) -> Reading:
    """Return the trace with sessions and prefix blocks (of unknown size)."""
    import polars as pl

    lists = {f"hash_ids.{part}": pl.List(pl.Int64) for part in PARTS}
    table, unread = decode(lines, (*COLUMNS, "session_id"), lists)
    stamp = table["timestamp"]
    clock = read_clock(stamp, where=str(path), name="timestamp", unit="s", zone=None, aligned=False)
    start = _noon(clock.seconds, table["session_id"])
    zone = options.time_zone or ZONE
    remarks: tuple[str, ...] = ()
    if start is not None:
        clock = replace(clock, start=start.astimezone(known_zone(zone)), zone=zone)
        remarks = (f"the date (noon of {start:%a %d %b %Y}) is the one that the names of the sessions point at",)
    parts = [table[name].fill_null([]) for name in lists]
    joined = table.select(pl.concat_list(parts).alias("ids"))["ids"]
    labels = {"session": table["session_id"], "prefix": joined.list.first().cast(pl.String)}
    rows = Rows(
        clock, stamp, table["input_length"], table["output_length"], COLUMNS, labels, blocks_of(joined, 0),
        remarks=remarks, unread=unread,
    )  # fmt: skip
    return requests(rows, where=str(path), name=path.name, format="RAGPulse JSON lines", options=options)


def _noon(seconds: NDArray[np.float64], sessions: Any) -> datetime | None:
    """Return the noon (UTC+8) from which the stamps count: the last that a tenth of the sessions point at."""
    import polars as pl

    begun = sessions.str.extract(r"^(\d{13})", 1).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    known = np.isfinite(begun) & np.isfinite(seconds) & sessions.is_first_distinct().to_numpy()
    if known.sum() < 10:
        return None
    local = begun[known] / 1e3 - seconds[known] + 8 * 3_600
    noons, votes = np.unique(np.rint((local - 43_200) / 86_400), return_counts=True)
    noon = float(noons[votes >= 0.1 * votes.sum()][-1]) * 86_400 + 43_200
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=noon - 8 * 3_600)
