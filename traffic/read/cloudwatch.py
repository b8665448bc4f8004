"""CloudWatch: the JSON of get-metric-data and get-metric-statistics, and the CSV that the console exports.

A minute without calls has no point at all, so what is missing is zero. Points come newest first or in no order. The
statistic wanted is Sum; an Average is the same 1 for every call, and is refused. Several series of one file are summed
unless one is named.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fleetcast.errors import DataError, ScenarioError, suggest
from fleetcast.traffic.read.clock import read_clock
from fleetcast.traffic.read.options import Options, Reading
from fleetcast.traffic.read.series import counts

_DATE = re.compile(r'^"?\d{4}[-/]\d\d?[-/]\d\d?[ T]\d\d?:\d\d')


def recognises(document: Any) -> bool:
    """Tell whether a JSON document is an answer of CloudWatch."""
    return isinstance(document, dict) and ("MetricDataResults" in document or "Datapoints" in document)


def recognises_console(lines: list[str]) -> bool:
    """Tell whether a CSV begins with rows of labels and then has rows that begin with a date."""
    if len(lines) < 3 or _DATE.match(lines[0]):
        return False
    first = next((k for k, line in enumerate(lines) if _DATE.match(line)), 0)
    return first >= 2 or (first == 1 and lines[0].lower().startswith(("full label", "timestamp(utc)")))


def read(path: Path, document: Any, options: Options) -> Reading:
    """Return the counts of the JSON *document*."""
    import polars as pl

    if "MetricDataResults" in document:
        format = "CloudWatch get-metric-data JSON"
        stamps, values = _metric_data(path, document["MetricDataResults"], options)
    else:
        format = "CloudWatch get-metric-statistics JSON"
        stamps, values = _statistics(path, document["Datapoints"])
    remarks = ("the answer is partial: ask for the next pages too",) if document.get("NextToken") else ()
    if not stamps:
        raise DataError(f"{path}: no requests", why="the answer holds no point", fix="check metric, endpoint and time")
    text = pl.Series("Timestamp", [str(stamp) for stamp in stamps])
    clock = read_clock(text, where=str(path), name="Timestamp", unit=options.time_unit, zone=options.time_zone)
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise DataError(f"{path}: a value is no number", fix="export Sum of Invocations") from None
    return counts(
        clock, numbers, where=str(path), name=path.name, format=format, options=options, missing="zero", remarks=remarks
    )


def read_console(path: Path, lines: list[str], options: Options) -> Reading:
    """Return the counts of the console's CSV, whose first rows hold labels."""
    import polars as pl

    from fleetcast.traffic.read.tables import column_names

    first = next(k for k, line in enumerate(lines) if _DATE.match(line))
    width = lines[first].count(",")
    labels: dict[int, str] = {}
    for row in (column_names(line) for line in lines[:first]):
        labels |= {place: f"{labels.get(place, '')} {name}".strip() for place, name in enumerate(row) if place}
    if not width:
        raise DataError(f"{path} has no series", why="its rows are dates alone", fix="export it again")
    names = [labels.get(place, f"series {place}") for place in range(1, width + 1)]
    averages = [name for name in names if re.search(r"\b(average|avg)\b", name, re.IGNORECASE)]
    if averages:
        raise DataError(f"{path}: {averages[0]!r} is an average", why="counts are sums", fix="export the statistic Sum")
    try:
        table = pl.read_csv(path, infer_schema=False, has_header=False, skip_rows=first, truncate_ragged_lines=True)
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} is not a whole CSV file", why=str(error).splitlines()[0]) from None
    clock = read_clock(table.to_series(0), where=str(path), name="time", unit=None, zone=options.time_zone or "UTC")
    taken = pick(names, options, str(path))
    values = [table.to_series(names.index(name) + 1).str.strip_chars().cast(pl.Float64, strict=False) for name in taken]
    return counts(
        clock,
        total(values),
        where=str(path),
        name=path.name,
        format="CloudWatch console CSV",
        options=options,
        missing="zero",
        remarks=summed(taken),
    )


def pick(names: list[str], options: Options, where: str) -> list[str]:
    """Return the series to take: the one that was asked for, or all of them."""
    wanted = options.columns.get("value")
    if wanted is None:
        return names
    if wanted not in names:
        raise ScenarioError(f"{where} has no series {wanted!r}", fix=suggest(wanted, names))
    return [wanted]


def summed(names: list[str]) -> tuple[str, ...]:
    """Return what to say of several series."""
    if len(names) < 2:
        return ()
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    return (f"{len(names):,} series summed: {', '.join(names[:3])}{more}; take one with --columns value=NAME",)


def total(columns: list[Any]) -> Any:
    """Return the sum of columns row by row; NaN where none has a value."""
    stacked = np.stack([column.fill_null(np.nan).to_numpy().astype(np.float64) for column in columns])
    absent = np.isnan(stacked).all(axis=0)
    sums = np.nansum(stacked, axis=0)
    return np.where(absent, np.nan, sums)


def _metric_data(path: Path, results: Any, options: Options) -> tuple[list[Any], list[Any]]:
    series = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
    names = [str(row.get("Label") or row.get("Id") or place) for place, row in enumerate(series)]
    taken = pick(names, options, str(path)) if series else []
    stamps: list[Any] = []
    values: list[Any] = []
    for name, row in zip(names, series, strict=True):
        if name not in taken:
            continue
        times, numbers = row.get("Timestamps"), row.get("Values")
        if not isinstance(times, list) or not isinstance(numbers, list) or len(times) != len(numbers):
            raise DataError(f"{path}: series {name!r} has not a value for each stamp", fix="export it again")
        stamps += times
        values += numbers
    return stamps, values


def _statistics(path: Path, points: Any) -> tuple[list[Any], list[Any]]:
    rows = [row for row in points if isinstance(row, dict)] if isinstance(points, list) else []
    if rows and not any("Sum" in row for row in rows):
        there = ", ".join(sorted(set(rows[0]) - {"Timestamp", "Unit"})) or "none"
        raise DataError(f"{path}: its points have no Sum", why=f"they have {there}", fix="ask for --statistics Sum")
    whole = [row for row in rows if "Sum" in row and "Timestamp" in row]
    return [row["Timestamp"] for row in whole], [row["Sum"] for row in whole]
