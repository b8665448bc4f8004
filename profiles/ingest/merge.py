"""Runs of one system to a profile: one point a run, so that repeats of one load stay apart and show their noise.

All runs must be of one system: where files tell different models, instances or engine settings, the profile is refused
with both values. What no file and nobody tells of the engine (policy, `max_num_seqs`) is assumed and listed as such.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fleetcast.errors import DataError, ScenarioError, suggest
from fleetcast.profiles import hardware
from fleetcast.profiles.check import check
from fleetcast.profiles.finding import CODES, Finding, in_flight
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.gather import Hints, gather
from fleetcast.profiles.ingest.run import SETTINGS, Run
from fleetcast.profiles.profile import SCHEMA, Point, Profile
from fleetcast.profiles.read import wording

DIGITS = 7  # kept of a figure: more than any clock of a benchmark tells
LATENCIES = ("ttft", "tpot", "itl", "e2e")
TIMES = ("latency", "duration", "warmup")
ALL_FAILED = "all-failed"
ORDER = {"static": 0, "closed": 1, "open": 2}


@dataclass(frozen=True)
class System:
    """What the user says of the measured system; None where the files shall tell."""

    name: str
    instance: str | None = None
    accelerator: str | None = None
    count: float | None = None
    model: str | None = None
    precision: str | None = None
    parameters: float | None = None
    active_parameters: float | None = None
    engine: str | None = None
    engine_version: str | None = None
    policy: str | None = None
    max_num_seqs: int | None = None
    max_batched_tokens: int | None = None
    max_context: int | None = None
    title: str | None = None


@dataclass(frozen=True)
class Imported:
    """A profile from result files, what was left out or assumed on the way, and what its figures say."""

    profile: Profile
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    tools: tuple[str, ...] = field(default_factory=tuple)


def import_profile(
    sources: Sequence[str],
    system: System,
    hints: Hints | None = None,
    where: Mapping[str, str] | None = None,
    accept: frozenset[str] = frozenset(),
) -> Imported:
    """Make a profile of the result files in *sources*; DataError for a severe finding that *accept* does not name."""
    for code in sorted(accept):
        if code not in CODES:
            raise ScenarioError(f"--accept {code}", why="there is no such finding", fix=suggest(code, CODES))
    found = gather(sources, hints or Hints(), where or {})
    notes = list(found.notes)
    runs = []
    for run in found.runs:
        if run.figures.get("errors") == 1.0 and not any(key in run.figures for key in ("output_tps", *LATENCIES)):
            if ALL_FAILED not in accept:
                why = "a run in which no request completed measures nothing"
                fix = f"leave the file out, or add --accept {ALL_FAILED} to import the others"
                raise DataError(f"{run.where}: all requests failed", why=why, fix=fix)
            notes.append(f"left out: {run.where}, all requests failed")
        elif not run.figures:
            raise DataError(f"{run.where}: an empty run", why="no request was sent", fix="leave the file out")
        else:
            runs.append(run)
    if not runs:
        raise DataError("no run is left", why="in all of them all requests failed")
    shared = _shared(runs, sources)
    runs.sort(key=lambda run: (ORDER[run.load["kind"]], _load_of(run)))
    points = tuple(_point(run) for run in runs)
    profile = _profile(points, runs, shared, system, notes)
    findings = check(profile)
    severe = [finding for finding in findings if finding.severity == "severe" and finding.code not in accept]
    if severe:
        raise _stopped(severe)
    tools = tuple(dict.fromkeys(f"{run.tool} {run.version or ''}".strip() for run in runs))
    return Imported(profile, tuple(notes), findings, tools)


def _stopped(severe: Sequence[Finding]) -> DataError:
    first = severe[0]
    more = f" (and {len(severe) - 1} more)" if len(severe) > 1 else ""
    codes = " ".join(f"--accept {code}" for code in dict.fromkeys(finding.code for finding in severe))
    fix = f"{first.do}; to import it as it is, add {codes}"
    return DataError(f"{first.where}: {first.what}{more}", why=first.why, fix=fix)


# --- one system ---------------------------------------------------------------------------------------------------


def _shared(runs: Sequence[Run], sources: Sequence[str]) -> dict[str, str]:
    """Return the settings that all runs share; DataError with both values where two differ."""
    shared: dict[str, str] = {}
    for key in SETTINGS:
        told: dict[str, tuple[str, Run]] = {}
        for run in runs:
            if key in run.about:
                told.setdefault(run.about[key].strip().casefold(), (run.about[key], run))
        if len(told) > 1:
            (one, first), (other, second), *_ = told.values()
            what = f"{key} is {one} in {first.where} and {other} in {second.where}"
            why = "a profile is of one system with one set of settings"
            raise DataError(what, why=why, fix=f'import them apart: --where "{key}={one}", then another')
        if told:
            shared[key] = next(iter(told.values()))[0]
    return shared


def _load_of(run: Run) -> float:
    return float(next(run.load[key] for key in ("concurrency", "rate", "batch") if run.load.get(key)))


def _profile(
    points: tuple[Point, ...], runs: Sequence[Run], shared: Mapping[str, str], system: System, notes: list[str]
) -> Profile:
    model = system.model or shared.get("model")
    if model is None:
        raise ScenarioError("--model is missing", why="no file tells which model it is", fix="add --model Llama-3.1-8B")
    instance = _agreed("instance", system.instance, shared)
    if instance is None:
        raise ScenarioError("--instance is missing", why="no file tells it", fix="add --instance g6e.xlarge")
    known = instance in hardware.instances()
    assumed: list[str] = []
    policy = _agreed("policy", system.policy, shared)
    if policy is None:
        assumed.append("policy")
        notes.append("assumed: policy chunked, which no file tells (--policy)")
    stated = _agreed("max_num_seqs", system.max_num_seqs, shared)
    seats = _whole("max_num_seqs", stated)
    if seats is None:
        seats = max(max(1, math.ceil(_at_once(point))) for point in points)
        assumed.append("max_num_seqs")
        notes.append(f"assumed: max_num_seqs {seats}, the most that was in flight; no file tells it (--max-num-seqs)")
    batched = _whole("max_batched_tokens", _agreed("max_batched_tokens", system.max_batched_tokens, shared))
    data = {
        "schema": SCHEMA,
        "name": system.name,
        "model": _some(
            name=model,
            parameters=system.parameters,
            active_parameters=system.active_parameters,
            precision=system.precision or shared.get("precision"),
            max_context=_whole("max_context", _agreed("max_context", system.max_context, shared)),
        ),
        "hardware": _some(
            instance=instance,
            accelerator=system.accelerator or (None if known else shared.get("accelerator") or shared.get("gpu")),
            count=system.count or _parallel(shared),
        ),
        "engine": _some(
            name=system.engine or shared.get("engine"),
            version=system.engine_version or shared.get("engine_version"),
            policy=policy or "chunked",
            max_num_seqs=seats,
            max_batched_tokens=batched,
            assumed=tuple(assumed) or None,
        ),
        "source": _source(runs, system),
        "point": points,
    }
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise wording(error, system.name) from None


def _some(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


def _agreed(key: str, said: object, shared: Mapping[str, str]) -> str | None:
    """Return what the user or the files say of a setting; DataError where they contradict each other."""
    told = shared.get(key)
    if key == "instance" and told is not None:
        told = told.removeprefix("ml.")  # SageMaker's name of it
    if said is None:
        return told
    text = str(said).strip().removeprefix("ml.") if key == "instance" else str(said)
    if told is not None and told.strip().casefold() != text.casefold():
        flag = "--" + key.replace("_", "-")
        raise DataError(f"{flag} {said}, but the files say {told}", why="one of the two is wrong", fix=f"drop {flag}")
    return text


def _whole(key: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        number = v.count(text, key)
    except DataError as error:
        raise DataError(error.what, why=error.why) from None
    return number or None


def _parallel(shared: Mapping[str, str]) -> int | None:
    """Accelerators that the engine was spread over, where the files tell."""
    ways = [_whole(key, shared[key]) for key in ("tensor_parallel", "pipeline_parallel") if key in shared]
    return math.prod(way for way in ways if way) if ways else None


def _at_once(point: Point) -> float:
    """Requests in flight, as far as a point tells."""
    if point.kind != "open":
        return point.load
    return in_flight(point) or 1.0


def _source(runs: Sequence[Run], system: System) -> dict[str, object]:
    tools = list(dict.fromkeys(f"{run.tool} {run.version or ''}".strip() for run in runs))
    files = len({run.path for run in runs})
    title = system.title or f"Own measurement: {', '.join(tools)}, {files} file{'s' if files > 1 else ''}"
    dates = sorted(run.date for run in runs if run.date)
    return _some(title=title, date=dates[-1] if dates else None)


# --- one point ----------------------------------------------------------------------------------------------------


def _point(run: Run) -> Point:
    """Return the point of a run, its figures rounded to `DIGITS`."""
    data: dict[str, Any] = dict(run.load)
    for key, value in run.figures.items():
        if key in LATENCIES:
            data[key] = {stat: _text(seconds) for stat, seconds in value.items()}
        elif key in TIMES:
            data[key] = _text(value)
        elif isinstance(value, Mapping):
            data[key] = {k: _digits(x) for k, x in value.items()}
        else:
            data[key] = _digits(value)
    derived = _derived(run)
    data |= {key: value for key, value in derived.items() if key not in data}
    if data["kind"] == "open" and data.get("rate"):
        data["rate"] = _digits(data["rate"])
    data = {key: value for key, value in data.items() if value is not None and value != {}}
    data["provenance"] = _some(
        tool=run.tool,
        version=run.version,
        file=v.clean(Path(run.path).name + run.place, 200),
        sha256=run.sha256,
        date=run.date,
        command=run.command,
    )
    try:
        return Point.model_validate(data)
    except ValidationError as error:
        raise wording(error, run.where) from None


def _derived(run: Run) -> dict[str, Any]:
    """Return the output tokens a second where only requests a second, or a batch's time, were told."""
    output = v.dig(run.figures, "output_tokens", "mean")
    if not output:
        return {}
    if run.figures.get("request_throughput"):
        return {"output_tps": _digits(run.figures["request_throughput"] * output)}
    if run.load["kind"] == "static" and run.figures.get("latency"):
        return {"output_tps": _digits(run.load["batch"] * output / run.figures["latency"])}
    return {}


def _digits(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return [_digits(item) for item in value] if isinstance(value, list) else value


def _text(seconds: float) -> str:
    """Return a duration as a person would write it: what is rounded is the number in the file."""
    unit, scale = ("s", 1.0) if seconds >= 10 or not seconds else ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{_digits(seconds * scale)!r} {unit}"
