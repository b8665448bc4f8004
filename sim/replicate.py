"""Monte Carlo: many days of the same scenario, played in parallel, each from its own random streams.

A day is drawn (arrivals, lengths, the network's delays, the profile's uncertain speed, iteration noise), played by the
control plane, and boiled down to sorted latencies and sums. The result does not depend on how many workers play.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.profiles.curve import Curve, StepModel
from fleetcast.sim import network as net
from fleetcast.sim.contract import Demand, Replica
from fleetcast.sim.fleet import FleetRun, Timeline, run_fleet
from fleetcast.sim.lifecycle import COMPLETED, REJECTED, UNFINISHED
from fleetcast.sim.loops import Loop, close, first_pool
from fleetcast.sim.streams import key, stream
from fleetcast.traffic.resample import DayModel, random_day
from fleetcast.traffic.trace import Labels, Trace
from fleetcast.units import Seconds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Study:
    """What is played again and again: everything but the number of replicas and the draw.

    `replica` carries the limits and the central speed; `curve` gives each run its own. `latency_limits` are the
    per-request limits that goodput is counted by: (metric, seconds).
    """

    days: DayModel
    replay: bool
    curve: Curve
    replica: Replica
    extrapolate: bool
    routing: str
    network: net.Network
    seed: int
    drain_s: Seconds
    latency_limits: tuple[tuple[str, float], ...] = ()
    loop: Loop | None = None
    overrides: Mapping[str, float] = field(default_factory=dict)  # of the replica's speed, by the scenario

    @property
    def certain(self) -> bool:
        """Tell whether every run gives the same: nothing is drawn."""
        drawn = self.curve.uncertain or self.replica.noise_cv > 0 or self.routing in _PICKED
        return self.replay and not drawn and self.loop is None and self.network == net.NO_NETWORK


@dataclass(frozen=True)
class Requests:
    """Every request of one run, on the client's clock unless the name says server; NaN where nothing happened."""

    trace: Trace
    status: NDArray[np.int8]
    replica: NDArray[np.int32]
    preemptions: NDArray[np.int32]
    server_arrival_s: Floats
    first_token_s: Floats
    finish_s: Floats

    @property
    def ttft_s(self) -> Floats:
        """Time to the first token."""
        return self.first_token_s - self.trace.arrival_s

    @property
    def e2e_s(self) -> Floats:
        """Time to the last token."""
        return self.finish_s - self.trace.arrival_s

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first; NaN where there is only one."""
        after = np.where(self.trace.output_tokens > 1, self.trace.output_tokens - 1.0, np.nan)
        return np.asarray((self.finish_s - self.first_token_s) / after, np.float64)


@dataclass(frozen=True)
class Tenant:
    """One tenant's part of a run: requests, completed output tokens, sorted times to first token."""

    name: str
    requests: int
    output_tokens: int
    ttft_s: Floats


@dataclass(frozen=True)
class Day:
    """One run, boiled down. Latencies are sorted; a request that was not finished stands as +inf at their end."""

    run: int
    offered: int
    completed: int
    rejected: int
    unfinished: int
    good: int
    preemptions: int
    output_tokens: int
    bytes_in: float
    bytes_out: float
    span_s: Seconds
    lives_s: tuple[Seconds, ...]
    busy_s: Seconds
    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    histogram: NDArray[np.int64]
    occupancy: Floats
    timeline: Timeline
    tenants: tuple[Tenant, ...]
    requests: Requests | None


@dataclass(frozen=True)
class Layout:
    """A world of its own, whose days are drawn apart from all others, or laid out evenly: one row per run.

    `scores` are the standard normal scores of the day-level factors, shape (runs, days of the trace); `speeds` the
    places of step and prompt cost between fast and slow, shape (runs, 2). Both are drawn where they are None.
    """

    world: str
    scores: Floats | None = None
    speeds: Floats | None = None


def play_days(
    study: Study,
    replicas: int,
    runs: Sequence[int],
    workers: int,
    *,
    keep: Sequence[int] = (),
    layout: Layout | None = None,
) -> Iterator[Day]:
    """Play the *runs* on *workers* threads (the kernel needs no interpreter lock) and yield them in order.

    An error is raised in its place in that order, so it does not depend on the workers either.
    """
    if workers == 1 or len(runs) == 1:
        yield from (play_day(study, replicas, run, run in keep, layout) for run in runs)
        return
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[Day]] = deque()
        try:
            for run in runs:
                ahead.append(pool.submit(play_day, study, replicas, run, run in keep, layout))
                if len(ahead) >= workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for day in ahead:
                day.cancel()


def play_day(study: Study, replicas: int, run: int, keep: bool = False, layout: Layout | None = None) -> Day:
    """Play one run on *replicas* replicas; with *keep*, with the table of its requests."""
    if study.loop is not None:
        return _play_closed(study, study.loop, replicas, run, keep, layout)
    world = layout.world if layout else "days"
    trace = draw_trace(study, run, layout)
    n = len(trace)
    server = trace.arrival_s + net.there(study.network, n, stream(study.seed, "network there", run, world))
    order = np.argsort(server, kind="stable") if np.any(server[1:] < server[:-1]) else None
    demand = Demand(
        _in_order(server, order),
        _in_order(trace.input_tokens, order),
        _in_order(trace.output_tokens, order),
        _in_order(_picks(study, trace, run, world), order) if study.routing in _PICKED else np.zeros(0, np.int64),
    )
    played = _play(study, demand, replicas, run, layout)
    outcome = played.outcome
    first, finish = _as_sent(outcome.first_token_s, order), _as_sent(outcome.finish_s, order)
    where, preemptions = _as_sent(outcome.replica, order), _as_sent(outcome.preemptions, order)
    if study.network != net.NO_NETWORK:
        home = net.back(study.network, n, stream(study.seed, "network back", run, world))
        first, finish = first + home, finish + home
    requests = Requests(trace, _status(study, trace, finish), where, preemptions, server, first, finish)
    return _boil_down(study, run, requests, played, keep)


def _play_closed(
    study: Study, loop: Loop, replicas: int, run: int, keep: bool, layout: Layout | None, pool: int | None = None
) -> Day:
    """Play one run whose requests wait for answers; those that were never sent are left out of its table."""
    world = layout.world if layout else "days"

    def streams(source: str) -> np.random.Generator:
        return stream(study.seed, source, run, world)

    horizon_s = study.days.horizon_s
    pool = pool or first_pool(loop, horizon_s)
    lengths = study.days.trace if loop.users is not None else draw_trace(study, run, layout)
    most = study.replica.max_context
    closed = close(loop, lengths, study.days.begin_s, pool, most, study.replay, streams)
    n, clocked = len(closed.trace), closed.clocked
    way = net.there(study.network, n, streams("network there"))
    home = net.back(study.network, n, streams("network back"))
    server = closed.trace.arrival_s + way
    order = np.arange(n)
    order[:clocked] = np.argsort(server[:clocked], kind="stable")
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    after = closed.after[order]
    after = np.where(after >= 0, place[np.maximum(after, 0)], after).astype(np.int32)
    trace = _taken(closed.trace, order, closed.trace.arrival_s[order])
    way, home, think = way[order], home[order], closed.think_s[order]
    demand = Demand(
        server[order],
        trace.input_tokens,
        trace.output_tokens,
        _picks(study, trace, run, world) if study.routing in _PICKED else np.zeros(0, np.int64),
        after,
        think + way,
        home,
        study.days.begin_s + horizon_s,
    )
    played = _play(study, demand, replicas, run, layout)
    outcome = played.outcome
    if loop.users is not None and not np.isnan(outcome.server_s).any():
        return _play_closed(study, loop, replicas, run, keep, layout, 2 * pool)  # the pool ran dry
    answered = outcome.finish_s + home
    sent_s = outcome.server_s - way
    turns = np.flatnonzero((after >= 0) & ~np.isnan(answered))
    sent_s[after[turns]] = answered[turns] + think[after[turns]]  # not a rounding error before the answer
    sent = np.flatnonzero(~np.isnan(outcome.server_s))
    sent = sent[np.argsort(sent_s[sent], kind="stable")]
    trace = _taken(trace, sent, sent_s[sent])
    finish = answered[sent]
    requests = Requests(
        trace,
        _status(study, trace, finish),
        outcome.replica[sent],
        outcome.preemptions[sent],
        outcome.server_s[sent],
        (outcome.first_token_s + home)[sent],
        finish,
    )
    return _boil_down(study, run, requests, played, keep)


def _play(study: Study, demand: Demand, replicas: int, run: int, layout: Layout | None) -> FleetRun:
    return run_fleet(
        demand,
        replica_of(study, run, layout),
        replicas,
        study.routing,
        seed=key(study.seed, "noise", run, layout.world if layout else "days"),
        begin_s=study.days.begin_s,
        horizon_s=study.days.horizon_s,
        drain_s=np.inf if study.replay else study.drain_s,
    )


def _status(study: Study, trace: Trace, finish: Floats) -> NDArray[np.int8]:
    late = np.where(np.isnan(finish), UNFINISHED, COMPLETED)
    return np.where(_never_fits(study.replica, trace), REJECTED, late).astype(np.int8)


def _taken(trace: Trace, rows: NDArray[np.int64], arrival_s: Floats) -> Trace:
    labels = {name: Labels(column.codes[rows], column.names) for name, column in trace.labels.items()}
    inputs, outputs = trace.input_tokens[rows], trace.output_tokens[rows]
    return Trace(arrival_s, inputs, outputs, labels, trace.name, trace.start, trace.time_zone)


def draw_trace(study: Study, run: int, layout: Layout | None = None) -> Trace:
    """Return the requests of one run: the recorded ones, or a random day's."""
    if study.replay:
        return study.days.trace
    world = layout.world if layout else "days"
    return random_day(
        study.days,
        day=stream(study.seed, "day", run, world),
        arrivals=stream(study.seed, "arrivals", run, world),
        lengths=stream(study.seed, "lengths", run, world),
        scores=layout.scores[run] if layout and layout.scores is not None else None,
    )


def replica_of(study: Study, run: int, layout: Layout | None = None) -> Replica:
    """Return the replica of one run: the limits of all, the speed that this run has drawn."""
    laid_out = None if layout is None or layout.speeds is None else layout.speeds[run]
    world = layout.world if layout else "days"
    u_step, u_prefill = stream(study.seed, "profile", run, world).random(2) if laid_out is None else laid_out
    return with_speed(study.replica, study.curve.draw(u_step, u_prefill), study.extrapolate, study.overrides)


def with_speed(limits: Replica, speed: StepModel, extrapolate: bool, overrides: Mapping[str, float]) -> Replica:
    """Return *limits* with the step times and prompt costs of *speed*, but for what the scenario overrides."""
    rates: dict[str, Any] = {
        "prefill_fixed_s": speed.prefill_fixed_s,
        "prefill_per_token_s": speed.prefill_per_token_s,
        "kv_per_token_s": speed.kv_per_token_s,
        "mixing": speed.mixing,
        "request_overhead_s": speed.request_overhead_s,
        "noise_cv": speed.noise_cv,
    }
    return replace(limits, step_s=speed.table(limits.max_num_seqs, extrapolate), **{**rates, **overrides})


_PICKED = ("random", "two-choices", "session")


def _picks(study: Study, trace: Trace, run: int, world: str) -> NDArray[np.int64]:
    """Return a 63-bit integer per request; requests of one session share theirs."""
    rng = stream(study.seed, "routing", run, world)
    picks = rng.integers(0, 2**63 - 1, len(trace))
    sessions = trace.labels.get("session")
    if study.routing == "session" and sessions is not None and len(sessions.names):
        of_session = stream(study.seed, "routing", 0, "sessions").integers(0, 2**63 - 1, len(sessions.names))
        known = sessions.codes >= 0
        picks[known] = of_session[sessions.codes[known]]
    return picks


def _in_order(values: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[Any]:
    return np.ascontiguousarray(values) if order is None else values[order]


def _as_sent(values: NDArray[Any], order: NDArray[np.int64] | None) -> NDArray[Any]:
    if order is None:
        return values
    sent = np.empty_like(values)
    sent[order] = values
    return sent


def _never_fits(replica: Replica, trace: Trace) -> NDArray[np.bool_]:
    tokens = trace.input_tokens.astype(np.int64) + trace.output_tokens
    too_long = np.zeros(len(trace), np.bool_) if replica.max_context is None else tokens > replica.max_context
    if replica.kv_blocks is not None:
        too_long |= tokens > 16 * replica.kv_blocks
    return too_long


def _boil_down(study: Study, run: int, requests: Requests, played: Any, keep: bool) -> Day:
    trace, status = requests.trace, requests.status
    done = status == COMPLETED
    unfinished = int(np.count_nonzero(status == UNFINISHED))
    tokens = int(trace.output_tokens[done].sum(dtype=np.int64))
    sent, received = net.bytes_of(len(trace), int(trace.input_tokens.sum(dtype=np.int64)), tokens)
    good = done.copy()
    for metric, limit in study.latency_limits:
        values = getattr(requests, f"{metric}_s")
        good &= np.isnan(values) | (values < limit)
    limited = status != REJECTED
    none = study.network == net.NO_NETWORK
    return Day(
        run=run,
        offered=len(trace),
        completed=int(np.count_nonzero(done)),
        rejected=int(np.count_nonzero(status == REJECTED)),
        unfinished=unfinished,
        good=int(np.count_nonzero(good)),
        preemptions=int(requests.preemptions.sum()),
        output_tokens=tokens,
        bytes_in=0.0 if none else sent,
        bytes_out=0.0 if none else received,
        span_s=played.span_s,
        lives_s=played.lives_s,
        busy_s=float(played.occupancy.sum()),
        ttft_s=_sorted(requests.ttft_s[limited]),
        tpot_s=_sorted(requests.tpot_s[limited & (trace.output_tokens > 1)]),
        e2e_s=_sorted(requests.e2e_s[limited]),
        histogram=played.histogram,
        occupancy=played.occupancy,
        timeline=played.timeline,
        tenants=_by_tenant(requests, done, study.days.trace),
        requests=requests if keep else None,
    )


def _sorted(values: Floats) -> Floats:
    """Sort latencies, a fresh array, in place; what never happened counts as infinitely late."""
    values[np.isnan(values)] = np.inf
    values.sort()
    return values


MOST_TENANTS = 20
OTHERS = "(others)"


def _by_tenant(requests: Requests, done: NDArray[np.bool_], recorded: Trace) -> tuple[Tenant, ...]:
    """Return the largest tenants of the *recorded* trace, the same in every run, and all other requests together."""
    labels = requests.trace.labels.get("tenant")
    if labels is None or not labels.names:
        return ()
    known = recorded.labels["tenant"].codes
    listed = np.argsort(-np.bincount(known[known >= 0], minlength=len(labels.names)), kind="stable")[:MOST_TENANTS]
    groups = [(labels.names[code], labels.codes == code) for code in listed.tolist()]
    if len(labels.names) > MOST_TENANTS or np.any(known < 0):
        groups.append((OTHERS, ~np.isin(labels.codes, listed)))
    found = []
    for name, mine in groups:
        ttft = _sorted(requests.ttft_s[mine & (requests.status != REJECTED)])
        tokens = int(requests.trace.output_tokens[mine & done].sum(dtype=np.int64))
        found.append(Tenant(name, int(np.count_nonzero(mine)), tokens, ttft))
    return tuple(found)
