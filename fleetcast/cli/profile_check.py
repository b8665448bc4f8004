"""`simulate profile check`: what a profile's figures say about each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fleetcast.cli.profile import Format, FormatOption, app, console, indented, print_json

if TYPE_CHECKING:
    from fleetcast.profiles.finding import Finding
    from fleetcast.profiles.read import LoadedProfile

SIGNS = {"severe": "✗", "warning": "!", "info": "·"}


@app.command("check")
def check_profile(
    profile: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A built-in name or a TOML file.")],
    format: FormatOption = Format.table,
) -> None:
    """Check what a profile's points say: Little's law, sums, units, repeats, overloads; exit 1 if severe."""
    from fleetcast.profiles.check import check
    from fleetcast.profiles.read import load_profile

    loaded = load_profile(profile)
    findings = check(loaded.profile)
    if format is Format.json:
        _print_json(loaded, findings)
    else:
        _print(loaded, findings)
    if any(finding.severity == "severe" for finding in findings):
        raise typer.Exit(1)


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    from fleetcast.profiles.finding import SEVERITIES

    told = [finding.severity for finding in findings]
    return {severity: told.count(severity) for severity in SEVERITIES}


def _print_json(loaded: LoadedProfile, findings: tuple[Finding, ...]) -> None:
    from dataclasses import asdict

    keys = ("code", "severity", "where", "what", "why", "do", "value")
    rows: list[dict[str, Any]] = [{key: asdict(finding)[key] for key in keys} for finding in findings]
    head = {"schema": 1, "name": loaded.profile.name, "path": loaded.path, "sha256": loaded.sha256}
    print_json({**head, "points": len(loaded.profile.point), "counts": _counts(findings), "findings": rows})


def _print(loaded: LoadedProfile, findings: tuple[Finding, ...]) -> None:
    """Print the findings by severity; those of one kind share their reason and remedy."""
    from fleetcast.profiles.finding import SEVERITIES
    from fleetcast.reports import theme

    out = console()
    out.print(loaded.profile.name, style="bold")
    if not loaded.profile.point:
        indented(out, "no points: its [step] was written by hand, and there is nothing to compare")
        return
    counts = _counts(findings)
    told = ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES)
    indented(out, f"{theme.plural(len(loaded.profile.point), 'point')}: {told}")
    for severity in SEVERITIES:
        groups: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.severity == severity:
                groups.setdefault(finding.code, []).append(finding)
        for code, group in groups.items():
            out.print(f"\n{SIGNS[severity]} {code} ({severity})", style="bold" if severity == "severe" else None)
            for finding in group:
                shown = finding.value and finding.value not in finding.what
                indented(out, f"{finding.where}: {finding.what}" + (f": {finding.value}" if shown else ""))
            for line in dict.fromkeys(f"why: {finding.why}" for finding in group):
                indented(out, line)
            for line in dict.fromkeys(f"do: {finding.do}" for finding in group if finding.do != "nothing"):
                indented(out, line)
