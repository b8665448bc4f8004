"""The charts made of panels on one shared axis: where the batches lived, and the day.

Like the others they are pure functions from a result to an Altair chart, None when there is nothing to draw.
A long timeline is thinned out for drawing; nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from fleetcast.reports import theme, words
from fleetcast.reports.drawing import DATA, MARGIN, WIDTH, Chart, Row, finish, scale, tooltip
from fleetcast.reports.theme import colour
from fleetcast.reports.words import Result

MOST_POINTS = 1_500  # of a timeline; more are finer than the screen

_BASES = ("measured", "stated", "modelled", "unmeasured", "prompt only")
_BASIS_COLOURS = (colour("accent"), colour("accent"), colour("soft"), colour("quiet"), colour("grey"))


def batches(result: Result) -> Chart | None:
    """Draw where the batches lived under the curve of the step time, on one axis of batch sizes."""
    rows = [
        {
            **{key: row.get(key) for key in ("batch", "share", "step_s", "fast_s", "slow_s", "basis")},
            "percent": theme.percent(row["share"]),
            "step": theme.seconds(row.get("step_s")),
            "range": theme.interval(row.get("fast_s"), row.get("slow_s"), theme.seconds, unit=True),
        }
        for row in result.get("occupancy") or ()
    ]
    if not rows:
        return None
    x_scale = alt.Scale(domain=[-0.5, max(row["batch"] for row in rows) + 0.5], nice=False)
    bare = alt.X("batch:Q", scale=x_scale, axis=alt.Axis(labels=False, ticks=False, title=None, grid=False))
    full = alt.X(
        "batch:Q",
        scale=x_scale,
        axis=alt.Axis(title="sequences decoding at once (0: prompts only)", grid=False),
    )
    hint = tooltip(
        ("batch", "batch"),
        ("basis", "speed"),
        ("percent", "of busy time"),
        ("step", "step"),
        ("range", "range"),
    )

    timed = alt.Chart(DATA).transform_filter("isValid(datum.step_s)")
    y = alt.Y(
        "step_s:Q",
        scale=alt.Scale(zero=True),
        axis=alt.Axis(title="step time", labelExpr=theme.SECONDS_EXPR, tickCount=4, minExtent=46),
    )
    band = timed.mark_area(opacity=0.35, color=colour("soft")).encode(x=bare, y=alt.Y("fast_s:Q"), y2="slow_s:Q")
    line = timed.mark_line(color=colour("accent"), strokeWidth=2).encode(x=bare, y=y)
    dots = (
        timed.transform_filter("datum.basis == 'measured'")
        .mark_point(filled=True, size=75, opacity=1, color=colour("ink"))
        .encode(x=bare, y=y, tooltip=hint)
    )
    curve = alt.layer(band, line, dots).properties(width=WIDTH - MARGIN, height=130)
    shown = [name for name in _BASES if any(row["basis"] == name and row["share"] for row in rows)]
    bars = (
        alt.Chart(DATA)
        .mark_bar(size=max(1.5, 0.7 * (WIDTH - MARGIN) / (len(rows) + 1)))
        .encode(
            x=full,
            y=alt.Y(
                "share:Q", axis=alt.Axis(title="busy time", labelExpr=theme.PERCENT_EXPR, tickCount=4, minExtent=46)
            ),
            color=alt.Color(
                "basis:N",
                scale=scale(_BASES, _BASIS_COLOURS, shown),
                legend=alt.Legend(
                    title=None, orient="top", direction="horizontal", offset=2, symbolType="square", fillColor=None
                ),
            ),
            tooltip=hint,
        )
        .properties(width=WIDTH - MARGIN, height=150)
    )
    return finish(
        alt.vconcat(curve, bars, spacing=8).resolve_legend(color="independent"),
        _batch_title(result),
        "above: time of one step (line), fast to slow (band), measured (dots); below: share of busy time",
        rows,
    )


def _batch_title(result: Result) -> str:
    shares = result.get("busy_basis") or {}
    if shares.get("unmeasured"):
        return f"{theme.percent(shares['unmeasured'])} of busy time ran beyond every measured batch size"
    if shares.get("modelled"):
        return f"{theme.percent(shares['modelled'])} of busy time ran at modelled batch sizes, not measured ones"
    return f"While busy, {words.measured(result, 'batch')} decode at once"


PANELS = (
    ("arrivals", "requests/s", "arrivals"),
    ("running", "sequences", "running"),
    ("waiting", "requests", "waiting"),
    ("kv_use", "%", "KV memory in use"),
    ("busy", "%", "busy"),
)


def timeline(result: Result) -> Chart | None:
    """Draw the day as stacked panels on one clock: the median day and the band of 5 to 95 % of days."""
    line = result.get("timeline") or {}
    times = line.get("t_s") or []
    panels = [panel for panel in PANELS if line.get(panel[0])]
    if not times or not panels:
        return None
    unit, size = clock(line)
    rows = thin(line, [panel[0] for panel in panels], size)
    rows.append({**rows[-1], "t": round(times[-1] / size, 5)})  # where the last one ends
    drawn = []
    for k, (key, what, title) in enumerate(panels):
        last = k == len(panels) - 1
        axis = alt.Axis(
            labels=last,
            ticks=last,
            title=f"{unit} since the start" if last else None,
            grid=True,
            tickCount=12,
        )
        x = alt.X("t:Q", axis=axis, scale=alt.Scale(nice=False))
        expr = theme.PERCENT_EXPR if what == "%" else theme.COUNT_EXPR
        y_axis = alt.Axis(tickCount=3, title=None, labelExpr=expr, minExtent=46)
        empty = not any(row[f"{key}_high"] for row in rows)
        top = 1.0 if empty else alt.Undefined  # a panel of zeros still needs a scale
        base = alt.Chart().encode(x=x)
        band = base.mark_area(opacity=0.45, color=colour("soft"), interpolate="step-after").encode(
            y=alt.Y(f"{key}_low:Q", axis=y_axis, scale=alt.Scale(zero=True, domainMax=top)), y2=f"{key}_high:Q"
        )
        median = base.mark_line(color=colour("accent"), strokeWidth=1.4, interpolate="step-after").encode(
            y=alt.Y(f"{key}:Q", axis=y_axis),
            tooltip=[
                alt.Tooltip("t:Q", title=unit, format=".2f"),
                *(
                    alt.Tooltip(f"{key}{end}:Q", title=name, format=".1%" if what == "%" else ".3~s")
                    for end, name in (("", "median"), ("_low", "5 %"), ("_high", "95 %"))
                ),
            ],
        )
        heading = alt.TitleParams(
            title if what == "%" else f"{title}, {what}",
            anchor="start",
            fontSize=12,
            fontWeight=500,
            offset=4,
        )
        drawn.append(alt.layer(band, median).properties(width=WIDTH - MARGIN, height=70, title=heading))
    runs = int(result.get("runs", 1))
    subtitle = "the run" if runs == 1 else f"median of {what_runs(result)} (line) and 5 to 95 % of them (band)"
    chart = alt.vconcat(*drawn, spacing=6, data=DATA).resolve_scale(x="shared")
    return finish(chart, _day_title(line, size, unit), subtitle, rows)


def clock(line: Mapping[str, Any]) -> tuple[str, float]:
    """Return the unit of a timeline's clock and its seconds: the largest that goes at least twice into it."""
    span = line["t_s"][-1] - line["t_s"][0] + line["step_s"]
    units = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0))
    return next((unit for unit in units if span > 2 * unit[1]), units[-1])


def what_runs(result: Result) -> str:
    """Return the runs as a plural noun: `20 random days`, `20 draws of the profile`."""
    runs = int(result.get("runs", 1))
    return f"{runs} draws of the profile" if result.get("mode") == "replay" else f"{runs} random days"


def _day_title(line: Mapping[str, Any], size: float, unit: str) -> str:
    def peak(key: str) -> tuple[float, float] | None:
        values = [
            (v, line["step_s"] - t)
            for v, t in zip((line.get(key) or {}).get("median") or [], line["t_s"], strict=False)
        ]
        value, when = max(((v, t) for v, t in values if v is not None), default=(0.0, 0.0))
        return (value, -when) if value > 0 else None

    busiest, queue = peak("arrivals"), peak("waiting")
    if busiest is None:
        return "Nothing arrives"
    when = theme.number(busiest[1] / size)
    title = f"Traffic peaks at {theme.rate(busiest[0])}, {when} {unit.removesuffix('s') if when == '1' else unit} in"
    if queue is None or queue[0] < 0.05:
        return f"{title}; hardly anyone waits"
    return f"{title}; up to {theme.number(queue[0], 2)} requests wait"


def thin(line: Mapping[str, Any], keys: Sequence[str], size: float, most: int = MOST_POINTS) -> list[Row]:
    """Return at most *most* rows of a timeline: the band keeps its extremes, the line its middle value.

    A sample is about the time since the one before it; a row's `t` is where its time begins.
    """
    times, step = line["t_s"], line["step_s"]
    stride = -(-len(times) // most)
    rows = []
    for start in range(0, len(times), stride):
        group = slice(start, start + stride)
        row: Row = {"t": round((times[start] - step) / size, 5)}
        for key in keys:
            for part, pick in (("median", None), ("low", min), ("high", max)):
                values = [value for value in line[key][part][group] if value is not None]
                value = None if not values else values[len(values) // 2] if pick is None else pick(values)
                row[key if part == "median" else f"{key}_{part}"] = value
        rows.append(row)
    return rows
