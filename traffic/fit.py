"""From recorded traffic, a trace or counts, to a model of it: what each layer is, how it is told, and what is assumed.

The rate by the time of the week is a ratio of totals (requests over observed time in the cell). Days, hours and minutes
differ from it by more than Poisson noise; each layer's spread is its residual variance less that noise (method of
moments), with as many degrees of freedom as the layers above have left. What cannot be fitted is assumed, and said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import DataError, ScenarioError
from fleetcast.traffic.arrivals import minute_counts
from fleetcast.traffic.calendar import Clock, Week, like_weekday, local_clock
from fleetcast.traffic.counts import Counts
from fleetcast.traffic.lengths import LengthModel
from fleetcast.traffic.model import DAY_CV, MINUTE, NOMINAL_START, TrafficModel, Wander, pairs_by_slot
from fleetcast.traffic.trace import Trace
from fleetcast.units import DAY, HOUR, Seconds

Floats = NDArray[np.float64]

GROUPS = ("auto", "week", "weekday-weekend", "day", "recorded")
CELLS = (60.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0)
CELL_REQUESTS = 50
"""The fewest requests that a cell of the week holds on average, so that its rate is known to some 14 %."""

WEEK_DAYS, PART_DAYS = 14, 5
"""Days recorded from which every weekday has rates of its own, or working days and weekends have."""

MOST_ROWS = 2_000_000


@dataclass(frozen=True, eq=False)
class _Steps:
    """Counts by step with their local clock; NaN where nothing was observed."""

    begin_s: Seconds
    step_s: Seconds
    requests: Floats
    clock: Clock
    start: datetime | None
    zone: str | None


def fit_model(
    traffic: Trace | Counts,
    *,
    lengths: LengthModel | None = None,
    groups: str = "auto",
    cell_s: Seconds | None = None,
    smooth: bool = True,
    day_cv: float | None = None,
    time_zone: str | None = None,
    holidays: tuple[date, ...] = (),
    holiday_like: int = 6,
) -> TrafficModel:
    """Return the model of *traffic*; what is given is taken, the rest fitted or assumed.

    *groups* says which days share their rates: each weekday its own, working days and weekends, all days, or none
    (the recorded rate itself); "auto" goes by the length of the recording. *lengths* stand for a trace's own pairs.
    """
    if groups not in GROUPS:
        raise ScenarioError(f"groups = {groups!r}", fix=f"known: {', '.join(GROUPS)}")
    if day_cv is not None and not 0 <= day_cv <= 10:
        raise ScenarioError(f"day_cv = {day_cv!r}", why="the spread of days is between 0 and 10", fix="write 0.3")
    steps = _steps(traffic, time_zone)
    notes: list[str] = []
    kind, group = _grouping(steps, groups, holidays, holiday_like, notes)
    fit_lengths: Any = lengths
    name = traffic.name or "traffic"
    if kind == "recorded":
        model = _recorded(steps, name)
    else:
        cell = cell_s or _cell(steps, group)
        week = _week(steps, group, cell, smooth, holidays, holiday_like)
        model = TrafficModel(name, week=week, cell_s=cell, start=steps.start, time_zone=steps.zone)
        model = _with_days(model, steps, group, notes)
        model = _with_wander(model, steps, group, notes)
    if day_cv is not None:
        model = replace(model, day_cv=day_cv, day_basis="given")
    elif model.day_basis == "assumed":
        notes.append(f"how much days differ cannot be told from this recording: cv {DAY_CV} is assumed")
    model = _with_dispersion(model, traffic, notes)
    if isinstance(traffic, Trace) and lengths is None:
        fit_lengths = _pairs(model, traffic, steps)
    elif lengths is None:
        raise DataError(f"{name} holds counts", why="counts do not say how long requests are", fix="add --lengths chat")
    return replace(model, lengths=fit_lengths, notes=tuple(notes))


def _steps(traffic: Trace | Counts, zone: str | None) -> _Steps:
    if isinstance(traffic, Trace):
        begin, counted = minute_counts(traffic)
        step, requests = MINUTE, counted.astype(np.float64)
    else:
        begin, step, requests = traffic.begin_s, traffic.step_s, traffic.requests.astype(np.float64)
    if not np.nansum(requests):
        raise DataError(f"{traffic.name or 'traffic'}: no requests")
    zone = zone or traffic.time_zone
    start = traffic.start or datetime.combine(NOMINAL_START, datetime.min.time())
    moment = _plus(start, begin)
    return _Steps(begin, step, requests, local_clock(moment, len(requests), step, zone), traffic.start, zone)


def _plus(start: datetime, seconds: Seconds) -> datetime:
    from datetime import UTC, timedelta

    if start.tzinfo is None:
        return start + timedelta(seconds=seconds)
    return start.astimezone(UTC) + timedelta(seconds=seconds)


def _grouping(
    steps: _Steps, groups: str, holidays: tuple[date, ...], holiday_like: int, notes: list[str]
) -> tuple[str, NDArray[np.int64]]:
    """Return the kind of model, and each step's group of days."""
    weekday = like_weekday(steps.clock, holidays, holiday_like)
    span = len(steps.requests) * steps.step_s
    if groups == "auto":
        dated = steps.start is not None
        if span < DAY - HOUR:
            groups = "recorded"
        elif dated and span >= WEEK_DAYS * DAY - HOUR:
            groups = "week"
        elif dated and span >= PART_DAYS * DAY - HOUR:
            groups = "weekday-weekend"
        else:
            groups = "day"
            if span >= PART_DAYS * DAY:
                notes.append("the file does not say which weekday it begins on: all days are taken alike")
    table = {"week": np.arange(7), "weekday-weekend": np.array([0, 0, 0, 0, 0, 5, 5]), "day": np.zeros(7, np.int64)}
    if groups == "recorded":
        return groups, np.zeros(len(weekday), np.int64)
    group = table[groups][weekday]
    for wider in (groups, "weekday-weekend", "day"):
        group = table[wider][weekday]
        wanted = np.unique(table[wider])
        if all(_covered(steps, group == each) for each in wanted):
            if wider != groups:
                notes.append(f"the recording does not cover every hour of {groups}: {wider} is fitted")
            return wider, group
    if groups != "day" or span >= DAY - HOUR:
        notes.append("the recording does not cover every hour of a day: its own rate is taken, without a calendar")
    return "recorded", np.zeros(len(weekday), np.int64)


def _covered(steps: _Steps, mine: NDArray[np.bool_]) -> bool:
    known = mine & ~np.isnan(steps.requests)
    hours = np.unique(steps.clock.second[known] // 3_600)
    return len(hours) == 24


def _cell(steps: _Steps, group: NDArray[np.int64]) -> Seconds:
    known = ~np.isnan(steps.requests)
    groups = len(np.unique(group[known]))
    total = float(np.nansum(steps.requests))
    fine = [cell for cell in CELLS if cell >= steps.step_s and cell % steps.step_s == 0]
    return next((cell for cell in fine if total / (groups * DAY / cell) >= CELL_REQUESTS), HOUR)


def _week(
    steps: _Steps, group: NDArray[np.int64], cell: Seconds, smooth: bool, holidays: tuple[date, ...], like: int
) -> Week:
    """Return requests over observed time in each cell, shared by the days of a group."""
    if DAY % cell or cell < 60 or cell % 60:
        raise ScenarioError(f"cell = {cell:g} s", why="cells are whole minutes and fill a day", fix='write "1 h"')
    cells = round(DAY / cell)
    known = ~np.isnan(steps.requests)
    place = group * cells + (steps.clock.second // cell).astype(np.int64)
    requests = np.bincount(place[known], weights=steps.requests[known], minlength=7 * cells)
    observed = np.bincount(place[known], minlength=7 * cells) * steps.step_s
    rate = np.divide(requests, observed, out=np.full(7 * cells, np.nan), where=observed > 0).reshape(7, cells)
    owner = _owners(group, steps, like)
    table = rate[owner]
    for row in table:
        gap = np.isnan(row)
        if gap.any():  # a cell finer than the series' own hours: as its neighbours
            places = np.arange(cells)
            row[gap] = np.interp(places[gap], places[~gap], row[~gap], period=cells)
    return Week(table, cell, smooth, steps.zone, holidays, like)


def _owners(group: NDArray[np.int64], steps: _Steps, like: int) -> NDArray[np.int64]:
    """Return for each weekday the group whose rates it has."""
    present = np.unique(group)
    if len(present) == 1:
        return np.full(7, present[0])
    if set(present.tolist()) <= {0, 5}:
        return np.array([0, 0, 0, 0, 0, 5, 5])
    return np.arange(7)


def _recorded(steps: _Steps, name: str) -> TrafficModel:
    filled = Counts(0.0, steps.step_s, steps.requests).filled()
    return TrafficModel(
        name,
        recorded=filled / steps.step_s,
        cell_s=steps.step_s,
        begin_s=steps.begin_s,
        start=steps.start,
        time_zone=steps.zone,
    )


def _expected(model: TrafficModel, steps: _Steps) -> Floats:
    """Return what the week expects in each step; steps longer than a minute take the mean of their cells."""
    assert model.week is not None
    weekday = like_weekday(steps.clock, model.week.holidays, model.week.holiday_like)
    cells = model.week.rate.shape[1]
    place = (steps.clock.second // model.week.cell_s).astype(np.int64)
    rates: Floats = model.week.rate.ravel()[weekday * cells + place]
    return rates * steps.step_s


def _with_days(model: TrafficModel, steps: _Steps, group: NDArray[np.int64], notes: list[str]) -> TrafficModel:
    day = steps.clock.day - steps.clock.day[0]
    known = ~np.isnan(steps.requests)
    expected = _expected(model, steps)
    counted = np.bincount(day[known], weights=steps.requests[known])
    wanted = np.bincount(day[known], weights=expected[known], minlength=len(counted))
    observed = np.bincount(day[known], minlength=len(counted)) * steps.step_s
    whole = (observed > 0.9 * DAY) & (wanted > 0)
    free = int(whole.sum()) - len(np.unique(group))
    if free < 3:
        return model
    ratio = counted[whole] / wanted[whole]
    variance = float(((ratio - 1) ** 2).sum()) / free - float((1 / wanted[whole]).mean())
    cv = math.sqrt(max(variance, 0.0))
    basis = f"fitted on {int(whole.sum())} days"
    if free < 10:
        notes.append(
            f"how much days differ (cv {cv:.2f}) is told from {int(whole.sum())} days alone: it may be twice that"
        )
    return replace(model, day_cv=cv, day_basis=basis)


def _with_wander(model: TrafficModel, steps: _Steps, group: NDArray[np.int64], notes: list[str]) -> TrafficModel:
    """Fit what wanders through hours (against week and day) and through minutes (against the hour)."""
    layers = []
    per_hour = round(HOUR / steps.step_s) if steps.step_s <= HOUR else 0
    if per_hour and HOUR % steps.step_s == 0:
        hours = len(steps.requests) // per_hour
        shape = (hours, per_hour)
        counted = steps.requests[: hours * per_hour].reshape(shape).sum(axis=1)
        expected = _expected(model, steps)[: hours * per_hour].reshape(shape).sum(axis=1)
        day = steps.clock.day[: hours * per_hour].reshape(shape)[:, 0]
        _, of_day = np.unique(day, return_inverse=True)
        good = ~np.isnan(counted)
        share = np.bincount(of_day[good], weights=counted[good], minlength=of_day.max() + 1)
        wanted = np.bincount(of_day[good], weights=expected[good], minlength=of_day.max() + 1)
        adjusted = expected * np.divide(share, wanted, out=np.ones_like(wanted), where=wanted > 0)[of_day]
        cells = 24 * len(np.unique(group))
        found = _residual(counted, adjusted, HOUR, cells, 24, breaks=False)
        if found is not None:
            layers.append(found)
            if model.day_basis != "assumed":
                own = found.cv**2 * _level_share(found.correlation, 24)
                model = replace(model, day_cv=math.sqrt(max(model.day_cv**2 - own, 0.0)))
        elif int(good.sum()) * 23 / 24 - cells < 24:
            notes.append("how hours differ from the week's rate cannot be told: too few hours for each cell")
    if steps.step_s == MINUTE:
        hours = len(steps.requests) // 60
        table = steps.requests[: hours * 60].reshape(hours, 60)
        level = np.repeat(table.mean(axis=1, keepdims=True), 60, axis=1)
        if np.nanmean(level) >= 2:
            found = _residual(table.ravel(), level.ravel(), MINUTE, 0, 60, breaks=True)
            layers += [found] if found is not None else []
    return replace(model, wander=tuple(layers))


def _residual(
    counted: Floats, expected: Floats, step_s: Seconds, cells: int, level: int, breaks: bool
) -> Wander | None:
    """Return the layer that explains the residuals beyond Poisson noise; None where nothing is left, or too little.

    *expected* has *cells* fitted values, and its level was set to what was counted over every *level* steps, which took
    the layer's mean over them away: variance and covariance are given back what that mean had (`_level_share`).
    """
    good = ~np.isnan(counted) & (expected > 0)
    steps = int(good.sum())
    free = steps * (1 - 1 / level) - cells
    if free < 24:
        return None
    extra = np.where(good, counted - expected, 0.0)
    squares = float((expected[good] ** 2).sum())
    total = float(expected[good].sum())
    scale = steps / max(steps - cells, 1)
    variance = (float((extra[good] ** 2).sum()) * scale - total * (1 - 1 / level)) / squares
    pairs = good[1:] & good[:-1]
    if breaks:
        pairs &= (np.arange(1, len(good)) % level) != 0
    weight = float((expected[1:] * expected[:-1])[pairs].sum())
    noise = math.sqrt(2 / free) * total / squares
    if variance <= 2 * noise or not weight:
        return None
    covariance = (float((extra[1:] * extra[:-1])[pairs].sum()) * scale + total / level) / weight
    seen = covariance / variance
    low, high = 0.0, 0.99
    for _ in range(40):
        middle = (low + high) / 2
        lost = _level_share(middle, level)
        low, high = (middle, high) if (middle - lost) / (1 - lost) < seen else (low, middle)
    return Wander(step_s, math.sqrt(variance / (1 - _level_share(low, level))), low)


def _level_share(correlation: float, steps: int) -> float:
    """Return the variance of the mean over *steps* of an autoregression, as a share of its variance."""
    lags = np.arange(1, steps)
    return float(1 + 2 * ((1 - lags / steps) * correlation**lags).sum()) / steps


def _with_dispersion(model: TrafficModel, traffic: Trace | Counts, notes: list[str]) -> TrafficModel:
    if isinstance(traffic, Counts):
        notes.append(
            f"bursts inside {traffic.step_s:g} s cannot be told from counts: uniform there, a lower bound of the tails"
        )
        return model
    inside = inner_dispersion(traffic)
    if inside is None:
        return model
    return replace(model, dispersion=inside[0], burst=(1.0, max(inside)))


def inner_dispersion(trace: Trace) -> tuple[float, float] | None:
    """Return how much burstier than Poisson arrivals are inside their minute; None with too few.

    First the counts of 10 s against a sixth of their minute's (chi-square over its degrees of freedom: 1 for Poisson at
    any rate), second the squared coefficient of variation of the gaps on the clock of requests per minute.
    """
    begin, counts = minute_counts(trace)
    if len(trace) < 100:
        return None
    tens = np.bincount(np.floor((trace.arrival_s - begin) / 10.0).astype(np.int64), minlength=6 * len(counts))
    tens = tens[: 6 * len(counts)].reshape(-1, 6)
    filled = counts > 0
    even = counts[filled, None] / 6
    chi = float((((tens[filled] - even) ** 2) / even).sum())
    dispersion = chi / (5 * int(filled.sum()))
    so_far = np.concatenate(([0.0], np.cumsum(counts)))
    edges = begin + MINUTE * np.arange(len(counts) + 1)
    gaps = np.diff(np.interp(trace.arrival_s, edges, so_far))
    spread = float(gaps.var() / gaps.mean() ** 2)
    return max(dispersion, 1.0), max(spread, 1.0)


def _pairs(model: TrafficModel, trace: Trace, steps: _Steps) -> Any:
    rows = np.arange(len(trace))
    if len(rows) > MOST_ROWS:
        rows = rows[:: -(-len(rows) // MOST_ROWS)]
    step = np.floor((trace.arrival_s[rows] - steps.begin_s) / steps.step_s).astype(np.int64)
    step = np.minimum(step, len(steps.requests) - 1)
    taken = trace.take(rows)
    if model.week is None:
        return pairs_by_slot(taken, step, len(steps.requests))
    cells = model.week.rate.shape[1]
    weekday = like_weekday(steps.clock, model.week.holidays, model.week.holiday_like)
    slot = weekday[step] * cells + (steps.clock.second[step] // model.week.cell_s).astype(np.int64)
    return pairs_by_slot(taken, slot, 7 * cells)
