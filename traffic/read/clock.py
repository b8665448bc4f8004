"""Stamps to seconds: ISO 8601 with or without a zone, epochs told by their magnitude, relative seconds.

Whether relative stamps are seconds or milliseconds cannot be seen from their size (59 minutes are 3,537 s or 3,536,999
ms), so the format, the column's name or the caller has to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic.read.options import UNITS
from fleetcast.traffic.trace import refuse, shown

_ZONE = r"\s*(Z|z|UTC|GMT|[+-](?:[01]\d|2[0-3]):?[0-5]\d)$"
_YEAR = "^(19[7-9]|20|21)"  # nanoseconds in 64 bits end in 2262, and wrap
EXAMPLE = "write it as 2023-11-16 18:17:03.9799600, or with a zone as 2024-05-10 00:00:00.009930+00:00"
_NAMED_UNITS = {"ms": "ms", "millis": "ms", "us": "us", "micros": "us", "ns": "ns", "nanos": "ns", "s": "s", "sec": "s"}
_EPOCH = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_FIRST, _LAST = 6.3e8, 7.3e9  # 1990 to 2201, seconds


@dataclass(frozen=True)
class Clock:
    """Seconds from `start` (or from the file's own zero), NaN where a stamp cannot be read."""

    seconds: NDArray[np.float64]
    start: datetime | None
    zone: str | None
    iso: bool = False


def known_zone(name: str) -> Any:
    """Return the time zone of a name such as Europe/Berlin; ScenarioError when there is none."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    from fleetcast.errors import suggest

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zones = available_timezones()
        fix = suggest(name, zones) if zones else "this machine has no time zones: pip install tzdata"
        raise ScenarioError(f"no time zone named {name!r}", fix=fix) from None


def read_clock(
    column: Any, *, where: str, name: str, unit: str | None, zone: str | None, aligned: bool = True
) -> Clock:
    """Return the clock of a polars *column*; *unit* is that of numbers, *zone* that of stamps which state none.

    *aligned* makes the earliest relative stamp zero; ISO and epoch stamps always count from the earliest, which becomes
    the start.
    """
    import polars as pl

    if zone is not None:
        known_zone(zone)
    if isinstance(column.dtype, pl.Datetime):
        return _from_datetimes(column, where, name, zone)
    if column.dtype == pl.Date:
        return _from_datetimes(column.cast(pl.Datetime("ns")), where, name, zone)
    if column.dtype.is_numeric():
        return _from_numbers(column, where, name, unit, zone, aligned)
    text = column.cast(pl.String, strict=False).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == len(text):
        return _from_texts(column, text, where, name, zone)
    stamps = (text.str.contains(r"^\d{4}-\d\d-\d\d[ T]") & numbers.is_null()).fill_null(False)
    if stamps.any():
        number, stamp = numbers.is_not_null().arg_max() or 0, stamps.arg_max() or 0
        raise DataError(
            f"{where}: column `{name}` mixes numbers and dates",
            why=f"row {number} (counting from 0) is {shown(column[number])}, row {stamp} is {shown(column[stamp])}",
            fix="export one format",
        )
    whole = text.cast(pl.Int64, strict=False)
    if whole.null_count() == numbers.null_count():
        numbers = whole
    return _from_numbers(numbers, where, name, unit, zone, aligned)


def unit_of(name: str) -> str | None:
    """Return the unit that a column's name states: arrival_time_us, timestamp_ms, arrived_at_s."""
    parts = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return next((_NAMED_UNITS[part] for part in reversed(parts) if part in _NAMED_UNITS), None)


def _from_numbers(numbers: Any, where: str, name: str, unit: str | None, zone: str | None, aligned: bool) -> Clock:
    import polars as pl

    finite = numbers.cast(pl.Float64)
    finite = finite.set(~finite.is_finite().fill_null(False), None)
    values = finite.to_numpy().astype(np.float64)
    good = ~np.isnan(values)
    if not good.any():
        return Clock(values, None, None)
    unit = unit or unit_of(name)
    size = np.abs(values[good])
    classes = np.full(len(size), "", "U2")
    for label, factor in _EPOCH.items():
        classes[(size >= _FIRST * factor) & (size < _LAST * factor)] = label
    found = sorted(set(classes.tolist()))
    if unit is None and len(found) > 1:
        rows = np.flatnonzero(good)
        one, other = rows[0], rows[int(np.argmax(classes != classes[0]))]
        raise DataError(
            f"{where}: column `{name}` mixes time units",
            why=f"row {one} (counting from 0) is {shown(values[one])}, row {other} is {shown(values[other])}",
            fix="export one unit",
        )
    if unit is None and found == [""]:
        span = float(size.max() - size.min())
        rate = int(good.sum()) / (span or 1.0)
        raise DataError(
            f"{where}: column `{name}` counts from an unknown time in an unknown unit",
            why=f"as seconds it spans {span:,.6g} s at {rate:,.4g} requests/s, "
            f"as milliseconds {span / 1e3:,.6g} s at {rate * 1e3:,.4g}",
            fix="say which: --time-unit s (or ms, us, ns)",
        )
    unit = unit or found[0]
    factor = UNITS[unit]
    first: float
    if numbers.dtype.is_integer():
        first = int(numbers.min())
        elapsed = (numbers - first).to_numpy().astype(np.float64) * factor
    else:
        first = float(values[good].min())
        elapsed = (values - first) * factor
    begin_s = first * factor
    if _FIRST <= begin_s < _LAST:
        micro = first * round(1e9 * factor) // 1000 if isinstance(first, int) else round(first * factor * 1e6)
        return Clock(elapsed, *_start(micro, "UTC", zone), iso=False)
    return Clock(elapsed if aligned or begin_s < 0 else elapsed + begin_s, None, zone)


def _start(micro: int, stated: str | None, zone: str | None) -> tuple[datetime, str]:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micro)
    return (start.astimezone(known_zone(zone)), zone) if zone else (start, stated or "UTC")


def _from_texts(column: Any, text: Any, where: str, name: str, zone: str | None) -> Clock:
    import polars as pl

    zones = text.str.extract(_ZONE, 1)
    clock = text.str.replace(_ZONE, "").str.strip_chars().str.replace("T", " ", literal=True)
    clock = clock.str.replace(r"^(\d{4})/(\d\d?)/(\d\d?) ", "$1-$2-$3 ")
    parsed = clock.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="ns", strict=False)
    if parsed.null_count():
        minutes = clock.str.to_datetime("%Y-%m-%d %H:%M", time_unit="ns", strict=False)
        parsed = parsed.fill_null(minutes)
    parsed = parsed.set(~clock.str.contains(_YEAR).fill_null(False), None)
    readable = parsed.is_not_null()
    bare = (readable & zones.is_null()).fill_null(False)
    stated = zones.filter(readable).drop_nulls().unique().sort().to_list()
    if stated and bare.any():
        row = bare.arg_max()
        refuse(where, name, row, column[row], "other rows state a zone, this one does not", EXAMPLE)
    if not stated:
        return _from_datetimes(parsed, where, name, zone)
    offsets = {each: _offset(each) for each in stated}
    stamps = parsed.to_physical()
    if any(offsets.values()):
        table = {each: offset * 1_000_000_000 for each, offset in offsets.items()}
        stamps = stamps - zones.replace_strict(table, default=0, return_dtype=pl.Int64)
    first: int = stamps.min()
    elapsed = (stamps - first).cast(pl.Float64).to_numpy() / 1e9
    if zone:
        return Clock(elapsed, *_start(first // 1_000, None, zone), iso=True)
    apart = set(offsets.values())
    shown_zone = timezone(timedelta(seconds=apart.pop())) if len(apart) == 1 else UTC
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=first // 1_000)
    return Clock(elapsed, start.astimezone(shown_zone), str(shown_zone), iso=True)


def _from_datetimes(parsed: Any, where: str, name: str, zone: str | None) -> Clock:
    import polars as pl

    stated = parsed.dtype.time_zone
    if stated:
        zone = zone or stated
        parsed = parsed.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif zone:  # wall clock: the hour that happens twice is taken as its first, the one that never happens is unread
        parsed = parsed.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        parsed = parsed.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    stamps = parsed.cast(pl.Datetime("ns")).to_physical()
    if stamps.null_count() == len(stamps):
        return Clock(np.full(len(stamps), np.nan), None, None, iso=True)
    first: int = stamps.min()
    elapsed = (stamps - first).cast(pl.Float64).to_numpy() / 1e9
    if zone:
        return Clock(elapsed, *_start(first // 1_000, stated, zone), iso=True)
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=first // 1_000)
    return Clock(elapsed, start.replace(tzinfo=None), None, iso=True)


def _offset(zone: str) -> int:
    """Return the seconds that a zone such as `Z`, `+0530` or `-08:00` is ahead of UTC."""
    if zone[0] not in "+-":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    return (-1 if zone[0] == "-" else 1) * (hours * 3_600 + minutes * 60)
