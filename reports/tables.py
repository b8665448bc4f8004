"""The tables of the HTML report: what stands behind each chart, already formatted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleetcast.reports import theme, words
from fleetcast.reports.panels import PANELS, clock, thin
from fleetcast.reports.words import Result

MOST_MOMENTS = 96  # rows of the day's table: a quarter of an hour each


@dataclass(frozen=True)
class Table:
    """A table of text: its heads and rows; the columns in `text` are words, the others numbers set to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: frozenset[int] = field(default=frozenset({0}))
    marks: Sequence[str] = ()  # a class for each row, if any


def tables(result: Result) -> dict[str, Table]:
    """Return the tables of a report by name; one without rows is left out."""
    made = {
        "thresholds": thresholds(result),
        "latency": latency(result),
        "batches": batches(result),
        "day": day(result),
        "waterfall": waterfall(result),
        "bill": bill(result),
        "tenants": tenants(result),
        "metrics": metrics(result),
    }
    return {name: table for name, table in made.items() if table.rows}


def thresholds(result: Result) -> Table:
    """Each threshold with its value, interval and verdict."""
    found = result.get("thresholds") or ()
    rows = [
        (
            f"{theme.VERDICT_MARKS[row['verdict']]} {row['verdict']}",
            str(row["text"]),
            words.threshold_value(row),
            words.bounds(row, unit=True),
            "" if (remark := words.threshold_remark(result, row)) == row["verdict"] else remark,
        )
        for row in found
    ]
    head = ("verdict", "threshold", "value", "interval", "")
    return Table(head, rows, frozenset({0, 1, 4}), [row["verdict"] for row in found])


def latency(result: Result) -> Table:
    """The percentiles of each latency, the tails with their intervals."""
    columns = ("mean", "p50", "p90", "p95", "p99", "p99.9")
    found = result.get("metrics") or {}
    rows = []
    for kind, text in theme.METRIC_WORDS.items():
        names = [f"{column}({kind})" for column in columns]
        if any(name in found for name in names):
            rows.append((f"{text} ({kind})", *(_with_span(result, name) for name in names)))
    return Table(("latency", *columns), rows)


def _with_span(result: Result, name: str) -> str:
    tail = name.startswith(("p99", "p95"))
    span = words.bounds((result.get("metrics") or {}).get(name)) if tail else ""
    return words.measured(result, name) + (f" ({span})" if span else "")


def batches(result: Result) -> Table:
    """The busy time at each batch size with its step time."""
    rows = [
        (
            theme.exact(row["batch"]) if row["batch"] else "prompts only",
            theme.percent(row["share"]),
            theme.seconds(row.get("step_s")),
            theme.interval(row.get("fast_s"), row.get("slow_s"), theme.seconds, unit=True),
            str(row["basis"]),
        )
        for row in result.get("occupancy") or ()
    ]
    return Table(("batch", "of busy time", "step", "fast–slow", "speed"), rows, frozenset({4}))


def day(result: Result) -> Table:
    """The day in about MOST_MOMENTS rows: median, and lowest to highest of the band."""
    line = result.get("timeline") or {}
    panels = [panel for panel in PANELS if line.get(panel[0])]
    if not line.get("t_s") or not panels:
        return Table((), ())
    unit, size = clock(line)
    rows = [
        (f"{row['t']:.2f}", *_moment(row, panels))
        for row in thin(line, [panel[0] for panel in panels], size, MOST_MOMENTS)
    ]
    heads = (title if what == "%" else f"{title}, {what}" for _, what, title in panels)
    return Table((unit, *heads), rows, frozenset())


def _moment(row: Mapping[str, Any], panels: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    for key, what, _ in panels:
        form = theme.percent if what == "%" else theme.number
        median, low, high = (form(row[key + end], 3) for end in ("", "_low", "_high"))
        yield median if low == high else f"{median} ({low} to {high})"


def waterfall(result: Result) -> Table:
    """The waterfall's steps with their reasons; what is printed adds up."""
    steps = (result.get("bill") or {}).get("waterfall") or ()
    if len(steps) < 2 or any(step["usd_per_mtok"] is None for step in steps):
        return Table((), ())
    shown, decimals = theme.waterfall([step["usd_per_mtok"] for step in steps])
    ends = (0, len(steps) - 1)
    rows = [
        (step["step"], theme.dollars(value, decimals=decimals, sign=k not in ends), step.get("why") or "")
        for k, (step, value) in enumerate(zip(steps, shown, strict=True))
    ]
    return Table(("step", "$/Mtok", "why"), rows, frozenset({0, 2}))


def bill(result: Result) -> Table:
    """Each line of the bill with where its price comes from, and the total."""
    found = result.get("bill") or {}
    rows = [
        (
            str(line["item"]),
            str(line.get("detail") or ""),
            f"{theme.number(line['quantity'])} {line['unit']}",
            theme.price(line["usd_per_unit"]),
            theme.dollars(line["usd_per_day"]),
            str(line.get("date") or theme.MISSING),
            str(line.get("source") or "") + (" · inferred" if line.get("inferred") else ""),
        )
        for line in found.get("lines") or ()
    ]
    if rows:
        rows.append(("total", "", "", "", theme.dollars(found.get("usd_per_day")), "", ""))
    head = ("item", "what", "quantity", "unit price", "$/day", "as of", "price from")
    return Table(head, rows, frozenset({0, 1, 6}), [""] * (len(rows) - 1) + ["total"])


def tenants(result: Result) -> Table:
    """Requests, tokens and latency of each tenant."""
    found = result.get("by_tenant") or ()
    keys = [key for key in (found[0] if found else ()) if key != "tenant"]
    rows = [(str(row["tenant"]), *(_cell(key, row.get(key)) for key in keys)) for row in found]
    return Table(("tenant", *(key.replace("_", " ") for key in keys)), rows)


def _cell(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if "(" in key:
        return theme.metric(value, "s")
    return theme.usd_per_mtok(value) if key == "cost" else theme.exact(value)


def metrics(result: Result) -> Table:
    """Every metric of the result."""
    rows = [
        (
            name,
            words.measured(result, name),
            words.bounds(row, unit=True),
            theme.exact(row.get("n")),
            str(row.get("note") or ""),
        )
        for name, row in (result.get("metrics") or {}).items()
    ]
    return Table(("metric", "value", "interval", "samples", "note"), rows, frozenset({0, 4}))
