"""Thresholds and grades: what is read, what is refused and how, and every verdict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetcast.errors import ScenarioError
from fleetcast.sim.estimate import BEYOND, BOUND_BEYOND, NO_OUTPUT, ONE_SOURCE, Estimate
from fleetcast.sim.grades import grade, grades
from fleetcast.sim.thresholds import (
    METRICS,
    UNITS,
    Threshold,
    Verdict,
    exit_code,
    judge,
    parse_threshold,
    parse_thresholds,
)


@pytest.mark.parametrize(
    ("text", "metric", "op", "limit"),
    [
        ("p99(ttft) < 500 ms", "p99(ttft)", "<", 0.5),
        ("P99( TTFT )<500ms", "p99(ttft)", "<", 0.5),
        ("p99.9(e2e) <= 1 min", "p99.9(e2e)", "<=", 60.0),
        ("mean(itl) ≤ 30 ms", "mean(itl)", "<=", 0.03),
        ("cost < $1.20/Mtok", "cost", "<", 1.2),
        ("cost < 1.20 USD/Mtok", "cost", "<", 1.2),
        ("errors < 0.1 %", "errors", "<", 0.001),
        ("utilisation < 80 %", "utilisation", "<", 0.8),
        ("throughput > 1000 tok/s", "throughput", ">", 1_000.0),
        ("throughput ≥ 1.5 ktok/s", "throughput", ">=", 1_500.0),
        ("request_rate >= 90 req/min", "request_rate", ">=", 1.5),
        ("goodput > 99 %", "goodput", ">", 0.99),
        ("cost_per_day < $100/day", "cost_per_day", "<", 100.0),
        ("cost_per_day < $1/h", "cost_per_day", "<", 24.0),
        ("completed >= 1_000", "completed", ">=", 1_000.0),
        ("rejected <= 0 requests", "rejected", "<=", 0.0),
        ("preemptions <= 0", "preemptions", "<=", 0.0),
        ("replica_hours < 2 d", "replica_hours", "<", 48.0),
    ],
)
def test_a_threshold_is_read_in_the_units_of_its_metric(text: str, metric: str, op: str, limit: float) -> None:
    read = parse_threshold(text)
    assert (read.metric, read.op, read.unit) == (metric, op, METRICS[metric].unit)
    assert read.limit == pytest.approx(limit, rel=1e-12)
    assert parse_threshold(read.text) == read


def test_every_metric_of_the_result_is_known_with_an_example_that_reads() -> None:
    latencies = {
        f"{s}({k})" for s in ("p50", "p90", "p95", "p99", "p99.9", "mean") for k in ("ttft", "tpot", "itl", "e2e")
    }
    plain = {
        "offered", "completed", "rejected", "unfinished", "errors", "goodput", "throughput", "request_rate", "batch",
        "utilisation", "occupancy_full", "preemptions", "cost", "cost_per_day", "replica_hours",
    }  # fmt: skip
    assert set(METRICS) == latencies | plain
    for name, metric in METRICS.items():
        assert metric.unit in UNITS and metric.text
        assert parse_threshold(metric.example).metric == name


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("p99(ttft) < 500", ("needs a unit", 'write "p99(ttft) < 500 ms"')),
        ("p99(ttft) < 2", ("needs a unit", 'write "p99(ttft) < 2 s"')),
        ("cost < 1.2", ("needs a unit", 'write "cost < $1.2/Mtok"')),
        ("cost < $1.2", ("needs a unit", 'write "cost < $1.2/Mtok"')),
        ("cost < 1.2/Mtok", ('"/Mtok" is not a unit of cost', 'write "cost < $1.2/Mtok"')),
        ("cost < $1.2/Mtoken", ('"$/Mtoken" is not a unit', 'write "cost < $1.2/Mtok"')),
        ("cost_per_day < 100", ("needs a unit", 'write "cost_per_day < $100/day"')),
        ("goodput > 99", ("needs a unit", 'write "goodput > 99 %"')),
        ("errors < 0.001", ("needs a unit", 'write "errors < 0.1 %" or "errors < 0.001 %"')),
        ("errors < 200 %", ("between 0 and 100 %", "errors < 0.1 %")),
        ("throughput > 1000", ("needs a unit", 'write "throughput > 1000 tok/s"')),
        ("throughput > 1000 ms", ('"ms" is not a unit of throughput; known: tok/s', "tok/s")),
        ("replica_hours < 48", ("needs a unit", "replica_hours < 48 ")),
        ("p99(ttft) < 5 msec", ('"msec" is not a unit', 'write "p99(ttft) < 5 ms"')),
        ("p99(ttft) < -5 ms", ("never negative", "p99(ttft) < 500 ms")),
        ("p99(ttft) < fast", ('"fast" is not a number', "p99(ttft) < 500 ms")),
        ("p99(ttft) < nan ms", ("is not a number", "p99(ttft) < 500 ms")),
        ("p98(ttft) < 1 s", ('no metric named "p98(ttft)"', "closest: p99(ttft)")),
        ("utilization < 80 %", ('no metric named "utilization"', "closest: utilisation")),
        ("ttft < 1 s", ('no metric named "ttft"', "p99(ttft)")),
        ("wibble < 3", ('no metric named "wibble"', "known: offered, completed", "(ttft)")),
        ("p99(ttft)", ("a threshold is a metric", "p99(ttft) < 500 ms")),
        ("p99(ttft) <", ("a threshold is a metric", "p99(ttft) < 500 ms")),
        ("< 5 ms", ("a threshold is a metric", "p99(ttft) < 500 ms")),
        ("p99(ttft) == 5 ms", ("a threshold is a metric", "< <= > >=")),
        ("p99(ttft) => 5 ms", ("a threshold is a metric", "< <= > >=")),
        ("1 ms < p99(ttft) < 5 ms", ("a threshold is a metric", "p99(ttft) < 500 ms")),
        ("", ("a threshold is a metric", "p99(ttft) < 500 ms")),
    ],
)
def test_a_bad_threshold_says_what_why_and_what_to_write(text: str, fragments: tuple[str, ...]) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_threshold(text)
    assert f'threshold "{text}"' in error.value.what
    for fragment in fragments:
        assert fragment in str(error.value)


@given(st.text(max_size=30) | st.from_regex(r"(p99\(ttft\)|cost|errors) ?[<>]=? ?\$?[0-9.e-]{1,6} ?[a-z%/$]{0,6}"))
def test_any_text_is_read_or_refused_politely(text: str) -> None:
    try:
        assert parse_threshold(text).limit >= 0
    except ScenarioError as error:
        assert error.why and error.fix


def test_a_scenario_table_gives_one_threshold_a_row() -> None:
    read = parse_thresholds({"p99(ttft)": "< 500 ms", "cost": "< $1.20/Mtok"})
    assert [t.text for t in read] == ["p99(ttft) < 500 ms", "cost < $1.20/Mtok"]
    with pytest.raises(ScenarioError, match=r"thresholds\.p99\(ttft\) = 500") as error:
        parse_thresholds({"p99(ttft)": 500})
    assert '"< 500 ms"' in error.value.fix
    with pytest.raises(ScenarioError, match="a threshold is a metric"):
        parse_thresholds({"p99(ttft)": "500 ms"})


def _threshold(op: str) -> Threshold:
    return parse_threshold(f"p99(ttft) {op} 500 ms")


@pytest.mark.parametrize(
    ("op", "low", "high", "verdict"),
    [
        ("<", 0.3, 0.4, "holds"),
        ("<", 0.3, 0.5, "undecided"),
        ("<", 0.4, 0.6, "undecided"),
        ("<", 0.5, 0.6, "crossed"),
        ("<", 0.6, 0.7, "crossed"),
        ("<=", 0.4, 0.5, "holds"),
        ("<=", 0.5, 0.6, "undecided"),
        ("<=", 0.51, 0.6, "crossed"),
        (">", 0.6, 0.7, "holds"),
        (">", 0.5, 0.7, "undecided"),
        (">", 0.4, 0.5, "crossed"),
        (">=", 0.5, 0.7, "holds"),
        (">=", 0.4, 0.5, "undecided"),
        (">=", 0.3, 0.4, "crossed"),
        ("<", 0.6, None, "crossed"),
        ("<", 0.4, None, "undecided"),
        (">", 0.6, None, "holds"),
    ],
)
def test_the_verdict_is_the_intervals_side_of_the_limit(
    op: str, low: float, high: float | None, verdict: Verdict
) -> None:
    value = low if high is None else (low + high) / 2
    note = BOUND_BEYOND if high is None else ""
    assert judge(_threshold(op), Estimate(value, low, high, 5_000, note=note)) == verdict


@pytest.mark.parametrize(("value", "verdict"), [(0.4, "holds"), (0.5, "crossed"), (0.6, "crossed")])
def test_a_single_run_is_judged_by_its_value(value: float, verdict: Verdict) -> None:
    assert judge(_threshold("<"), Estimate(value, None, None, 5_000)) == verdict


@pytest.mark.parametrize(
    ("op", "note", "verdict"),
    [
        ("<", "needs 1,000 samples, has 120", "undecided"),
        (">", "needs 1,000 samples, has 120", "undecided"),
        ("<", BEYOND, "crossed"),
        ("<=", BEYOND, "crossed"),
        (">", BEYOND, "holds"),
        ("<", NO_OUTPUT, "crossed"),
    ],
)
def test_a_value_that_cannot_be_told(op: str, note: str, verdict: Verdict) -> None:
    assert judge(_threshold(op), Estimate(None, None, None, 120, note=note)) == verdict


def test_samples_from_one_run_of_many_decide_nothing() -> None:
    assert judge(_threshold("<"), Estimate(0.1, None, None, 5_000, note=ONE_SOURCE)) == "undecided"


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ((), 0),
        (("holds", "holds"), 0),
        (("holds", "undecided"), 3),
        (("undecided", "crossed"), 1),
        (("crossed", "holds"), 1),
    ],
)
def test_exit_codes(verdicts: tuple[Verdict, ...], code: int) -> None:
    assert exit_code(verdicts) == code


@pytest.mark.parametrize(
    ("metric", "value", "name"),
    [
        ("p50(ttft)", 0.199, "excellent"),
        ("p50(ttft)", 0.2, "good"),
        ("p50(ttft)", 0.51, "acceptable"),
        ("p50(ttft)", 2.01, "poor"),
        ("p99(ttft)", 0.49, "excellent"),
        ("p99(ttft)", 1.0, "good"),
        ("p99(ttft)", 5.0, "acceptable"),
        ("p99(ttft)", 5.1, "poor"),
        ("mean(tpot)", 0.029, "excellent"),
        ("mean(tpot)", 0.03, "good"),
        ("mean(tpot)", 0.1, "acceptable"),
        ("mean(tpot)", 0.11, "poor"),
    ],
)
def test_grades(metric: str, value: float, name: str) -> None:
    assert grade(metric, value) == name


def test_grades_of_a_result_skip_what_is_not_known() -> None:
    found = grades(
        {
            "p50(ttft)": Estimate(0.1, None, None, 50),
            "p99(ttft)": Estimate(None, None, None, 5_000, note=BEYOND),
            "mean(tpot)": Estimate(None, None, None, 0, note="no samples"),
            "cost": Estimate(1.0, None, None, 5),
        }
    )
    assert found == {"p50(ttft)": "excellent", "p99(ttft)": "poor"}
