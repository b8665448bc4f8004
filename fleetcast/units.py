"""Quantities with units, as people write them, to plain numbers.

Inside fleetcast there are only seconds, tokens, bytes, US dollars and rates made of them. Text that a person
writes carries its unit (`"250 ms"`, `"$1.861/h"`); a bare number where a unit is needed is an error that
shows the right spelling. Left out on purpose: compound quantities (`"1 h 30 min"`), thousands separators and
other currencies. Formatting for people lives in `fleetcast.reports.theme`, not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from fleetcast.errors import ScenarioError, nearest

Seconds = float
Tokens = int
Dollars = float
Bytes = float

DAY: Seconds = 86_400.0
HOUR: Seconds = 3_600.0

# Units to seconds, bytes, fractions and dollars per hour.
DURATIONS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3,
    "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0,
}  # fmt: skip
SIZES: Mapping[str, float] = {
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40,
}  # fmt: skip
SHARES: Mapping[str, float] = {"%": 0.01, "‰": 0.001}
MONEY_RATES: Mapping[str, float] = {
    "/s": 3_600.0, "/h": 1.0, "/hour": 1.0, "/day": 1 / 24.0, "/month": 1 / 730.0,
}  # fmt: skip

# What people write for a unit, to name the one they meant: suggested only, so that files keep one spelling.
_MEANT: Mapping[str, str] = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
    "usec": "us", "microseconds": "us", "nsec": "ns", "nanoseconds": "ns",
    "m": "min", "mins": "min", "minute": "min", "minutes": "min",
    "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "day": "d", "days": "d",
    "k": "kB", "g": "GB", "t": "TB", "byte": "B", "bytes": "B",
    "percent": "%", "pct": "%",
    "/sec": "/s", "/hr": "/h", "/d": "/day", "/mo": "/month",
}  # fmt: skip

_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*?)\s*")


def split_quantity(text: str) -> tuple[float, str] | None:
    """Split `"250 ms"` into (250.0, "ms"); None when *text* does not start with a finite number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    value = float(match[1].replace("_", ""))
    return (value, match[2]) if math.isfinite(value) else None


def duration(value: object, where: str, example: str = "250 ms") -> Seconds:
    """Return the seconds (≥ 0) in text like `"250 ms"`; *where* names the key or flag in the error."""
    return _quantity(value, where, "a duration", DURATIONS, example)


def size(value: object, where: str, example: str = "17.7 GB") -> Bytes:
    """Return the bytes (≥ 0) in text like `"17.7 GB"` (decimal) or `"16 GiB"` (binary)."""
    return _quantity(value, where, "a size", SIZES, example)


def share(value: object, where: str, example: str = "5 %") -> float:
    """Return the fraction in text like `"5 %"`; negative or above one is allowed, as a growth may be."""
    return _quantity(value, where, "a share", SHARES, example)


def dollars_per_hour(value: object, where: str, example: str = "$1.861/h") -> Dollars:
    """Return the US dollars per hour (≥ 0) in text like `"$1.861/h"`."""
    return _quantity(value, where, "a price", MONEY_RATES, example)


def _quantity(value: object, where: str, kind: str, units: Mapping[str, float], example: str) -> float:
    """Return *value* in seconds, bytes, …; its error calls it *kind* and spells the remedy like *example*."""

    def wrong(why: str, fix: str = "") -> ScenarioError:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        fix = f'"{fix}"' if fix else f'for example "{example}"'
        return ScenarioError(f"{where} = {shown}", why=why, fix=f"write {fix}")

    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise wrong(f"{kind} is written as text")
    text = value.strip() if isinstance(value, str) else _bare(value)
    parts = split_quantity(text.removeprefix("$") if units is MONEY_RATES else text)
    if parts is None:
        raise wrong(f"this is not {kind}")
    number, unit = parts[0], re.sub(r"\s*/\s*", "/", parts[1])
    if not unit:
        raise wrong(f"{kind} needs a unit", _with_unit(number, units, example))
    if unit not in units:
        known = ", ".join(name for name in units if name not in ("µs", "μs"))
        meant = _unit_meant(unit, units)
        fix = _like(example, number, meant) if meant else ""
        raise wrong(f'"{unit}" is not a unit of {kind}; known: {known}', fix)
    if units is MONEY_RATES and not text.startswith("$"):
        raise wrong(f"{kind} starts with $", _like(example, number, unit))
    factor = units[unit]
    # A factor below one is one over a whole number: dividing by that rounds once, so "5 us" is exactly 5e-6.
    result = number * factor if factor >= 1 else number / round(1 / factor)
    if not math.isfinite(result):
        raise wrong(f"this is too large for {kind}")
    if result < 0 and units is not SHARES:
        raise wrong(f"{kind} cannot be negative", _like(example, -number, unit))
    return result


def _bare(value: float) -> str:
    try:
        return repr(float(value))
    except OverflowError:  # an integer beyond the largest float
        return ""


def _unit_meant(unit: str, units: Mapping[str, float]) -> str | None:
    """Return the unit of *units* that *unit* was probably meant to be."""
    meant = _MEANT.get(unit.lower())
    if meant in units:
        return meant
    close = nearest(unit, units, count=1)
    return close[0] if close else None


def _like(example: str, number: float, unit: str) -> str:
    """Spell *number* and *unit* the way *example* is spelt: `$`, and a space before the unit or none."""
    gap = " " if " " in example else ""
    return f"{'$' * example.startswith('$')}{number:.12g}{gap}{unit}"


def _with_unit(number: float, units: Mapping[str, float], example: str) -> str:
    """Return what a bare *number* was probably meant to say, spelt like *example*."""
    parts = split_quantity(example.removeprefix("$"))
    if units is SHARES and 0 < abs(number) <= 1:  # 0.05 is far more often meant as 5 % than as 0.05 %
        number *= 100
    return _like(example, number, parts[1] if parts else next(iter(units)))
