"""The week by which traffic comes: local clock, daylight saving, holidays, and rates by the time of the week.

A day is a local one: 23 or 25 hours long where the clock changes, and its rates follow the wall clock. Rates are steps
by cell of the day, or a smooth line with the same total in every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError, suggest
from fleetcast.units import Seconds

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MINUTES = 1_440
_QUARTER = 900
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_THURSDAY = 3  # 1 January 1970


@dataclass(frozen=True, eq=False)
class Clock:
    """The local clock of steps of real time: day (since 1 January 1970), weekday (Monday is 0), second of day."""

    day: NDArray[np.int64]
    weekday: NDArray[np.int64]
    second: NDArray[np.int64]


def zone_of(name: str | None) -> Any:
    """Return the time zone of that name; without one, a clock that never changes."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    if name is None:
        return UTC
    if name.startswith(("UTC+", "UTC-")):  # what a stated offset such as +05:30 is called
        hours, _, minutes = name[4:].partition(":")
        if hours.isdecimal() and (not minutes or minutes.isdecimal()):
            from datetime import timezone

            ahead = timedelta(hours=int(hours), minutes=int(minutes or 0))
            return timezone(ahead if name[3] == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zones = available_timezones()
        fix = suggest(name, zones) if zones else "this machine has no time zones: pip install tzdata"
        raise ScenarioError(f"no time zone named {name!r}", fix=fix) from None


def local_clock(start: datetime, steps: int, step_s: Seconds, zone: str | None) -> Clock:
    """Return the local clock at the middle of each of *steps* from *start* on (naive: local and never changing)."""
    place = zone_of(zone) if start.tzinfo is not None else UTC
    begin = start if start.tzinfo is not None else start.replace(tzinfo=UTC)
    begin_s = (begin - _EPOCH).total_seconds()
    middle = begin_s + step_s * (np.arange(steps) + 0.5)
    quarter = np.floor(middle / _QUARTER).astype(np.int64)
    offsets = _offsets(int(quarter[0]), int(quarter[-1]), place)
    local = np.floor(middle).astype(np.int64) + offsets[quarter - quarter[0]]
    day = local // 86_400
    return Clock(day, (day + _THURSDAY) % 7, local % 86_400)


def midnights(first: date, days: int, zone: str | None) -> list[datetime]:
    """Return the beginnings of *days* local days from *first* on, and the end of the last; aware where *zone* is."""
    found = [datetime.combine(first + timedelta(days=k), time()) for k in range(days + 1)]
    if zone is None:
        return found
    place = zone_of(zone)
    return [at.replace(tzinfo=place).astimezone(UTC).astimezone(place) for at in found]


def _offsets(first: int, last: int, place: Any) -> NDArray[np.int64]:
    """Return the seconds ahead of UTC in each quarter of an hour (every transition of the last decades fits)."""
    if place is UTC:
        return np.zeros(last - first + 1, np.int64)

    def at(quarter: int) -> int:
        moment = datetime.fromtimestamp(quarter * _QUARTER, UTC).astimezone(place)
        return int((moment.utcoffset() or timedelta()).total_seconds())

    offsets = np.empty(last - first + 1, np.int64)
    step = 96  # quarters of a day: the clock changes at most once in it
    for begin in range(first, last + 1, step):
        end = min(begin + step - 1, last)
        one, other = at(begin), at(end)
        if one == other:
            offsets[begin - first : end - first + 1] = one
        else:
            offsets[begin - first : end - first + 1] = [at(quarter) for quarter in range(begin, end + 1)]
    return offsets


@dataclass(frozen=True, eq=False)
class Week:
    """Requests per second by the time of the week: `rate` has a row per weekday and a column per cell of the day."""

    rate: NDArray[np.float64]
    cell_s: Seconds
    smooth: bool = False
    time_zone: str | None = None
    holidays: tuple[date, ...] = ()
    holiday_like: int = 6

    @property
    def mean_rate(self) -> float:
        """Return the mean over the week."""
        return float(self.rate.mean())

    def by_minute(self) -> NDArray[np.float64]:
        """Return the rate in each of the 10,080 minutes of the week."""
        cells = self.rate.ravel()
        per_cell = round(self.cell_s / 60)
        return smooth_cells(cells, per_cell) if self.smooth and per_cell > 1 else np.repeat(cells, per_cell)

    def rates(self, clock: Clock) -> NDArray[np.float64]:
        """Return the rate at each step of *clock*."""
        weekday = like_weekday(clock, self.holidays, self.holiday_like)
        rates: NDArray[np.float64] = self.by_minute()[weekday * MINUTES + clock.second // 60]
        return rates


def like_weekday(clock: Clock, holidays: Sequence[date], holiday_like: int) -> NDArray[np.int64]:
    """Return the day of the week whose rates each step follows: holidays follow *holiday_like*."""
    if not holidays:
        return clock.weekday
    free = np.isin(clock.day, [(day - _EPOCH.date()).days for day in holidays])
    return np.where(free, holiday_like, clock.weekday)


def smooth_cells(cells: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Return *cells*, which go round, in so many *parts* each, smooth and with the same mean in every cell.

    Monotone cubic interpolation of what has come so far (Fritsch and Butland 1984): the rate where cells meet is the
    harmonic mean of theirs, so that it is never negative.
    """
    before, after = np.roll(cells, 1), np.roll(cells, -1)

    def meet(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        total = a + b
        return np.divide(2 * a * b, total, out=np.zeros_like(total), where=total > 0)

    left, right = meet(before, cells), meet(cells, after)
    x = np.linspace(0, 1, parts + 1)[:, None]
    so_far = cells * (3 * x**2 - 2 * x**3) + left * (x - 2 * x**2 + x**3) + right * (x**3 - x**2)
    smooth: NDArray[np.float64] = parts * np.diff(so_far, axis=0).T.ravel()
    return np.maximum(smooth, 0.0)


def parse_days(values: Sequence[object]) -> tuple[date, ...]:
    """Return the dates in a list of `2026-12-25`."""
    found = []
    for value in values:
        try:
            found.append(value if isinstance(value, date) else date.fromisoformat(str(value)))
        except ValueError:
            raise ScenarioError(f"holiday {value!r}", why="this is not a date", fix='write "2026-12-25"') from None
    return tuple(found)


def parse_weekday(value: object) -> int:
    """Return the place of a weekday's name in the week."""
    name = str(value).lower()
    if name not in WEEKDAYS:
        raise ScenarioError(f"weekday = {value!r}", fix=suggest(name, WEEKDAYS))
    return WEEKDAYS.index(name)
