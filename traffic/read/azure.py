"""The Azure LLM inference traces of 2023 and 2024: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

The 2023 files have CRLF line ends, no final newline, and times without a zone and with seven fractional
digits (`2023-11-16 18:17:03.9799600`); the 2024 files have six or no fractional digits and a zone
(`+00:00`). Arrivals count from the earliest stamp, which becomes the start; a zone that a file does not
state stays unknown.
"""

from __future__ import annotations

from pathlib import Path

from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.columns import missing_columns
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import csv_table

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
FORMAT = "Azure LLM inference CSV"


def recognises(header: list[str]) -> bool:
    """Tell whether a file whose first line has these names is an Azure trace, if perhaps not a whole one."""
    names = {name.lower() for name in header}
    return bool(names & {column.lower() for column in COLUMNS[1:]})


def read(path: Path, header: list[str], options: Options) -> Reading:
    """Return the trace in the CSV file at *path*, whose first line has the names *header*."""
    places = {name.lower(): place for place, name in reversed(list(enumerate(header)))}
    absent = [column for column in COLUMNS if column.lower() not in places]
    if absent:
        raise missing_columns(path, absent, header, COLUMNS)
    table = csv_table(path, header)
    stamp, inputs, outputs = (table.to_series(places[column.lower()]) for column in COLUMNS)
    known = {column.lower() for column in COLUMNS}
    clock = read_clock(stamp, where=str(path), name=COLUMNS[0], unit=options.time_unit, zone=options.time_zone)
    rows = Rows(clock, stamp, inputs, outputs, COLUMNS, unused=tuple(n for n in header if n.lower() not in known))
    return requests(rows, where=str(path), name=path.name, format=FORMAT, options=options)
