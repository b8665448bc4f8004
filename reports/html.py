"""The report as one HTML file: offline, printable, light or dark, the same bytes for the same result.

The page holds the drawing library once and each chart as JSON; it may run its own inline script and nothing else
(its Content-Security-Policy forbids every request and every `eval`). All text goes through Jinja's escaping. The
page reads well without scripts too: each chart has its numbers in a table behind it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fleetcast.errors import ScenarioError
from fleetcast.reports import theme, words
from fleetcast.reports.tables import tables
from fleetcast.reports.toml import write_toml
from fleetcast.reports.words import Result

_COLOURS = {light: f"var(--{name})" for name, (light, _) in theme.PALETTE.items()}


def write_report(result: Result, path: str | Path) -> None:
    """Write the report of *result* to *path*: to a temporary name in the same folder first, then renamed."""
    target = Path(path)
    text = render(result)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        try:
            temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        fix = "name a file in a folder that exists and that you may write to"
        raise ScenarioError(f"cannot write {path}", why=error.strerror or str(error), fix=fix) from None


def render(result: Result) -> str:
    """Return the report of *result* as the text of an HTML page."""
    import jinja2
    import markupsafe
    import vl_convert

    from fleetcast.reports.charts import charts

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    bundle = vl_convert.javascript_bundle(vl_version=vega_lite())  # type: ignore[call-arg]  # its stub forgets the default
    bundle = bundle.replace("</script", "<\\/script")
    template = environment.from_string(files("fleetcast.reports").joinpath("template.html").read_text("utf-8"))
    return template.render(
        **_page(result),
        charts={name: themed(chart.to_dict()) for name, chart in charts(result).items()},
        bundle=markupsafe.Markup(bundle),
        light={name: pair[0] for name, pair in theme.PALETTE.items()},
        dark={name: pair[1] for name, pair in theme.PALETTE.items()},
    )


def vega_lite() -> str:
    """Return the version of Vega-Lite that altair writes, `6.4`, as vl-convert names the one to bundle."""
    import altair

    return altair.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]


def themed(spec: Any) -> Any:
    """Exchange the palette's colours in a chart for the page's, which know light from dark; leave its data alone."""
    if isinstance(spec, dict):
        return {key: value if key in ("values", "datasets") else themed(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [themed(value) for value in spec]
    return _COLOURS.get(spec, spec) if isinstance(spec, str) else spec


def _page(result: Result) -> dict[str, Any]:
    about = result.get("summary") or {}
    traffic, profile = (about.get(key) or {} for key in ("traffic", "profile"))
    runs = int(result.get("runs", 1))
    alerts = result.get("alerts") or []
    return {
        "title": f"{traffic.get('name', 'traffic')} on {profile.get('name', 'profile')}",
        "verdict": words.verdict(result),
        "crossed": any(row["verdict"] == "crossed" for row in result.get("thresholds") or ()),
        "provenance": [words.what_ran(result), f"seed {result.get('seed', 0)}", *_versions(result)[:1]],
        "tiles": _tiles(result),
        "ran": words.ran(result),
        "chosen_why": words.chosen_why(result),
        "uncertain": bool(profile.get("uncertain")),
        "runs": runs,
        "level": words.level(result),
        "grades": words.grades(result),
        "basis": words.basis(result).replace(" %", "\N{NO-BREAK SPACE}%"),
        "no_cost": words.no_cost_reason(result) if result.get("bill") else "",
        "notes": words.missing_notes(result),
        "tables": tables(result),
        "alerts": [_alert(alert) for alert in alerts],
        "assumptions": result.get("assumptions") or [],
        "inputs": result.get("inputs") or [],
        "versions": _versions(result),
        "command": result.get("command") or "",
        "seed": result.get("seed", 0),
        "exit": f"{words.exit_meaning(result)} → exit {result.get('exit_code', 0)}",
        "scenario": f"data:application/toml;charset=utf-8,{quote(write_toml(result.get('scenario') or {}))}",
    }


def _tiles(result: Result) -> list[tuple[str, str, str]]:
    """The numbers at the top: what it is, its value, its interval or what else there is to say."""
    metrics = result.get("metrics") or {}
    fleet = (result.get("summary") or {}).get("fleet") or {}
    p99, cost = metrics.get("p99(ttft)"), metrics.get("cost")
    day = theme.usd_per_day((result.get("bill") or {}).get("usd_per_day"))
    tiles = []
    if p99:
        span = words.bounds(p99, unit=True)
        tiles.append(("p99 to the first token", words.measured(result, "p99(ttft)"), span or p99.get("note") or ""))
    if cost:
        span = words.bounds(cost).replace("/Mtok", "")
        tiles.append(("per million output tokens", words.cost_per_mtok(result), f"{span} · {day}" if span else day))
    if fleet.get("replicas"):
        busy = f"busy {words.measured(result, 'utilisation')}" if "utilisation" in metrics else ""
        chosen = "chosen" if fleet.get("chosen") else ""
        tiles.append(("replicas", theme.exact(fleet["replicas"]), " · ".join(w for w in (chosen, busy) if w)))
    return tiles


def _alert(alert: Mapping[str, Any]) -> dict[str, Any]:
    share, do = alert.get("share"), str(alert.get("do") or "")
    return {
        "text": str(alert["text"]),
        "share": theme.percent(share) if share is not None else "",
        "do": do,
        "typed": do.startswith(("simulate ", "fleetcast ", "--")),
    }


def _versions(result: Result) -> Sequence[str]:
    return [f"{name} {version}" for name, version in (result.get("versions") or {}).items()]
