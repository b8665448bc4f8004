"""`simulate traffic`: show what a trace looks like, and make one from a template."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fleetcast.traffic.describe import Description, Lengths

app = typer.Typer(help="Show what a trace looks like, or make one.", no_args_is_help=True)

BARS = "▁▂▃▄▅▆▇█"
SPARK_COLUMNS = 72


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"


@app.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace: fleetcast Parquet or Azure CSV.")],
    format: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.table,
) -> None:
    """Show a trace in numbers: rate, burstiness, lengths."""
    from fleetcast.traffic.describe import as_json, describe
    from fleetcast.traffic.read import read_trace

    seen = describe(read_trace(file))
    if format is Format.json:
        import json

        typer.echo(json.dumps(as_json(seen), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(screen(seen)))


@app.command()
def make(
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The file to write.")],
    template: Annotated[str, typer.Option(help="What kind of day: weekday.")] = "weekday",
    mean_rate: Annotated[float, typer.Option(help="Requests per second, averaged over the day.")] = 10.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same day.")] = 0,
) -> None:
    """Make a day of traffic from published figures."""
    from fleetcast.traffic.describe import describe
    from fleetcast.traffic.template import make_day
    from fleetcast.traffic.write import write_trace

    trace = make_day(template, mean_rate, seed)
    write_trace(trace, out)
    if out.suffix != ".parquet":
        typer.echo(f"note: {out} is a Parquet file, though its name does not end in .parquet", err=True)
    seen = describe(trace)
    typer.echo(f"wrote {out}: {' · '.join(_in_short(seen))}")


def _in_short(seen: Description) -> list[str]:
    from fleetcast.reports import theme

    inputs, outputs = seen.input_tokens.mean, seen.output_tokens.mean
    return [
        f"{theme.count(seen.rows)} request{'' if seen.rows == 1 else 's'}, {theme.duration(seen.span_s)}",
        f"{theme.rate(seen.mean_rate)} mean, {theme.rate(seen.peak_rate_minute)} peak",
        f"{theme.exact(inputs)} in, {theme.exact(outputs)} out (mean)",
    ]


def screen(seen: Description) -> list[str]:
    """Return the lines of the screen that shows a trace."""
    from fleetcast.reports import theme

    per_column = -(-len(seen.minute_counts) // SPARK_COLUMNS)
    bars, highest = spark(seen.minute_counts.tolist(), per_column)
    burst = " · ".join(
        f"{theme.number(value, keep=True)} in {window} s" for window, value in seen.iod.items() if value is not None
    )
    lines = [f"  {seen.name}", f"    {' · '.join(_in_short(seen))}", f"    {_start(seen)}"]
    lines += [f"    made from {seen.recipe}"] if seen.recipe else []
    lines += [
        "",
        f"  RATE  peak minute {theme.number(seen.peak_over_mean, keep=True)} × mean",
        f"    {bars}",
        f"    a column is {theme.duration(per_column * 60.0)}, the highest {theme.rate(highest / 60.0)}",
    ]
    lines += [f"    variance over mean of counts: {burst} (Poisson: 1)"] if burst else []
    lines += ["", *_table(seen)]
    if seen.spearman is not None:
        lines.append(f"    rank correlation of input and output {theme.number(seen.spearman, 2, keep=True)}")
    if seen.labels:
        columns = ", ".join(f"{name} ({theme.count(distinct)})" for name, distinct in seen.labels.items())
        lines += ["", f"  LABELS  {columns}"]
    lines += ["", *(f"  ! {note}" for note in seen.notes)] if seen.notes else []
    return lines


def spark(counts: Sequence[int], per_column: int) -> tuple[str, float]:
    """Return *counts* as bars, each the mean of *per_column* of them, and the highest mean; no count, no bar."""
    means = [
        sum(counts[first : first + per_column]) / len(counts[first : first + per_column])
        for first in range(0, len(counts), per_column)
    ]
    highest = max(means)
    bars = (BARS[min(int(mean / highest * len(BARS)), len(BARS) - 1)] if mean else " " for mean in means)
    return "".join(bars).rstrip(), highest


def _start(seen: Description) -> str:
    if seen.start is None:
        return "start not stated"
    return f"from {seen.start:%a %Y-%m-%d %H:%M:%S}, {seen.time_zone or 'time zone not stated'}"


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
