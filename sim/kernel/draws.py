"""Random numbers keyed by counters: the same key gives the same number, however the work is cut.

SplitMix64 (Steele, Lea, Flood 2014) turns a key into bits; Marsaglia and Tsang (2000) turn normals into Gamma draws.
"""

from __future__ import annotations

import math

import numpy as np

from fleetcast.sim.kernel.jit import INNER, OUTER

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11, _1 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11), np.uint64(1)


@INNER
def mix64(x):
    """Return 64 well-mixed bits of the uint64 *x*."""
    x = (x ^ (x >> _30)) * _A
    x = (x ^ (x >> _27)) * _B
    return x ^ (x >> _31)


@INNER
def uniform(x):
    """Return a number in (0, 1) from 64 bits."""
    return (np.float64(x >> _11) + 0.5) * 1.1102230246251565e-16


@OUTER
def gamma(key, shape):
    """Return a Gamma(*shape*, 1) draw for the uint64 *key*; shape > 0."""
    boost = shape < 1.0
    d = shape + 1.0 - 1.0 / 3.0 if boost else shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    state = key
    v = 1.0
    while True:
        state = state + GOLDEN
        radius = math.sqrt(-2.0 * math.log(uniform(mix64(state))))
        state = state + GOLDEN
        x = radius * math.cos(6.283185307179586 * uniform(mix64(state)))
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        state = state + GOLDEN
        u = uniform(mix64(state))
        if u < 1.0 - 0.0331 * x * x * x * x or math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            break
    if boost:
        state = state + GOLDEN
        return d * v * math.pow(uniform(mix64(state)), 1.0 / shape)
    return d * v


@OUTER
def beta(key, a, b):
    """Return a Beta(*a*, *b*) draw for the uint64 *key*."""
    x = gamma(key, a)
    y = gamma(mix64(key ^ _A), b)
    return x / (x + y)
