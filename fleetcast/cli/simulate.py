"""The main job: from files and flags to a screen, JSON and a folder of results."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError, ScenarioError, suggest

REQUIRED = {"profile": "--profile g6e-int8", "traffic": "--traffic weekday.parquet"}
KEEP = ("first", "all", "none")
FORMATS = ("table", "json")


@dataclass(frozen=True)
class Settings:
    """How to run and tell, apart from what is simulated; none of it changes a result."""

    workers: int
    format: str
    keep_requests: str
    out: Path | None


def run(file: Path | None, flags: Mapping[str, Any], settings: Sequence[str], thresholds: Sequence[str]) -> int:
    """Simulate, print and write; return the exit code."""
    started = time.perf_counter()
    from fleetcast.profiles.read import load_profile
    from fleetcast.sim.scenario import put, read_scenario, scenario_from, setting

    tables: dict[str, Any] = read_scenario(file) if file else {}
    beside = _beside(tables, file)
    for text in settings:
        put(tables, *setting(text))
    for key, value in flags.items():
        put(tables, key, value)
    how = _settings(tables)
    for key, example in REQUIRED.items():
        if key not in tables:
            raise ScenarioError(f"--{key} is missing", why="there is nothing to simulate", fix=f"add {example}")
    tables.setdefault("as_of", date.today().isoformat())
    scenario = scenario_from(tables, str(file) if file else "the command line", thresholds)
    if beside:
        update = {"traffic": scenario.traffic.model_copy(update={"file": beside})}
        scenario = scenario.model_copy(update=update)
    loaded = load_profile(scenario.profile)

    from fleetcast.traffic.read import read_trace

    trace = read_trace(scenario.traffic.file)

    from fleetcast.sim.kernel import is_compiled
    from fleetcast.sim.output import RESULTS, as_json, output_folder
    from fleetcast.sim.result import simulate
    from fleetcast.sim.study import make_case

    case = make_case(scenario, loaded, trace, scenario.limits())
    for note in case.trace.notes:
        _say(f"note: {note}")
    if not is_compiled():
        _say("compiling the simulation kernel (once; it takes some seconds)")
    tell = _teller()
    keep = {"first": [0], "all": range(scenario.runs), "none": []}[how.keep_requests] if how.out else []
    with output_folder(how.out) if how.out else nullcontext() as folder:
        region = scenario.fleet.region
        each = (lambda day: folder.add(day, region)) if folder else None
        result = simulate(case, how.workers, keep, tell, each)
        if folder:
            from fleetcast.reports.html import write_report

            folder.write(RESULTS, as_json(result.data))
            tell("drawing the report")
            write_report(result.data, folder.path("report.html"))
    tell("")
    if how.format == "json":
        sys.stdout.write(as_json(result.data))
    else:
        from fleetcast.cli.profile import console
        from fleetcast.reports.terminal import summary

        console().print(summary(result.data, written=str(how.out / "report.html") if how.out else None))
    _say(f"{time.perf_counter() - started:.1f} s on {how.workers} worker{'s' if how.workers > 1 else ''}")
    return result.exit_code


def _beside(tables: Mapping[str, Any], file: Path | None) -> str | None:
    """Return the traffic file beside the scenario file, where it is there and not in the current folder."""
    traffic = tables.get("traffic")
    name = traffic.get("file") if isinstance(traffic, Mapping) else traffic
    if file is None or not isinstance(name, str) or Path(name).exists():
        return None
    there = file.parent / name
    return str(there) if there.exists() else None


def _settings(tables: dict[str, Any]) -> Settings:
    """Take the keys that say how to run out of *tables*."""
    workers = tables.pop("workers", None)
    if workers is None:
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(workers, int) or isinstance(workers, bool) or not 1 <= workers <= 1_024:
        raise ScenarioError(
            f"workers = {workers!r}", why="days are played by 1 to 1,024 threads", fix="write --workers 2"
        )
    out = tables.pop("out", None)
    if out is not None and (not isinstance(out, str) or not out):
        raise ScenarioError(f"out = {out!r}", fix='write for example --out "out"')
    folder = Path(out) if out else None
    if folder and folder.exists() and not folder.is_dir():
        raise DataError(f"--out {folder} is a file", why="results are written into a folder", fix="name a folder")
    return Settings(
        workers,
        _one_of(tables.pop("format", "table"), "format", FORMATS),
        _one_of(tables.pop("keep_requests", "first"), "keep_requests", KEEP),
        folder,
    )


def _one_of(value: object, name: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ScenarioError(f"{name} = {value!r}", fix=suggest(str(value), known))
    return str(value)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _teller() -> Callable[[str], None]:
    """Return what shows the progress: one line that is written over, and nothing where nobody watches."""
    if not sys.stderr.isatty():
        return lambda text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
