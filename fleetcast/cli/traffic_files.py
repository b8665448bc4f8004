"""The options that say how a traffic file is to be read, shared by `simulate traffic show`, `fit` and `convert`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fleetcast.traffic.read.options import Options, Reading

FILE = Annotated[Path, typer.Argument(metavar="FILE", help="A trace, a log or counts, of any tool; see the docs.")]
COLUMNS = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=NAME,…", help="Which column is arrival, input, output, value, tenant, …; repeatable."),
]
TIME_UNIT = Annotated[str | None, typer.Option(metavar="s|ms|us|ns", help="Unit of relative stamps.")]
TIME_ZONE = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Zone of local stamps, and of days: Europe/Berlin.")
]
SAMPLING = Annotated[str | None, typer.Option(metavar="SHARE", help='Share of the requests in the file: "10 %".')]
KEEP_TICKS = Annotated[
    bool, typer.Option("--keep-ticks", help="Leave coarse stamps as written; left out: spread them.")
]
STRICT = Annotated[bool, typer.Option("--strict", help="Refuse the first bad row instead of counting it as dropped.")]
FAILURES = Annotated[
    str, typer.Option(metavar="drop|keep", help="Requests without output: drop, or keep as one token.")
]
VALUES = Annotated[str | None, typer.Option(metavar="count|rate", help="What a monitoring series holds.")]
MISSING = Annotated[str | None, typer.Option(metavar="zero|gap", help="What a step without a value means.")]
LENGTHS = Annotated[
    str | None, typer.Option(metavar="PRESET|FILE", help="Token lengths where the file has none: chat, code, rag, …")
]
SPREAD_SEED = Annotated[int, typer.Option(help="Seed of what reading draws: ticks, arrivals of counts, lengths.")]


def options(
    columns: Sequence[str] | None,
    time_unit: str | None,
    time_zone: str | None,
    sampling: str | None,
    keep_ticks: bool,
    strict: bool,
    failures: str,
    values: str | None,
    missing: str | None,
    lengths: str | None,
    seed: int,
) -> Options:
    """Return the flags as options of reading."""
    from fleetcast.traffic.modelfile import lengths_from
    from fleetcast.traffic.read.options import Options
    from fleetcast.units import share

    return Options(
        columns=_pairs(columns or ()),
        time_unit=time_unit,
        time_zone=time_zone,
        sampling=share(sampling, "--sampling", "10 %") if sampling else 1.0,
        spread_ticks=not keep_ticks,
        strict=strict,
        failures=failures,
        values=values,
        missing=missing,
        lengths=lengths_from(lengths) if lengths else None,
        seed=seed,
    )


def read(file: Path, given: Options) -> Reading:
    """Return what *file* holds, and say on stderr what reading it did."""
    from fleetcast.traffic.read import read_traffic

    reading = read_traffic(file, given)
    for note in reading.report.notes():
        typer.echo(f"note: {note}", err=True)
    return reading


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    from fleetcast.errors import ScenarioError

    found = {}
    for text in (part for whole in texts for part in whole.split(",")):
        role, sign, name = text.partition("=")
        if not sign or not role.strip() or not name.strip():
            raise ScenarioError(
                f'--columns "{text}"', why="this is not ROLE=NAME", fix="write for example --columns arrival=ts,input=p"
            )
        found[role.strip()] = name.strip()
    return found
