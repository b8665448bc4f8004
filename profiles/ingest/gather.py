"""Files and folders to runs: which tool wrote each file, what the files do not say, and which runs are wanted.

A file that is named must be readable; in a folder, what is no point of a profile is left out with a note that says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from fleetcast.errors import DataError, FleetcastError, ScenarioError, suggest
from fleetcast.profiles.ingest import (
    aiperf,
    genai_perf,
    guidellm,
    inference_perf,
    inferencex,
    llmperf,
    perf_analyzer,
    sagemaker,
    sglang,
    table,
    trtllm,
    vllm,
    vllm_offline,
)
from fleetcast.profiles.ingest import values as v
from fleetcast.profiles.ingest.document import Document, read_document
from fleetcast.profiles.ingest.run import SETTINGS, Run
from fleetcast.profiles.ingest.table import Column

# Asked in this order: GenAI-Perf's CSV is what AIPerf's was, vLLM's keys are part of SGLang's.
TOOLS: tuple[ModuleType, ...] = (
    aiperf, genai_perf, guidellm, sglang, inferencex, vllm, vllm_offline, inference_perf, llmperf, trtllm,
    perf_analyzer, sagemaker,
)  # fmt: skip
ENDINGS = (".json", ".jsonl", ".csv")
FILLABLE = (*table.LOADS[:3], "arrivals", *table.RATES, *table.COUNTS, *table.TOKENS, *SETTINGS)
_TEXT = ("arrivals", *SETTINGS)


@dataclass(frozen=True)
class Gathered:
    """The runs of all files, in their order, and what was left out of them."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hints:
    """What the user says of files that do not tell it: values for all, a pattern of their names, columns of tables."""

    fill: Mapping[str, str] = field(default_factory=dict)
    from_name: str | None = None
    columns: tuple[Column, ...] = ()


def tool_of(document: Document) -> ModuleType | None:
    """Return the module of the tool that wrote *document*, None where none recognises it."""
    return next((tool for tool in TOOLS if tool.recognises(document)), None)


def read_runs(path: str, columns: Sequence[Column] = ()) -> list[Run]:
    """Read the runs of one file; DataError where no tool's importer knows it and no columns are named."""
    document = read_document(path)
    tool = tool_of(document)
    if tool is not None:
        found = list(tool.runs(document))
    elif columns and document.objects:
        found = list(table.runs(document, columns))
    else:
        raise _unknown(document)
    if not found:
        raise DataError(f"{path} holds no run", why="the benchmark wrote an empty result", fix="run it again")
    return found


def _unknown(document: Document) -> DataError:
    names = list(document.header) if document.rows else [str(key) for key in document.first]
    kind = "columns" if document.rows else "keys"
    shown = ", ".join(v.clean(name, 40) or "" for name in names[:8]) + (", …" if len(names) > 8 else "")
    told = f"its {kind} are {shown}" if names else "it holds no object"
    known = ", ".join(tool.NAME for tool in TOOLS)
    fix = f"name the columns of a table: {table.EXAMPLE}" if names else "import what a benchmark wrote"
    return DataError(f"{document.path} is no result of a tool that is known", why=f"{told}; known: {known}", fix=fix)


def gather(sources: Sequence[str], hints: Hints, where: Mapping[str, str]) -> Gathered:
    """Read all *sources*, fill in *hints*, and keep the runs that *where* picks."""
    runs: list[Run] = []
    notes: list[str] = []
    seen: dict[str, str] = {}
    failures: list[FleetcastError] = []
    files = _files(sources)

    def leave_out(path: str, error: FleetcastError) -> None:
        if files[path]:
            raise error
        failures.append(error)
        notes.append(f"left out: {error.what}" + (f" ({error.why})" if error.why else ""))

    for path in files:
        try:
            found = [_filled(run, hints) for run in read_runs(path, hints.columns)]
        except FleetcastError as error:
            leave_out(path, error)
            continue
        twin = seen.setdefault(found[0].sha256, path)
        if twin != path:
            why = "one run that is counted twice looks like a measurement without noise"
            raise DataError(f"{path} has the same bytes as {twin}", why=why, fix="import one of the two")
        runs += [run for run in found if _picked(run, where)]
    if not runs and where and seen:
        raise _nothing_picked(sources, hints, where)
    runs, twice = _once(runs)
    kept = []
    for run in runs:
        try:
            refuse_without_load(run)
            refuse_without_tokens(run)
            kept.append(run)
        except FleetcastError as error:
            leave_out(run.path, error)
    if not kept:
        raise failures[0] if failures else DataError(f"{', '.join(sources)}: no run")
    return Gathered(tuple(kept), (*notes, *twice))


def _files(sources: Sequence[str]) -> dict[str, bool]:
    """Return the files of *sources* in order, each once, and whether it was named itself."""
    found: dict[str, bool] = {}
    for source in sources:
        folder = Path(source).expanduser()
        if not folder.is_dir():
            found[source] = True
            continue
        inside = sorted(
            path
            for path in folder.rglob("*")
            if path.suffix.lower() in ENDINGS and path.is_file() and not path.name.startswith(".")
        )
        if not inside:
            raise DataError(f"{source} holds no result file", why=f"looked for {', '.join(ENDINGS)}")
        for path in sorted(inside, key=_natural):
            found.setdefault(str(path), False)
    return found


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path)) if part]


# --- what the files do not say ------------------------------------------------------------------------------------


def parse_fill(texts: Iterable[str]) -> dict[str, str]:
    """Read `key=value` texts of `--fill`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ScenarioError(f'--fill "{text}"', why="it is key=value", fix="write --fill output_tokens=128")
        if key not in FILLABLE:
            raise ScenarioError(f'--fill "{text}"', why=f'"{key}" is no key', fix=suggest(key, FILLABLE))
        _said(key, value, f'--fill "{text}"')
        found[key] = value
    return found


def parse_pattern(text: str | None) -> str | None:
    """Return *text* of `--from-name` when every `{key}` in it is known."""
    keys = re.findall(r"\{([^{}]*)\}", text or "")
    for key in keys:
        if key not in FILLABLE:
            raise ScenarioError(f'--from-name "{text}"', why=f'"{key}" is no key', fix=suggest(key, FILLABLE))
    if text is not None and (not keys or len(keys) != len(set(keys))):
        fix = 'write --from-name "c{concurrency}"'
        raise ScenarioError(f'--from-name "{text}"', why="it names each key once, in braces", fix=fix)
    return text


def _said(key: str, value: str, where: str) -> Any:
    """Return a hint's value as a run has it."""
    if key == "arrivals" and value not in ("poisson", "constant", "gamma"):
        raise ScenarioError(f"{where}", why="known: poisson, constant, gamma")
    if key in _TEXT:
        return value
    try:
        number = v.count(value, where) if key in ("concurrency", "batch", *table.COUNTS) else v.number(value, where)
    except DataError as error:
        raise ScenarioError(error.what, why=error.why) from None
    if not number:
        raise ScenarioError(where, why="a number above 0 is expected")
    return v.tokens(float(number), 0.0) if key in table.TOKENS else number


def _from_name(path: str, pattern: str | None) -> dict[str, str]:
    if pattern is None:
        return {}
    parts = re.split(r"\{([^{}]*)\}", pattern)
    text = "".join(
        re.escape(part) if i % 2 == 0 else f"(?P<{part}>{'[^/_]+' if part in _TEXT else r'[0-9]+(?:[.][0-9]+)?'})"
        for i, part in enumerate(parts)
    )
    found = list(re.finditer(text, path.replace("\\", "/")))
    if not found:
        raise ScenarioError(f'--from-name "{pattern}"', why=f"{path} does not match it")
    return found[-1].groupdict()


def _filled(run: Run, hints: Hints) -> Run:
    """Return *run* with what the hints say of it where the file itself says nothing."""
    said = {**hints.fill, **_from_name(run.path, hints.from_name)}
    load, figures, about = dict(run.load), dict(run.figures), dict(run.about)
    values = {key: _said(key, text, f"{run.path}: {key} = {text!r}") for key, text in said.items()}
    loads = {"concurrency": "closed", "rate": "open", "batch": "static"}
    for key, value in values.items():
        if key in loads:
            if not load:
                load = {"kind": loads[key], key: value}
            elif load.get("kind") == loads[key]:
                load.setdefault(key, value)
        elif key == "arrivals":
            if load.get("kind") == "open" and load.get("arrivals") is None:
                load["arrivals"] = value
        elif key == "max_concurrency":
            if load.get("kind") == "open":
                load.setdefault(key, value)
        elif key in SETTINGS:
            about.setdefault(key, value)
        else:
            figures.setdefault(key, value)
    return replace(run, load=load, figures=figures, about=about)


def refuse_without_load(run: Run) -> None:
    """DataError where a file does not tell how load was applied."""
    if run.load and (run.load["kind"] != "static" or run.load.get("batch")):
        return
    static = run.load.get("kind") == "static"
    why = "the file does not tell how many requests were sent together" if not static else "it does not tell its batch"
    fix = "add --fill batch=8" if static else "add --fill concurrency=16 or --fill rate=1.2"
    name = "b{batch}" if static else "c{concurrency}"
    raise DataError(f"{run.where}: no load ({run.tool})", why=why, fix=f'{fix}; or --from-name "{name}"')


def refuse_without_tokens(run: Run) -> None:
    """DataError where no speed per token can follow from a run."""
    figures = run.figures
    if figures.get("errors") == 1.0 or figures.get("output_tokens") or figures.get("output_tps"):
        return
    if figures.get("tpot") or figures.get("itl"):
        return
    if figures.get("total_tps"):
        why = "it counts the tokens of prompts with those of answers, and does not tell how long either was"
        fix = "add --fill input_tokens=512 --fill output_tokens=128 (or --from-name)"
        raise DataError(f"{run.where}: no output tokens ({run.tool})", why=why, fix=fix)
    why = "it tells whole inferences of any model (of images, too) and no tokens, so no speed per token follows"
    if run.load.get("kind") == "static":
        why = "it does not tell how many tokens its answers had, so no speed per token follows"
    fix = "where every answer had the same length, add --fill output_tokens=128"
    raise DataError(f"{run.where}: no tokens ({run.tool})", why=why, fix=fix)


# --- which runs are wanted ----------------------------------------------------------------------------------------


def about_of(run: Run) -> dict[str, str]:
    """Return all that `--where` can pick a run by."""
    load = {key: f"{value:g}" for key, value in run.load.items() if isinstance(value, int | float)}
    kind = {"kind": str(run.load["kind"])} if "kind" in run.load else {}
    return {**load, **kind, "tool": run.tool, **({"version": run.version} if run.version else {}), **run.about}


def _picked(run: Run, where: Mapping[str, str]) -> bool:
    about = about_of(run)
    return all(_equal(about.get(key), value) for key, value in where.items())


def _equal(said: str | None, wanted: str) -> bool:
    return said is not None and said.strip().casefold() == wanted.strip().casefold()


def parse_where(texts: Iterable[str]) -> dict[str, str]:
    """Read `key=value` texts of `--where`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not value:
            raise ScenarioError(f'--where "{text}"', why="it is key=value", fix="write --where max_num_seqs=8")
        found[key] = value
    return found


def _nothing_picked(sources: Sequence[str], hints: Hints, where: Mapping[str, str]) -> ScenarioError:
    values: dict[str, dict[str, None]] = {}
    for path in _files(sources):
        try:
            for run in read_runs(path, hints.columns):
                for key, value in about_of(_filled(run, hints)).items():
                    values.setdefault(key, {})[value] = None
        except FleetcastError:
            continue
    text = ", ".join(f"{key}={value}" for key, value in where.items())
    unknown = [key for key in where if key not in values]
    if unknown:
        return ScenarioError(f"--where {text} picks nothing", why=f"no file tells {unknown[0]}",
                             fix=suggest(unknown[0], values))  # fmt: skip
    told = "; ".join(f"{key} is {', '.join(list(values[key])[:8])}" for key in where)
    return ScenarioError(f"--where {text} picks nothing", why=f"in these files {told}")


def _once(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Drop runs that another file tells as well (JSON and CSV of one run, a summary beside its source)."""
    kept: list[Run] = []
    notes: list[str] = []
    for run in runs:
        twin = next((i for i, other in enumerate(kept) if other.path != run.path and _same_run(other, run)), None)
        if twin is None:
            kept.append(run)
            continue
        more, less = (run, kept[twin]) if _told(run) > _told(kept[twin]) else (kept[twin], run)
        kept[twin] = more
        notes.append(f"left out: {less.where} is the same run as {more.where}")
    single = [dict(run.load) for run in kept if not run.pooled and run.load]
    for run in [run for run in kept if run.pooled and (dict(run.load) in single or (not run.load and single))]:
        kept.remove(run)
        notes.append(f"left out: {run.where} holds averages over runs that are here themselves")
    return kept, notes


def _told(run: Run) -> tuple[bool, int]:
    """How much a run tells: its load before all, for without it the rest is no point."""
    return bool(run.load), sum(len(value) if isinstance(value, Mapping) else 1 for value in run.figures.values())


def _same_run(a: Run, b: Run) -> bool:
    """Whether two files tell one run: the same load, and figures that agree to the last digit that both wrote.

    A CSV has two decimals of milliseconds, so three figures must agree then; two are enough with all digits.
    """
    told_both = a.about.keys() & b.about.keys() & set(SETTINGS)
    if (a.load and b.load and dict(a.load) != dict(b.load)) or any(a.about[key] != b.about[key] for key in told_both):
        return False
    one, other = _key_figures(a), _key_figures(b)
    gaps = {key: abs(one[key] - other[key]) for key in one.keys() & other.keys()}
    exact = all(gap <= 1e-9 * one[key] for key, gap in gaps.items())
    rounded = all(gap <= (6e-3 if key == "output_tps" else 6e-6) for key, gap in gaps.items())
    return (exact and len(gaps) >= 2) or (rounded and len(gaps) >= 3)


def _key_figures(run: Run) -> dict[str, float]:
    means = {key: v.dig(run.figures, key, "mean") for key in ("ttft", "tpot", "e2e")}
    found = {**means, "output_tps": run.figures.get("output_tps")}
    return {key: float(value) for key, value in found.items() if value}
