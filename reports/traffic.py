"""Traffic as one offline HTML page: rate over time, by hour and weekday, burstiness, lengths window by window.

Charts are pure functions from what `simulate traffic show --format json` prints to an Altair chart (None: nothing to
draw). Nothing is estimated here; long series are thinned to their highest value per pixel or so, and said to be.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt

from fleetcast.errors import ScenarioError
from fleetcast.reports import theme
from fleetcast.reports.drawing import DATA, WIDTH, Chart, Row, finish, tooltip, values
from fleetcast.reports.html import themed, vega_lite
from fleetcast.reports.theme import colour

Data = Mapping[str, Any]

MOST_POINTS = 2_000
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def charts(data: Data) -> dict[str, Chart]:
    """Return the charts that *data* has numbers for, by name and in order."""
    drawn = {"rate": rate(data), "hours": hours(data), "weekdays": weekdays(data)}
    drawn |= {"dispersion": dispersion(data), "lengths": lengths(data)}
    return {name: chart for name, chart in drawn.items() if chart is not None}


def rate(data: Data) -> Chart | None:
    """Draw the rate over time."""
    step = float(data.get("step_s") or 60.0)
    rates = data.get("minute_rate") or data.get("step_rate") or []
    if not rates:
        return None
    each = -(-len(rates) // MOST_POINTS)
    rows: list[Row] = []
    for first in range(0, len(rates), each):
        part = [value for value in rates[first : first + each] if value is not None]
        at = first * step
        top = max(part) if part else None
        rows.append({"h": at / 3_600.0, "rate": top, "when": theme.duration(at), "label": theme.rate(top)})
    hover = tooltip(("when", "from"), ("label", "requests"))
    chart = (
        alt.Chart(DATA, width=WIDTH, height=220)
        .mark_area(color=colour("accent"), opacity=0.55, line={"color": colour("accent"), "strokeWidth": 1})
        .encode(
            x=alt.X("h:Q", title="hours", scale=alt.Scale(nice=False)),
            y=alt.Y("rate:Q", title="requests/s"),
            tooltip=hover,
        )
    )
    peak, mean = theme.rate(data.get("peak_rate")), theme.rate(data.get("mean_rate"))
    shown = f"requests per second in steps of {theme.duration(step)}"
    shown += f", the highest of {each} steps each" if each > 1 else ""
    return finish(chart, f"{mean} on average, {peak} at the peak", shown, rows)


def hours(data: Data) -> Chart | None:
    """Draw the rate by local hour."""
    rates = data.get("hour_rate")
    if not rates:
        return None
    rows = [_bar(f"{hour:02d}", value) for hour, value in enumerate(rates)]
    top = max(range(24), key=lambda hour: rates[hour] or 0.0)
    zone = data.get("time_zone") or "time zone not stated"
    return _bars(rows, f"The busiest hour begins at {top:02d}:00", f"requests per second by hour of the day, {zone}")


def weekdays(data: Data) -> Chart | None:
    """Draw the rate by day of the week."""
    rates = data.get("weekday_rate")
    if not rates:
        return None
    rows = [_bar(day, value) for day, value in zip(DAYS, rates, strict=True)]
    top = max(range(7), key=lambda day: rates[day] or 0.0)
    return _bars(rows, f"{DAYS[top]} is the busiest day", "requests per second by day of the week")


def dispersion(data: Data) -> Chart | None:
    """Draw the index of dispersion by window, with Poisson's one."""
    found = data.get("index_of_dispersion") or {}
    rows = [
        {"window": window, "value": value, "label": theme.number(value, keep=True)}
        for window, value in found.items()
        if value
    ]
    if not rows:
        return None
    bars = (
        alt.Chart(DATA, width=WIDTH, height=180)
        .mark_bar(color=colour("accent"), size=38)
        .encode(
            x=alt.X("window:N", sort=None, title="window", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("value:Q", title="variance over mean"),
            tooltip=tooltip(("window", "window"), ("label", "variance over mean")),
        )
    )
    rule = alt.Chart(values([{"one": 1.0}])).mark_rule(color=colour("ink"), strokeDash=[4, 3]).encode(y="one:Q")
    last = rows[-1]
    title = f"Counts in {last['window']} vary {last['label']} times as much as Poisson's"
    return finish(alt.layer(bars, rule), title, "index of dispersion of counts; the line is Poisson", rows)


def lengths(data: Data) -> Chart | None:
    """Draw median and p99 of input and output, window by window."""
    rows: list[Row] = []
    for place, window in enumerate(data.get("windows") or ()):
        for name in ("input", "output"):
            for share in ("p50", "p99"):
                value = window[f"{name}_tokens"][share]
                row = {"window": place + 1, "tokens": max(value, 1), "kind": f"{name} {share}"}
                rows.append({**row, "when": theme.duration(window["begin_s"]), "label": theme.exact(value)})
    if len(rows) < 8:
        return None
    shades = [colour("accent"), colour("accent"), colour("quiet"), colour("quiet")]
    kinds = ["input p50", "input p99", "output p50", "output p99"]
    base = alt.Chart(DATA).encode(
        x=alt.X("window:Q", title="window", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y("tokens:Q", title="tokens", scale=alt.Scale(type="log")),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=shades), legend=None),
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=[[1, 0], [4, 3]] * 2), legend=None),
        tooltip=tooltip(("kind", "lengths"), ("when", "from"), ("label", "tokens")),
    )
    last = max(row["window"] for row in rows)
    names = (
        base.transform_filter(f"datum.window == {last}")
        .mark_text(align="left", dx=8)
        .encode(text="kind:N", strokeDash=alt.value([1, 0]))
    )
    lines = base.mark_line(point=True).properties(width=WIDTH, height=240)
    title = "Lengths over time"
    medians = [row["tokens"] for row in rows if row["kind"] == "input p50"]
    if min(medians) > 0:
        title = f"The median prompt goes from {theme.exact(min(medians))} to {theme.exact(max(medians))} tokens"
    return finish(alt.layer(lines, names), title, "tokens per request in equal windows; dashed: p99", rows)


def _bar(name: str, value: float | None) -> Row:
    return {"name": name, "rate": value, "label": theme.rate(value) if value is not None else "not observed"}


def _bars(rows: Sequence[Row], title: str, subtitle: str) -> Chart:
    chart = (
        alt.Chart(DATA, width=WIDTH, height=180)
        .mark_bar(color=colour("accent"))
        .encode(
            x=alt.X("name:N", sort=None, title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("rate:Q", title="requests/s"),
            tooltip=tooltip(("name", "when"), ("label", "requests")),
        )
    )
    return finish(chart, title, subtitle, rows)


def render(data: Data) -> str:
    """Return the page that shows *data* as HTML text."""
    import jinja2
    import markupsafe
    import vl_convert

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    bundle = vl_convert.javascript_bundle(vl_version=vega_lite())  # type: ignore[call-arg]  # its stub forgets the default
    template = environment.from_string(files("fleetcast.reports").joinpath("traffic.html").read_text("utf-8"))
    read = data.get("read") or {}
    return template.render(
        title=str(data.get("name") or "traffic"),
        facts=_facts(data, read),
        notes=list(data.get("notes") or ()),
        tables=_tables(data),
        charts={name: themed(chart.to_dict()) for name, chart in charts(data).items()},
        bundle=markupsafe.Markup(bundle.replace("</script", "<\\/script")),
        light={name: pair[0] for name, pair in theme.PALETTE.items()},
        dark={name: pair[1] for name, pair in theme.PALETTE.items()},
    )


def write_page(data: Data, path: str | Path) -> None:
    """Write the page to *path*: to a temporary name in the same folder first, then renamed."""
    target = Path(path)
    text = render(data)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        fix = "name a file in a folder that exists and that you may write to"
        raise ScenarioError(f"cannot write {path}", why=error.strerror or str(error), fix=fix) from None


def _facts(data: Data, read: Data) -> list[tuple[str, str]]:
    facts = [
        ("requests", theme.exact(data.get("requests"))),
        ("span", theme.duration(data.get("span_s"))),
        ("rate", f"{theme.rate(data.get('mean_rate'))} mean, {theme.rate(data.get('peak_rate'))} peak"),
        ("start", f"{data.get('start') or 'not stated'}, {data.get('time_zone') or 'time zone not stated'}"),
    ]
    if read:
        kept, rows = theme.exact(read.get("rows_kept")), theme.exact(read.get("rows_read"))
        facts.append(("read as", f"{read.get('format')}: {kept} of {rows} rows"))
    return facts


def _tables(data: Data) -> list[dict[str, Any]]:
    found = []
    shares = ("mean", "p1", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max")
    rows = [
        [name, *(theme.exact(data[key][share]) for share in shares)]
        for name, key in (("input", "input_tokens"), ("output", "output_tokens"))
        if data.get(key)
    ]
    if rows:
        found.append({"name": "Tokens", "head": ["", *shares], "rows": rows})
    peaks = data.get("peak_minute_over_mean") or {}
    if peaks:
        cells = [[name.replace("_", " "), theme.number(value, keep=True)] for name, value in peaks.items()]
        found.append({"name": "Peak minute over mean", "head": ["of", "×"], "rows": cells})
    windows = data.get("windows") or ()
    if windows:
        rows = [
            [
                theme.duration(window["begin_s"]),
                theme.exact(window["requests"]),
                theme.exact(window["input_tokens"]["p50"]),
                theme.exact(window["output_tokens"]["p50"]),
                "–" if window["spearman"] is None else theme.number(window["spearman"], 2, keep=True),
            ]
            for window in windows
        ]
        head = ["from", "requests", "median input", "median output", "rank correlation"]
        found.append({"name": "Windows", "head": head, "rows": rows})
    return found
