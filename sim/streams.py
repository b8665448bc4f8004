"""Named random streams: one seed, an independent child for every source, world and run.

A child depends on its names alone, so adding a source does not shift the others, and every candidate that is played
with one seed meets the same arrivals, lengths and network (common random numbers).
"""

from __future__ import annotations

import zlib

import numpy as np

SOURCES = (
    "day",
    "arrivals",
    "lengths",
    "routing",
    "noise",
    "profile",
    "network there",
    "network back",
    "think",
    "turns",
)


def _seed(seed: int, source: str, run: int, world: str) -> np.random.SeedSequence:
    if source not in SOURCES:
        raise ValueError(f"no random stream named {source!r}")
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(source.encode()), zlib.crc32(world.encode()), run))


def stream(seed: int, source: str, run: int, world: str = "days") -> np.random.Generator:
    """Return the generator of *source* in *run*; *world* keeps the days that choose a fleet from those that judge."""
    return np.random.Generator(np.random.PCG64(_seed(seed, source, run, world)))


def key(seed: int, source: str, run: int, world: str = "days") -> int:
    """Return a 64-bit key for draws that are keyed by counters."""
    return int(_seed(seed, source, run, world).generate_state(1, np.uint64)[0])
