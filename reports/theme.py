"""How a number looks: every unit, digit and colour of the reports.

The rest of fleetcast knows seconds, tokens, bytes and US dollars only; milliseconds, `k`, `M`, `%` and
`$/Mtok` are made here. An exact quantity drops its trailing zeros (`2 s`), a measured one keeps them
(`1.90 s`), and nothing shows more digits than its interval supports. Nothing is computed here but roundings.
A missing value is a dash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

MISSING = "–"
MINUS = "−"

# Name of a colour -> (light, dark). One blue, greys, and a vermilion that stays apart from both for every
# common kind of colour blindness; it is kept for what was crossed.
PALETTE: Mapping[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#14171a"),
    "ink": ("#1d2329", "#e6e8ea"),
    "quiet": ("#5f6b76", "#9aa5b0"),
    "grey": ("#8794a0", "#6f7b87"),
    "hair": ("#dde2e6", "#2f363d"),
    "panel": ("#f5f7f8", "#1c2126"),
    "accent": ("#0b67b2", "#58aef2"),
    "soft": ("#9cc6e8", "#2b5a80"),
    "red": ("#c8321f", "#ff7a62"),
}


def colour(name: str) -> str:
    """Return the light-mode hex of a PALETTE name; the HTML report exchanges it for the dark one."""
    return PALETTE[name][0]


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
    """Return *value* to *digits* significant digits, with separators; no digit before the point is lost.

    *keep* keeps trailing zeros; *decimals* fixes the digits after the point. So do all formatters here.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if decimals is None:
        if value == 0:
            return "0"
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        if decimals and abs(round(value, decimals)) >= 10.0 ** (digits - decimals):  # 9.996 -> 10.0, not 10.00
            decimals -= 1
        text = f"{abs(value):,.{decimals}f}"
        if not keep and "." in text:
            text = text.rstrip("0").rstrip(".")
    else:
        text = f"{abs(value):,.{decimals}f}"
    return f"{MINUS}{text}" if value < 0 else text


def _scaled(value: float, steps: Sequence[tuple[float, str]], digits: int, keep: bool, decimals: int | None) -> str:
    """Write *value* in the largest unit of *steps* (largest first) in which it rounds to at least 1."""
    rounded = float(f"{abs(value):.{max(digits, 1)}g}")
    size, unit = next((step for step in steps if rounded >= step[0]), steps[-1])
    return f"{number(value / size, digits, keep=keep, decimals=decimals)} {unit}"


def seconds(value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
    """Return `1.84 s`, `184 ms` or `6.1 µs`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0 s"
    return _scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")), digits, keep, decimals)


def duration(value: float | None, digits: int = 3) -> str:
    """Return a long span as `24 h`, `58 min` or `7 days`; below a minute as `seconds` does."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) < 60.0:
        return seconds(value, digits)
    if abs(value) > 172_800.0:
        return f"{number(value / 86_400.0, digits)} days"
    return _scaled(value, ((3_600.0, "h"), (60.0, "min")), digits, False, None)


def dollars(
    value: float | None,
    digits: int = 3,
    *,
    keep: bool = False,
    decimals: int | None = None,
    sign: bool = False,
) -> str:
    """Return `$431`, `$1.50` or `$0.0819`: at least cents below $100; *sign* writes a plus as well."""
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    if decimals is None:
        decimals = 0 if size >= 99.995 else 2
        if 0 < size < 1:
            decimals = min(9, max(2, digits - 1 - math.floor(math.log10(size))))
        text = f"{size:,.{decimals}f}" if keep else _cents(f"{size:,.{decimals}f}")
    else:
        text = f"{size:,.{decimals}f}"
    plus = "+" if sign else ""
    return f"{MINUS if value < 0 else plus}${text}"


def _cents(text: str) -> str:
    """Drop the trailing zeros of an amount behind its cents."""
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:2]}{fraction[2:].rstrip('0')}" if fraction else whole


def price(value: float | None) -> str:
    """Return a listed price with every digit it has, up to six decimals: `$1.861`, `$0.0035`."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{MINUS if value < 0 else ''}${_cents(f'{abs(value):,.6f}')}"


def usd_per_mtok(value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
    """Return `$1.50/Mtok`."""
    return f"{dollars(value, digits, keep=keep, decimals=decimals)}/Mtok" if _finite(value) else MISSING


def usd_per_day(value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
    """Return `$431/day`."""
    return f"{dollars(value, digits, keep=keep, decimals=decimals)}/day" if _finite(value) else MISSING


def count(value: float | None, digits: int = 3, *, keep: bool = True, decimals: int | None = None) -> str:
    """Return `120`, `8,640`, `864 k` or `1.24 M`: whole below ten thousand, then *digits* digits."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) < 9_999.5:
        return exact(value)
    return _scaled(value, ((1e9, "G"), (1e6, "M"), (1e3, "k")), digits, keep, decimals)


def exact(value: float | None) -> str:
    """Return a count in full, `864,213`."""
    if value is None or not math.isfinite(value):
        return MISSING
    text = f"{abs(round(value)):,d}"
    return f"{MINUS}{text}" if round(value) < 0 else text


def percent(value: float | None, digits: int = 2, *, keep: bool = False, decimals: int | None = None) -> str:
    """Return a share as `61 %`, `3.2 %` or `0.04 %`; only exactly 1 is `100 %`, only exactly 0 is `0 %`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if decimals is not None:
        return f"{number(value * 100, decimals=decimals)} %"
    if 0 < abs(value) < 1e-6:
        return "< 0.0001 %"
    if 0.99 < value < 1:  # 99.96 %, never 100 %: the distance to 1 is what counts
        missing = max(0.000_001, 1 - value)
        places = max(0, -math.floor(math.log10(missing * 100) + 1e-9))
        return f"{math.floor(value * 100 * 10**places) / 10**places:.{places}f} %"
    return f"{number(value * 100, digits, keep=keep)} %"


def rate(value: float | None, digits: int = 3, *, keep: bool = True, decimals: int | None = None) -> str:
    """Return `10.0/s`."""
    return f"{number(value, digits, keep=keep, decimals=decimals)}/s" if _finite(value) else MISSING


def tokens_per_second(value: float | None, digits: int = 3, *, keep: bool = True, decimals: int | None = None) -> str:
    """Return `6,314 tok/s`."""
    return f"{number(value, digits, keep=keep, decimals=decimals)} tok/s" if _finite(value) else MISSING


class Format(Protocol):
    """A formatter: a value, its significant digits, or its decimals."""

    def __call__(self, value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
        """Return the text."""


_BY_UNIT: Mapping[str, Format] = {
    "s": seconds,
    "1": percent,
    "tok/s": tokens_per_second,
    "USD/Mtok": usd_per_mtok,
    "USD/day": usd_per_day,
    "1/s": rate,
}


def format_of(unit: str) -> Format:
    """Return the formatter of a metric's *unit*; one it does not know is written after the number."""
    if unit in _BY_UNIT:
        return _BY_UNIT[unit]

    def plain(value: float | None, digits: int = 3, *, keep: bool = False, decimals: int | None = None) -> str:
        text = number(value, digits, keep=keep, decimals=decimals)
        return text if text == MISSING else f"{text} {unit}"

    return plain


def supported_digits(low: float | None, high: float | None) -> int:
    """Return 3 significant digits, or 2 where the interval is wider than a tenth of its upper end."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return 3
    return 2 if high - low > 0.1 * max(abs(low), abs(high)) else 3


def metric(value: float | None, unit: str, low: float | None = None, high: float | None = None) -> str:
    """Return a metric's value with its unit and no more digits than the interval *low* to *high* supports."""
    counted = unit not in _BY_UNIT and value is not None and value == round(value)
    return format_of(unit)(value, supported_digits(low, high), keep=not counted)


_PARTS = re.compile(r"([^\d]*)([\d.,]+)(.*)")


def interval(low: float | None, high: float | None, fmt: Format, *, unit: bool = False) -> str:
    """Return `1.79–1.90`, both ends with the same decimals, or `950 ms–1.05 s` where their units differ.

    *fmt* is one of this module's formatters (`seconds`, `percent`, …, `format_of(unit)`); *unit* writes the
    common unit too.
    """
    if low is None or high is None:
        return MISSING
    digits = supported_digits(low, high)
    end = _PARTS.fullmatch(fmt(high, digits, keep=True))
    start = _PARTS.fullmatch(fmt(low, digits, keep=True))
    if start is None or end is None or (start[3] != end[3] and low != 0):
        return f"{fmt(low, digits)}–{fmt(high, digits)}"
    first = _PARTS.fullmatch(fmt(low, decimals=len(end[2].partition(".")[2])))
    if low == 0 or first is None:
        first_text = f"{start[1]}0"
    elif not first[2].strip("0.") or first[3] != end[3]:  # rounded away: 0.3–12
        first_text = f"{start[1]}{start[2]}"
    else:
        first_text = f"{first[1]}{first[2]}"
    return f"{first_text}–{end[1] if start[1] != end[1] else ''}{end[2]}{end[3] if unit else ''}"


def waterfall(steps: Sequence[float]) -> tuple[list[float], int]:
    """Round a waterfall so that what is printed adds up: (rounded steps, their decimals).

    *steps* are the first level, the changes and the last level. The ends are rounded as usual; what that
    leaves over goes to the changes with the largest remainders, each by one unit of the last decimal.
    """
    large, *rest = sorted((abs(end) for end in (steps[0], steps[-1]) if end), reverse=True) or [1.0]
    # Cents; more where they would leave less than three digits of the larger end or one of the smaller.
    decimals = max(2, 2 - math.floor(math.log10(large)), *(-math.floor(math.log10(end)) for end in rest))
    scale = 10**decimals
    first, *changes, last = (step * scale for step in steps)
    whole = [math.floor(change) for change in changes]
    left = round(last) - round(first) - sum(whole)
    order = sorted(range(len(changes)), key=lambda i: (whole[i] - changes[i], i))
    for k in range(abs(left) if changes else 0):
        whole[order[k % len(order)] if left > 0 else order[-1 - k % len(order)]] += 1 if left > 0 else -1
    return [part / scale for part in (round(first), *whole, round(last))], decimals


def plural(n: int, one: str, many: str = "") -> str:
    """Return `1 replica`, `2 replicas`."""
    return f"{exact(n)} {one if n == 1 else many or one + 's'}"


# The same for the ticks of a chart's time axis, in Vega's expression language.
SECONDS_EXPR = (
    "datum.value == 0 ? '0' : datum.value >= 1 ? format(datum.value, '~r') + ' s' : datum.value >= 0.001"
    " ? format(datum.value * 1000, '~r') + ' ms' : format(datum.value * 1000000, '~r') + ' µs'"
)

COUNT_EXPR = "datum.value >= 10000 ? format(datum.value, '~s') : format(datum.value, '~r')"
PERCENT_EXPR = "format(datum.value * 100, '~r') + ' %'"

VERDICT_MARKS: Mapping[str, str] = {"holds": "✓", "crossed": "✗", "undecided": "?"}
EXIT_MEANING: Mapping[int, str] = {
    0: "all thresholds hold",
    1: "a threshold is crossed",
    3: "none crossed, but one is undecided",
}
METRIC_WORDS: Mapping[str, str] = {
    "ttft": "first token",
    "tpot": "per output token",
    "itl": "between tokens",
    "e2e": "whole answer",
}
