"""Any CSV, or flat JSON objects, whose columns somebody names: `concurrency=users`, `ttft.mean=first token (ms)`.

A row is a run. A column of times needs its unit, in its name (`_ms`, `(ms)`) or after the column (`e2e.mean=lat:ms`).
Columns that carry the name of a setting (`model`, `gpu`, `precision`, …) are taken as such; `--where` can pick by every
column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetcast.errors import DataError, ScenarioError, suggest
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document
from fleetcast.profiles.ingest.run import SETTINGS, Run, closed, open_loop, settings

NAME = "table"
LOADS = ("concurrency", "rate", "batch", "load")
LATENCIES = ("ttft", "tpot", "itl", "e2e")
RATES = ("output_tps", "total_tps", "request_throughput", "achieved_rate", "mean_concurrency")
COUNTS = ("requests", "unfinished", "warmup_requests", "max_concurrency")
TIMES = ("latency", "duration", "warmup")
TOKENS = ("input_tokens", "output_tokens")
STATS = ("mean", "min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", "std")
KEYS = (
    *LOADS, "arrivals", *RATES, *COUNTS, "errors", "failed", *TIMES, *TOKENS,
    *(f"{latency}.{stat}" for latency in LATENCIES for stat in STATS), *SETTINGS,
)  # fmt: skip
TAIL = re.compile(r"(?:_|\b|\()(ns|us|µs|ms|s|sec|seconds)\)?$", re.IGNORECASE)
EXAMPLE = '--columns "concurrency=users,output_tps=tokens/s,e2e.mean=latency:ms"'


@dataclass(frozen=True)
class Column:
    """Where one key comes from: the column, and the seconds of its unit where it holds times."""

    key: str
    name: str
    unit: float | None = None


def parse_columns(texts: Sequence[str]) -> tuple[Column, ...]:
    """Read `key=column[:unit]`, several in one text parted by commas."""
    found: list[Column] = []
    for text in texts:
        for part in re.split(r",(?=\s*[\w.]+\s*=)", text):
            key, equals, column = (piece.strip() for piece in part.partition("="))
            if not equals or not column:
                raise ScenarioError(f'--columns "{part.strip()}"', why="it is key=column", fix=f"write {EXAMPLE}")
            if key not in KEYS:
                raise ScenarioError(f'--columns "{part.strip()}"', why=f'"{key}" is no key', fix=suggest(key, KEYS))
            name, colon, unit = column.rpartition(":")
            known = v.SECONDS.get(unit.strip().lower()) if colon else None
            found.append(Column(key, name.strip(), known) if known is not None else Column(key, column))
    return tuple(found)


def runs(document: Document, columns: Sequence[Column]) -> Iterator[Run]:
    """Read every row that tells a load."""
    rows = document.objects
    names = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        if column.name not in names:
            what = f'{document.path}: there is no column "{column.name}"'
            raise DataError(what, fix=suggest(column.name, names))
    for column in columns:
        if _is_time(column.key) and _unit(column) is None:
            what = f'--columns "{column.key}={column.name}"'
            raise ScenarioError(what, why="a time needs its unit", fix=f'write "{column.key}={column.name}:ms"')
    for number, row in enumerate(rows, 2 if document.rows else 1):
        yield _run(document, row, columns, f":{number}" if len(rows) > 1 or document.rows else "")


def _is_time(key: str) -> bool:
    return key in TIMES or key.split(".")[0] in LATENCIES


def _unit(column: Column) -> float | None:
    if column.unit is not None:
        return column.unit
    words = column.name.lower()
    tail = TAIL.search(words) or re.search(r"\b(ns|us|ms)\b", words)
    return v.SECONDS.get(tail[1].lower()) if tail else None


def _run(document: Document, row: Mapping[str, Any], columns: Sequence[Column], place: str) -> Run:
    where = f"{document.path}{place}"
    load: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    about = {key: value for key, value in settings(**_plain(row)).items()}
    mapped: dict[str, object] = {}
    failed: int | None = None
    for column in columns:
        key, value, at = column.key, row.get(column.name), f"{where}: {column.name}"
        if key in SETTINGS:
            mapped[key] = value
        elif key in ("load", "arrivals"):
            load |= _word(key, value, load, at)
        elif key == "failed":
            failed = v.count(value, at)
        elif key in ("concurrency", "batch", *COUNTS):
            number = v.count(value, at)
            if number is not None:
                _put(load if key in LOADS else figures, key, number)
        elif (found := v.number(value, at)) is not None:
            if key == "rate":
                _put(load, key, found)
            elif key in TOKENS:
                figures[key] = v.tokens(found)
            elif _is_time(key):
                name, _, stat = key.partition(".")
                seconds = found * (_unit(column) or 1.0)
                if stat:
                    figures.setdefault(name, {})[stat] = seconds
                else:
                    figures[key] = seconds
            else:
                figures[key] = found
    figures = {key: value for key, value in figures.items() if value != 0 or key in ("errors", "unfinished")}
    done = figures.get("requests")
    if failed is not None and failed + (done or 0) > 0:
        figures["errors"] = failed / (failed + (done or 0))
    about |= settings(**mapped)
    return Run(document.path, document.sha256, NAME, None, _load(load, where), figures, about, place=place)


def _put(target: dict[str, Any], key: str, value: float) -> None:
    if value:
        target[key] = value


def _plain(row: Mapping[str, Any]) -> dict[str, object]:
    """Return all columns of a row for `--where`, settings among them under our spelling."""
    found: dict[str, object] = {}
    for name, value in row.items():
        plain = re.sub(r"\W+", "_", str(name).strip().lower()).strip("_")
        if plain and isinstance(value, str | int | float):
            found[plain] = value
    return found


def _word(key: str, value: object, load: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what a word says of the load: `c16` and `vu16` users, `r0.8` a rate, `b64` a batch; or the arrival law."""
    text = str(value or "").strip().lower()
    if key == "arrivals":
        return {"arrivals": text} if text in ("poisson", "constant", "gamma") else {}
    match = re.fullmatch(r"([a-z]+)[-_ ]?(\d+(?:\.\d+)?)", text)
    kinds = {"c": "concurrency", "conc": "concurrency", "concurrency": "concurrency", "vu": "concurrency",
             "users": "concurrency", "r": "rate", "rate": "rate", "qps": "rate", "rps": "rate",
             "b": "batch", "bs": "batch", "batch": "batch"}  # fmt: skip
    if match is None or match[1] not in kinds:
        raise DataError(f"{where} = {v.shown(value)}", why="a load is written c16, r0.8 or b64")
    kind = kinds[match[1]]
    return {kind: v.number(match[2], where) if kind == "rate" else v.count(match[2], where)}


def _load(load: Mapping[str, Any], where: str) -> dict[str, Any]:
    kinds = [key for key in ("concurrency", "rate", "batch") if load.get(key)]
    if not kinds:
        return {}
    if len(kinds) > 1 and set(kinds) != {"concurrency", "rate"}:
        told = " and ".join(f"{key} = {load[key]:g}" for key in kinds)
        raise DataError(f"{where}: {told}", why="a run has one load", fix="name one column for it")
    if "rate" in kinds:
        return open_loop(load["rate"], load.get("arrivals"), cap=load.get("concurrency"))
    return closed(load["concurrency"]) if kinds == ["concurrency"] else {"kind": "static", "batch": load["batch"]}
