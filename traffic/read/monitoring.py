"""Count series as CSV: `timestamp,value`, Prometheus and Grafana exports, and rows of 1,440 minutes.

A Grafana panel shows requests per step or per second and its CSV does not say which, so that is asked, not guessed.
`timestamp,value` holds counts (so do CloudWatch copies such as the Numenta benchmark's) unless a value has a fraction.
A missing step is a gap here: a scraper that was down is no idle service.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic.counts import Counts
from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.cloudwatch import pick, summed, total
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.series import counts, reading
from fleetcast.traffic.read.tables import csv_table
from fleetcast.units import DAY

TIMES = ("timestamp", "time", "date", "datetime", "minute", "hour", "period")
COUNTS = ("value", "count", "requests", "invocations", "sum", "requestcount", "calls", "hits")
MINUTES = 1_440


def recognises(header: list[str]) -> bool:
    """Tell whether the first column is a time and the others are no lengths."""
    return len(header) >= 2 and header[0].lower() in TIMES


def recognises_wide(header: list[str]) -> bool:
    """Tell whether there is a column for each minute of a day."""
    return header[-1] == str(MINUTES) and header[-2] == str(MINUTES - 1) and "1" in header


def read(path: Path, header: list[str], separator: str, options: Options) -> Reading:
    """Return the counts; ScenarioError asks whether they are counts or rates where that cannot be seen."""
    table = csv_table(path, header, separator)
    stamp = table.to_series(0)
    clock = read_clock(stamp, where=str(path), name=header[0], unit=options.time_unit, zone=options.time_zone)
    names = pick(header[1:], options, str(path))
    columns = [_number(table.to_series(header.index(name, 1))) for name in names]
    values = total(columns)
    plain = len(names) == 1 and names[0].lower().replace(" ", "").replace("_", "") in COUNTS
    fractions = np.any(values[np.isfinite(values)] % 1 != 0)
    if options.values is None and (not plain or fractions):
        first = values[np.isfinite(values)][:1]
        said = f"a value is {first[0]:g}" if len(first) else "it has no number"
        raise ScenarioError(
            f"{path}: column `{names[0]}` holds counts or rates?",
            why=f"a monitoring export does not say whether a value is requests per step or per second; {said}",
            fix="say which: --values count, or --values rate",
        )
    return counts(
        clock,
        values,
        where=str(path),
        name=path.name,
        format="monitoring CSV",
        options=options,
        missing="gap",
        remarks=summed(names),
    )


def read_wide(path: Path, header: list[str], options: Options) -> Reading:
    """Return the sum over all rows, a count per minute of one day (counted where a call completed)."""
    import polars as pl

    table = csv_table(path, header)
    minutes = [str(minute) for minute in range(1, MINUTES + 1)]
    absent = [name for name in minutes if name not in header]
    if absent:
        raise DataError(
            f"{path} has no column `{absent[0]}`", why="a wide file has a column for each minute of the day"
        )
    part = table.select(pl.col(minutes).str.strip_chars().cast(pl.Float64, strict=False))
    bad = int(np.sum(part.null_count().to_numpy()))
    values = part.sum().to_numpy().ravel().astype(np.float64)
    if np.any(values < 0) or not np.all(np.isfinite(values)):
        raise DataError(f"{path}: a minute's count is negative or not finite", fix="export it again")
    if "value" in options.columns:
        raise ScenarioError("--columns value=…", why="a wide file has a column for each minute", fix="leave it out")
    found = Counts(0.0, 60.0, values, None, options.time_zone, path.name)
    dropped = {"values without a number": bad} if bad else {}
    rows = ("row", "rows")[table.height != 1]
    remarks = (f"{table.height:,} {rows} summed; the date is not in the file",)
    report = reading(
        found, table.height * MINUTES, 0, dropped, "zero", where=str(path),
        format="1,440-minute CSV", options=options, remarks=remarks,
    )  # fmt: skip
    assert found.span_s == DAY
    return report


def _number(column: Any) -> Any:
    import polars as pl

    text = column.str.strip_chars().str.replace_all(",", "", literal=True)
    return text.str.replace(r"\s*(req/s|reqps|ops|rps|cps)$", "").cast(pl.Float64, strict=False)
