"""Quantities with units, as people write them, to plain numbers and back.

Inside fleetcast there are only seconds, tokens, bytes, US dollars and rates made of them. Text that a person writes
carries its unit (`"250 ms"`, `"$1.861/h"`); a bare number where a unit is needed is an error that shows the right
spelling. Formatting for people lives in `fleetcast.reports.theme`, not here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from fleetcast.errors import ScenarioError

Seconds = float
Tokens = int
Dollars = float
Bytes = float

DAY: Seconds = 86_400.0
HOUR: Seconds = 3_600.0

DURATIONS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0,
}  # fmt: skip
SIZES: Mapping[str, float] = {
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
SHARES: Mapping[str, float] = {"%": 0.01, "‰": 0.001}
MONEY_RATES: Mapping[str, float] = {"/s": 3_600.0, "/h": 1.0, "/hour": 1.0, "/day": 1 / 24.0, "/month": 1 / 730.0}

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*)?\.?\d+(?:[eE][+-]?\d+)?)\s*(.*?)\s*")


def split_quantity(text: str) -> tuple[float, str] | None:
    """Split `"250 ms"` into (250.0, "ms"); None when *text* does not start with a finite number."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    value = float(match[1].replace("_", ""))
    return (value, match[2]) if math.isfinite(value) else None


def _quantity(value: object, where: str, what: str, units: Mapping[str, float], example: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ScenarioError(f"{where} = {value!r}", why=f"{what} is written as text", fix=f'write "{example}"')
    parts = split_quantity(value) if isinstance(value, str) else (float(value), "")
    if parts is None:
        raise ScenarioError(f"{where} = {value!r}", why=f"this is not {what}", fix=f'write for example "{example}"')
    number, unit = parts
    if unit not in units:
        known = ", ".join(units)
        why = f"{what} needs a unit" if not unit else f'"{unit}" is not a unit of {what}; known: {known}'
        first = example.split()[-1] if " " in example else example.lstrip("0123456789.")
        gap = " " if " " in example else ""
        fix = f'write "{number:g}{gap}{first}"' if not unit else f'write for example "{example}"'
        raise ScenarioError(f"{where} = {value!r}", why=why, fix=fix)
    return number * units[unit]


def duration(value: object, where: str, example: str = "250 ms") -> Seconds:
    """Return the seconds in text like `"250 ms"`; *where* names the key or flag in the error."""
    return _quantity(value, where, "a duration", DURATIONS, example)


def size(value: object, where: str, example: str = "17.7 GB") -> Bytes:
    """Return the bytes in text like `"17.7 GB"` (decimal) or `"16 GiB"` (binary)."""
    return _quantity(value, where, "a size", SIZES, example)


def share(value: object, where: str, example: str = "5 %") -> float:
    """Return the fraction in text like `"5 %"`."""
    return _quantity(value, where, "a share", SHARES, example)


def dollars_per_hour(value: object, where: str, example: str = "$1.861/h") -> Dollars:
    """Return the US dollars per hour in text like `"$1.861/h"`."""
    text = value.strip().removeprefix("$") if isinstance(value, str) else value
    if isinstance(value, str) and not value.strip().startswith("$"):
        raise ScenarioError(f"{where} = {value!r}", why="a price starts with $", fix=f'write "{example}"')
    try:
        return _quantity(text, where, "a price", MONEY_RATES, example.removeprefix("$"))
    except ScenarioError as error:
        raise ScenarioError(f"{where} = {value!r}", why=error.why, fix=f'write for example "{example}"') from None
