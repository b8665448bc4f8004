"""Closed loops: users who think between requests, sessions of several turns, agents that call again and again.

Open loop is the default: arrivals do not wait for answers. Here they do: the next request is sent when the answer has
arrived at the client and the think time is over, so a slow fleet is asked less. The kernel schedules these arrivals
itself. With users, rows of the traffic are a pool of lengths that whoever is next takes from; with sessions, every row
opens one, and its further turns take the lengths of other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fleetcast.sim.contract import POOL
from fleetcast.traffic.trace import Labels, Trace
from fleetcast.units import Seconds

if TYPE_CHECKING:
    from fleetcast.sim.scenario import Scenario, Think

Streams = Callable[[str], np.random.Generator]


@dataclass(frozen=True)
class Loop:
    """How the loop is closed: `users` share a pool, or (users None) every request opens a session of `turns`."""

    think_s: Seconds
    think_cv: float
    users: int | None = None
    turns: float = 1.0
    fixed: bool = False
    history: bool = True


@dataclass(frozen=True)
class Closed:
    """The requests of a closed loop; the first `clocked` are sent by the clock, the others `after` an answer.

    `think_s` is what passes between the answer before a request (or the day's begin) and its sending.
    """

    trace: Trace
    clocked: int
    after: NDArray[np.int32]
    think_s: NDArray[np.float64]


def loop_of(scenario: Scenario) -> Loop | None:
    """Return the loop a scenario asks for; None for an open one."""
    if scenario.users is not None:
        think: Think = scenario.users.think
        return Loop(think.mean, think.cv, users=scenario.users.count)
    if scenario.sessions is not None and scenario.sessions.turns > 1:
        told = scenario.sessions
        return Loop(told.think.mean, told.think.cv, turns=told.turns, fixed=told.fixed, history=told.history)
    return None


def close(
    loop: Loop, trace: Trace, begin_s: Seconds, pool: int, most: int | None, replay: bool, streams: Streams
) -> Closed:
    """Return the closed loop of one run. *pool* is how many requests users may send; *most* the longest context."""
    if loop.users is not None:
        return _users(loop, loop.users, trace, begin_s, pool, replay, streams)
    return _sessions(loop, trace, most, streams)


def _think(loop: Loop, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if loop.think_cv == 0 or loop.think_s == 0:
        return np.full(n, loop.think_s)
    shape = loop.think_cv**-2
    return rng.gamma(shape, loop.think_s / shape, n)


def _users(loop: Loop, users: int, trace: Trace, begin_s: Seconds, pool: int, replay: bool, streams: Streams) -> Closed:
    n = max(pool, users)
    rows = np.arange(n) % len(trace) if replay else streams("lengths").integers(0, len(trace), n)
    think = _think(loop, n, streams("think"))
    think[:users] *= streams("turns").random(users)  # at a random moment of the first think time
    order = np.argsort(think[:users], kind="stable")
    think[:users] = think[:users][order]
    arrival = np.concatenate([begin_s + think[:users], np.full(n - users, np.nan)])
    return Closed(_rows(trace, rows, arrival), users, np.full(n, POOL, np.int32), think)


def _sessions(loop: Loop, trace: Trace, most: int | None, streams: Streams) -> Closed:
    first = len(trace)
    rng = streams("turns")
    turns = np.full(first, round(loop.turns)) if loop.fixed else rng.geometric(1 / loop.turns, first)
    further = turns - 1
    opener = np.repeat(np.arange(first), further)
    later = len(opener)
    turn = np.arange(later) - np.repeat(np.cumsum(further) - further, further) + 1  # 1, 2, … within the session
    rows = np.concatenate([np.arange(first), streams("lengths").integers(0, max(first, 1), later)])
    after = np.full(first + later, -1, np.int32)
    place = np.arange(first, first + later)
    after[np.where(turn == 1, opener, place - 1)] = place
    arrival = np.concatenate([trace.arrival_s, np.full(later, np.nan)])
    grown = _rows(trace, rows, arrival)
    if loop.history and later:
        grown = replace(grown, input_tokens=_with_history(grown, first, opener, turn, most))
    sessions = np.concatenate([np.arange(first), opener]).astype(np.int32)
    turns = np.concatenate([np.zeros(first), turn]).astype(np.int32)
    labels = dict(grown.labels)
    labels["session"] = Labels(sessions, tuple(str(i) for i in range(first)))
    labels["turn"] = Labels(turns)
    think = np.concatenate([np.zeros(first), _think(loop, later, streams("think"))])
    return Closed(replace(grown, labels=labels), first, after, think)


def _with_history(
    trace: Trace, first: int, opener: NDArray[np.int64], turn: NDArray[np.int64], most: int | None
) -> NDArray[np.int32]:
    """Add to each turn's prompt all prompts and answers before it, as far as the model's context allows."""
    prompts = trace.input_tokens.astype(np.int64)
    both = prompts + trace.output_tokens
    running = np.cumsum(both[first:])
    starts = np.flatnonzero(turn == 1)
    before = running - both[first:]  # of all sessions so far
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(turn))))
    prompts[first:] += before + both[opener]
    if most is not None:  # a client drops the oldest of its history
        room = np.maximum(most - trace.output_tokens[first:], trace.input_tokens[first:])
        prompts[first:] = np.minimum(prompts[first:], room)
    return np.minimum(prompts, np.iinfo(np.int32).max).astype(np.int32)


def _rows(trace: Trace, rows: NDArray[np.int64], arrival_s: NDArray[np.float64]) -> Trace:
    labels = {name: Labels(column.codes[rows], column.names) for name, column in trace.labels.items()}
    return Trace(
        arrival_s, trace.input_tokens[rows], trace.output_tokens[rows], labels, trace.name, trace.start, trace.time_zone
    )


def first_pool(loop: Loop, horizon_s: Seconds) -> int:
    """Return how many requests the users may send at first; a run that uses them all is played again with more."""
    users = loop.users or 0
    return users + math.ceil(users * horizon_s / (loop.think_s + 1.0))
