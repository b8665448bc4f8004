"""`simulate report`: make the report of an earlier simulation again, without simulating."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetcast.cli.profile import Format, FormatOption, console


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What --out of a simulation wrote.")],
    format: FormatOption = Format.table,
) -> None:
    """Write report.html again from the results in DIR, and show their summary."""
    from fleetcast.reports.html import write_report
    from fleetcast.reports.read import RESULTS, read_result

    result = read_result(folder)
    if folder.is_file():
        folder = folder.parent
    page = folder / "report.html"
    write_report(result, page)
    if format is Format.json:
        typer.echo((folder / RESULTS).read_text("utf-8"), nl=False)
        return
    from fleetcast.reports.terminal import WIDTH, summary

    out = console()
    out.print(summary(result, width=min(WIDTH, out.width), written=str(page)), soft_wrap=True)
