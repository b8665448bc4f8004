"""The control plane of one run: SimPy owns what happens in minutes, the kernel what happens in microseconds.

Each replica lives as a short process (launch, ready, drain, stop), and a monitor samples the fleet. Before any of
these events is handled, the data plane is advanced to the clock. Modelled here: a fixed fleet that is up when the day
begins. A day ends when its time is over and the last request has left, or when it may drain no longer.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from fleetcast.errors import FleetcastError
from fleetcast.sim.contract import Demand, Outcome, Replica
from fleetcast.sim.kernel import Plane
from fleetcast.sim.lifecycle import REPLICA, after
from fleetcast.units import Seconds

Process = Generator[simpy.Event, Any, None]
MOST_SAMPLES = 20_000
"""A day longer than this many samples is sampled less often, and so is the tail of a run that drains for ever."""


@dataclass
class Life:
    """One replica as the control plane sees it; billed from `launched_s` to `stopped_s`."""

    index: int
    state: str = "requested"
    launched_s: Seconds = math.nan
    stopped_s: Seconds = math.nan

    def live(self, event: str) -> None:
        """Follow the life-cycle table."""
        self.state = after(self.state, event, REPLICA)


@dataclass(frozen=True)
class Timeline:
    """Samples of one run at `t_s` (server's clock), each about the time since the one before.

    `arrivals` in requests per second; `running` sequences and `waiting` requests at that moment; `kv_use` the share of
    KV blocks taken (NaN when unlimited); `busy` the share of replica time spent on iterations; `replicas` ready.
    """

    t_s: NDArray[np.float64]
    arrivals: NDArray[np.float64]
    running: NDArray[np.float64]
    waiting: NDArray[np.float64]
    kv_use: NDArray[np.float64]
    busy: NDArray[np.float64]
    replicas: NDArray[np.int64]


@dataclass(frozen=True)
class FleetRun:
    """What one run gave: `span_s` is the time billed for, `lives_s` the billed seconds of each launch."""

    outcome: Outcome
    timeline: Timeline
    histogram: NDArray[np.int64]
    occupancy: NDArray[np.float64]
    span_s: Seconds
    lives_s: tuple[Seconds, ...]


@dataclass
class Fleet:
    """The control plane: the clock, the data plane it advances, and the lives of its replicas."""

    env: simpy.Environment
    plane: Plane
    begin_s: Seconds
    end_s: Seconds
    last_s: Seconds
    every_s: Seconds
    lives: list[Life] = field(default_factory=list)
    samples: list[tuple[float, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.over = self.env.event()
        self.closed_s = math.nan

    def life(self, life: Life) -> Process:
        """Live through one replica of a fixed fleet: up from the first moment to the last."""
        self.lives.append(life)
        life.live("launch")
        life.launched_s = self.env.now
        life.live("ready")
        yield self.over
        life.live("drain")
        life.stopped_s = self.closed_s
        life.live("stop")

    def monitor(self) -> Process:
        """Sample the fleet until the day is over."""
        busy, arrived, drained, every = 0.0, 0, False, self.every_s
        while True:
            if len(self.samples) >= MOST_SAMPLES:
                every *= 2
            lasts = min(every, self.last_s - self.env.now)
            yield self.env.timeout(lasts)
            self.plane.advance(self.env.now)
            running, waiting, blocks, seconds = self.plane.sample(self.env.now)
            ready = sum(life.state == "ready" for life in self.lives)
            capacity = self.plane.replica.kv_blocks
            kv_use = math.nan if capacity is None else blocks / (ready * capacity)
            share = (seconds - busy) / (ready * lasts)
            rate = (self.plane.reached - arrived) / lasts
            self.samples.append((self.env.now, rate, running, waiting, kv_use, share, ready))
            busy, arrived = seconds, self.plane.reached
            drained = self.plane.drained
            if (self.env.now >= self.end_s and drained) or self.env.now >= self.last_s:
                break
        finish = self.plane.outcome().finish_s
        left = float(np.nanmax(finish)) if np.isfinite(finish).any() else self.begin_s
        self.closed_s = max(self.end_s, left if drained else self.env.now)
        self.over.succeed()


def run_fleet(
    demand: Demand,
    replica: Replica,
    replicas: int,
    routing: str = "least-outstanding",
    *,
    seed: int = 0,
    begin_s: Seconds,
    horizon_s: Seconds,
    drain_s: Seconds = math.inf,
    every_s: Seconds = 60.0,
) -> FleetRun:
    """Play *demand* on a fixed fleet from *begin_s* for *horizon_s* seconds and until it has drained."""
    while horizon_s / every_s > MOST_SAMPLES:
        every_s *= 2
    env = simpy.Environment(begin_s)
    end_s = begin_s + horizon_s
    fleet = Fleet(env, Plane(demand, replica, replicas, routing, seed), begin_s, end_s, end_s + drain_s, every_s)
    for index in range(replicas):
        env.process(fleet.life(Life(index)))
    env.process(fleet.monitor())
    try:
        env.run()
    except FleetcastError as error:
        # SimPy raises a copy of what a process raised, with the first argument alone: the original says more.
        raise error.__cause__ if isinstance(error.__cause__, FleetcastError) else error from None
    t, arrivals, running, waiting, kv_use, busy, ready = np.array(fleet.samples, dtype=np.float64).T
    return FleetRun(
        fleet.plane.outcome(),
        Timeline(t, arrivals, running, waiting, kv_use, busy, ready.astype(np.int64)),
        fleet.plane.histogram,
        fleet.plane.occupancy,
        fleet.closed_s - begin_s,
        tuple(life.stopped_s - life.launched_s for life in fleet.lives),
    )
