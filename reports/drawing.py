"""What every chart has in common: its data, scales, tooltips, and the look of titles and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from fleetcast.reports.theme import colour

Row = dict[str, Any]
Chart = alt.TopLevelMixin

WIDTH = 868  # pixels with axes; the report scales a chart down on a narrower page
MARGIN = 62  # of them, left of the panels of a chart made of panels
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


# The main data of a chart, said once in `finish` however many layers draw it.
DATA = alt.NamedData(name="data")


def values(rows: Sequence[Row]) -> alt.InlineData:
    """Return a few *rows* as the data of a single layer."""
    return alt.InlineData(values=list(rows))


def scale(domain: Sequence[str], range_: Sequence[str], only: Sequence[str] | None = None) -> alt.Scale:
    """Return a scale from names to colours or shapes, limited to the names in *only*."""
    pairs = [(d, r) for d, r in zip(domain, range_, strict=True) if only is None or d in only]
    return alt.Scale(domain=[d for d, _ in pairs], range=[r for _, r in pairs])


def tooltip(*fields: tuple[str, str]) -> list[alt.Tooltip]:
    """Return a tooltip of (field, title) pairs, each field already text."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields]


def finish(chart: Any, title: str, subtitle: str, data: Sequence[Row]) -> Chart:
    """Give *chart* its finding as title, what is plotted as subtitle, its DATA, and the look of the report."""
    ink, quiet, hair = colour("ink"), colour("quiet"), colour("hair")
    heading = alt.TitleParams(
        title,
        subtitle=subtitle,
        anchor="start",
        frame="bounds",
        fontSize=16,
        fontWeight=600,
        color=ink,
        subtitleFontSize=12,
        subtitleColor=quiet,
        subtitlePadding=5,
        offset=16,
    )
    axis = alt.AxisConfig(
        labelColor=quiet,
        titleColor=quiet,
        domainColor=hair,
        tickColor=hair,
        gridColor=hair,
        labelFontSize=11,
        titleFontSize=11,
        titleFontWeight=400,
        titlePadding=8,
    )
    if isinstance(chart, alt.LayerChart):
        chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    finished: Chart = chart.properties(title=heading, datasets={DATA.name: list(data)}).configure(
        background="transparent",
        font=FONT,
        padding=2,
        axis=axis,
        view=alt.ViewConfig(stroke=None),
        legend=alt.LegendConfig(labelColor=ink, labelFontSize=11, titleColor=quiet),
        title=alt.TitleConfig(color=ink, subtitleColor=quiet),
        text=alt.MarkConfig(fontSize=12),
    )
    return finished
