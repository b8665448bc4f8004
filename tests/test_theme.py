"""How numbers look: units, digits, intervals, and roundings that add up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.reports import theme

SIZES = st.floats(1e-7, 1e7, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.184, "184 ms"),
        (1.84, "1.84 s"),
        (6.1e-6, "6.1 µs"),
        (0.0003, "300 µs"),
        (2e-9, "2 ns"),
        (0.9996, "1 s"),  # never 1,000 ms
        (0.0009999, "1 ms"),
        (126.0, "126 s"),
        (1234.5, "1,234 s"),
        (0.0, "0 s"),
        (-0.004, "−4 ms"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_seconds(value: float | None, text: str) -> None:
    assert theme.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (86_400.0, "24 h"),
        (3_480.0, "58 min"),
        (3_599.9, "1 h"),
        (5_400.0, "1.5 h"),
        (604_800.0, "7 days"),
        (12.0, "12 s"),
    ],
)
def test_duration(value: float, text: str) -> None:
    assert theme.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (431.2, "$431"),
        (1234.0, "$1,234"),
        (99.996, "$100"),
        (1.5, "$1.50"),
        (0.5, "$0.50"),
        (0.0819, "$0.0819"),
        (0.00351, "$0.00351"),
        (0.0, "$0.00"),
        (-0.27, "−$0.27"),
        (None, "–"),
    ],
)
def test_dollars(value: float | None, text: str) -> None:
    assert theme.dollars(value) == text


def test_a_price_keeps_every_digit_and_at_least_cents() -> None:
    assert [theme.price(x) for x in (1.861, 0.0035, 98.32, 2.0)] == ["$1.861", "$0.0035", "$98.32", "$2.00"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(120, "120"), (9_999, "9,999"), (10_400, "10.4 k"), (864_213, "864 k"), (999_999, "1.00 M"), (1.24e6, "1.24 M")],
)
def test_count(value: float, text: str) -> None:
    assert theme.count(value) == text


def test_exact_counts_keep_every_digit() -> None:
    assert theme.exact(864_213) == "864,213"
    assert theme.exact(251.3) == "251"
    assert theme.exact(None) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.612, "61 %"),
        (0.032, "3.2 %"),
        (0.00042, "0.042 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.9996, "99.96 %"),
        (0.9999999, "99.9999 %"),  # not everything is never 100 %
        (1e-9, "< 0.0001 %"),  # something is never 0 %
        (None, "–"),
    ],
)
def test_percent(value: float | None, text: str) -> None:
    assert theme.percent(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.9, "s", "1.90 s"),  # measured: the zero is a digit
        (0.031, "1", "3.10 %"),
        (6314.2, "tok/s", "6,314 tok/s"),
        (10.0, "1/s", "10.0/s"),
        (1.5, "USD/Mtok", "$1.50/Mtok"),
        (431.0, "USD/day", "$431/day"),
        (6.42, "sequences", "6.42 sequences"),
        (3.0, "events", "3 events"),
        (864_213.0, "requests", "864,213 requests"),
        (48.0, "h", "48 h"),
        (None, "s", "–"),
        (None, "requests", "–"),
    ],
)
def test_metric_goes_by_its_unit(value: float | None, unit: str, text: str) -> None:
    assert theme.metric(value, unit) == text


def test_a_value_has_no_more_digits_than_its_interval_supports() -> None:
    assert theme.metric(6.123, "s", 4.8, 8.0) == "6.1 s"
    assert theme.metric(6.123, "s", 6.10, 6.15) == "6.12 s"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.79, 1.9, "1.79–1.90"),
        (4.8, 8.01, "4.8–8.0"),
        (0.097, 0.126, "97–126"),
        (0.95, 1.05, "950 ms–1.05 s"),
        (0.0, 0.02, "0–20"),
        (0.3, 12.0, "300 ms–12 s"),
        (0.0011, 0.012, "1–12"),
        (1.8, 1.8, "1.80–1.80"),
        (None, 1.0, "–"),
    ],
)
def test_interval_of_seconds(low: float | None, high: float | None, text: str) -> None:
    assert theme.interval(low, high, theme.seconds) == text


def test_interval_of_other_units() -> None:
    assert theme.interval(0.18, 0.19, theme.percent) == "18.0–19.0"
    assert theme.interval(0.0007, 0.0014, theme.percent) == "0.07–0.14"
    assert theme.interval(0.993, 1.06, theme.usd_per_mtok, unit=True) == "$0.99–1.06/Mtok"
    assert theme.interval(9.4, 10.7, theme.rate, unit=True) == "9–11/s"
    assert theme.interval(521.0, 1120.0, theme.format_of("requests"), unit=True) == "521–1,120 requests"


@given(value=SIZES, digits=st.integers(2, 4))
def test_rounding_is_off_by_half_a_digit_at_most(value: float, digits: int) -> None:
    back = float(theme.number(value, digits).replace(",", ""))
    assert abs(back - value) <= 0.5000001 * 10 ** (math.floor(math.log10(value)) - digits + 1)


@given(value=SIZES)
def test_seconds_never_reach_the_next_unit(value: float) -> None:
    number, unit = theme.seconds(value).split()
    assert unit == "s" or float(number.replace(",", "")) < 1000


@given(
    first=st.floats(0.001, 50),
    changes=st.lists(st.floats(-0.0005, 30), min_size=1, max_size=8),
)
def test_a_printed_waterfall_adds_up(first: float, changes: list[float]) -> None:
    last = first + math.fsum(changes)
    steps, decimals = theme.waterfall([first, *changes, last])
    whole = [round(step * 10**decimals) for step in steps]
    assert sum(whole[:-1]) == whole[-1]
    for step, exact in zip(steps, [first, *changes, last], strict=True):
        assert abs(step - exact) < 2 / 10**decimals


def test_a_waterfall_keeps_a_cheap_benchmark_visible() -> None:
    steps, decimals = theme.waterfall([0.0042, 1.0, 0.2, 1.2042])
    assert decimals == 3
    assert steps == [0.004, 1.0, 0.2, 1.204]


def _contrast(one: str, other: str) -> float:
    """The WCAG 2 contrast ratio of two hex colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [0, 1])
def test_text_and_lines_stand_out_in_light_and_dark(mode: int) -> None:
    paper = theme.PALETTE["paper"][mode]
    for name in ("ink", "quiet", "accent", "red"):
        assert _contrast(theme.PALETTE[name][mode], paper) >= 4.5, name
    assert _contrast(theme.PALETTE["grey"][mode], paper) >= 3.0


def test_no_two_colours_share_a_hex() -> None:
    light = [pair[0] for pair in theme.PALETTE.values()]
    assert len(set(light)) == len(light)  # the report exchanges them by their light value
