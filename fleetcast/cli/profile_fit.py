"""`simulate profile fit`: which instances hold a model, and how many sequences at once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from fleetcast.cli.profile import Format, FormatOption, app, console, plain_table, print_json


@app.command("fit")
def fit(
    profile: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A profile that states the model's shape.")],
    instance: Annotated[str | None, typer.Option(help="Only this instance.")] = None,
    context: Annotated[int | None, typer.Option(min=1, help="Tokens of one sequence; left out: the longest.")] = None,
    format: FormatOption = Format.table,
) -> None:
    """List the instances that hold a model: KV cache and concurrency at each tensor parallelism."""
    from fleetcast.profiles.fitting import fits
    from fleetcast.profiles.read import load_profile

    rows = fits(load_profile(profile).profile, context, instance)
    if format is Format.json:
        print_json({"schema": 1, "profile": profile, "fits": [asdict(row) | {"fits": row.fits} for row in rows]})
        return
    from fleetcast.reports import theme

    table = plain_table("instance", "accelerators", "TP>", "replicas>", "KV tokens>", "at once>", "")
    for row in rows:
        if row.fits or instance:
            tokens = theme.count(row.kv_tokens) if row.fits else "does not fit"
            at_once = theme.exact(row.sequences) if row.fits else ""
            what = f"{row.parallelism} × {row.accelerator}"
            table.add_row(
                row.instance, what, str(row.parallelism), str(row.replicas), tokens, at_once, "; ".join(row.warnings)
            )
    out = console()
    out.print(table)
    if not instance:
        small = sorted({row.instance for row in rows} - {row.instance for row in rows if row.fits})
        out.print(f"\ndoes not fit: {', '.join(small) if small else 'none'}", style="dim")
