"""The definition of a fleet of replicas: SimPy, one event per iteration. The kernel must agree with this to 1e-9 s.

An iteration that starts at time t, policy `chunked`:

1. Every decoding sequence needs KV blocks for its context (prompt + produced tokens). They are asked oldest first;
   while a block is missing, the youngest request of the replica (a partial prompt, or the asker itself) is preempted:
   it frees its blocks, goes back to the head of the line and will recompute prompt + produced tokens.
2. The waiting line is walked in order, a partial prompt first: each takes a seat and a chunk of its prompt while
   seats, tokens and blocks last; the walk stops at the first that does not fit.
3. D = step[n] + K kv_per_token for the n decodes that hold K tokens of context, Q = fixed + P per_token for P prompt
   tokens; the duration is mix(D, Q). Iterations without prompts whose batch is unchanged form a run: boundary k lies
   at anchor + k (step[n] + kv K0) + kv n k (k - 1) / 2.
4. At its end every decoding sequence emits one token, and every prompt that is complete emits one and decodes from
   the next iteration on. Whoever emits the last token leaves.

`no-evict`: the same, but admission takes the blocks of prompt + output, and nobody is preempted. `prefill-first`: the
line is walked first, with the whole token budget and up to `max_prompts_per_iteration` prompts; if anyone is taken
the prompts run alone (Q) and the decodes wait, else the decodes run alone (1, then D). `static` and `dynamic`: when the
replica is empty, a batch of up to `max_num_seqs` waiting requests is formed (dynamic: once it is full, or the first has
waited for `batch_delay`); every iteration takes D for the whole batch, the first one too (the step contains the
prompt), until its longest member ends; members leave with their last token, but hold their seats. Blocks as `no-evict`.

At equal times arrivals come first (by row), then iteration ends (lowest replica first). Age is the iteration of the
last admission, then the row. Of those that end together, decodes are answered first, by row, then prompts in the order
they were walked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from fleetcast.sim.contract import POOL, Demand, Outcome, Replica, blocks, check_routing, mix, not_measured, pick_of
from fleetcast.sim.lifecycle import after

Process = Generator[simpy.Event, Any, None]
Answer = Callable[["Request", float], None]
ARRIVALS = 2  # SimPy's own priorities are 0 and 1; arrivals follow by row, then iteration ends by replica


class Clock(simpy.Environment):
    """A SimPy environment that schedules at absolute times, so that no sum of differences is rounded."""

    def at(self, time: float, priority: int) -> simpy.Event:
        """Return an event that happens at *time*; at equal times the lowest *priority* comes first."""
        event = simpy.Event(self)
        event._ok, event._value = True, None
        queue: Any = self._queue
        heapq.heappush(queue, (time, priority, next(self._eid), event))
        return event


@dataclass(eq=False, slots=True)
class Request:
    """One request on its way through a replica; `left` counts the prompt tokens that are still to be computed."""

    row: int
    engine_s: float
    prompt: int
    output: int
    left: int
    state: str = "sent"
    produced: int = 0
    blocks: int = 0
    admitted: int = -1
    preemptions: int = 0
    tokens_s: list[float] = field(default_factory=list)

    @property
    def context(self) -> int:
        """Tokens whose keys and values the request holds, or will hold once its prompt is computed."""
        return self.prompt + self.produced

    @property
    def age(self) -> tuple[int, int]:
        """Sort key, oldest first."""
        return self.admitted, self.row

    def live(self, event: str) -> None:
        """Follow the life-cycle table."""
        self.state = after(self.state, event)


class Server:
    """One replica as a SimPy process; `noise()` returns the factor of the next iteration."""

    def __init__(
        self, clock: Clock, index: int, end: int, spec: Replica, noise: Callable[[], float], answer: Answer
    ) -> None:
        self.clock, self.index, self.end, self.spec, self.noise, self.answer = clock, index, end, spec, noise, answer
        self.line: deque[Request] = deque()
        self.partial: list[Request] = []
        self.decoding: list[Request] = []
        self.outstanding = self.iterations = 0
        self.free = spec.kv_blocks if spec.kv_blocks is not None else 2**62
        self.run: tuple[float, int, int] | None = None  # anchor, context at the anchor, iterations since
        self.batch: list[Request] = []  # static and dynamic: all members, also those that have left
        self.batch_iterations = 0
        self.busy_s: dict[int, float] = {}
        self.bell = clock.event()
        clock.process(self.serve())

    def arrive(self, request: Request) -> None:
        """Put a routed request at the end of the line."""
        request.live("arrive")
        self.outstanding += 1
        self.line.append(request)
        if not self.bell.triggered:
            self.bell.succeed()

    def serve(self) -> Process:
        """Iterate while there is work."""
        batched = self.spec.policy in ("static", "dynamic")
        while True:
            if not self.decoding and not self.partial:
                yield from self.wait_for_batch() if batched else self.wait_for_request()
            start = self.clock.now
            if batched:
                prompts = self.form_batch(start)
                n = len(self.batch)
            elif self.spec.policy == "prefill-first":
                prompts = self.admit(start, len(self.decoding), self.spec.max_batched_tokens)
                if not prompts:
                    self.make_room()
                n = 0 if prompts else len(self.decoding)
            else:
                self.make_room()
                n = len(self.decoding)
                prompts = self.admit(start, n, self.spec.max_batched_tokens - n)
            yield self.clock.at(self.iteration_end(start, n, prompts), self.end)
            self.busy_s[n] = self.busy_s.get(n, 0.0) + self.clock.now - start
            waits = self.spec.policy == "prefill-first" and bool(prompts)
            self.emit([] if waits else self.decoding, [request for request, _ in prompts if request.left == 0])

    def wait_for_request(self) -> Process:
        """Stay idle until a request has arrived."""
        if not self.line:
            self.bell = self.clock.event()
            yield self.bell
        if self.line[0].engine_s >= self.clock.now:
            yield self.clock.at(self.line[0].engine_s, self.end)

    def wait_for_batch(self) -> Process:
        """Stay idle until a batch is full, or its first request has waited long enough."""
        size, self.batch, self.batch_iterations = self.spec.max_num_seqs, [], 0
        while True:
            begin = self.line[0].engine_s + self.spec.patience_s if self.line else None
            if begin is not None and len(self.line) >= size:
                begin = min(begin, self.line[size - 1].engine_s)
            if begin is not None and begin < self.clock.now:
                return
            self.bell = self.clock.event()
            timer = self.clock.at(begin, self.end) if begin is not None else self.clock.event()
            yield timer | self.bell
            if timer.processed:
                return

    def form_batch(self, now: float) -> list[tuple[Request, int]]:
        """Take the waiting requests into an empty replica; their first iteration computes no prompt tokens."""
        taken: list[tuple[Request, int]] = []
        while not self.decoding and self.line and len(taken) < self.spec.max_num_seqs:
            request = self.line[0]
            if request.engine_s > now or self.need(request) > self.free:
                break
            self.line.popleft()
            request.live("admit")
            self.hold(request, self.need(request))
            request.left = 0
            taken.append((request, 0))
            self.batch.append(request)
        return taken

    def make_room(self) -> None:
        """Give every decoding sequence the blocks of its context, oldest first, preempting the youngest."""
        if self.spec.reserves:
            return
        for request in sorted(self.decoding, key=lambda r: r.age):
            while request.state == "decode" and (need := blocks(request.context) - request.blocks) > 0:
                if need <= self.free:
                    self.hold(request, need)
                else:
                    self.preempt(max(self.decoding + self.partial, key=lambda r: r.age))

    def hold(self, request: Request, need: int) -> None:
        """Move *need* blocks from the free pool to *request*."""
        self.free -= need
        request.blocks += need

    def need(self, request: Request) -> int:
        """Return the blocks that admission takes."""
        return blocks(request.prompt + request.output if self.spec.reserves else request.left)

    def preempt(self, victim: Request) -> None:
        """Send *victim* back to the head of the line without its blocks."""
        if victim.state == "decode":
            self.decoding.remove(victim)
            self.run = None
        else:
            self.partial.remove(victim)
        victim.live("preempt")
        self.hold(victim, -victim.blocks)
        victim.left = victim.context
        victim.preemptions += 1
        self.line.appendleft(victim)

    def admit(self, now: float, n: int, tokens: int) -> list[tuple[Request, int]]:
        """Walk the line; return the requests that compute prompt tokens in this iteration, with how many."""
        seats = self.spec.max_num_seqs - n
        if self.spec.policy == "prefill-first" and self.spec.max_prompts_per_iteration is not None:
            seats = min(seats, self.spec.max_prompts_per_iteration)
        taken: list[tuple[Request, int]] = []
        while seats > 0 and tokens > 0:
            if self.partial:
                request = self.partial.pop(0)
                request.live("chunk")
            elif self.line and self.line[0].engine_s <= now and self.need(self.line[0]) <= self.free:
                request = self.line.popleft()
                request.live("admit")
                request.admitted = self.iterations
                self.hold(request, self.need(request))
            else:
                break
            chunk = min(request.left, tokens)
            request.left -= chunk
            taken.append((request, chunk))
            seats, tokens = seats - 1, tokens - chunk
        self.partial += [request for request, _ in taken if request.left > 0]
        return taken

    def iteration_end(self, start: float, n: int, prompts: list[tuple[Request, int]]) -> float:
        """Return when the iteration that begins now with *n* decodes ends."""
        spec = self.spec
        step = float(spec.step_s[n])
        if step != step:
            raise not_measured(n, int(np.flatnonzero(~np.isnan(spec.step_s))[-1]))
        context = sum(request.context for request in self.decoding)
        if self.batch:  # the seats of those who have left go on
            context = sum(request.prompt for request in self.batch) + n * self.batch_iterations
        self.iterations += 1
        self.batch_iterations += 1
        if prompts:
            self.run = None
            total = sum(chunk for _, chunk in prompts)
            decode = step + context * spec.kv_per_token_s if n else 0.0
            prompt = spec.prefill_fixed_s + total * spec.prefill_per_token_s if total else 0.0
            return start + mix(decode, prompt, spec.mixing) * self.noise()
        if spec.noise_cv > 0:
            return start + (step + context * spec.kv_per_token_s) * self.noise()
        anchor, held, k = self.run or (start, context, 0)
        k += 1
        self.run = anchor, held, k
        kv = spec.kv_per_token_s
        return anchor + k * (step + kv * held) + kv * n * k * (k - 1) / 2

    def emit(self, decoding: list[Request], complete: list[Request]) -> None:
        """End an iteration: one token to every decoding sequence and to every prompt that is complete."""
        for request in sorted(decoding, key=lambda r: r.row) + complete:
            request.produced += 1
            request.tokens_s.append(self.clock.now)
            request.live("token" if request.produced < request.output else "last_token")
            if request.state == "completed":
                self.hold(request, -request.blocks)
                self.outstanding -= 1
                self.answer(request, self.clock.now)
        if complete or any(request.state == "completed" for request in decoding):
            self.run = self.run if self.batch and not complete else None
            self.decoding = [request for request in self.decoding + complete if request.state == "decode"]


def play(
    demand: Demand, replica: Replica, replicas: int, routing: str, rng: np.random.Generator | None = None
) -> tuple[Outcome, list[Request], list[Server]]:
    """Play *demand* on equal replicas until the last request ends.

    Returns the outcome, the requests (with the time of every token) and the servers (with `busy_s` by number of
    decoding sequences). *rng* is needed only when the replica has iteration noise.
    """
    check_routing(routing)
    clock = Clock()
    shape = replica.noise_cv**-2 if replica.noise_cv > 0 else 0.0
    noise = (lambda: 1.0) if rng is None or shape == 0 else (lambda: float(rng.gamma(shape, 1 / shape)))
    end = ARRIVALS + len(demand)
    requests: list[Request] = []
    where = np.full(len(demand), -1, np.int32)
    server_s = demand.server_s.copy()
    pool = iter(range(demand.sent_by_clock, len(demand)))
    turns = iter(range(2**62))

    def answer(request: Request, now: float) -> None:
        if demand.after is None or demand.gap_s is None:
            return
        row = int(demand.after[request.row])
        if row == POOL:
            row = next(pool, -1)
        home = 0.0 if demand.home_s is None else float(demand.home_s[request.row])
        if row >= 0 and (time := now + home + float(demand.gap_s[row])) <= demand.stop_s:
            server_s[row] = time
            clock.process(arrival(row, time))

    servers = [Server(clock, index, end + index, replica, noise, answer) for index in range(replicas)]

    def choose(row: int, turn: int) -> Server:
        if routing == "least-outstanding":
            return min(servers, key=lambda s: s.outstanding)
        if routing == "round-robin":
            return servers[turn % replicas]
        first, second = (servers[i] for i in pick_of(int(demand.pick[row]), replicas))
        if routing == "two-choices":
            return min(first, second, key=lambda s: (s.outstanding, s.index))
        return first

    def arrival(row: int, time: float) -> Process:
        yield clock.at(time, ARRIVALS + row)
        prompt, output = int(demand.input_tokens[row]), int(demand.output_tokens[row])
        request = Request(row, time + replica.request_overhead_s, prompt, output, left=prompt)
        requests.append(request)
        if replica.rejects(prompt, output):
            request.live("reject")
            answer(request, time)
            return
        server = choose(row, next(turns))
        where[row] = server.index
        server.arrive(request)

    def arrivals() -> Process:
        for row in range(demand.sent_by_clock):
            yield from arrival(row, float(server_s[row]))

    clock.process(arrivals())
    clock.run()
    requests.sort(key=lambda request: request.row)
    return _outcome(requests, where, server_s), requests, servers


def _outcome(
    requests: list[Request], where: np.ndarray[Any, np.dtype[np.int32]], server_s: np.ndarray[Any, np.dtype[np.float64]]
) -> Outcome:
    first, finish = np.full(len(where), np.nan), np.full(len(where), np.nan)
    preemptions = np.zeros(len(where), np.int32)
    for request in requests:
        preemptions[request.row] = request.preemptions
        if request.state == "completed":
            first[request.row], finish[request.row] = request.tokens_s[0], request.tokens_s[-1]
    return Outcome(first, finish, where, preemptions, server_s)
