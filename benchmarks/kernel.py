"""How fast the kernel plays: `python -m benchmarks.kernel` prints the table.

Prompt 512, output 128, Poisson arrivals at 70 % of what the fleet can serve, one core, compile time apart. Each row is
the best of some repetitions; the last column is a ratio within the same run, the SimPy reference's rate being 1.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from fleetcast.sim.contract import Demand, Replica
from fleetcast.sim.kernel import Plane
from fleetcast.sim.reference import play

PROMPT, OUTPUT, LOAD = 512, 128, 0.7
SEATS = 64
REPLICA = Replica(step_s=np.r_[0.0, np.linspace(0.005, 0.010, SEATS)], max_num_seqs=SEATS, prefill_per_token_s=16e-6)


def capacity(replica: Replica, output: int = OUTPUT) -> float:
    """Return the requests per second that one replica can serve at its largest batch."""
    return 1 / (PROMPT * replica.prefill_per_token_s + output * float(replica.step_s[-1]) / replica.max_num_seqs)


def demand(requests: int, replica: Replica, replicas: int, output: int = OUTPUT, seed: int = 0) -> Demand:
    """Return Poisson arrivals at 70 % load."""
    rng = np.random.default_rng(seed)
    rate = LOAD * replicas * capacity(replica, output)
    return Demand(
        np.cumsum(rng.exponential(1 / rate, requests)),
        np.full(requests, PROMPT, np.int32),
        np.full(requests, output, np.int32),
        rng.integers(0, 2**63 - 1, requests),
    )


def rate(requests: Demand, replica: Replica, replicas: int, routing: str, repetitions: int) -> float:
    """Return the best requests per second of some repetitions."""
    best = np.inf
    for _ in range(repetitions):
        plane = Plane(requests, replica, replicas, routing)
        start = time.perf_counter()
        plane.advance()
        best = min(best, time.perf_counter() - start)
        assert np.isfinite(plane.outcome().finish_s).all()
    return len(requests) / best


def reference_rate(replicas: int, requests: int = 3_000) -> float:
    """Return the requests per second of the SimPy reference."""
    some = demand(requests, REPLICA, replicas)
    start = time.perf_counter()
    play(some, REPLICA, replicas, "least-outstanding")
    return requests / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    Plane(demand(10, REPLICA, 1), REPLICA, 1).advance()  # compile
    slow = reference_rate(1)
    print(f"{'replicas':>8} {'noise':>6} {'output':>7} {'':22} {'requests/s':>12} {'x SimPy':>8}")
    print(f"{1:>8} {0:>6} {OUTPUT:>7} {'SimPy reference':22} {slow:>12,.0f} {1:>8}")
    noisy = replace(REPLICA, noise_cv=0.03)
    growing = replace(REPLICA, kv_per_token_s=1e-8)
    tight = replace(REPLICA, kv_blocks=1_500)
    rows = [
        (1, REPLICA, OUTPUT, "least-outstanding", ""),
        (64, REPLICA, OUTPUT, "least-outstanding", ""),
        (256, REPLICA, OUTPUT, "least-outstanding", ""),
        (1, noisy, OUTPUT, "least-outstanding", ""),
        (64, noisy, OUTPUT, "least-outstanding", ""),
        (256, noisy, OUTPUT, "least-outstanding", ""),
        (1, REPLICA, 2_048, "least-outstanding", ""),
        (64, REPLICA, OUTPUT, "round-robin", "round-robin"),
        (64, REPLICA, OUTPUT, "two-choices", "two-choices"),
        (1, growing, OUTPUT, "least-outstanding", "kv_per_token 10 ns"),
        (1, tight, OUTPUT, "least-outstanding", "KV full, preempting"),
    ]
    rates = {}
    for replicas, replica, output, routing, remark in rows:
        some = demand(options.requests, replica, replicas, output)
        found = rate(some, replica, replicas, routing, options.repetitions)
        rates[replicas, replica.noise_cv, output, remark] = found
        print(f"{replicas:>8} {replica.noise_cv:>6} {output:>7} {remark:22} {found:>12,.0f} {found / slow:>8,.0f}")
    growth = rates[1, 0.0, OUTPUT, ""] / rates[1, 0.0, 2_048, ""]
    print(f"\nwork per request, output 2,048 against 128: {growth:.2f} x")


if __name__ == "__main__":
    main()
