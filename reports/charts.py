"""The charts of a report, each a pure function from a result to an Altair chart (None: nothing to draw).

A title says what was found, in words made of the given numbers; the subtitle what is plotted and its unit.
Lines carry their names, one accent and greys carry the meaning, red is kept for what was crossed. Nothing is
estimated here: numbers are looked up and formatted. The charts made of several panels are in `panels.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from fleetcast.reports import theme, words
from fleetcast.reports.drawing import DATA, WIDTH, Chart, Row, finish, scale, tooltip, values
from fleetcast.reports.panels import batches, timeline
from fleetcast.reports.theme import colour
from fleetcast.reports.words import Result

EDGE = 2.0  # of the thresholds' axis, as a share of the limit
_VERDICTS = ("holds", "crossed", "undecided")
_VERDICT_COLOURS = (colour("accent"), colour("red"), colour("quiet"))
_VERDICT_SHAPES = ("circle", "cross", "diamond")


# --- thresholds ------------------------------------------------------------------------------------------


def thresholds(result: Result) -> Chart | None:
    """Draw each threshold's value and interval as a share of its limit."""
    rows = [_threshold_row(result, row) for row in result.get("thresholds") or () if _drawable(row)]
    if not rows:
        return None
    limit = [{"at": 1.0, "text": "limit"}]
    base = alt.Chart(DATA).encode(
        y=alt.Y("text:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, ticks=False, domain=False)),
        color=alt.Color("verdict:N", legend=None, scale=scale(_VERDICTS, _VERDICT_COLOURS)),
        tooltip=tooltip(("text", "threshold"), ("label", "value"), ("verdict", "verdict")),
    )
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[0, EDGE]),
        axis=alt.Axis(labelExpr=theme.PERCENT_EXPR, tickCount=5, title="share of the limit", grid=True),
    )
    bars = base.mark_bar(height=7, opacity=0.35, cornerRadius=3).encode(x=alt.X("low:Q"), x2="high:Q")
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=x, shape=alt.Shape("verdict:N", legend=None, scale=scale(_VERDICTS, _VERDICT_SHAPES))
    )
    labels = base.mark_text(align="left", dx=10, dy=-11, color=colour("ink")).encode(
        x="anchor:Q", text="label:N", color=alt.value(colour("ink"))
    )
    rule = alt.Chart(values(limit)).mark_rule(color=colour("ink"), strokeWidth=1.5).encode(x="at:Q")
    name = (
        alt.Chart(values(limit))
        .mark_text(align="center", baseline="bottom", dy=-4, color=colour("ink"), fontWeight=600)
        .encode(x="at:Q", y=alt.value(0), text="text:N")
    )
    chart = alt.layer(rule, bars, dots, labels, name)
    subtitle = "value and interval, each as a share of its own limit; beyond 200 % drawn at the edge"
    return finish(chart.properties(width=WIDTH, height=46 * len(rows)), words.verdict(result), subtitle, rows)


def _drawable(row: Mapping[str, Any]) -> bool:
    return bool(row["limit"]) and (row["value"] is not None or row["verdict"] == "crossed")


def _threshold_row(result: Result, row: Mapping[str, Any]) -> Row:
    def share(value: float | None) -> float | None:
        return None if value is None else min(EDGE, max(0.0, value / row["limit"]))

    span = words.bounds(row)
    if row["value"] is None:  # crossed by requests that never ended
        at, label = EDGE, words.threshold_remark(result, row)
    else:
        value = words.threshold_value(row)
        at, label = share(row["value"]) or 0.0, f"{value} ({span})" if span else value
    low, high = share(row.get("low")), share(row.get("high"))
    return {
        "text": row["text"],
        "verdict": row["verdict"],
        "value": at,
        "low": low,
        "high": EDGE if high is None and low is not None else high,
        "anchor": min(at, 0.75 * EDGE),
        "label": label,
    }


# --- latency ---------------------------------------------------------------------------------------------


_LINES = {"ttft": "accent", "tpot": "grey", "itl": "quiet", "e2e": "ink"}


def latency(result: Result) -> Chart | None:
    """Draw the distribution of each latency over a logarithmic time, the tail stretched as in nines."""
    curves = {kind: _curve(result, kind) for kind in _LINES}
    rows = [row for curve in curves.values() for row in curve]
    if not rows:
        return None
    finest = min(0.001, *(row["above"] for row in rows))
    y = alt.Y(
        "above:Q",
        scale=alt.Scale(type="log", domain=[1, finest], nice=False),
        axis=alt.Axis(
            title="share at most this slow",
            values=[1, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0001],
            labelExpr="format(100 * (1 - datum.value), '~r') + ' %'",
        ),
    )
    x = alt.X(
        "value:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(title=None, labelExpr=theme.SECONDS_EXPR, values=_ticks(rows), grid=True),
    )
    names = [theme.METRIC_WORDS[kind] for kind, curve in curves.items() if curve]
    colours = [colour(_LINES[kind]) for kind, curve in curves.items() if curve]
    paint = alt.Color("kind:N", scale=scale(names, colours), legend=None)
    hint = tooltip(("kind", "latency"), ("share", "at most this slow"), ("text", "time"), ("span", "interval"))
    base = alt.Chart(DATA).encode(y=y, color=paint)
    band = base.mark_area(orient="horizontal", opacity=0.22).encode(x=alt.X("low:Q"), x2="high:Q", detail="kind:N")
    line = base.mark_line(orient="horizontal", strokeWidth=2.2).encode(x=x, order="quantile:Q")
    hover = base.mark_point(size=90, opacity=0, filled=True).encode(x=x, tooltip=hint)
    rule = alt.Chart(values([{"above": 0.01}])).mark_rule(strokeDash=[3, 3], color=colour("quiet")).encode(y=y)
    p99 = [row for row in rows if abs(row["quantile"] - 0.99) < 1e-9]
    dots = alt.Chart(values(p99)).mark_point(filled=True, size=70, opacity=1).encode(y=y, x=x, color=paint)
    ends = _apart([curve[-1] for curve in curves.values() if curve], 0.75)
    named = [
        _labels([row for row in ends if row["level"] == level], "kind", ("center", 0, -9 - 15 * level), x, y, paint)
        for level in sorted({row["level"] for row in ends})
    ]
    # A curve leaves the space to its lower right free, unless the next one is there.
    beside = _apart(list(reversed(p99)), -0.4)
    timed = [
        _labels([row for row in beside if row["level"] == 0], "text", ("left", 9, 11), x, y, paint),
        _labels([row for row in beside if row["level"]], "text", ("right", -9, -9), x, y, paint),
    ]
    layers = [band, line, rule, *_limits(result, x, y), dots, *named, *timed, hover]
    slow = words.measured(result, "p99(ttft)")
    title = f"One first token in a hundred takes longer than {slow}" if slow != theme.MISSING else "Latency"
    subtitle = (
        "share of requests (of tokens: between tokens) at most this slow, by time; bands are intervals, numbers p99"
    )
    chart = alt.layer(*layers).resolve_scale(color="independent").properties(width=WIDTH, height=330)
    return finish(chart, title, subtitle, rows)


def _labels(
    rows: Sequence[Row], field: str, place: tuple[Any, float, float], x: alt.X, y: alt.Y, paint: alt.Color
) -> alt.Chart:
    align, dx, dy = place
    base = alt.Chart(values(rows)).encode(x=x, y=y, color=paint, text=f"{field}:N")
    chart: alt.Chart = base.mark_text(align=align, dx=dx, dy=dy, fontWeight=600)
    return chart


def _curve(result: Result, kind: str) -> list[Row]:
    curve = (result.get("latency") or {}).get(kind) or {"quantile": []}
    rows = []
    for i, q in enumerate(curve["quantile"]):
        value, low, high = (curve[key][i] for key in ("value", "low", "high"))
        if value is None or value <= 0:  # too few samples, or nothing that a logarithm could show
            continue
        bounded = low is not None and high is not None
        rows.append(
            {
                "kind": theme.METRIC_WORDS[kind],
                "quantile": q,
                "above": round(1 - q, 9),
                "share": theme.percent(q, 3),
                "value": value,
                "low": low if bounded and low > 0 else value,
                "high": high if bounded else value,
                "text": theme.metric(value, "s", low, high),
                "span": theme.interval(low, high, theme.seconds, unit=True),
            }
        )
    return rows


def _apart(rows: Sequence[Row], decades: float) -> list[Row]:
    """Return *rows* with a `level`, 0 unless a label of that many decades would run into its neighbour's.

    Positive widths look to the smaller neighbours and stack labels up; negative ones look to the larger.
    """
    ordered = sorted(rows, key=lambda row: float(row["value"]), reverse=decades < 0)
    last: dict[int, float] = {}
    placed = []
    for row in ordered:
        at = math.log10(row["value"])
        level = next(k for k in range(len(rows)) if k not in last or abs(at - last[k]) > abs(decades))
        last[level] = at
        placed.append({**row, "level": level})
    return placed


def _ticks(rows: Sequence[Row]) -> list[float]:
    low = math.floor(math.log10(min(row["low"] or row["value"] for row in rows)))
    high = math.ceil(math.log10(max(row["high"] for row in rows)))
    steps = (1, 2, 5) if high - low <= 5 else (1,)
    return [float(f"{step}e{k}") for k in range(low, high + 1) for step in steps]


def _limits(result: Result, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    rows = []
    for row in result.get("thresholds") or ():
        percentile, _, kind = row["metric"].rstrip(")").partition("(")
        if kind in theme.METRIC_WORDS and percentile.startswith("p") and row["limit"]:
            above = round(1 - float(percentile[1:]) / 100, 9)
            rows.append({"value": row["limit"], "above": above, "text": row["text"], "verdict": row["verdict"]})
    if not rows:
        return []
    base = alt.Chart(values(rows)).encode(
        x=x,
        y=y,
        color=alt.Color("verdict:N", legend=None, scale=scale(_VERDICTS, _VERDICT_COLOURS)),
        tooltip=tooltip(("text", "threshold"), ("verdict", "verdict")),
    )
    return [base.mark_tick(orient="vertical", thickness=3, size=22)]


# --- the bill --------------------------------------------------------------------------------------------


def waterfall(result: Result) -> Chart | None:
    """Draw how the benchmark's price becomes the effective one, step by step."""
    steps = (result.get("bill") or {}).get("waterfall") or []
    if len(steps) < 2 or any(step["usd_per_mtok"] is None for step in steps):
        return None
    shown, decimals = theme.waterfall([step["usd_per_mtok"] for step in steps])
    rows, level = [], 0.0
    for k, step in enumerate(steps):
        end = k in (0, len(steps) - 1)
        start = 0.0 if end else level
        level = start + step["usd_per_mtok"]
        rows.append(
            {
                "step": step["step"],
                "why": step.get("why") or "",
                "from": min(start, level),
                "to": max(start, level),
                "level": level,
                "kind": "level" if end else "change",
                "label": theme.dollars(shown[k], decimals=decimals, sign=not end),
            }
        )
    y = alt.Y(
        "step:N",
        sort=None,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, labelLimit=200, labelPadding=8),
    )
    base = alt.Chart(DATA).encode(y=y)
    bars = base.mark_bar(height=22, cornerRadius=2).encode(
        x=alt.X("from:Q", axis=alt.Axis(title=None, format="$~f", tickCount=6), scale=alt.Scale(zero=True)),
        x2="to:Q",
        color=alt.Color("kind:N", legend=None, scale=scale(("level", "change"), (colour("accent"), colour("soft")))),
        tooltip=tooltip(("step", "step"), ("label", "$/Mtok"), ("why", "why")),
    )
    labels = base.mark_text(align="left", dx=6, fontWeight=600, color=colour("ink")).encode(x="to:Q", text="label:N")
    low, high = steps[0]["usd_per_mtok"], steps[-1]["usd_per_mtok"]
    title = f"A million output tokens cost {words.cost_per_mtok(result)}"
    if low > 0:
        title += f", {theme.number(high / low, 2)} × the benchmark's {theme.dollars(shown[0], decimals=decimals)}"
    subtitle = "US dollars per million completed output tokens, from the benchmark's best to everything billed"
    return finish(alt.layer(bars, labels).properties(width=WIDTH, height=34 * len(rows)), title, subtitle, rows)


# --- all of them ------------------------------------------------------------------------------------

MAKERS: Mapping[str, Callable[[Result], Chart | None]] = {
    "thresholds": thresholds,
    "latency": latency,
    "batches": batches,
    "day": timeline,
    "bill": waterfall,
}


def charts(result: Result) -> dict[str, Chart]:
    """Return every chart that has something to draw, by the name of its place in the report."""
    made = {name: make(result) for name, make in MAKERS.items()}
    return {name: chart for name, chart in made.items() if chart is not None}
