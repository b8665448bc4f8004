"""The charts of a report by their specifications: golden files, and what must hold whatever the numbers."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
import vl_convert
from golden_files import result, same
from test_terminal import nothing_completed, one_run

from fleetcast.reports import charts, panels, theme
from fleetcast.reports.html import vega_lite

CHARTS = tuple(charts.MAKERS)


def spec(name: str, data: dict[str, Any]) -> dict[str, Any]:
    chart = charts.MAKERS[name](data)
    assert chart is not None
    found: dict[str, Any] = chart.to_dict()
    return found


def rows(name: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec(name, data)["datasets"]["data"]
    return found


def title(name: str, data: dict[str, Any]) -> str:
    return str(spec(name, data)["title"]["text"])


@pytest.mark.parametrize("name", CHARTS)
def test_the_whole_chart(name: str) -> None:
    found = spec(name, result())
    del found["$schema"]  # altair's version is no part of what is drawn
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    assert same(f"chart-{name}.json", text)


@pytest.mark.parametrize("make", [result, one_run])
def test_every_chart_compiles_with_the_bundled_library(make: Any) -> None:
    made = charts.charts(make())
    assert tuple(made) == CHARTS
    for chart in made.values():
        found = chart.to_dict()
        assert f"/v{vega_lite()}." in found["$schema"]  # the report bundles the version that altair writes
        assert vl_convert.vegalite_to_vega(found, vl_version=vega_lite())["marks"]


def test_titles_say_what_was_found() -> None:
    data = result()
    assert title("thresholds", data) == "1 of 3 thresholds crossed, 1 undecided"
    assert title("latency", data) == "One first token in a hundred takes longer than 184 ms"
    assert title("batches", data) == "98 % of busy time ran at modelled batch sizes, not measured ones"
    assert title("bill", data) == "A million output tokens cost $1.03, 13 × the benchmark's $0.08"
    assert title("day", data).startswith("Traffic peaks at 21.7/s, 13.5 hours in; up to ")


def test_titles_follow_the_numbers() -> None:
    data = result()
    data["busy_basis"].update(unmeasured=0.031, modelled=0.9)
    assert title("batches", data) == "3.1 % of busy time ran beyond every measured batch size"
    data["busy_basis"] = {"stated": 1.0, "measured": 0.0, "modelled": 0.0, "unmeasured": 0.0}
    assert title("batches", data) == "While busy, 6.42 sequences decode at once"
    data["timeline"]["waiting"] = {key: [0.0] * 48 for key in ("median", "low", "high")}
    assert title("day", data) == "Traffic peaks at 21.7/s, 13.5 hours in; hardly anyone waits"


def test_nothing_completed_draws_what_there_is() -> None:
    data = nothing_completed()
    assert tuple(charts.charts(data)) == ("thresholds", "batches", "day")
    (row,) = rows("thresholds", data)
    assert (row["value"], row["verdict"]) == (2.0, "crossed")
    assert row["label"] == "crossed: lies among unfinished requests, default"


def test_an_empty_result_draws_nothing() -> None:
    assert charts.charts({"metrics": {}, "thresholds": [], "bill": {}, "timeline": {"t_s": []}}) == {}


def test_thresholds_are_shares_of_their_limits_and_end_at_twice_them() -> None:
    data = result()
    data["thresholds"][1].update(value=0.1, low=0.05, high=0.2)  # five times its limit of 20 ms
    first, second, third = rows("thresholds", data)
    assert first["value"] == pytest.approx(0.184)
    assert (second["value"], second["high"]) == (2.0, 2.0)
    assert second["label"] == "100 ms (50–200)"
    assert (third["low"], third["high"]) == (pytest.approx(0.6), pytest.approx(1.3))


def test_red_is_for_what_was_crossed() -> None:
    assert theme.colour("red") not in json.dumps([spec(name, result()) for name in ("batches", "day", "bill")])
    color = spec("thresholds", result())["layer"][1]["encoding"]["color"]
    assert dict(zip(color["scale"]["domain"], color["scale"]["range"], strict=True))["crossed"] == theme.colour("red")


def test_latency_leaves_out_what_is_unknown() -> None:
    data = result()
    curve = data["latency"]["ttft"]
    curve["value"][-1] = curve["low"][-1] = curve["high"][-1] = None
    curve["high"][-2] = None
    drawn = [row for row in rows("latency", data) if row["kind"] == "first token"]
    assert len(drawn) == len(curve["quantile"]) - 1
    assert drawn[-1]["quantile"] == 0.998
    assert drawn[-1]["high"] == drawn[-1]["value"]  # no bound, no band
    assert all(one["value"] < other["value"] for one, other in pairwise(drawn))


def test_the_tail_axis_reaches_the_finest_quantile() -> None:
    data = result()
    assert spec("latency", data)["layer"][0]["encoding"]["y"]["scale"]["domain"] == [1, 0.001]
    for key, value in (("quantile", 0.9999), ("value", 0.8), ("low", 0.7), ("high", 0.9)):
        data["latency"]["ttft"][key].append(value)
    assert spec("latency", data)["layer"][0]["encoding"]["y"]["scale"]["domain"] == [1, 0.0001]


def test_close_names_get_levels_of_their_own() -> None:
    near = [{"value": value} for value in (0.010, 0.011, 0.012, 5.0)]
    assert [row["level"] for row in charts._apart(near, 0.75)] == [0, 1, 2, 0]
    assert [row["level"] for row in charts._apart(near, -0.4)] == [0, 0, 1, 2]  # from the right, the largest first


def test_the_waterfall_is_a_chain_from_benchmark_to_bill() -> None:
    data = result()
    drawn = rows("bill", data)
    assert drawn[0]["from"] == 0 and drawn[-1]["from"] == 0
    for one, other in pairwise(drawn[:-1]):
        assert other["from"] == pytest.approx(one["level"])
    assert drawn[-2]["level"] == pytest.approx(drawn[-1]["to"])
    assert [row["label"] for row in drawn] == ["$0.08", "+$0.77", "+$0.17", "+$0.01", "$1.03"]


def test_a_step_down_is_drawn_down() -> None:
    data = result()
    steps = data["bill"]["waterfall"]
    steps[2]["usd_per_mtok"] = -0.2
    down = rows("bill", data)[2]
    assert down["to"] - down["from"] == pytest.approx(0.2)
    assert down["to"] == pytest.approx(rows("bill", data)[1]["level"])
    assert down["label"].startswith("−$0.")


def test_batches_show_their_share_and_their_step() -> None:
    drawn = rows("batches", result())
    assert [row["batch"] for row in drawn] == list(range(65))
    assert sum(row["share"] for row in drawn) == pytest.approx(1.0, abs=1e-4)
    assert drawn[0]["step"] == "–" and drawn[64]["step"] == "10.1 ms"
    assert spec("batches", result())["vconcat"][1]["encoding"]["x"]["scale"]["domain"] == [-0.5, 64.5]


def test_a_long_timeline_is_thinned_and_keeps_its_extremes() -> None:
    points = 10_080  # a week of minutes
    line: dict[str, Any] = {"t_s": [60.0 * (k + 1) for k in range(points)], "step_s": 60.0}
    flat = [1.0] * points
    peak = [*flat[:5_000], 9.0, *flat[5_001:]]
    low = [*flat[:7_000], 0.25, *flat[7_001:]]
    line["arrivals"] = {"median": flat, "low": low, "high": peak}
    drawn = panels.thin(line, ["arrivals"], 86_400.0)
    assert len(drawn) <= panels.MOST_POINTS
    assert drawn[0]["t"] == 0.0
    assert max(row["arrivals_high"] for row in drawn) == 9.0
    assert min(row["arrivals_low"] for row in drawn) == 0.25


@pytest.mark.parametrize(
    ("span", "unit"),
    [(604_800.0, "days"), (86_400.0, "hours"), (480.0, "minutes"), (60.0, "seconds"), (1.0, "seconds")],
)
def test_the_clock_has_the_largest_unit_that_says_something(span: float, unit: str) -> None:
    assert panels.clock({"t_s": [1.0, span], "step_s": 1.0})[0] == unit


def test_a_timeline_without_kv_has_no_such_panel() -> None:
    data = result()
    del data["timeline"]["kv_use"]
    assert len(spec("day", data)["vconcat"]) == 4


def test_every_sample_covers_the_time_before_it() -> None:
    drawn = rows("day", result())
    assert (drawn[0]["t"], drawn[-1]["t"]) == (0.0, 24.0)
    assert drawn[-1]["arrivals"] == drawn[-2]["arrivals"] == result()["timeline"]["arrivals"]["median"][-1]


def test_gaps_in_a_timeline_stay_gaps() -> None:
    data = result()
    for part in ("median", "low", "high"):
        data["timeline"]["busy"][part][3] = None
    assert rows("day", data)[3]["busy"] is None


def test_one_run_is_drawn_without_bands() -> None:
    assert "random days" not in spec("day", one_run())["title"]["subtitle"]
    assert spec("day", result())["title"]["subtitle"] == "median of 20 random days (line) and 5 to 95 % of them (band)"
