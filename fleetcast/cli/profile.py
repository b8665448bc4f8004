"""`simulate profile`: what a serving profile measured, what is modelled from it, and what it costs at its points."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fleetcast.errors import DataError, NotMeasured, ScenarioError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fleetcast.profiles.curve import Curve
    from fleetcast.profiles.profile import Durations, Point, Profile, TokenCount
    from fleetcast.profiles.read import LoadedProfile

WIDTH = 100

app = typer.Typer(no_args_is_help=True, help="Measured serving profiles: list them, look into one, import, check.")


class Format(StrEnum):
    """How a result is written to stdout."""

    table = "table"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="A table for people or JSON for programs.")]


@app.callback()
def _group() -> None:
    """Keep `list` and `show` sub-commands however many there are."""


@app.command("list")
def list_profiles(format: FormatOption = Format.table) -> None:
    """List the built-in profiles, and what a million output tokens costs at the point that was measured."""
    from fleetcast.profiles.read import library, load_profile

    loaded = [load_profile(name) for name in library()]
    if format is Format.json:
        keys = ("name", "model", "hardware", "engine", "source", "points")
        rows = [{key: facts(one)[key] for key in keys} for one in loaded]
        print_json({"schema": 1, "profiles": rows})
        return
    from fleetcast.reports import theme

    table = plain_table("profile", "model", "instance", "measured", "tok/s>", "$/Mtok>")
    for one in loaded:
        profile = one.profile
        for at, point in enumerate(_sorted(profile.point)):
            head = (profile.name, _model_words(profile), profile.hardware.instance)
            cost = theme.dollars(_cost(profile, point)[0])
            tps = theme.number(point.output_tps)
            table.add_row(*(head if at == 0 else ("",) * 3), load_words(point), tps, cost)
    out = console()
    out.print(table)
    out.print("\n$/Mtok: EC2 on demand, us-east-1, never idle, at the measured load alone.", style="dim")


@app.command("show")
def show_profile(
    profile: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A built-in name or a TOML file.")],
    format: FormatOption = Format.table,
) -> None:
    """Show what a profile measured, what is modelled, its speed curve, its price and its sources."""
    from fleetcast.profiles.read import load_profile

    loaded = load_profile(profile)
    if format is Format.json:
        print_json(facts(loaded, curve=True))
    else:
        _show(loaded)


# --- JSON -------------------------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """Round every float to 10 significant digits, so that what is printed is the same on every machine."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def print_json(value: Any) -> None:
    """Print *value* as JSON to stdout."""
    print(json.dumps(rounded(value), indent=2, ensure_ascii=False, allow_nan=False))


def facts(loaded: LoadedProfile, curve: bool = False) -> dict[str, Any]:
    """Return what a profile says, its points' prices and, if asked for, its *curve*, as plain JSON values."""
    profile = loaded.profile
    dump = profile.model_dump(by_alias=True, exclude_none=True)
    found: dict[str, Any] = {
        "schema": 1,
        "name": profile.name,
        "path": loaded.path,
        "origin": loaded.origin,
        "sha256": loaded.sha256,
        "model": dump["model"],
        "hardware": dump["hardware"],
        "engine": dump["engine"],
        "source": dump.get("source"),
        "points": [_point_facts(profile, point) for point in _sorted(profile.point)],
    }
    return found | _curve_facts(profile) if curve else found


def _point_facts(profile: Profile, point: Point) -> dict[str, Any]:
    cost, why = _cost(profile, point)
    priced: dict[str, Any] = {"usd_per_million_output_tokens": cost}
    return point.model_dump(by_alias=True, exclude_none=True) | priced | ({"no_price": why} if why else {})


def _curve_facts(profile: Profile) -> dict[str, Any]:
    from dataclasses import asdict

    curve, why = _curve(profile)
    found: dict[str, Any] = {"curve": None, "prompt": None, "notes": []}
    if curve is None:
        found["no_curve"] = why
    else:
        at = [
            {
                "batch": batch,
                "time_s": curve.central.at(batch),
                "fast_s": curve.fast.at(batch),
                "slow_s": curve.slow.at(batch),
                "output_tps": batch / curve.central.at(batch) if curve.central.at(batch) else None,
                "basis": curve.basis_of(batch),
            }
            for batch in _batches(curve)
        ]
        central = curve.central
        found["curve"] = {
            "uncertain": curve.uncertain,
            "at": at,
            "kv_per_token_s": central.kv_per_token_s,
            "mixing": "max" if math.isinf(central.mixing) else central.mixing,
            "noise_cv": central.noise_cv,
        }
        found["prompt"] = {
            "basis": curve.prefill_basis,
            "fixed_s": central.prefill_fixed_s,
            "per_token_s": central.prefill_per_token_s,
            "per_token_fast_s": curve.fast.prefill_per_token_s,
            "per_token_slow_s": curve.slow.prefill_per_token_s,
            "request_overhead_s": central.request_overhead_s,
        }
        found["notes"] = [asdict(note) for note in curve.notes]
    blocks, memory = _memory(profile)
    found["memory"] = {"kv_blocks": blocks, "kv_tokens": None if blocks is None else blocks * 16, "basis": memory}
    found["price"] = _price_facts(profile)
    return found


def _price_facts(profile: Profile) -> dict[str, Any] | None:
    from dataclasses import asdict

    from fleetcast.profiles.prices import HOME, on_demand

    try:
        return {"region": HOME} | asdict(on_demand(profile.hardware.instance, HOME))
    except ScenarioError:
        return None


# --- what both formats need ---------------------------------------------------------------------------------------


def _sorted(points: Iterable[Point]) -> list[Point]:
    return sorted(points, key=lambda point: (point.kind, point.load, point.output_tps or 0.0))


def _cost(profile: Profile, point: Point) -> tuple[float | None, str]:
    from fleetcast.profiles.prices import usd_per_million_output_tokens

    try:
        return usd_per_million_output_tokens(profile, point), "" if point.output_tps else "no throughput"
    except ScenarioError as error:
        return None, error.what


def _curve(profile: Profile) -> tuple[Curve | None, str]:
    from fleetcast.profiles.curve import curve_of

    try:
        return curve_of(profile), ""
    except NotMeasured as error:
        return None, str(error)


def _memory(profile: Profile) -> tuple[int | None, str]:
    from fleetcast.profiles.memory import kv_blocks_of

    try:
        blocks = kv_blocks_of(profile)
    except (DataError, NotMeasured) as error:
        return None, error.what
    stated = profile.engine.kv_blocks is not None
    if blocks is None:
        return None, "unlimited: not stated, and too little is known to derive it"
    return blocks, "stated" if stated else "derived"


def _batches(curve: Curve) -> list[int]:
    """1, 2, 4, 8 … and every entry of the curve."""
    entries = [int(batch) for batch in curve.central.batch]
    powers = (2**k for k in range(entries[-1].bit_length()))
    return sorted({*entries, *powers})


def _model_words(profile: Profile) -> str:
    return f"{profile.model.name} {profile.model.precision or ''}".strip()


def load_words(point: Point) -> str:
    """Return the load of a point in a few words: `batch 64`, `4 users`, `1.2/s`."""
    from fleetcast.reports import theme

    if point.kind == "static":
        return f"batch {point.batch}"
    return theme.plural(int(point.load), "user") if point.kind == "closed" else f"{point.load:g}/s"


# --- tables -------------------------------------------------------------------------------------------------------


def console() -> Console:
    """Return where results go: at most 100 columns; without a terminal no colours and always the same width."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # Rich would exit with 1, which here means a crossed threshold

    if not sys.stdout.isatty():
        return Screen(width=WIDTH, color_system=None, force_terminal=False, highlight=False, markup=False)
    wide = Screen(highlight=False, markup=False)
    return Screen(width=min(wide.width, WIDTH), highlight=False, markup=False)


def plain_table(*columns: str) -> Table:
    """Return an unruled table; a column whose title ends in `>` is set to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column.rstrip(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    return table


def indented(out: Console, renderable: Any) -> None:
    """Print below a heading."""
    from rich.padding import Padding

    out.print(Padding(renderable, (0, 0, 0, 2), expand=False))


def _show(loaded: LoadedProfile) -> None:
    from fleetcast.reports import theme

    profile, out = loaded.profile, console()
    used, engine = profile.hardware, profile.engine
    price = _price_facts(profile)
    engine_words = " ".join(filter(None, (engine.name or "engine not named", engine.version)))
    words = [
        _model_words(profile),
        f"{engine_words}, {engine.policy}, at most {theme.exact(engine.max_num_seqs)} sequences",
        f"{used.count:g} × {used.accelerator or 'accelerator not named'} ({used.instance})",
    ]
    out.print(profile.name, style="bold")
    indented(out, " · ".join(words))
    if price is not None:
        indented(out, f"{theme.price(price['usd'])}/h on demand in {price['region']}, {price['date']}")
    indented(out, f"{loaded.origin}, sha256 {loaded.sha256[:16]}…")

    curve, why = _curve(profile)
    _heading(out, "MEASURED")
    indented(out, _measured(profile) if profile.point else "no points: the step below was written by hand")
    for note in dict.fromkeys(point.note for point in profile.point if point.note):
        indented(out, note)

    _heading(out, "STEP" if curve is not None and not curve.uncertain else "STEP, MODELLED BELOW WHAT WAS MEASURED")
    if curve is None:
        indented(out, why)
    else:
        indented(out, _steps(profile, curve))
        _heading(out, "PROMPT")
        indented(out, _prompt(curve))
    _heading(out, "MEMORY")
    blocks, basis = _memory(profile)
    kv = (
        f"{theme.exact(blocks)} KV blocks of 16 tokens = {theme.count(16.0 * blocks)} tokens, {basis}"
        if blocks
        else basis
    )
    limit = f"; context up to {theme.exact(profile.model.max_context)} tokens" if profile.model.max_context else ""
    indented(out, kv + limit)
    if curve is not None and curve.notes:
        _heading(out, "NOTES")
        _notes(out, curve)
    _heading(out, "SOURCE")
    source = profile.source
    cited = (source.title, source.url, source.date, source.licence, source.command) if source else ("none given",)
    for line in filter(None, cited):
        indented(out, line)


def _heading(out: Console, text: str) -> None:
    out.print(f"\n{text}", style="bold")


def _measured(profile: Profile) -> Table:
    from fleetcast.reports import theme

    shown: dict[str, Callable[[Point], Durations | None]] = {
        "first token": lambda p: p.ttft,
        "between tokens": lambda p: p.itl or p.tpot,
        "whole answer": lambda p: p.e2e,
    }
    points = _sorted(profile.point)
    latencies = {title: get for title, get in shown.items() if any(get(point) for point in points)}
    batches = any(point.latency for point in points)
    lengths = any(point.input_tokens or point.output_tokens for point in points)
    columns = ["load", "kind", *(["tokens in/out"] if lengths else []), "tok/s>"]
    table = plain_table(*columns, *latencies, *(["whole batch"] if batches else []), "$/Mtok>")
    for point in points:
        cells = [load_words(point), point.kind]
        if lengths:
            cells.append(f"{_tokens(point.input_tokens)}/{_tokens(point.output_tokens)}")
        cells.append(theme.number(point.output_tps))
        cells += [_distribution(get(point)) for get in latencies.values()]
        cells += [theme.seconds(point.latency, 4)] if batches else []
        table.add_row(*cells, theme.dollars(_cost(profile, point)[0]))
    return table


def _tokens(count: TokenCount | None) -> str:
    from fleetcast.reports import theme

    if count is None:
        return theme.MISSING
    return theme.number(count.average, 4) + ("*" if count.spread_is_assumed else "")


def _distribution(durations: Durations | None) -> str:
    from fleetcast.reports import theme

    if durations is None:
        return theme.MISSING
    figures = (("mean", durations.mean), ("p50", durations.p50), ("p99", durations.p99))
    return ", ".join(f"{name} {theme.seconds(value, 4)}" for name, value in figures if value is not None)


def _steps(profile: Profile, curve: Curve) -> Table:
    from fleetcast.reports import theme

    table = plain_table("batch>", "time of a step", "tok/s>", "basis")
    for batch in _batches(curve):
        low, high, mid = (model.at(batch) for model in (curve.fast, curve.slow, curve.central))
        time = theme.seconds(mid) if low == high else theme.interval(low, high, theme.seconds, unit=True)
        table.add_row(theme.exact(batch), time, theme.number(batch / mid if mid else None), curve.basis_of(batch))
    last = int(curve.central.batch[-1])
    if profile.engine.max_num_seqs > last:
        beyond = f"{theme.exact(last + 1)}–{theme.exact(profile.engine.max_num_seqs)}"
        table.add_row(beyond, theme.MISSING, theme.MISSING, "unmeasured")
    return table


def _prompt(curve: Curve) -> str:
    from fleetcast.reports import theme

    fast, slow, mid = (model.prefill_per_token_s for model in (curve.fast, curve.slow, curve.central))
    cost = theme.seconds(mid) if fast == slow else theme.interval(fast, slow, theme.seconds, unit=True)
    parts = [f"{cost} a token ({curve.prefill_basis})"]
    if mid:
        parts.append(f"{theme.number(1 / mid)} tok/s")
    if curve.central.prefill_fixed_s:
        parts.append(f"{theme.seconds(curve.central.prefill_fixed_s)} fixed")
    if curve.central.request_overhead_s:
        parts.append(f"{theme.seconds(curve.central.request_overhead_s)} overhead of a request")
    return " · ".join(parts)


def _notes(out: Console, curve: Curve) -> None:
    sources: Sequence[str] = list(dict.fromkeys(note.source for note in curve.notes))
    for note in curve.notes:
        indented(out, f"{note.text}: {note.value} [{sources.index(note.source) + 1}]")
    for number, source in enumerate(sources, 1):
        indented(out, f"[{number}] {source}")
