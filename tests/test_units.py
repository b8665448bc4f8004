"""Text with a unit becomes a plain number; anything else becomes an error that shows the right spelling."""

from __future__ import annotations

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast import units
from fleetcast.errors import DataError, FleetcastError, NotMeasured, ScenarioError, nearest, suggest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250 ms", 0.25),
        ("250ms", 0.25),
        ("  250   ms  ", 0.25),
        ("1e3 ms", 1.0),
        ("5 us", 5e-6),
        ("5 µs", 5e-6),  # micro sign
        ("5 μs", 5e-6),  # Greek letter
        ("300 ns", 3e-7),
        (".5 s", 0.5),
        ("1. s", 1.0),
        ("+2 min", 120.0),
        ("1_000 s", 1000.0),
        ("1.5 h", 5400.0),
        ("2 d", 172_800.0),
        ("0 s", 0.0),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert units.duration(text, "cold_start.load") == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("17.7 GB", 17.7e9),
        ("16 GiB", 16 * 1024**3),
        ("512 MiB", 2**29),
        ("3 kB", 3000),
        ("1 B", 1),
        ("2 TB", 2e12),
    ],
)
def test_size_tells_decimal_from_binary(text: str, size: float) -> None:
    assert units.size(text, "image") == size


@pytest.mark.parametrize(
    ("text", "share"), [("5 %", 0.05), ("57%", 0.57), ("0.1 %", 0.001), ("3 ‰", 0.003), ("-10 %", -0.1)]
)
def test_share(text: str, share: float) -> None:
    assert units.share(text, "growth") == share


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("$1.861/h", 1.861),
        ("$ 1.861 / h", 1.861),
        ("$2/hour", 2.0),
        ("$24/day", 1.0),
        ("$730/month", 1.0),
        ("$0.001/s", 3.6),
    ],
)
def test_price(text: str, price: float) -> None:
    assert units.dollars_per_hour(text, "price") == price


def refusal(read: object, value: object) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        read(value, "autoscaler.startup")  # type: ignore[operator]
    error = caught.value
    assert error.what.startswith("autoscaler.startup = ")
    assert error.why
    assert error.fix.startswith("write ")
    return error


@pytest.mark.parametrize(
    ("read", "value", "write"),
    [
        (units.duration, 140, '"140 ms"'),
        (units.duration, "140", '"140 ms"'),
        (units.duration, 1234567.5, '"1234567.5 ms"'),
        (units.size, 16, '"16 GB"'),
        (units.dollars_per_hour, 1.861, '"$1.861/h"'),
        (units.dollars_per_hour, "$1.861", '"$1.861/h"'),
        (units.share, 5, '"5 %"'),
        (units.share, 0.05, '"5 %"'),  # not 0.05 %, which is hardly ever meant
    ],
)
def test_a_bare_number_is_refused_with_its_likely_spelling(read: object, value: object, write: str) -> None:
    error = refusal(read, value)
    assert "needs a unit" in error.why
    assert write in error.fix
    assert repr(value) in error.what


def test_the_callers_example_chooses_the_unit_of_a_bare_number() -> None:
    with pytest.raises(ScenarioError, match='write "140 s"'):
        units.duration(140, "startup", "90 s")


@pytest.mark.parametrize(
    ("read", "value", "write"),
    [
        (units.duration, "250 msec", '"250 ms"'),
        (units.duration, "250 MS", '"250 ms"'),
        (units.duration, "250 milliseconds", '"250 ms"'),
        (units.duration, "3 sec", '"3 s"'),
        (units.duration, "5 m", '"5 min"'),
        (units.duration, "2 hours", '"2 h"'),
        (units.size, "16 gb", '"16 GB"'),
        (units.size, "16 gib", '"16 GiB"'),
        (units.size, "16 g", '"16 GB"'),
        (units.share, "5 percent", '"5 %"'),
        (units.dollars_per_hour, "$2/hr", '"$2/h"'),
        (units.dollars_per_hour, "2 $/h", '"$2/h"'),
    ],
)
def test_a_misspelt_unit_names_the_one_meant(read: object, value: str, write: str) -> None:
    error = refusal(read, value)
    assert "is not a unit of" in error.why
    assert "known: " in error.why
    assert write in error.fix


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "ms",
        "nan s",
        "inf s",
        "fast",
        "1e400 s",
        math.nan,
        math.inf,
        10**400,
        "1e305 d",
        None,
        True,
        [1],
        {"p95": "1 s"},
    ],
)
@pytest.mark.parametrize("read", [units.duration, units.size, units.share, units.dollars_per_hour])
def test_what_is_no_quantity_is_refused(read: object, value: object) -> None:
    refusal(read, value)


@pytest.mark.parametrize(
    ("read", "value", "write"),
    [
        (units.duration, "-5 s", '"5 s"'),
        (units.size, "-1 GB", '"1 GB"'),
        (units.dollars_per_hour, "$-5/h", '"$5/h"'),
    ],
)
def test_only_a_share_may_be_negative(read: object, value: str, write: str) -> None:
    error = refusal(read, value)
    assert "cannot be negative" in error.why
    assert write in error.fix


def test_a_price_without_its_dollar_sign_is_refused() -> None:
    error = refusal(units.dollars_per_hour, "1.861/h")
    assert "starts with $" in error.why
    assert '"$1.861/h"' in error.fix


def test_dollars_are_no_unit_of_time() -> None:
    refusal(units.duration, "$5 s")


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refusal(units.duration, "x" * 10_000).what) < 120


@given(st.floats(min_value=0, max_value=1e12), st.sampled_from(sorted(units.DURATIONS)))
def test_every_unit_scales_as_it_says(number: float, unit: str) -> None:
    # One rounding in each of the two ways to compute it: two last bits apart at most.
    assert units.duration(f"{number!r} {unit}", "x") == pytest.approx(
        number * units.DURATIONS[unit], rel=5e-16, abs=5e-324
    )


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_politely(text: str) -> None:
    for read in (units.duration, units.size, units.share, units.dollars_per_hour):
        try:
            assert math.isfinite(read(text, "key"))
        except ScenarioError as error:
            assert error.fix


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_splitting_keeps_the_number(number: float) -> None:
    assert units.split_quantity(f"{number!r} tok/s") == (number, "tok/s")


def test_an_error_reads_what_why_fix() -> None:
    error = ScenarioError('fleet.region = "mars"', why="no such region", fix="closest: eu-west-1")
    assert str(error) == 'fleet.region = "mars"\n  no such region\n  closest: eu-west-1'
    assert str(DataError("the file is empty")) == "the file is empty"


@pytest.mark.parametrize("kind", [FleetcastError, ScenarioError, DataError, NotMeasured])
def test_an_error_survives_the_way_back_from_a_worker_process(kind: type[FleetcastError]) -> None:
    error = kind("batch 96", why="measured up to 64", fix="--set engine.max_num_seqs=64")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is kind
        assert (twin.what, twin.why, twin.fix) == (error.what, error.why, error.fix)
        assert str(twin) == str(error)


def test_nearest_names_come_best_first_and_ignore_case() -> None:
    names = ["g6e-int8", "g6-int4", "h100-fp8", "g6e-fp8"]
    assert nearest("G6E-INT4", names)[:2] == ["g6-int4", "g6e-int8"]  # one letter missing; one digit wrong
    assert nearest("g6e-int9", names, count=1) == ["g6e-int8"]
    assert nearest("profile", names) == []


def test_a_suggestion_lists_everything_when_nothing_is_near() -> None:
    assert suggest("rond-robin", ["random", "round-robin"]) == "closest: round-robin, random"
    assert suggest("xyz", ["b", "a"]) == "known: a, b"
    assert suggest("xyz", []) == "known: none"
