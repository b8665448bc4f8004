"""The summary screen: what ran, the verdict, latency, fleet, money, warnings, and last where it comes from.

At most 94 columns and about 30 lines; the same result gives the same characters. Colour is a hint only: marks
and words say the same without it, and rich leaves it out where the screen has none.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from fleetcast.reports import theme, words
from fleetcast.reports.words import PERCENTILES, Result

WIDTH = 94
MOST_ALERTS = 3
TAILS = ("p99", "p99.9")
INDENT = " " * 12  # under FLEET and MONEY

HEAD, QUIET, WARN = "bold", "dim", "yellow"
_VERDICT_STYLE = {"holds": "cyan", "crossed": "bold red", "undecided": WARN}
_EXIT_STYLE = {0: "", 1: _VERDICT_STYLE["crossed"], 3: WARN}


def summary(result: Result, *, width: int = WIDTH, written: str | None = None) -> Text:
    """Return the summary screen, to print with `soft_wrap=True`; *written* names what was written."""
    blocks = (
        _what_ran(result, width),
        _thresholds(result, width),
        _latency(result, width),
        _fleet(result, width),
        _money(result, width),
        _alerts(result, width),
        _provenance(result, width, written),
    )
    lines = [line for block in blocks if block for line in (*block, Text())][:-1]
    for line in lines:
        line.rstrip()
    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _what_ran(result: Result, width: int) -> list[Text]:
    rows = words.ran(result)
    column = min(28, max(len(name) for name, _ in rows))
    lines = []
    for name, parts in rows:
        shown = name if len(name) <= column else f"…{name[1 - column :]}"
        lines += _flow([(f"  {shown:<{column}}  ", HEAD)], parts, " · ", width)
    if why := words.chosen_why(result):
        lines += _flow([(" " * (column + 4), "")], [why], "", width, QUIET)
    return lines


def _thresholds(result: Result, width: int) -> list[Text]:
    rows = result.get("thresholds") or ()
    if not rows:
        return []
    cells = [(str(row["text"]), words.threshold_value(row), words.bounds(row)) for row in rows]
    wide = [max(len(cell[i]) for cell in cells) for i in range(3)]
    lines = [Text("  THRESHOLDS", HEAD)]
    for row, (text, value, span) in zip(rows, cells, strict=True):
        style = _VERDICT_STYLE[row["verdict"]]
        start = [
            (f"    {theme.VERDICT_MARKS[row['verdict']]} ", style),
            (f"{text:<{wide[0]}}   ", ""),
            (f"{value:<{wide[1]}}   ", HEAD),
            (f"{span:<{wide[2]}}   " if wide[2] else "", QUIET),
        ]
        remark = words.threshold_remark(result, row)
        lines += _flow(start, [remark], "", width, QUIET if row["verdict"] == "holds" else style)
    return lines


def _latency(result: Result, width: int) -> list[Text]:
    metrics = result.get("metrics", {})
    table = [[("LATENCY", ""), *((p, "") for p in PERCENTILES)]]
    for kind, text in theme.METRIC_WORDS.items():
        names = [f"{p}({kind})" for p in PERCENTILES]
        if any(name in metrics for name in names):
            spans = [words.bounds(metrics.get(name)) if p in TAILS else "" for p, name in _pairs(names)]
            cells = [(words.measured(result, name), span) for name, span in zip(names, spans, strict=True)]
            table.append([(f"  {text}", ""), *cells])
    if len(table) == 1:
        return []
    sizes = [[len(value) + (len(span) + 3 if span else 0) for value, span in row] for row in table]
    wide = [max(column) for column in zip(*sizes, strict=True)]
    lines = []
    for k, row in enumerate(table):
        line = Text("  ")
        for (value, span), size, room in zip(row, sizes[k], wide, strict=True):
            line.append(value, HEAD if k == 0 else "")
            line.append(f" ({span})" if span else "", QUIET)
            line.append(" " * (room - size + 3))
        lines.append(line)
    for note in words.missing_notes(result):
        lines += _flow([(f"    {theme.MISSING} ", QUIET)], [note], "", width, QUIET)
    if graded := words.grades(result):
        lines += _flow([("    grades  ", QUIET)], graded.split(" · "), " · ", width)
    return lines


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(PERCENTILES, names, strict=True))


def _fleet(result: Result, width: int) -> list[Text]:
    seats = result.get("summary", {}).get("profile", {}).get("max_num_seqs")
    metrics = result.get("metrics", {})
    parts = []
    if "utilisation" in metrics:
        parts.append(f"busy {words.measured(result, 'utilisation')}")
    if "batch" in metrics:
        batch = words.measured(result, "batch").removesuffix(" sequences")
        parts.append(f"batch {batch}{f' of {seats}' if seats else ''} while busy")
    if ((metrics.get("occupancy_full") or {}).get("value") or 0) > 0.001:
        parts.append(f"full {words.measured(result, 'occupancy_full')} of that")
    if "throughput" in metrics:
        parts.append(words.measured(result, "throughput"))
    if not parts:
        return []
    lines = _flow([("  FLEET     ", HEAD)], parts, " · ", width)
    if basis := words.basis(result):
        text = f"batch sizes: {basis}".split(", ")
        lines += _flow([(INDENT, "")], text, ", ", width, QUIET)
    return lines


def _money(result: Result, width: int) -> list[Text]:
    bill = result.get("bill") or {}
    cost = result.get("metrics", {}).get("cost")
    if not cost and not bill:
        return []
    day = theme.usd_per_day(bill.get("usd_per_day"))
    if why := words.no_cost_reason(result):
        return _flow([("  MONEY     ", HEAD)], [day, f"no cost per token: {why}"], " · ", width)
    span = words.bounds(cost)
    price = f"{words.cost_per_mtok(result)} per M output tokens{f' ({span})' if span else ''}"
    lines = _flow([("  MONEY     ", HEAD)], [price, day], " · ", width)
    steps: Sequence[Mapping[str, Any]] = bill.get("waterfall") or []
    if len(steps) < 2:
        return lines
    levels, decimals = theme.waterfall([step["usd_per_mtok"] for step in steps])
    first, *changes, last = levels
    why = f" ({steps[0]['why']})" if steps[0].get("why") else ""
    parts = [f"{theme.dollars(first, decimals=decimals)} {steps[0]['step']}{why}"]
    parts += [
        f"{theme.dollars(value, decimals=decimals, sign=True)} {step['step']}"
        for step, value in zip(steps[1:-1], changes, strict=True)
    ]
    parts[-1] += f" = {theme.dollars(last, decimals=decimals)}"
    return lines + _flow([(INDENT, "")], parts, ", ", width, QUIET)


def _alerts(result: Result, width: int) -> list[Text]:
    alerts = result.get("alerts") or ()
    lines: list[Text] = []
    for alert in alerts[:MOST_ALERTS]:
        lines += _flow([("  ! ", WARN)], [str(alert["text"])], "", width)
        if alert.get("do"):
            lines.append(Text.assemble(("    → ", QUIET), str(alert["do"])))
    if len(alerts) > MOST_ALERTS:
        more = theme.plural(len(alerts) - MOST_ALERTS, "more alert")
        lines.append(Text(f"    and {more} in the report", QUIET))
    return lines


def _provenance(result: Result, width: int, written: str | None) -> list[Text]:
    runs, code = int(result.get("runs", 1)), int(result.get("exit_code", 0))
    parts = [words.what_ran(result), f"seed {result.get('seed', 0)}"]
    if runs == 1:
        parts.append("one run: no intervals")
    if written:
        parts.append(written)
    left = "  " + " · ".join(parts)
    right = f"{words.exit_meaning(result)} → exit {code}"
    if len(left) + len(right) + 2 > width:
        return [Text(left, QUIET), Text.assemble("  ", (right, _EXIT_STYLE.get(code, "")))]
    line = Text.assemble((left, QUIET), (right.rjust(width - len(left)), _EXIT_STYLE.get(code, "")))
    return [line]


def _flow(
    start: Sequence[tuple[str, str]], parts: Sequence[str], joint: str, width: int, style: str = ""
) -> list[Text]:
    """Set *parts* after *start* and continue under their beginning; a line breaks between parts only.

    Without a *joint* the parts are prose and break at any space.
    """
    indent = sum(len(text) for text, _ in start)
    if joint:
        parts = [part.replace(" ", "\0") for part in parts]
        joint = joint.replace(" ", "\0", joint.count(" ") - 1)  # only its last space may break
    pieces = textwrap.wrap(
        joint.join(parts), max(20, width - indent), break_long_words=not joint, break_on_hyphens=False
    )
    first, *rest = (piece.replace("\0", " ") for piece in pieces or [""])
    return [
        Text.assemble(*start, (first, style)),
        *(Text.assemble(" " * indent, (piece, style)) for piece in rest),
    ]
