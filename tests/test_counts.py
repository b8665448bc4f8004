"""Count series of monitoring systems: zeros or gaps, rates or counts, and arrivals drawn from them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fleetcast.errors import DataError, FleetcastError, ScenarioError
from fleetcast.traffic.counts import Counts, draw_arrivals, series
from fleetcast.traffic.lengths import preset
from fleetcast.traffic.read import Options, read_trace, read_traffic

T0 = datetime(2026, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def write(content: str) -> Path:
        path = tmp_path / "counts"
        path.write_text(content)
        return path

    return write


def counts_in(path: Path, **options: Any) -> Counts:
    found = read_traffic(path, Options(**options)).counts
    assert found is not None
    return found


def test_get_metric_data_is_newest_first_and_a_minute_without_calls_is_missing(file: Callable[[str], Path]) -> None:
    minutes = [5, 4, 2, 1, 0]
    stamps = [(T0 + timedelta(minutes=m)).isoformat() for m in minutes]
    row = {"Id": "a", "Label": "calls", "Timestamps": stamps, "Values": [6.0, 5.0, 3.0, 2.0, 1.0]}
    path = file(json.dumps({"MetricDataResults": [row], "NextToken": "more"}))
    reading = read_traffic(path)
    assert reading.counts is not None
    assert reading.counts.requests.tolist() == [1, 2, 3, 0, 5, 6]
    assert reading.counts.start == T0
    assert (reading.report.missing_steps, reading.report.missing_as) == (1, "zero")
    assert any("1 step is missing of 60 s each: taken as zero requests" in note for note in reading.report.notes())
    assert any("partial" in note for note in reading.report.notes())
    gap = counts_in(path, missing="gap")
    assert np.isnan(gap.requests[3])


def test_several_series_are_summed_or_one_is_taken(file: Callable[[str], Path]) -> None:
    stamps = [(T0 + timedelta(minutes=m)).isoformat() for m in range(2)]
    rows = [{"Id": i, "Label": i, "Timestamps": stamps, "Values": v} for i, v in (("a", [1, 2]), ("b", [10, 20]))]
    path = file(json.dumps({"MetricDataResults": rows}))
    assert counts_in(path).requests.tolist() == [11, 22]
    assert counts_in(path, columns={"value": "b"}).requests.tolist() == [10, 20]
    with pytest.raises(ScenarioError, match="no series 'c'"):
        counts_in(path, columns={"value": "c"})


def test_get_metric_statistics_is_in_no_order(file: Callable[[str], Path]) -> None:
    points = [
        {"Timestamp": (T0 + timedelta(minutes=m)).isoformat().replace("+00:00", "Z"), "Sum": float(m), "Unit": "Count"}
        for m in (3, 1, 2, 5)
    ]
    assert counts_in(file(json.dumps({"Label": "Invocations", "Datapoints": points}))).requests.tolist() == [
        1,
        2,
        3,
        0,
        5,
    ]


def test_the_console_csv_has_rows_of_labels(file: Callable[[str], Path]) -> None:
    text = "Full label,Invocations\nstat,Sum\n2026/03/04 05:00:00,4\n2026/03/04 05:01:00,5\n2026/03/04 05:03:00,7\n"
    reading = read_traffic(file(text))
    assert reading.counts is not None
    assert reading.report.format == "CloudWatch console CSV"
    assert reading.counts.requests.tolist() == [4, 5, 0, 7]
    assert reading.counts.start == T0
    with pytest.raises(DataError, match="is an average"):
        read_traffic(file(text.replace("Sum", "Average")))


def test_timestamp_value_holds_counts_and_a_hole_is_a_gap(file: Callable[[str], Path]) -> None:
    text = "timestamp,value\n2014-04-10 00:04:00,94.0\n2014-04-10 00:09:00,56.0\n2014-04-10 00:19:00,95.0\n"
    reading = read_traffic(file(text))
    assert reading.counts is not None
    assert (reading.counts.step_s, reading.report.missing_as) == (300.0, "gap")
    assert np.isnan(reading.counts.requests[2])
    assert reading.report.mean_rate == pytest.approx(245 / 900)
    assert any("hide bursts" in note for note in reading.report.notes())


def test_a_grafana_panel_is_asked_whether_it_holds_counts_or_rates(file: Callable[[str], Path]) -> None:
    path = file('"Time","sum(rate(requests_total[1m]))"\n2026-03-04 05:00:00,1.5\n2026-03-04 05:01:00,2.5\n')
    with pytest.raises(ScenarioError, match="counts or rates"):
        read_traffic(path)
    assert counts_in(path, values="rate").requests.tolist() == [90, 150]
    assert counts_in(path, values="count").requests.tolist() == [1.5, 2.5]
    plain = file('"Time","requests"\n2026-03-04 05:00:00,1.5 req/s\n2026-03-04 05:01:00,2 req/s\n')
    with pytest.raises(ScenarioError, match="counts or rates"):
        read_traffic(plain)
    assert counts_in(plain, values="rate").requests.tolist() == [90, 120]


def test_a_wide_day_is_summed_over_its_rows(file: Callable[[str], Path]) -> None:
    header = ",".join(["HashOwner", "HashApp", "HashFunction", "Trigger", *map(str, range(1, 1_441))])
    rows = [",".join(["o", "a", f, "http", *(str((k + int(f)) % 3) for k in range(1_440))]) for f in ("0", "1")]
    found = counts_in(file("\n".join([header, *rows])))
    assert found.requests[:3].tolist() == [1, 3, 2]
    assert (len(found.requests), found.span_s) == (1_440, 86_400.0)


def test_zones_of_counts(file: Callable[[str], Path]) -> None:
    text = "timestamp,value\n2026-03-04 05:00:00,1\n2026-03-04 06:00:00,1\n"
    local = counts_in(file(text), time_zone="America/New_York")
    assert local.start is not None
    assert local.start.astimezone(UTC) == datetime(2026, 3, 4, 10, tzinfo=UTC)
    with pytest.raises(ScenarioError, match="no time zone named") as caught:
        counts_in(file(text), time_zone="Europe/Berln")
    assert "Europe/Berlin" in str(caught.value)


def test_counts_become_a_trace_only_with_lengths(file: Callable[[str], Path]) -> None:
    path = file("timestamp,value\n2026-03-04 05:00:00,40\n2026-03-04 05:01:00,0\n2026-03-04 05:02:00,60\n")
    with pytest.raises(DataError, match="holds counts, not requests"):
        read_trace(path)
    trace = read_trace(path, lengths="code")
    assert np.histogram(trace.arrival_s, [0, 60, 120, 180])[0].tolist() == [40, 0, 60]
    assert trace.input_tokens.max() <= 7_437
    same, other = read_trace(path, lengths="code"), read_trace(path, lengths="code", seed=1)
    assert np.array_equal(trace.arrival_s, same.arrival_s)
    assert not np.array_equal(trace.arrival_s, other.arrival_s)
    assert len(read_trace(path, lengths=preset("rag"), sampling=0.5)) == 200


def test_a_gap_is_bridged_where_arrivals_are_drawn() -> None:
    counts = Counts(0.0, 60.0, np.array([100.0, np.nan, 300.0]))
    assert counts.filled().tolist() == [100, 200, 300]
    assert len(draw_arrivals(counts, np.random.default_rng(0))) == 600


def test_shares_of_requests_are_drawn_fairly() -> None:
    counts = Counts(0.0, 60.0, np.full(40_000, 0.25))
    found = len(draw_arrivals(counts, np.random.default_rng(0)))
    assert abs(found - 10_000) < 4 * (40_000 * 0.1875) ** 0.5


@pytest.mark.parametrize(
    ("times", "values", "says"),
    [
        ([0.0], [1.0], "one stamp alone"),
        ([0.0, 60.0], [1.0, np.inf], "finite"),
        ([0.0, 60.0, 97.0, 120.0, 180.0, 240.0], [1.0] * 6, "not on the grid"),
        ([0.0, 1e-3, 1e9], [1.0] * 3, "steps"),
    ],
)
def test_what_is_no_series_is_refused(times: list[float], values: list[float], says: str) -> None:
    with pytest.raises(FleetcastError) as caught:
        series(np.array(times), np.array(values), where="f", missing="gap")
    assert says in str(caught.value)
