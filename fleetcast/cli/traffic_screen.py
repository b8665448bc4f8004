"""What `simulate traffic show` prints: the screen and the JSON of what was read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleetcast.traffic.describe import Description, Lengths
    from fleetcast.traffic.read.options import Reading
    from fleetcast.traffic.rhythm import Rhythm

BARS = "▁▂▃▄▅▆▇█"
SPARK_COLUMNS = 72
WIDTH = 94
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def as_json(reading: Reading) -> dict[str, Any]:
    """Return everything known of *reading* as JSON types; lengths are absent for counts."""
    from fleetcast.traffic import describe, rhythm
    from fleetcast.traffic.read import report

    if reading.trace is not None:
        data = describe.as_json(describe.describe(reading.trace))
        over = rhythm.as_json(rhythm.rhythm(reading.trace))
    else:
        assert reading.counts is not None
        data = _counts_json(reading)
        over = rhythm.as_json(rhythm.rhythm_of_counts(reading.counts))
    return {**data, **over, "read": report.as_json(reading.report)}


def _counts_json(reading: Reading) -> dict[str, Any]:
    counts, report = reading.counts, reading.report
    assert counts is not None
    total = sum(value for value in counts.requests.tolist() if value == value)
    return {
        "schema": 1,
        "name": counts.name,
        "requests": round(total),
        "start": counts.start.isoformat() if counts.start else None,
        "time_zone": counts.time_zone,
        "span_s": report.span_s,
        "mean_rate": float(f"{report.mean_rate:.10g}"),
        "peak_rate": float(f"{report.peak_rate:.10g}"),
        "peak_over_mean": float(f"{report.peak_rate / report.mean_rate:.10g}"),
        "step_s": counts.step_s,
        "step_rate": [None if v != v else float(f"{v / counts.step_s:.10g}") for v in counts.requests.tolist()],
        "notes": list(report.notes()),
    }


def in_short(seen: Description) -> list[str]:
    """Return a trace in three phrases: size, rate, lengths."""
    from fleetcast.reports import theme

    inputs, outputs = seen.input_tokens.mean, seen.output_tokens.mean
    return [
        f"{theme.count(seen.rows)} request{'' if seen.rows == 1 else 's'}, {theme.duration(seen.span_s)}",
        f"{theme.rate(seen.mean_rate)} mean, {theme.rate(seen.peak_rate_minute)} peak",
        f"{theme.exact(inputs)} in, {theme.exact(outputs)} out (mean)",
    ]


def screen(reading: Reading) -> list[str]:
    """Return the lines of the screen that shows what was read."""
    from fleetcast.traffic.describe import describe
    from fleetcast.traffic.rhythm import rhythm, rhythm_of_counts

    if reading.trace is not None:
        seen = describe(reading.trace)
        over = rhythm(reading.trace)
        lines = _head(seen, reading) + _rate(seen) + _clock(over) + ["", *_table(seen)] + _windows(seen, over)
        if seen.labels:
            lines += ["", *_wrapped("  LABELS  ", _labels(seen), "    ")]
        notes = seen.notes
    else:
        assert reading.counts is not None
        lines, notes = _counts(reading), reading.report.notes()
        lines += _clock(rhythm_of_counts(reading.counts))
    noted = [line for note in notes for line in _wrapped("  ! ", note, "    ")]
    return [*lines, *(["", *noted] if noted else [])]


def _head(seen: Description, reading: Reading) -> list[str]:
    lines = [f"  {seen.name}", f"    {' · '.join(in_short(seen))}", f"    {_start(seen.start, seen.time_zone)}"]
    lines += _wrapped("    made from ", seen.recipe, "      ") if seen.recipe else []
    return [*lines, f"    read as {reading.report.format}: {_kept(reading)}"]


def _kept(reading: Reading) -> str:
    from fleetcast.reports import theme

    report = reading.report
    return f"{theme.exact(report.kept)} of {theme.exact(report.read)} rows"


def _rate(seen: Description) -> list[str]:
    from fleetcast.reports import theme

    per_column = -(-len(seen.minute_counts) // SPARK_COLUMNS)
    bars, highest = spark(seen.minute_counts.tolist(), per_column)
    burst = " · ".join(
        f"{theme.number(value, keep=True)} in {window} s" for window, value in seen.iod.items() if value is not None
    )
    lines = [
        "",
        f"  RATE  peak minute {theme.number(seen.peak_over_mean, keep=True)} × mean",
        f"    {bars}",
        f"    a column is {theme.duration(per_column * 60.0)}, the highest {theme.rate(highest / 60.0)}",
    ]
    return lines + ([f"    variance over mean of counts: {burst} (Poisson: 1)"] if burst else [])


def _counts(reading: Reading) -> list[str]:
    from fleetcast.reports import theme

    counts, report = reading.counts, reading.report
    assert counts is not None
    known = [0.0 if value != value else value for value in counts.requests.tolist()]
    per_column = -(-len(known) // SPARK_COLUMNS)
    bars, highest = spark(known, per_column)
    step, top = theme.duration(counts.step_s), theme.rate(highest / counts.step_s)
    return [
        f"  {counts.name}",
        f"    {theme.count(sum(known))} requests in steps of {step} over {theme.duration(counts.span_s)}"
        f" · {theme.rate(report.mean_rate)} mean, {theme.rate(report.peak_rate)} peak",
        f"    {_start(counts.start, counts.time_zone)}",
        f"    read as {report.format}: {_kept(reading)}; no lengths (--lengths)",
        "",
        f"  RATE  peak step {theme.number(report.peak_rate / report.mean_rate, keep=True)} × mean",
        f"    {bars}",
        f"    a column is {theme.duration(per_column * counts.step_s)}, the highest {top}",
    ]


def _clock(over: Rhythm) -> list[str]:
    from fleetcast.reports import theme

    lines = []
    if over.hour_rate is not None:
        rates = [0.0 if value != value else value for value in over.hour_rate.tolist()]
        bars, highest = spark(rates, 1)
        lowest = min(rates)
        lines.append(f"    by hour, from 0:    {bars.ljust(24)}  {theme.rate(lowest)} – {theme.rate(highest)}")
    if over.weekday_rate is not None:
        rates = over.weekday_rate.tolist()
        known = [value for value in rates if value == value]
        mean = sum(known) / len(known)
        cells = [
            f"{name} {theme.number(value / mean, 3, keep=True) if value == value else '–'}"
            for name, value in zip(DAYS, rates, strict=True)
        ]
        lines.append(f"    by weekday, × mean: {'  '.join(cells)}")
    return lines


def _windows(seen: Description, over: Rhythm) -> list[str]:
    from fleetcast.reports import theme

    peaks = [
        f"{label} {theme.number(over.peak[key], keep=True)} ×"
        for key, label in (("requests", "requests"), ("input_tokens", "input"), ("output_tokens", "output"))
        if key in over.peak
    ]
    lines = []
    if seen.spearman is not None:
        ranks = [window.spearman for window in over.windows if window.spearman is not None]
        spread = ""
        if len(ranks) > 1:
            low, high = theme.number(min(ranks), 2, keep=True), theme.number(max(ranks), 2, keep=True)
            spread = f" ({low} to {high} over {len(ranks)} windows)"
        rank = theme.number(seen.spearman, 2, keep=True)
        lines.append(f"    rank correlation of input and output {rank}{spread}")
    if len(over.windows) > 1:
        for name, each in (("input", [w.input for w in over.windows]), ("output", [w.output for w in over.windows])):
            middle = [values[0] for values in each]
            lines.append(f"    median {name} by window: {' '.join(theme.exact(value) for value in middle)}")
    if peaks:
        lines.append(f"    peak minute over mean: {' · '.join(peaks)}")
    return lines


def _labels(seen: Description) -> str:
    from fleetcast.reports import theme

    return ", ".join(f"{name} ({theme.count(distinct)})" for name, distinct in seen.labels.items())


def spark(counts: Sequence[float], per_column: int) -> tuple[str, float]:
    """Return *counts* as bars, each the mean of *per_column* of them, and the highest mean; no count, no bar."""
    means = [
        sum(counts[first : first + per_column]) / len(counts[first : first + per_column])
        for first in range(0, len(counts), per_column)
    ]
    highest = max(means)
    bars = (BARS[min(int(mean / highest * len(BARS)), len(BARS) - 1)] if mean else " " for mean in means)
    return "".join(bars).rstrip(), highest


def _wrapped(begin: str, text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=indent, break_long_words=False)


def _start(start: Any, zone: str | None) -> str:
    if start is None:
        return "start not stated"
    return f"from {start:%a %Y-%m-%d %H:%M:%S}, {zone or 'time zone not stated'}"


def _table(seen: Description) -> list[str]:
    """Return the table of lengths, columns aligned to the right."""
    from fleetcast.reports import theme

    def row(name: str, lengths: Lengths) -> list[str]:
        quantiles = [theme.exact(value) for value in lengths.quantile.values()]
        mean, cv = theme.exact(lengths.mean), theme.number(lengths.cv, 2, keep=True)
        return [name, mean, cv, *quantiles, theme.exact(lengths.most)]

    shares = [f"p{100 * share:g}" for share in seen.input_tokens.quantile]
    rows = [
        ["TOKENS", "mean", "cv", *shares, "max"],
        row("  input", seen.input_tokens),
        row("  output", seen.output_tokens),
    ]
    wide = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join([f"{cells[0]:<{wide[0]}}", *(f"{c:>{w}}" for c, w in zip(cells[1:], wide[1:], strict=True))])
        for cells in rows
    ]
