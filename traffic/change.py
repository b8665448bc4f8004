"""What if the traffic were another: operators on a trace, each named for one thing only.

"Scaling a trace" means at least four things that differ in burstiness, so there is no operator of that name. `CHANGES`
lists them with what each does to the index of dispersion (IoD, variance over mean of counts in windows). Operators
that draw take a generator; the same one gives the same trace. What a change cannot know is left as it was: sessions
keep their names, turns their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError, suggest
from fleetcast.traffic.arrivals import MINUTE, minute_counts, spread
from fleetcast.traffic.counts import MOST_REQUESTS
from fleetcast.traffic.lengths import MOST_LENGTH
from fleetcast.traffic.resample import windows
from fleetcast.traffic.trace import MISSING, Labels, Trace
from fleetcast.units import DAY, HOUR, Seconds, duration, share

MONTH: Seconds = 365.25 * DAY / 12


def compress_time(trace: Trace, factor: float) -> Trace:
    """Return the trace played *factor* times as fast: the rate grows, the trace is over sooner.

    IoD in a window w becomes that of the window factor·w before. Nothing is drawn.
    """
    _above_zero("factor", factor)
    begin = trace.arrival_s[0] if len(trace) else 0.0
    return replace(trace, arrival_s=begin + (trace.arrival_s - begin) / factor)


def thin(trace: Trace, kept: float, rng: np.random.Generator) -> Trace:
    """Return each request with probability *kept*, on its own.

    IoD becomes 1 + kept·(IoD − 1): thinned traffic looks more like Poisson than before.
    """
    if not 0 < kept <= 1:
        raise ScenarioError(f"share = {kept!r}", why="the share to keep is above 0 and at most 1", fix='write "50 %"')
    return _some(trace, rng.random(len(trace)) < kept, "thinned")


def superpose(trace: Trace, copies: int, rng: np.random.Generator, shift_s: Seconds = HOUR) -> Trace:
    """Return the sum of *copies* of the trace, all but the first moved by a random time of at most *shift_s*.

    Moves go around the recording's whole minutes and both ways. In windows well below the shift copies are independent:
    IoD stays. In longer ones their ups and downs coincide: IoD is multiplied by the copies. With a shift of the whole
    span the copies are independent throughout, and the daily rhythm is averaged away.
    """
    if isinstance(copies, bool) or not isinstance(copies, int) or not 1 <= copies <= 10_000:
        raise ScenarioError(f"copies = {copies!r}", why="copies are 1 to 10,000", fix="write copies = 2")
    _room(len(trace) * copies)
    others = [trace] + [_moved(trace, float(rng.uniform(-shift_s, shift_s))) for _ in range(copies - 1)]
    return join(others)


def scale_intensity(trace: Trace, factor: float, rng: np.random.Generator) -> Trace:
    """Return a trace whose rate is *factor* times the recorded one, minute by minute, redrawn.

    IoD of counts per minute and longer is multiplied by the factor (of a rate that wanders, the true law is 1 +
    factor·(IoD − 1): the recording's own counting noise is scaled with it). Inside the minute arrivals are uniform.
    Lengths are drawn from the requests around the minute.
    """
    _above_zero("factor", factor)
    _, counts = minute_counts(trace)
    return _at_rates(trace, np.full(len(counts), float(factor)), rng)


def grow(trace: Trace, per_month: float, months: float, rng: np.random.Generator) -> Trace:
    """Return the trace *months* later, its intensity grown by *per_month* (0.05 for 5 %), also while it lasts.

    IoD changes as under `scale_intensity`, plus what the trend itself adds in a long trace.
    """
    if not (math.isfinite(per_month) and per_month > -1 and math.isfinite(months)):
        raise ScenarioError(f"per_month = {per_month!r}", why="a growth is above -100 %", fix='write "5 %"')
    _, counts = minute_counts(trace)
    later = months + np.arange(len(counts)) * MINUTE / MONTH
    return _at_rates(trace, np.power(1 + per_month, later), rng)


def spike(trace: Trace, at_s: Seconds, factor: float, lasts_s: Seconds, rng: np.random.Generator) -> Trace:
    """Return the trace with *factor* times its intensity from *at_s* (after its first whole minute) for *lasts_s*.

    Outside nothing changes. IoD rises with the square of the surplus in windows that hold the spike.
    """
    if not (math.isfinite(factor) and factor >= 0):
        raise ScenarioError(f"factor = {factor!r}", why="a factor is 0 or more", fix="write factor = 3")
    begin, counts = minute_counts(trace)
    horizon = len(counts) * MINUTE
    if not (0 <= at_s < horizon and lasts_s > 0):
        why = f"the trace lasts {horizon:g} s; the spike begins inside it and lasts longer than 0 s"
        raise ScenarioError(
            f"spike at {at_s:g} s for {lasts_s:g} s", why=why, fix='write at = "14 h", lasts = "20 min"'
        )
    first, last = begin + at_s, begin + min(at_s + lasts_s, horizon)
    inside = (trace.arrival_s >= first) & (trace.arrival_s < last)
    if factor <= 1:
        return _some(trace, ~inside | (rng.random(len(trace)) < factor), "a trough")
    extra = math.floor(factor - 1)
    more = np.repeat(np.flatnonzero(inside), extra)
    rest = np.flatnonzero(inside & (rng.random(len(trace)) < factor - 1 - extra))
    rows = np.sort(np.concatenate((more, rest)))
    _room(len(trace) + len(rows))
    # the surplus comes at other moments of the same minute, with lengths of the requests around it
    minute = np.floor((trace.arrival_s[rows] - begin) / MINUTE)
    low = np.maximum(begin + minute * MINUTE, first)
    high = np.minimum(low + MINUTE - (low - begin) % MINUTE, last)
    arrival = low + rng.random(len(rows)) * (high - low)
    order = np.argsort(arrival, kind="stable")
    window_first, window_rows = windows(counts)
    place = minute.astype(np.int64)
    drawn = window_first[place] + (rng.random(len(rows)) * window_rows[place]).astype(np.int64)
    return join([trace, trace.take(drawn[order], arrival[order])])


def lose_client(trace: Trace, tenant: str) -> Trace:
    """Return the trace without one tenant's requests; IoD becomes that of the others."""
    return _some(trace, ~_of_tenant(trace, tenant), f"without {tenant!r}")


def gain_client(trace: Trace, like: str, rng: np.random.Generator, shift_s: Seconds = HOUR) -> Trace:
    """Return the trace with one tenant more, a copy of *like* moved by a random time of at most *shift_s*.

    Variances add up in windows well below the shift: IoD moves toward that of the tenant.
    """
    copy = _moved(_some(trace, _of_tenant(trace, like), ""), float(rng.uniform(-shift_s, shift_s)))
    name = f"{like} (gained)"
    labels = {**copy.labels, "tenant": Labels(np.zeros(len(copy), np.int32), (name,))}
    return join([trace, replace(copy, labels=labels)])


def scale_lengths(trace: Trace, input: float = 1.0, output: float = 1.0) -> Trace:
    """Return the trace with prompts and answers *input* and *output* times as long; arrivals and their IoD stay."""
    _above_zero("input", input)
    _above_zero("output", output)
    most = float(max(trace.input_tokens.max() * input, trace.output_tokens.max() * output))
    if most > MOST_LENGTH:
        raise ScenarioError(f"lengths up to {most:,.0f} tokens", why=f"a length is at most {MOST_LENGTH:,} tokens")
    inputs = np.rint(trace.input_tokens * input).astype(np.int32)
    outputs = np.maximum(np.rint(trace.output_tokens * output), 1).astype(np.int32)
    return replace(trace, input_tokens=inputs, output_tokens=outputs)


def mix(trace: Trace, other: Trace) -> Trace:
    """Return the sum of two traffics by their clocks (time of day where both know their start, else from zero on).

    Independent traffics' variances add up: IoD is the mean of both, weighted by their rates.
    """
    moved = other.arrival_s
    if trace.start is not None and other.start is not None:
        seconds = [
            at.hour * 3_600 + at.minute * 60 + at.second + at.microsecond / 1e6 for at in (other.start, trace.start)
        ]
        moved = moved + (seconds[0] - seconds[1])
        moved = moved + DAY * math.ceil(max(0.0, -float(moved[0])) / DAY)
    return join([trace, replace(other, arrival_s=moved)])


def join(traces: Sequence[Trace]) -> Trace:
    """Return all requests in order of arrival, ties by place in *traces*; labels that one lacks are missing there."""
    first = traces[0]
    arrival = np.concatenate([trace.arrival_s for trace in traces])
    _room(len(arrival))
    order = np.argsort(arrival, kind="stable")
    labels = {}
    for key in dict.fromkeys(key for trace in traces for key in trace.labels):
        names: dict[str, int] = {}
        codes = []
        for trace in traces:
            column = trace.labels.get(key)
            if column is None:
                codes.append(np.full(len(trace), MISSING, np.int32))
            elif key == "turn":
                codes.append(column.codes)
            else:
                table = np.array([names.setdefault(name, len(names)) for name in column.names] + [MISSING], np.int32)
                codes.append(table[column.codes])  # MISSING is the last place
        labels[key] = Labels(np.concatenate(codes)[order], tuple(names))
    return Trace(
        arrival[order],
        np.concatenate([trace.input_tokens for trace in traces])[order],
        np.concatenate([trace.output_tokens for trace in traces])[order],
        labels,
        first.name,
        first.start,
        first.time_zone,
        first.notes,
        first.recipe,
    )


def _at_rates(trace: Trace, factor: NDArray[Any], rng: np.random.Generator) -> Trace:
    begin, counts = minute_counts(trace)
    wanted = counts * factor
    _room(float(wanted.sum()))
    whole = np.floor(wanted)
    drawn = (whole + (rng.random(len(wanted)) < wanted - whole)).astype(np.int64)
    if not drawn.any():
        raise ScenarioError("the changed traffic has no requests", why="its intensity is too low", fix="change it less")
    first, rows = windows(counts)
    arrival = spread(drawn, begin, rng)
    place = np.repeat(first, drawn) + (rng.random(len(arrival)) * np.repeat(rows, drawn)).astype(np.int64)
    return trace.take(place, arrival)


def _moved(trace: Trace, by_s: Seconds) -> Trace:
    begin, counts = minute_counts(trace)
    arrival = begin + (trace.arrival_s - begin + by_s) % (len(counts) * MINUTE)
    order = np.argsort(arrival, kind="stable")
    return trace.take(order, arrival[order])


def _some(trace: Trace, rows: NDArray[np.bool_], what: str) -> Trace:
    if not rows.any():
        raise ScenarioError(f"the changed traffic ({what}) has no requests", fix="change it less")
    return trace.take(rows)


def _of_tenant(trace: Trace, tenant: str) -> NDArray[np.bool_]:
    column = trace.labels.get("tenant")
    if column is None:
        raise ScenarioError(f"tenant = {tenant!r}", why="the traffic has no tenant column", fix="name no tenant")
    if tenant not in column.names:
        raise ScenarioError(f"tenant = {tenant!r}", why="nobody has this name", fix=suggest(tenant, column.names))
    mine: NDArray[np.bool_] = column.codes == column.names.index(tenant)
    return mine


def _above_zero(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value > 0):
        raise ScenarioError(f"{name} = {value!r}", why="a factor is a finite number above 0", fix=f"write {name} = 1.5")


def _room(requests: float) -> None:
    if requests > MOST_REQUESTS:
        raise ScenarioError(
            f"{requests:,.0f} requests", why=f"at most {MOST_REQUESTS:,} fit", fix="scale fleet and traffic alike"
        )


# --- changes as tables ------------------------------------------------------------------------------------

Table = Mapping[str, Any]
Apply = Callable[[Trace, Table, np.random.Generator, Callable[[str], Trace]], Trace]

_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str, Apply]] = {
    # name: (needed keys, keys with a default, what it does to the dispersion, how it is applied)
    "compress-time": (
        ("factor",), (), "that of a window factor times as long",
        lambda t, k, rng, read: compress_time(t, k["factor"]),
    ),
    "thin": (
        ("share",), (), "1 + share·(IoD − 1)",
        lambda t, k, rng, read: thin(t, share(k["share"], "traffic_change.share"), rng),
    ),
    "superpose": (
        ("copies",), ("shift",), "unchanged below the shift, × copies above",
        lambda t, k, rng, read: superpose(t, k["copies"], rng, _time(k, "shift", HOUR)),
    ),
    "scale-intensity": (
        ("factor",), (), "× factor from a minute on, Poisson-like inside",
        lambda t, k, rng, read: scale_intensity(t, k["factor"], rng),
    ),
    "grow": (
        ("per_month", "months"), (), "× the growth from a minute on, plus the trend",
        lambda t, k, rng, read: grow(t, share(k["per_month"], "traffic_change.per_month"), _number(k, "months"), rng),
    ),
    "spike": (
        ("at", "factor", "lasts"), (), "rises in windows that hold the spike",
        lambda t, k, rng, read: spike(t, _time(k, "at"), _number(k, "factor"), _time(k, "lasts"), rng),
    ),
    "lose-client": (
        ("tenant",), (), "that of the other tenants",
        lambda t, k, rng, read: lose_client(t, str(k["tenant"])),
    ),
    "gain-client": (
        ("tenant",), ("shift",), "moves toward the tenant's",
        lambda t, k, rng, read: gain_client(t, str(k["tenant"]), rng, _time(k, "shift", HOUR)),
    ),
    "scale-lengths": (
        (), ("input", "output"), "unchanged",
        lambda t, k, rng, read: scale_lengths(t, k.get("input", 1.0), k.get("output", 1.0)),
    ),
    "mix": (
        ("file",), (), "the mean of both, weighted by rate",
        lambda t, k, rng, read: mix(t, read(str(k["file"]))),
    ),
}  # fmt: skip

CHANGES: Mapping[str, str] = {name: does for name, (_, _, does, _) in _KEYS.items()}
"""Each change by its name in a scenario, with what it does to the index of dispersion."""


def check_change(table: Table, where: str = "traffic_change") -> None:
    """Refuse a table that is no change: unknown name, unknown or missing key."""
    name = str(table.get("change"))
    if name not in _KEYS:
        raise ScenarioError(f"{where}: change = {table.get('change')!r}", fix=suggest(name, _KEYS))
    needed, optional, _, _ = _KEYS[name]
    for key in table:
        if key not in ("change", *needed, *optional):
            raise ScenarioError(f"{where}: {name} has no key `{key}`", fix=suggest(key, (*needed, *optional)))
    for key in needed:
        if key not in table:
            raise ScenarioError(f"{where}: {name} needs `{key}`", fix=f"its keys: {', '.join((*needed, *optional))}")
    for key in ("at", "lasts", "shift"):
        if key in table:
            _time(table, key)


def apply_changes(trace: Trace, tables: Sequence[Table], seed: int, read: Callable[[str], Trace]) -> Trace:
    """Return the trace after all changes in turn, each with a random stream of its own place; *read* opens a mix."""
    for place, table in enumerate(tables):
        where = f"traffic_change[{place}]"
        check_change(table, where)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0x7C, place)))
        name = str(table["change"])
        trace = _KEYS[name][3](trace, table, rng, read)
        said = ", ".join(f"{key} {value}" for key, value in table.items() if key != "change")
        trace = replace(trace, notes=(*trace.notes, f"changed: {name} ({said}); dispersion: {CHANGES[name]}"))
    return trace


def _time(table: Table, key: str, default: Seconds | None = None) -> Seconds:
    if key not in table and default is not None:
        return default
    return duration(table[key], f"traffic_change.{key}", "1 h")


def _number(table: Table, key: str) -> float:
    value = table[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ScenarioError(f"traffic_change.{key} = {value!r}", why="this is a number", fix=f"write {key} = 3")
    return float(value)
