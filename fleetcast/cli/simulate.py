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
from typing import TYPE_CHECKING, Any

from fleetcast.errors import DataError, ScenarioError, suggest

if TYPE_CHECKING:
    from fleetcast.sim.scenario import Reading

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
    from fleetcast.sim.scenario import COMMAND_LINE, put, read_scenario, scenario_from, setting

    tables: dict[str, Any] = _beside(read_scenario(file), file.parent) if file else {}
    typed = [setting(text) for text in settings] + list(flags.items())
    for key, value in typed:
        put(tables, key, value)
    how = _settings(tables)
    for key, example in REQUIRED.items():
        if key not in tables:
            raise ScenarioError(f"--{key} is missing", why="there is nothing to simulate", fix=f"add {example}")
    tables.setdefault("as_of", date.today().isoformat())
    where = str(file) if file else COMMAND_LINE
    scenario = scenario_from(tables, where, thresholds, [key for key, _ in typed])
    loaded = load_profile(scenario.profile)

    from fleetcast.traffic.read import read_trace

    trace = read_trace(scenario.traffic.file, **_options(scenario.traffic.read))

    from fleetcast.sim.kernel import is_compiled
    from fleetcast.sim.output import REPORT, RESULTS, as_json, output_folder
    from fleetcast.sim.result import simulate
    from fleetcast.sim.study import make_case

    _spare(how.out, (scenario.profile, scenario.traffic.file, file))
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
            write_report(result.data, folder.path(REPORT))
    tell("")
    try:
        if how.format == "json":
            sys.stdout.write(as_json(result.data))
        else:
            from fleetcast.cli.profile import console
            from fleetcast.reports.terminal import summary

            console().print(summary(result.data, written=str(how.out / REPORT) if how.out else None))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; the exit code is still the verdict
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _say(f"{time.perf_counter() - started:.1f} s on {how.workers} worker{'s' if how.workers > 1 else ''}")
    return result.exit_code


def _beside(tables: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Take the files that a scenario names from beside it, where they are there and not in the current folder."""
    from fleetcast.profiles.read import library

    def found(name: object) -> object:
        if not isinstance(name, str) or name in library() or os.path.exists(name):
            return name
        there = os.path.join(folder, name)
        return there if os.path.exists(there) else name

    traffic = tables.get("traffic")
    if isinstance(traffic, Mapping):
        tables["traffic"] = {key: found(value) if key == "file" else value for key, value in traffic.items()}
    elif traffic is not None:
        tables["traffic"] = found(traffic)
    if "profile" in tables:
        tables["profile"] = found(tables["profile"])
    return tables


def _spare(out: Path | None, inputs: Sequence[str | Path | None]) -> None:
    """Refuse to write the results over what they come from."""
    from fleetcast.sim.output import FILES

    for name in FILES if out else ():
        target = os.path.join(str(out), name)
        for file in inputs:
            if file is not None and os.path.exists(target) and os.path.exists(file) and os.path.samefile(file, target):
                why = f"--out {out} would write its {name} over it"
                raise ScenarioError(f"{file} is an input of this simulation", why=why, fix="name another folder")


def _options(reading: Reading | None) -> dict[str, Any]:
    """Return the keywords with which the traffic file is read."""
    found = {} if reading is None else reading.model_dump(exclude_none=True)
    if "lengths" in found:
        from fleetcast.traffic.modelfile import lengths_from

        found["lengths"] = lengths_from(found["lengths"])
    return found


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
    if folder and os.path.exists(folder) and not os.path.isdir(folder):
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
