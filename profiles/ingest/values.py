"""Single values of result files: numbers as tools spell them, distributions, token lengths, text that may be kept.

Everything comes out in seconds, tokens and shares. A number that no measurement can be (NaN, negative, beyond a float)
is a DataError with its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError

Figures = dict[str, Any]

# Names of units in result files, to seconds.
SECONDS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "milliseconds": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0,
}  # fmt: skip
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
LARGEST = 1e15  # of a number in a result file: tokens, nanoseconds, bytes
SMALLEST = 1e-12  # what is less is nothing
GROUPS = 32  # of a histogram of token lengths
_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?")
_ABSENT = frozenset({"", "-", "–", "n/a", "na", "none", "null"})
_SECRET = re.compile(
    r"""(?ix) (--?[\w-]*(?:key|token|secret|password|authorization|header|\bH)\b [=\s]+) ('[^']*'|"[^"]*"|\S+)"""
)
_KEYLIKE = re.compile(r"\b(?:sk|hf|nvapi|AKIA)[-_A-Za-z0-9]{12,}")


def number(value: object, where: str) -> float | None:
    """Return a number ≥ 0 that a tool wrote, also as text with thousands separators; None where it is absent."""
    if value is None or (isinstance(value, str) and value.strip().lower() in _ABSENT):
        return None
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in ("nan", "inf", "+inf", "-inf", "infinity", "-infinity"):
            value = float(text)
        elif re.search(r"\d", text) and _NUMBER.fullmatch(text) and len(text) < 400:
            value = float(text.replace(",", ""))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where} = {shown(value)}", why="a number is expected")
    try:
        found = float(value)
    except OverflowError:
        raise DataError(f"{where} = {shown(value)}", why="this is beyond any measurement") from None
    if not math.isfinite(found):
        raise DataError(f"{where} = {shown(value)}", why="this is not a measurement: did the run complete?")
    if found > LARGEST:
        raise DataError(f"{where} = {shown(value)}", why="this is beyond any measurement")
    if found < 0:
        raise DataError(f"{where} = {shown(value)}", why="a measurement cannot be negative")
    return found if found >= SMALLEST else 0.0


def count(value: object, where: str) -> int | None:
    """Return a number that counts something."""
    found = number(value, where)
    if found is None:
        return None
    if not found.is_integer() or found > 1e12:
        raise DataError(f"{where} = {shown(value)}", why="a whole number is expected")
    return int(found)


def positive(value: object, where: str) -> float | None:
    """Return a number > 0; a tool's 0 stands for nothing measured."""
    return number(value, where) or None


def shown(value: object) -> str:
    """Return *value* for an error, at most 40 characters."""
    text = repr(value) if isinstance(value, str | int | float) and not _huge(value) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:39]}…"


def _huge(value: object) -> bool:
    return isinstance(value, int) and abs(value) >= 10**30


def table(value: object) -> Mapping[str, Any]:
    """Return *value* where it is an object of JSON, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def dig(value: object, *path: str) -> Any:
    """Return what lies at *path* of nested objects, None where one of them is missing."""
    for key in path:
        value = table(value).get(key)
    return value


def several(value: object, where: str) -> NDArray[np.float64]:
    """Return a list of measurements ≥ 0 as an array."""
    if not isinstance(value, list):
        raise DataError(f"{where} = {shown(value)}", why="a list is expected")
    if not all(type(item) in (int, float) for item in value):
        at, bad = next((i, item) for i, item in enumerate(value) if type(item) not in (int, float))
        raise DataError(f"{where}[{at}] = {shown(bad)}", why="a number is expected")
    try:
        found = np.asarray(value, dtype=np.float64)
    except OverflowError:
        raise DataError(f"{where}", why="it holds a number beyond any measurement") from None
    wrong = ~(found <= LARGEST) | (found < 0)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise DataError(f"{where}[{at}] = {shown(value[at])}", why="a measurement is finite and not negative")
    return found


def distribution(values: NDArray[np.float64]) -> dict[str, float]:
    """Return mean, spread and percentiles (linear between values) of *values*; empty without any."""
    if not len(values):
        return {}
    found = {"mean": float(values.mean()), "min": float(values.min())}
    found |= {f"p{p}": float(np.percentile(values, p)) for p in PERCENTILES}
    return found | {"max": float(values.max()), "std": float(values.std())}


def lengths(values: NDArray[np.float64]) -> dict[str, Any]:
    """Return token lengths as TokenCount takes them: one value, or a histogram of at most `GROUPS` groups.

    A group stands for its mean, so that the mean of all is kept.
    """
    if not len(values):
        return {}
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return {"mean": float(distinct[0]), "cv": 0.0}
    if len(distinct) <= GROUPS:
        return {"tokens": distinct.tolist(), "count": counts.tolist()}
    groups = np.array_split(np.sort(values), GROUPS)
    return {"tokens": [float(np.round(g.mean(), 3)) for g in groups], "count": [len(g) for g in groups]}


def tokens(mean: float | None, std: float | None = None) -> dict[str, float] | None:
    """Return a token length by its mean and, where known, its standard deviation."""
    if mean is None:
        return None
    return {"mean": mean} if std is None or not mean else {"mean": mean, "cv": std / mean}


def named(stats: Mapping[str, Any], names: Mapping[str, str], unit: float, where: str) -> dict[str, float]:
    """Return the figures of *stats* under our names (*names*: theirs to ours), times *unit*; absent ones are left out.

    Where a mean and a spread are given but nothing was measured (all zero), the result is empty.
    """
    found: dict[str, float] = {}
    for theirs, ours in names.items():
        value = number(stats.get(theirs), f"{where}.{theirs}")
        if value is not None:
            found[ours] = value * unit
    return found if any(value > 0 for value in found.values()) else {}


STATISTICS: Mapping[str, str] = {
    "avg": "mean", "mean": "mean", "average": "mean", "min": "min", "minimum": "min", "max": "max", "maximum": "max",
    "median": "p50", "p50": "p50", "p1": "p1", "p5": "p5", "p10": "p10", "p25": "p25", "p75": "p75", "p90": "p90",
    "p95": "p95", "p99": "p99", "p99.9": "p99.9", "std": "std", "stddev": "std", "std_dev": "std",
    "p01": "p1", "p05": "p5", "p999": "p99.9",
}  # fmt: skip


def unit_of(text: object, where: str) -> float:
    """Return the seconds of a time unit as result files write it."""
    known = SECONDS.get(text.strip().lower()) if isinstance(text, str) else None
    if known is None:
        raise DataError(f"{where}: unit {shown(text)}", why=f"known: {', '.join(SECONDS)}")
    return known


def clean(value: object, longest: int = 500) -> str | None:
    """Return text that may be kept in a profile: one line, printable, without what looks like a key or a token."""
    if not isinstance(value, str | int | float) or isinstance(value, bool) or _huge(value):
        return None
    text = "".join(c if c.isprintable() and not "\ud800" <= c <= "\udfff" else " " for c in str(value)[: 4 * longest])
    text = _KEYLIKE.sub("***", _SECRET.sub(r"\1***", " ".join(text.split())))
    return (text if len(text) <= longest else f"{text[: longest - 1]}…") or None


def date_of(value: object) -> str | None:
    """Return the day of a timestamp (ISO text, `20241109-150547`, or seconds since 1970), None where it is none."""
    if isinstance(value, str):
        match = re.match(r"(\d{4})-?(\d\d)-?(\d\d)(?!\d)", value.strip())
        try:
            return datetime(*map(int, match.groups())).date().isoformat() if match else None  # type: ignore[arg-type]
        except ValueError:
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e9 < value < 4e9:
        return datetime.fromtimestamp(value, UTC).date().isoformat()
    return None


def missing(data: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    """Return those of *keys* (dotted) that *data* does not have."""
    return [key for key in keys if dig(data, *key.split(".")) is None]


def need(data: Mapping[str, Any], keys: Sequence[str], where: str, tool: str, known: str) -> None:
    """DataError naming the *keys* (dotted) that a file of *tool* does not have, and the versions that are *known*."""
    absent = missing(data, keys)
    if absent:
        why = f"read are {known}; this may be another version, or a run that was cut off"
        raise DataError(f"{where}: {tool} without {', '.join(absent)}", why=why, fix="import a complete result file")
