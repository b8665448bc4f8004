"""Models as files: TOML that a person reads and edits, and recorded lengths in a native file beside it.

The recorded pairs stand in `NAME.lengths.parquet`: columns as in a trace, `arrival_s` being the slot of the week (or
of the recording) that a pair comes from, so that nothing in it says when a request came.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from fleetcast.errors import DataError, ScenarioError, suggest
from fleetcast.traffic.calendar import WEEKDAYS, Week, parse_days, parse_weekday, zone_of
from fleetcast.traffic.lengths import LengthModel, model_from, model_table
from fleetcast.traffic.model import Pairs, TrafficModel, Wander, pairs_by_slot
from fleetcast.traffic.read.native import read as read_native
from fleetcast.traffic.write import write_trace
from fleetcast.units import DAY, Seconds, duration

SCHEMA = 1
KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("schema", "name", "rate", "calendar", "day", "wander", "arrivals", "lengths", "note"),
    "rate": ("kind", "cell", "shape", "scale", "time_zone", "start", "begin", "per_cell", "all", *WEEKDAYS),
    "calendar": ("holidays", "holiday_like"),
    "day": ("cv", "basis"),
    "wander": ("step", "cv", "correlation"),
    "arrivals": ("dispersion", "low", "high"),
}


def beside(path: Path) -> Path:
    """Return where the recorded lengths of the model at *path* stand."""
    return path.with_name(f"{path.stem}.lengths.parquet")


def table_of(model: TrafficModel, path: Path) -> dict[str, Any]:
    """Return *model* as the tables of its file, and write its recorded lengths beside *path*."""
    week = model.week
    rate: dict[str, Any] = {
        "kind": "week" if week else "recorded",
        "cell": f"{(week.cell_s if week else model.cell_s):g} s",
        "shape": "smooth" if week and week.smooth else "steps",
        "scale": float(model.scale),
        "time_zone": model.time_zone,
        "start": model.start.isoformat() if model.start else None,
    }
    if week:
        rate |= _rows(week)
    else:
        assert model.recorded is not None
        rate |= {"begin": f"{model.begin_s:g} s", "per_cell": [_round(value) for value in model.recorded]}
    return {
        "schema": SCHEMA,
        "name": model.name,
        "note": list(model.notes),
        "wander": [
            {"step": f"{layer.step_s:g} s", "cv": _round(layer.cv), "correlation": _round(layer.correlation)}
            for layer in model.wander
        ],
        "rate": rate,
        **(
            {
                "calendar": {
                    "holidays": [day.isoformat() for day in week.holidays],
                    "holiday_like": WEEKDAYS[week.holiday_like],
                }
            }
            if week
            else {}
        ),
        "day": {"cv": _round(model.day_cv), "basis": model.day_basis},
        "arrivals": {
            "dispersion": _round(model.dispersion),
            "low": _round(model.burst[0]),
            "high": _round(model.burst[1]),
        },
        "lengths": _lengths(model, path),
    }


def read_model(path: Path) -> TrafficModel:
    """Return the model in the file at *path*; an unknown key is refused with the nearest known one."""
    try:
        tables = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise DataError(f"no file named {path}", fix="fit one with: simulate traffic fit FILE -o model.toml") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a model: {str(error).splitlines()[0]}", fix="a model is a TOML file") from None
    where = str(path)
    _known(tables, "", where)
    if tables.get("schema") != SCHEMA:
        raise DataError(f"{where}: schema = {tables.get('schema')!r}", why=f"this version reads schema {SCHEMA}")
    rate = _table(tables, "rate", where)
    zone = rate.get("time_zone")
    if zone is not None:
        zone_of(str(zone))
    cell = _time(rate, "cell", where)
    model = TrafficModel(
        str(tables.get("name", path.stem)),
        cell_s=cell,
        start=_start(rate.get("start"), where),
        time_zone=zone,
        scale=_number(rate, "scale", f"{where}: rate", 1.0, least=0.0),
        notes=tuple(str(note) for note in tables.get("note", ())),
    )
    kind = rate.get("kind", "week")
    if kind == "week":
        model = replace(model, week=_week(rate, _table(tables, "calendar", where), cell, zone, where))
    elif kind == "recorded":
        begin = _time(rate, "begin", where) if "begin" in rate else 0.0
        model = replace(model, recorded=_floats(rate.get("per_cell"), None, f"{where}: rate.per_cell"), begin_s=begin)
    else:
        raise DataError(f"{where}: rate.kind = {kind!r}", fix="write week or recorded")
    day, arrivals = _table(tables, "day", where), _table(tables, "arrivals", where)
    dispersion = _number(arrivals, "dispersion", f"{where}: arrivals", 1.0, least=0.0)
    return replace(
        model,
        day_cv=_number(day, "cv", f"{where}: day", model.day_cv, least=0.0, most=10.0),
        day_basis=str(day.get("basis", "given")),
        wander=tuple(_wander(row, where) for row in tables.get("wander", ())),
        dispersion=dispersion,
        burst=(
            _number(arrivals, "low", f"{where}: arrivals", 1.0, least=0.0),
            _number(arrivals, "high", f"{where}: arrivals", dispersion, least=0.0),
        ),
        lengths=_read_lengths(tables.get("lengths"), model, path),
    )


def lengths_from(text: str) -> LengthModel:
    """Return the length model that *text* names: a preset, or a TOML file with `input` and `output` laws."""
    from fleetcast.traffic.lengths import PRESETS, preset

    if text in PRESETS or not (text.endswith(".toml") or Path(text).is_file()):
        return preset(text)
    try:
        tables = tomllib.loads(Path(text).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ScenarioError(
            f"no file named {text}", fix=f"a length model is a file, or one of {', '.join(PRESETS)}"
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"{text} is not a length model: {str(error).splitlines()[0]}", fix="write it as TOML") from None
    return model_from(tables.get("lengths", tables), text)


def _rows(week: Week) -> dict[str, Any]:
    """Return the rates of the days, said once where all are alike."""
    if np.all(week.rate == week.rate[0]):
        return {"all": [_round(value) for value in week.rate[0]]}
    return {name: [_round(value) for value in row] for name, row in zip(WEEKDAYS, week.rate, strict=True)}


def _week(rate: Mapping[str, Any], calendar: Mapping[str, Any], cell: Seconds, zone: str | None, where: str) -> Week:
    if DAY % cell or cell % 60 or cell <= 0:
        raise DataError(f"{where}: rate.cell = {rate['cell']!r}", why="cells are whole minutes and fill a day")
    cells = round(DAY / cell)
    rows = []
    for name in WEEKDAYS:
        values = rate.get(name, rate.get("all"))
        rows.append(_floats(values, cells, f"{where}: rate.{name}"))
    shape = rate.get("shape", "steps")
    if shape not in ("smooth", "steps"):
        raise DataError(f"{where}: rate.shape = {shape!r}", fix="write smooth or steps")
    holidays = parse_days(calendar.get("holidays", ()))
    like = parse_weekday(calendar.get("holiday_like", "sunday"))
    return Week(np.array(rows), cell, shape == "smooth", zone, holidays, like)


def _lengths(model: TrafficModel, path: Path) -> dict[str, Any]:
    if isinstance(model.lengths, LengthModel):
        return model_table(model.lengths)
    if model.lengths is None:
        return {}
    target = beside(path)
    write_trace(replace(model.lengths.rows, recipe="lengths by slot: arrival_s is the slot, not a time"), target)
    return {"file": target.name, "slots": model.lengths.slots, "sha256": _sha256(target)}


def _read_lengths(table: object, model: TrafficModel, path: Path) -> LengthModel | Pairs | None:
    if table is None or table == {}:
        return None
    if not isinstance(table, Mapping):
        raise DataError(f"{path}: lengths = {table!r}", fix='write [lengths] preset = "chat"')
    if "file" not in table:
        return model_from(table, f"{path}: lengths")
    target = path.parent / str(table["file"])
    slots = table.get("slots")
    cells = round(7 * DAY / model.cell_s) if model.week or model.recorded is None else 0
    if not isinstance(slots, int) or not 0 < slots <= 20_000_000 or (cells and slots % 7):
        raise DataError(f"{path}: lengths.slots = {slots!r}", why="pairs are kept by slot of the week")
    if not target.is_file():
        raise DataError(
            f"{path} needs {target}", why="the recorded lengths stand in a file of their own", fix="copy it too"
        )
    trace = read_native(target).trace
    assert trace is not None
    if "sha256" in table and table["sha256"] != _sha256(target):
        raise DataError(
            f"{target} is not the file that {path.name} was written with", fix="copy both files, or fit again"
        )
    slot = trace.arrival_s.astype(np.int64)
    if slot[-1] >= slots:
        raise DataError(f"{target}: slot {slot[-1]}", why=f"the model has {slots:,} slots")
    return pairs_by_slot(trace, slot, slots)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _wander(row: object, where: str) -> Wander:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: wander = {row!r}", fix='write [[wander]] step = "1 h", cv = 0.2, correlation = 0.6')
    _known(row, "wander", where)
    cv = _number(row, "cv", f"{where}: wander", None, least=0.0, most=10.0)
    correlation = _number(row, "correlation", f"{where}: wander", 0.0, least=0.0, most=0.999)
    return Wander(max(_time(row, "step", where), 60.0), cv, correlation)


def _known(table: Mapping[str, Any], name: str, where: str) -> None:
    for key in table:
        if key not in KEYS[name]:
            said = f"{where}: [{name}]" if name else where
            raise DataError(f"{said} has no key `{key}`", fix=suggest(key, KEYS[name]))


def _table(tables: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, Mapping) or (name == "rate" and not table):
        raise DataError(f"{where}: [{name}] is {'missing' if not table else 'no table'}", fix=f"write [{name}]")
    _known(table, name, where)
    return table


def _time(table: Mapping[str, Any], key: str, where: str) -> Seconds:
    if key not in table:
        raise DataError(f"{where}: `{key}` is missing", fix=f'write {key} = "1 h"')
    value = duration(table[key], f"{where}: {key}", "1 h")
    if key in ("cell", "step") and value <= 0:
        raise DataError(f"{where}: {key} = {table[key]!r}", why="it is longer than 0 s")
    return value


def _number(
    table: Mapping[str, Any], key: str, where: str, default: float | None, *, least: float, most: float = math.inf
) -> float:
    value = table.get(key, default)
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not least <= float(value) <= most:
        raise DataError(
            f"{where}.{key} = {value!r}",
            why=f"a number of {least:g} or more" if most == math.inf else f"{least:g} to {most:g}",
        )
    return float(value)


def _floats(values: object, size: int | None, where: str) -> Any:
    if not isinstance(values, list) or not values or (size is not None and len(values) != size):
        have = f"{len(values)} values" if isinstance(values, list) else repr(values)
        raise DataError(f"{where}: {have}", why=f"it has a rate for each of {size or 'its'} cells")
    try:
        found = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise DataError(f"{where} holds what is no number", fix="write requests per second") from None
    if not np.all(np.isfinite(found)) or np.any(found < 0):
        raise DataError(f"{where}: a rate is negative or not finite", fix="write requests per second")
    return found


def _start(value: object, where: str) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise DataError(f"{where}: rate.start = {value!r}", why="not an ISO 8601 time") from None


def _round(value: float) -> float:
    return float(f"{float(value):.6g}")
