"""`simulate traffic`: show what a trace looks like, fit a model to it, make random days, convert any file."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fleetcast.cli import traffic_files as files

if TYPE_CHECKING:
    from fleetcast.traffic.model import TrafficModel

app = typer.Typer(help="Show, fit, make or convert traffic.", no_args_is_help=True)


class Format(StrEnum):
    """How a result is printed."""

    table = "table"
    json = "json"


@app.command()
def show(
    file: files.FILE,
    format: Annotated[Format, typer.Option("--format", help="How to print it.")] = Format.table,
    plot: Annotated[Path | None, typer.Option(metavar="OUT.html", help="Write charts as one offline page.")] = None,
    columns: files.COLUMNS = None,
    time_unit: files.TIME_UNIT = None,
    time_zone: files.TIME_ZONE = None,
    sampling: files.SAMPLING = None,
    keep_ticks: files.KEEP_TICKS = False,
    strict: files.STRICT = False,
    failures: files.FAILURES = "drop",
    values: files.VALUES = None,
    missing: files.MISSING = None,
    lengths: files.LENGTHS = None,
    seed: files.SPREAD_SEED = 0,
) -> None:
    """Show traffic in numbers: what was read, rate, burstiness, lengths."""
    from fleetcast.cli.traffic_screen import as_json, screen
    from fleetcast.traffic.read import read_traffic

    given = files.options(
        columns, time_unit, time_zone, sampling, keep_ticks, strict, failures, values, missing, lengths, seed
    )
    reading = read_traffic(file, given)
    data = as_json(reading)
    if plot is not None:
        from fleetcast.reports.traffic import write_page

        write_page(data, plot)
        typer.echo(f"wrote {plot}", err=True)
    if format is Format.json:
        import json

        typer.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(screen(reading)))


@app.command()
def convert(
    file: files.FILE,
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The file to write.")],
    columns: files.COLUMNS = None,
    time_unit: files.TIME_UNIT = None,
    time_zone: files.TIME_ZONE = None,
    sampling: files.SAMPLING = None,
    keep_ticks: files.KEEP_TICKS = False,
    strict: files.STRICT = False,
    failures: files.FAILURES = "drop",
    values: files.VALUES = None,
    missing: files.MISSING = None,
    lengths: files.LENGTHS = None,
    seed: files.SPREAD_SEED = 0,
) -> None:
    """Write any traffic file as a native one; counts need --lengths."""
    given = files.options(
        columns, time_unit, time_zone, sampling, keep_ticks, strict, failures, values, missing, lengths, seed
    )
    reading = files.read(file, given)
    if reading.trace is None:
        from fleetcast.traffic.read import no_lengths

        raise no_lengths(file, reading)
    _write(reading.trace, out)


@app.command()
def fit(
    file: files.FILE,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL.toml", help="The model to write.")],
    days: Annotated[
        str, typer.Option(metavar="auto|week|weekday-weekend|day|recorded", help="Which days share their rates.")
    ] = "auto",
    cell: Annotated[
        str | None, typer.Option(metavar="DURATION", help='Cell of the day: "1 h"; left out: by size.')
    ] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="Rates in steps; left out: a smooth line through them.")
    ] = False,
    day_cv: Annotated[float | None, typer.Option(help="How much days differ; left out: fitted, or 0.3.")] = None,
    holiday: Annotated[list[str] | None, typer.Option(metavar="DATE", help="A day off; repeatable.")] = None,
    holiday_like: Annotated[str, typer.Option(metavar="WEEKDAY", help="The day that holidays are like.")] = "sunday",
    columns: files.COLUMNS = None,
    time_unit: files.TIME_UNIT = None,
    time_zone: files.TIME_ZONE = None,
    sampling: files.SAMPLING = None,
    keep_ticks: files.KEEP_TICKS = False,
    strict: files.STRICT = False,
    failures: files.FAILURES = "drop",
    values: files.VALUES = None,
    missing: files.MISSING = None,
    lengths: files.LENGTHS = None,
    seed: files.SPREAD_SEED = 0,
) -> None:
    """Fit a model of traffic: week, days, hours, minutes, bursts, lengths."""
    from fleetcast.errors import ScenarioError
    from fleetcast.reports.toml import write_toml
    from fleetcast.traffic.calendar import parse_days, parse_weekday
    from fleetcast.traffic.fit import fit_model
    from fleetcast.traffic.modelfile import table_of
    from fleetcast.traffic.write import write_text
    from fleetcast.units import duration

    given = files.options(
        columns, time_unit, time_zone, sampling, keep_ticks, strict, failures, values, missing, lengths, seed
    )
    if out.suffix != ".toml":
        raise ScenarioError(f"--out {out}", why="a model is a TOML file", fix=f"write -o {out.with_suffix('.toml')}")
    reading = files.read(file, given)
    counted = reading.counts is not None
    model = fit_model(
        reading.counts if reading.counts is not None else _trace(reading),
        lengths=given.lengths if counted else None,
        groups=days,
        cell_s=duration(cell, "--cell", "1 h") if cell else None,
        smooth=not steps,
        day_cv=day_cv,
        time_zone=time_zone,
        holidays=parse_days(holiday or ()),
        holiday_like=parse_weekday(holiday_like),
    )
    write_text(write_toml(table_of(model, out)), out)
    for note in model.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"wrote {out}: {' · '.join(_model_in_short(model))}")


@app.command()
def make(
    out: Annotated[Path, typer.Argument(metavar="OUT.parquet", help="The file to write.")],
    template: Annotated[str | None, typer.Option(help="What kind of day: weekday.  [default: weekday]")] = None,
    mean_rate: Annotated[float | None, typer.Option(help="Requests per second over the day.  [default: 10.0]")] = None,
    model: Annotated[Path | None, typer.Option(metavar="MODEL.toml", help="Make days of a fitted model.")] = None,
    days: Annotated[int | None, typer.Option(help="How many days of the model.  [default: 1]")] = None,
    first: Annotated[
        str | None, typer.Option(metavar="DATE", help="The first day; left out: after the recording's.")
    ] = None,
    burst: Annotated[
        str | None, typer.Option(metavar="fitted|low|high", help="Which end of the burst bracket.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same traffic.")] = 0,
) -> None:
    """Make traffic: a day from published figures, or random days of a fitted model."""
    from fleetcast.errors import ScenarioError

    if model is None:
        from fleetcast.traffic.template import make_day

        if days is not None or first is not None or burst is not None:
            raise ScenarioError("--days, --first and --burst without --model", fix="add --model model.toml")
        _write(make_day(template or "weekday", 10.0 if mean_rate is None else mean_rate, seed), out)
        return
    from fleetcast.traffic.calendar import parse_days
    from fleetcast.traffic.model import make_days
    from fleetcast.traffic.modelfile import read_model

    if template is not None or mean_rate is not None:
        raise ScenarioError(
            "--template and --mean-rate with --model", why="the model has its rate", fix="set rate.scale in it"
        )
    begin = parse_days([first])[0] if first else None
    _write(make_days(read_model(model), 1 if days is None else days, seed, first=begin, burst=burst or "fitted"), out)


def _write(trace: Any, out: Path) -> None:
    from fleetcast.cli.traffic_screen import in_short
    from fleetcast.traffic.describe import describe
    from fleetcast.traffic.write import write_trace

    write_trace(trace, out)
    if out.suffix != ".parquet":
        typer.echo(f"note: {out} is a Parquet file, though its name does not end in .parquet", err=True)
    typer.echo(f"wrote {out}: {' · '.join(in_short(describe(trace)))}")


def _trace(reading: Any) -> Any:
    assert reading.trace is not None
    return reading.trace


def _model_in_short(model: TrafficModel) -> Sequence[str]:
    from fleetcast.reports import theme

    if model.week is not None:
        rate = f"week of {theme.duration(model.week.cell_s)} cells, {theme.rate(model.week.mean_rate)} mean"
    else:
        assert model.recorded is not None
        lasts = len(model.recorded) * model.cell_s
        rate = f"recorded rate of {theme.duration(lasts)}, {theme.rate(float(model.recorded.mean()))} mean"
    layers = [
        f"{theme.duration(layer.step_s)} wander cv {theme.number(layer.cv, 2)} (ρ {theme.number(layer.correlation, 2)})"
        for layer in model.wander
    ]
    return [
        rate,
        f"days cv {theme.number(model.day_cv, 2)} ({model.day_basis})",
        *layers,
        f"dispersion {theme.number(model.dispersion, 3)}",
    ]
