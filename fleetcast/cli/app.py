"""`simulate`: the main job, and the verbs beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetcast.cli import (
    prices,
    profile,
    profile_calibrate,
    profile_check,
    profile_fit,
    profile_import,
    report,
    traffic,
)
from fleetcast.cli.profile import Format


def whole(text: str) -> int:
    """Read a whole number, or say what was given instead."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is not a whole number; write for example 4') from None


app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(profile.app, name="profile")
app.add_typer(traffic.app, name="traffic")
app.add_typer(prices.app, name="prices")
app.command("report")(report.report)
assert profile_calibrate and profile_check and profile_fit and profile_import  # each adds its verb to those of profile


@app.callback()
def simulate(
    context: typer.Context,
    scenario: Annotated[Path | None, typer.Option(metavar="FILE", help="A scenario file; flags override it.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="What was measured: g6e-int8.")] = None,
    traffic: Annotated[str | None, typer.Option(metavar="FILE", help="What users send: weekday.parquet.")] = None,
    replicas: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Fixed fleet; left out: the smallest that will do.")
    ] = None,
    routing: Annotated[str | None, typer.Option(help="least-outstanding, round-robin, random, …")] = None,
    region: Annotated[str | None, typer.Option(help="Region of the fleet.")] = None,
    client_region: Annotated[str | None, typer.Option(help="Region of the clients; left out: the fleet's.")] = None,
    network: Annotated[str | None, typer.Option(help="privatelink, public, or none.")] = None,
    runs: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Random days to play.  [default: 20]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="The same seed gives the same result.  [default: 0]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Days played at once; left out: one per core.")
    ] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Play the trace as recorded in every run.")] = False,
    threshold: Annotated[
        list[str] | None, typer.Option(metavar='"p99(ttft) < 500 ms"', help="A limit to hold; repeatable.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any key of a scenario; repeatable.")
    ] = None,
    keep_requests: Annotated[str | None, typer.Option(help="first, all or none, in requests.parquet.")] = None,
    format: Annotated[Format | None, typer.Option(help="How stdout tells the result.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write results, tables and report.html.")] = None,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Play production traffic against a measured serving profile: the P99 users see, the price of a million tokens.

    simulate --profile g6e-int8 --traffic weekday.parquet
    """
    if version:
        from fleetcast import __version__

        typer.echo(f"fleetcast {__version__}")
        raise typer.Exit
    flags = {
        "profile": profile,
        "traffic.file": traffic,
        "fleet.replicas": replicas,
        "fleet.routing": routing,
        "fleet.region": region,
        "network.client_region": client_region,
        "network.kind": network,
        "runs": runs,
        "seed": seed,
        "workers": workers,
        "replay": True if replay else None,
        "keep_requests": keep_requests,
        "format": format.value if format else None,
        "out": str(out) if out else None,
    }
    given = {key: value for key, value in flags.items() if value is not None}
    if context.invoked_subcommand is not None:
        if given or scenario or threshold or set_:
            from fleetcast.errors import ScenarioError

            verb = context.invoked_subcommand
            raise ScenarioError(f"options of the simulation before the verb {verb}", fix=f"write simulate {verb} …")
        return
    from fleetcast.cli.simulate import run

    raise typer.Exit(run(scenario, given, set_ or [], threshold or []))
