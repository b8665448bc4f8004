"""The data plane: continuous batching as numba code, exact to the iteration.

`Plane` holds the arrays of one run and plays them forward; `fleetcast.sim.reference` defines what is right.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

from fleetcast.errors import DataError
from fleetcast.sim.contract import Demand, Outcome, Replica, check_routing, not_measured
from fleetcast.sim.kernel import plane

_ROUTES = {
    "least-outstanding": plane.LEAST_OUTSTANDING,
    "round-robin": plane.ROUND_ROBIN,
    "random": plane.PICK,
    "session": plane.PICK,
    "two-choices": plane.TWO_CHOICES,
}


_POLICIES = {
    "chunked": plane.CHUNKED,
    "no-evict": plane.CHUNKED,
    "prefill-first": plane.PREFILL_FIRST,
    "static": plane.BATCHED,
    "dynamic": plane.BATCHED,
}


def plain(function: Any, seen: dict[Any, Any] | None = None) -> Any:
    """Return a compiled *function* as interpreted Python, together with every compiled function that it calls."""
    seen = {} if seen is None else seen
    if function not in seen:
        source = function.py_func
        scope = dict(source.__globals__)
        seen[function] = types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
        for name in source.__code__.co_names:
            if isinstance(scope.get(name), CPUDispatcher):
                scope[name] = plain(scope[name], seen)
    return seen[function]


def is_compiled() -> bool:
    """Tell whether the kernel can start at once: it has run in this process, or its compiled form is on disk."""
    kernel: Any = plane.advance
    if kernel.signatures:
        return True
    try:
        return bool(kernel._cache._cache_file._load_index())
    except (AttributeError, OSError):
        return False


def _check_countable(demand: Demand, bits: int) -> None:
    """Refuse what would not fit: an iteration's number and a row of *bits* bits share an integer of 63."""
    tokens = int(demand.output_tokens.sum(dtype=np.int64)) + int(demand.input_tokens.sum(dtype=np.int64))
    if 4 * (tokens + len(demand)) >= 1 << (62 - bits):  # four times: prompts that are computed again
        raise DataError(
            f"{tokens:,} tokens in {len(demand):,} requests are more than one run can count",
            why="the number of an iteration and that of a request share 63 bits",
            fix="split the traffic, or correct its token counts",
        )


class Plane:
    """One fleet of equal replicas playing one demand; `advance` moves it, `sample` and `outcome` read it.

    `histogram` counts tokens by their iteration's duration without noise (log bins, see `bin_edges`); `occupancy`
    is busy seconds, shape (2, max_num_seqs + 1): decode runs and iterations with prompts, by decoding sequences.
    """

    def __init__(
        self,
        demand: Demand,
        replica: Replica,
        replicas: int,
        routing: str = "least-outstanding",
        seed: int = 0,
        interpreted: bool = False,
    ) -> None:
        n, cap = len(demand), replica.max_num_seqs
        self.demand, self.replica, self.replicas = demand, replica, replicas
        kv = plane.UNLIMITED if replica.kv_blocks is None else replica.kv_blocks
        context = plane.UNLIMITED if replica.max_context is None else replica.max_context
        route = _ROUTES[check_routing(routing)]
        policy = _POLICIES[replica.policy]
        prompts = replica.max_prompts_per_iteration or plane.UNLIMITED
        loop, clocked = demand.after is not None, demand.sent_by_clock
        bits = max(1, (n - 1).bit_length())
        _check_countable(demand, bits)
        self._limits = np.array(
            [cap, replica.max_batched_tokens, kv, context, route, replicas, policy, replica.reserves, prompts, loop,
             clocked, bits], np.int64,
        )  # fmt: skip
        shape = replica.noise_cv**-2 if replica.noise_cv > 0 else 0.0
        self._rates = np.array(
            [replica.prefill_fixed_s, replica.prefill_per_token_s, replica.kv_per_token_s, replica.mixing,
             replica.request_overhead_s, shape, replica.patience_s, demand.stop_s]
        )  # fmt: skip
        self._seed = np.uint64(seed)
        leaves = 1 << max(0, (replicas - 1).bit_length())
        self._f = np.zeros((replicas, plane.F_COLUMNS))
        self._f[:, plane.END] = np.inf
        self._g = np.zeros((replicas, plane.G_COLUMNS), np.int64)
        self._g[:, [plane.HEAD, plane.TAIL, plane.PARTIAL]] = -1
        self._g[:, plane.CHANGED] = 1
        self._due = np.zeros((replicas, cap + 1), np.int64)
        self._fresh = np.zeros((replicas, cap + 1), np.int64)
        self._ends = np.full(2 * leaves, np.inf)
        self._load = np.full(2 * leaves, plane.UNLIMITED, np.int64)
        self._load[leaves : leaves + replicas] = 0
        for node in range(leaves - 1, 0, -1):
            self._load[node] = min(self._load[2 * node], self._load[2 * node + 1])
        self._first = np.full(n, np.nan)
        self._finish = np.full(n, np.nan)
        self._where = np.full(n, -1, np.int32)
        self._following = np.full(n, -1, np.int32)
        kept = n if replica.kv_blocks is not None else 1
        self._produced = np.zeros(kept, np.int32)
        self._last_token = np.full(n if policy == plane.PREFILL_FIRST else kept, -np.inf)
        self._preemptions = np.zeros(kept, np.int32)
        self._admitted = np.zeros(kept, np.int64)
        self._ages = np.zeros((2, cap + 1), np.int64)
        self.histogram = np.zeros(plane.BINS, np.int64)
        self.occupancy = np.zeros((2, cap + 1))
        self._control = np.zeros(plane.CONTROL, np.int64)
        self._control[plane.POOL] = clocked
        self._server = demand.server_s.copy() if loop else demand.server_s
        self._after = demand.after if demand.after is not None else np.zeros(1, np.int32)
        self._home = demand.home_s if demand.home_s is not None else np.zeros(n if loop else 1)
        self._gap = demand.gap_s if demand.gap_s is not None else np.zeros(1)
        self._pending_s = np.zeros(n + 1 if loop else 1)
        self._pending = np.zeros(n + 1 if loop else 1, np.int64)
        self._advance = plain(plane.advance) if interpreted else plane.advance

    def advance(self, until: float = np.inf) -> None:
        """Play every event up to and including time *until* (seconds, server's clock)."""
        demand = self.demand
        self._advance(
            until, self._seed, self._limits, self._rates, self.replica.step_s,
            self._server, demand.input_tokens, demand.output_tokens, demand.pick,
            self._f, self._g, self._due, self._fresh, self._ends, self._load,
            self._first, self._finish, self._where, self._following,
            self._produced, self._last_token, self._preemptions, self._admitted, self._ages,
            self.histogram, self.occupancy, self._after, self._home, self._gap, self._pending_s, self._pending,
            self._control,
        )  # fmt: skip
        if self._control[plane.STOP] == plane.UNMEASURED:
            measured = np.flatnonzero(~np.isnan(self.replica.step_s))
            raise not_measured(int(self._control[plane.WANTED]), int(measured[-1]))

    def sample(self, now: float) -> NDArray[np.float64]:
        """Return [running sequences, waiting requests, KV blocks, busy seconds] of the whole fleet at *now*."""
        out = np.empty(4)
        plane.sample(now, self._limits, self._rates, self._f, self._g, out)
        return out

    @property
    def reached(self) -> int:
        """How many requests have reached the front door."""
        return int(self._control[plane.REACHED])

    @property
    def drained(self) -> bool:
        """Whether nothing is to come: every request with a time of its own arrived, and all of them are answered."""
        return int(self._control[plane.ROW]) == self.demand.sent_by_clock and bool(np.isinf(self.next_event_s))

    @property
    def next_event_s(self) -> float:
        """When the next event of any replica is due; infinite when all are idle and nobody waits or is on the way."""
        on_the_way = float(self._pending_s[0]) if self._control[plane.PENDING] else np.inf
        return min(float(self._ends[1]), on_the_way)

    def outcome(self) -> Outcome:
        """Return what became of every request so far."""
        preemptions = (
            self._preemptions if len(self._preemptions) == len(self._first) else np.zeros(len(self._first), np.int32)
        )
        return Outcome(self._first, self._finish, self._where, preemptions, self._server)


def bin_edges() -> NDArray[np.float64]:
    """Return the edges of the token histogram in seconds, shape (bins + 1,): 256 equal bins in every octave."""
    return np.array([plane.edge_of.py_func(i - 1) for i in range(plane.BINS + 1)])
