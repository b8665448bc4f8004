"""The bill against figures worked by hand, and the waterfall's sum."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetcast.sim.cost import Benchmark, Bill, Tariff, Usage, best_rate, bill, billed_seconds
from fleetcast.sim.estimate import NO_OUTPUT

DAY = 86_400.0


@dataclass(frozen=True)
class Price:
    usd: float
    unit: str = "h"
    date: str = "2026-07-20"
    source: str = "price sheet"
    inferred: bool = False


G6E = Price(1.861)  # g6e.xlarge, us-east-1, per hour
BEST = Benchmark(6_314.0, 64, "measured")


def _bill(usages: list[Usage], tariff: Tariff, benchmark: Benchmark = BEST) -> Bill:
    return bill(usages, tariff, benchmark, instance="g6e.xlarge")


def _steps(made: Bill) -> dict[str, float | None]:
    return {step.step: step.usd_per_mtok for step in made.waterfall}


def test_a_fleet_that_is_always_at_its_best_costs_the_benchmarks_price() -> None:
    # $1.861/h / (3600 s × 6,314 tok/s) = $0.0819 per million tokens
    usage = Usage(DAY, DAY, DAY, round(6_314 * DAY))
    made = _bill([usage], Tariff(G6E))
    steps = _steps(made)
    assert steps["benchmark"] == pytest.approx(0.0819, abs=5e-5)
    assert made.usd_per_mtok.value == pytest.approx(0.0819, abs=5e-5)
    assert steps["effective"] == pytest.approx(made.usd_per_mtok.value, rel=1e-9)
    assert steps["idle"] == steps["network"] == 0
    assert steps["batch under-fill"] == pytest.approx(0, abs=1e-9)


def test_a_day_of_two_replicas_by_hand() -> None:
    # Two g6e.xlarge for a day, a quarter busy, 87 M tokens of 364 B behind an endpoint in one zone.
    usage = Usage(DAY, 2 * DAY, 0.25 * 2 * DAY, 87_000_000, bytes_in=2e9, bytes_out=87e6 * 364)
    made = _bill([usage], Tariff(G6E, Price(0.01), Price(0.01, "GB")))
    instances, endpoint, data = made.lines
    assert instances.item == "instances" and "2 × g6e.xlarge, on demand" in instances.detail
    assert (instances.quantity, instances.unit) == (48.0, "instance-hours/day")
    assert instances.usd_per_day == pytest.approx(89.328)
    assert (endpoint.quantity, endpoint.usd_per_day) == (24.0, pytest.approx(0.24))
    assert data.quantity == pytest.approx(33.668) and data.usd_per_day == pytest.approx(0.33668)
    total = 89.328 + 0.24 + 0.33668
    assert made.usd == (pytest.approx(total),)
    assert made.usd_per_day.value == pytest.approx(total)
    assert made.usd_per_mtok.value == pytest.approx(total / 87)
    steps = _steps(made)
    assert steps["idle"] == pytest.approx(89.328 * 0.75 / 87)
    assert steps["network"] == pytest.approx(0.57668 / 87)
    assert steps["batch under-fill"] == pytest.approx(89.328 * 0.25 / 87 - 1.861 / 3.6 / 6.314)
    assert steps["effective"] == pytest.approx(total / 87)


def test_runs_are_averaged_to_a_day_and_pooled_over_tokens() -> None:
    # Half a day of one replica, then a whole day of two; tokens 10 M and 50 M.
    usages = [Usage(DAY / 2, DAY / 2, 0.0, 10_000_000), Usage(DAY, 2 * DAY, 0.0, 50_000_000)]
    made = _bill(usages, Tariff(G6E))
    assert made.usd == (pytest.approx(12 * 1.861), pytest.approx(48 * 1.861))
    assert made.usd_per_day.value == pytest.approx(60 * 1.861 / 1.5)
    assert made.usd_per_mtok.value == pytest.approx(60 * 1.861 / 60)
    assert made.lines[0].quantity == pytest.approx(40.0)
    for estimate in (made.usd_per_day, made.usd_per_mtok):
        assert estimate.low is not None and estimate.high is not None and estimate.value is not None
        assert 0 < estimate.low < estimate.value < estimate.high


def test_an_endpoint_stands_for_good_in_every_zone() -> None:
    tariff = Tariff(G6E, endpoint_hour=Price(0.01), endpoint_zones=3)
    for span in (600.0, 3_600.0, 86_401.0):
        made = _bill([Usage(span, span, span, 1_000)], tariff)
        assert made.usd[0] - span / 3_600 * 1.861 == pytest.approx(0.03 * span / 3_600)
        assert next(line for line in made.lines if line.item == "endpoint").usd_per_day == pytest.approx(0.72)


def test_a_launch_is_billed_at_least_a_minute() -> None:
    assert billed_seconds([]) == 0
    assert billed_seconds([10.0, 60.0, 100.5]) == 60 + 60 + 100.5


def test_bytes_between_regions_are_billed_where_they_leave() -> None:
    usage = Usage(DAY, DAY, DAY, 1_000_000, bytes_in=1e9, bytes_out=10e9)
    tariff = Tariff(G6E, transfer_in=Price(0.08, "GB"), transfer_out=Price(0.02, "GB"))
    made = _bill([usage], tariff)
    assert [(line.detail.split(",")[0], line.usd_per_day) for line in made.lines[1:]] == [
        ("prompts", pytest.approx(0.08)),
        ("answers", pytest.approx(0.2)),
    ]
    assert _steps(made)["network"] == pytest.approx(0.28)
    free = _bill([usage], Tariff(G6E, transfer_in=Price(0.0), transfer_out=Price(0.0)))
    assert len(free.lines) == 1


def test_lines_carry_where_a_price_comes_from() -> None:
    inferred = Price(2.288, date="2026-03-01", source="us-east-1 × 1.2295", inferred=True)
    (line,) = _bill([Usage(DAY, DAY, DAY, 1_000)], Tariff(inferred)).lines
    assert (line.inferred, line.date, line.source) == (True, "2026-03-01", "us-east-1 × 1.2295")


def test_without_a_completed_token_there_is_no_price_of_one() -> None:
    made = _bill([Usage(DAY, DAY, 0.0, 0)] * 2, Tariff(G6E))
    assert (made.usd_per_mtok.value, made.usd_per_mtok.note) == (None, NO_OUTPUT)
    assert made.usd_per_day.value == pytest.approx(24 * 1.861)
    steps = _steps(made)
    assert steps["benchmark"] == pytest.approx(0.0819, abs=5e-5)
    assert [steps[name] for name in ("batch under-fill", "idle", "network", "effective")] == [None] * 4
    assert made.waterfall[-1].why == NO_OUTPUT


def test_the_benchmark_is_the_best_measured_point_or_the_best_of_the_curve() -> None:
    batch, time_s = [1, 8, 16], [0.010, 0.016, 0.040]
    assert best_rate(batch, time_s, 6_314.0, 64) == BEST
    assert best_rate(batch, time_s) == Benchmark(pytest.approx(500.0), 8, "step curve")
    why = _bill([Usage(DAY, DAY, DAY, 1_000)], Tariff(G6E)).waterfall[0].why
    assert why == "$1.861/h at 6,314 tok/s, batch 64"
    why = _bill([Usage(DAY, DAY, DAY, 1_000)], Tariff(G6E), best_rate(batch, time_s)).waterfall[0].why
    assert why == "$1.861/h at 500 tok/s, batch 8 (step curve, not a measured point)"


usages = st.lists(
    st.builds(
        lambda span, replicas, busy, tokens, sent, received: Usage(
            span, span * replicas, span * replicas * busy, tokens, sent, received
        ),
        st.floats(60, 1e6),
        st.integers(1, 300),
        st.floats(0, 1),
        st.integers(1, 10**11),
        st.floats(0, 1e13),
        st.floats(0, 1e13),
    ),
    min_size=1,
    max_size=6,
)
prices = st.floats(1e-4, 200).map(Price)


@given(usages, prices, prices, prices, st.floats(1, 1e6))
@settings(max_examples=300, deadline=None)
def test_the_waterfall_adds_up_exactly_at_the_output_precision(
    runs: list[Usage], instance: Price, hour: Price, gigabyte: Price, tps: float
) -> None:
    made = _bill(runs, Tariff(instance, hour, gigabyte, gigabyte, gigabyte), Benchmark(tps, None, "measured"))
    shown = [float(f"{step.usd_per_mtok:.10g}") for step in made.waterfall]
    assert sum(Decimal(repr(part)) for part in shown[:-1]) == Decimal(repr(shown[-1]))
    assert made.usd_per_mtok.value is not None
    largest = max(abs(part) for part in shown)
    assert shown[-1] == pytest.approx(made.usd_per_mtok.value, abs=1e-9 * largest)
    assert shown[2] >= 0 and shown[3] >= 0


@given(usages, st.floats(0.1, 10))
@settings(max_examples=100, deadline=None)
def test_cost_is_linear_in_the_prices(runs: list[Usage], factor: float) -> None:
    one = _bill(runs, Tariff(Price(2.0), Price(0.01), Price(0.02)))
    other = _bill(runs, Tariff(Price(2.0 * factor), Price(0.01 * factor), Price(0.02 * factor)))
    assert one.usd_per_mtok.value is not None and other.usd_per_mtok.value is not None
    assert other.usd_per_mtok.value == pytest.approx(one.usd_per_mtok.value * factor)
    assert sum(other.usd) == pytest.approx(sum(one.usd) * factor)


@given(usages)
@settings(max_examples=100, deadline=None)
def test_the_lines_add_up_to_the_day(runs: list[Usage]) -> None:
    made = _bill(runs, Tariff(G6E, Price(0.01), Price(0.01), Price(0.02), Price(0.03)))
    assert sum(line.usd_per_day for line in made.lines) == pytest.approx(made.usd_per_day.value)
    for line in made.lines:
        assert line.usd_per_day == pytest.approx(line.quantity * line.usd_per_unit)
