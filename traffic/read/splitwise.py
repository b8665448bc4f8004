"""Traces of the Vidur and Splitwise simulators: CSV in seconds, with three spellings of the columns.

Vidur: arrived_at, num_prefill_tokens, num_decode_tokens (older: Time, PromptTokenCount, GeneratedTokenCount).
Splitwise and SageServe: arrival_timestamp, prompt_size, token_size (the output), application_id.
"""

from __future__ import annotations

from pathlib import Path

from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import csv_table

SPELLINGS = {
    "Vidur CSV": ("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    "Vidur CSV (older)": ("Time", "PromptTokenCount", "GeneratedTokenCount"),
    "Splitwise CSV": ("arrival_timestamp", "prompt_size", "token_size"),
}


def recognises(header: list[str]) -> bool:
    """Tell whether these are the columns of one of the spellings."""
    return any(set(columns) <= set(header) for columns in SPELLINGS.values())


def read(path: Path, header: list[str], options: Options) -> Reading:
    """Return the trace; the application stands as the tenant."""
    format, columns = next((name, cols) for name, cols in SPELLINGS.items() if set(cols) <= set(header))
    table = csv_table(path, header)
    stamp, inputs, outputs = (table.to_series(header.index(column)) for column in columns)
    labels = {"tenant": table.to_series(header.index("application_id"))} if "application_id" in header else {}
    used = {*columns, "application_id", "request_id"}
    clock = read_clock(
        stamp, where=str(path), name=columns[0], unit=options.time_unit or "s", zone=options.time_zone, aligned=False
    )
    rows = Rows(clock, stamp, inputs, outputs, columns, labels, unused=tuple(n for n in header if n not in used))
    return requests(rows, where=str(path), name=path.name, format=format, options=options)
