"""What one replica does, in nouns that the reference and the kernel share.

A replica serves its waiting line by continuous batching, iteration by iteration (the rules are the text of
`fleetcast.sim.reference`). Times are seconds on the server's clock, sizes are tokens and 16-token KV blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import NotMeasured, ScenarioError, suggest

BLOCK_TOKENS = 16
"""Tokens in one KV block (the default of vLLM)."""

ROUTINGS = ("least-outstanding", "round-robin", "random", "two-choices", "session")
"""How a request finds its replica; `least-outstanding` is the default."""

POLICIES = ("chunked", "prefill-first", "static", "dynamic", "no-evict")
"""Engine policies: what an iteration is made of (see `fleetcast.sim.reference`); `chunked` is the default."""

POOL = -2
"""In `Demand.after`: whoever has an answer sends the next request of the pool."""


@dataclass(frozen=True)
class Replica:
    """One replica's speed and limits.

    `step_s[n]` is the duration of an iteration that decodes n sequences, shape (max_num_seqs + 1,), NaN where
    nothing was measured. `kv_blocks` and `max_context` are None when unlimited.
    """

    step_s: NDArray[np.float64]
    max_num_seqs: int
    max_batched_tokens: int = 2048
    prefill_fixed_s: float = 0.0
    prefill_per_token_s: float = 0.0
    kv_per_token_s: float = 0.0
    mixing: float = 1.0
    request_overhead_s: float = 0.0
    noise_cv: float = 0.0
    kv_blocks: int | None = None
    max_context: int | None = None
    policy: str = "chunked"
    max_prompts_per_iteration: int | None = None  # prefill-first
    batch_delay_s: float = 0.0  # dynamic

    @property
    def reserves(self) -> bool:
        """Whether admission takes the blocks of prompt and output at once, so that nothing is ever preempted."""
        return self.policy in ("static", "dynamic", "no-evict")

    @property
    def patience_s(self) -> float:
        """How long the first of a batch waits for it to fill: not at all, but for `dynamic`."""
        return self.batch_delay_s if self.policy == "dynamic" else 0.0

    def rejects(self, prompt: int, output: int) -> bool:
        """Tell whether a request can never fit, so that it is refused on arrival."""
        too_big = self.kv_blocks is not None and blocks(prompt + output) > self.kv_blocks
        return too_big or (self.max_context is not None and prompt + output > self.max_context)


@dataclass(frozen=True)
class Demand:
    """What reaches the fleet's front door, in order: arrays of one length, `server_s` sorted.

    `pick` holds one random (or session's) 63-bit integer per request for the routings that need it.

    Closed loop: `after[row]` is the row that is sent when *row* has been answered (-1: none, POOL: the next that nobody
    has sent yet). It arrives `home_s[row] + gap_s[that row]` after the answer left the server (way home; think time
    and way there); its own `server_s` is NaN until then. Rows with a time of their own come first in the arrays.
    Nothing arrives after `stop_s` in this way.
    """

    server_s: NDArray[np.float64]
    input_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    pick: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    after: NDArray[np.int32] | None = None
    gap_s: NDArray[np.float64] | None = None
    home_s: NDArray[np.float64] | None = None
    stop_s: float = math.inf

    @property
    def sent_by_clock(self) -> int:
        """How many requests, the first ones, have an arrival time of their own."""
        return len(self.server_s) if self.after is None else int(np.count_nonzero(~np.isnan(self.server_s)))

    def __len__(self) -> int:
        return len(self.server_s)


@dataclass(frozen=True)
class Outcome:
    """What became of every request; NaN where something never happened, replica -1 for a rejected request."""

    first_token_s: NDArray[np.float64]
    finish_s: NDArray[np.float64]
    replica: NDArray[np.int32]
    preemptions: NDArray[np.int32]
    server_s: NDArray[np.float64]


def blocks(tokens: int) -> int:
    """Return the KV blocks that *tokens* tokens fill."""
    return -(-tokens // BLOCK_TOKENS)


def mix(decode_s: float, prompt_s: float, mixing: float) -> float:
    """Return the duration of an iteration whose decodes and prompts alone would take these times (a p-norm)."""
    if decode_s == 0.0 or prompt_s == 0.0 or mixing == 1.0:
        return decode_s + prompt_s
    if math.isinf(mixing):
        return max(decode_s, prompt_s)
    if mixing == 2.0:
        return math.sqrt(decode_s * decode_s + prompt_s * prompt_s)
    return math.pow(math.pow(decode_s, mixing) + math.pow(prompt_s, mixing), 1.0 / mixing)


def pick_of(value: int, replicas: int) -> tuple[int, int]:
    """Return the two different replicas (or twice the only one) that a 63-bit integer stands for."""
    first = ((value >> 31) * replicas) >> 32
    if replicas == 1:
        return first, first
    other = ((value & 0x7FFFFFFF) * (replicas - 1)) >> 31
    return first, other + (other >= first)


def check_routing(routing: str) -> str:
    """Return *routing* if it is one of ROUTINGS."""
    if routing not in ROUTINGS:
        raise ScenarioError(f'no routing named "{routing}"', fix=suggest(routing, ROUTINGS))
    return routing


def not_measured(batch: int, last: int) -> NotMeasured:
    """Return the error for a batch of *batch* sequences where the profile ends at *last*."""
    return NotMeasured(
        f"the traffic needs a batch of {batch} sequences, but the profile ends at {last}",
        why="a step time above the last entry was not measured and is not guessed",
        fix=f'cap the batch with --set engine.max_num_seqs={last}, or allow it with --set engine.beyond="extrapolate"',
    )
