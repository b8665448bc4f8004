"""BurstGPT, versions 1 to 3: CSV with Timestamp, Model, Request tokens, Response tokens, Total tokens, Log Type.

Stamps are seconds since 00:00 of the first day at UTC+8 (no daylight saving; the date is not published), whole in
versions 1 and 2. Version 3 adds Session ID and Elapsed time in between and starts at 19,440,110 s: whole days are taken
off, so that the time of day stays. A request with zero Response tokens failed. Rows that repeat another are real.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.columns import missing_columns
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.rows import Rows, requests
from fleetcast.traffic.read.tables import csv_table
from fleetcast.units import DAY

COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
_LABELS = {"Session ID": "session", "Model": "model", "Log Type": "tenant"}
ZONE = "Etc/GMT-8"


def recognises(header: list[str]) -> bool:
    """Tell whether these are BurstGPT's columns."""
    return {"Request tokens", "Response tokens"} <= set(header)


def read(path: Path, header: list[str], options: Options) -> Reading:
    """Return the trace; the log type (conversation or API) stands as the tenant."""
    absent = [column for column in COLUMNS if column not in header]
    if absent:
        raise missing_columns(path, absent, header, COLUMNS)
    table = csv_table(path, header)
    stamp, inputs, outputs = (table.to_series(header.index(column)) for column in COLUMNS)
    clock = read_clock(stamp, where=str(path), name="Timestamp", unit="s", zone=None, aligned=False)
    seconds = clock.seconds
    days = np.floor(np.nanmin(seconds) / DAY) if np.isfinite(seconds).any() else 0.0
    clock = replace(clock, seconds=seconds - days * DAY, zone=options.time_zone or ZONE)
    labels = {key: table.to_series(header.index(name)) for name, key in _LABELS.items() if name in header}
    version = "3" if "Session ID" in header else "1 or 2"
    remark = "arrivals count from midnight (UTC+8) of the first day, whose date is not published"
    rows = Rows(clock, stamp, inputs, outputs, COLUMNS, labels, remarks=(remark,))
    return requests(rows, where=str(path), name=path.name, format=f"BurstGPT {version} CSV", options=options)
