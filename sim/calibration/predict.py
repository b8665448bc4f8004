"""What a calibrated system will measure in a run that was not made: median and interval, for a run as short as that.

Three sources of chance are drawn together: the parameters (the fit's covariance), the run itself (arrivals, lengths,
noise), and what the model leaves over, as wide as the fit's own residuals in the same kind of figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fleetcast.sim.calibration.bench import Bench, Key, play
from fleetcast.sim.calibration.fit import Fit, family

KEEPS_UP = 0.85  # a run that answered less than this share of its rate was overloaded


@dataclass(frozen=True)
class Prediction:
    """One figure of a run: median and the bounds of the interval, and what was measured if anything was."""

    bench: str
    metric: str
    statistic: str
    value: float
    low: float
    high: float
    measured: float | None

    @property
    def error(self) -> float:
        """Predicted over measured, minus one; NaN where nothing was measured."""
        return self.value / self.measured - 1.0 if self.measured else float("nan")

    @property
    def covered(self) -> bool:
        """Whether the interval holds what was measured."""
        return self.measured is not None and self.low <= self.measured <= self.high


def predict(
    fit: Fit, bench: Bench, keys: Sequence[Key] | None = None, runs: int = 60, level: float = 0.9, seed: int = 0
) -> list[Prediction]:
    """Return the figures *keys* (left out: the measured ones) of *bench* as the calibrated system would give them."""
    wanted = list(bench.figures if keys is None else keys)
    bench = as_run(fit, bench)
    rng = np.random.Generator(np.random.PCG64([seed, 99]))
    rows = []
    for run, x in enumerate(fit.vectors(runs, seed)):
        found = play(bench, fit.shape.replica(x), 5_000 + run, False, wanted)
        rows.append([found[key] for key in wanted])
    table = np.array(rows)
    table *= np.exp(
        np.array([fit.discrepancy.get(family(key), 0.03) for key in wanted]) * rng.standard_normal(table.shape)
    )
    middle = play_middle(fit, bench, wanted)
    edge = (1.0 - level) / 2.0
    low, high = np.nanquantile(table, [edge, 1.0 - edge], axis=0)
    return [
        Prediction(bench.name, *key, float(value), float(min(a, value)), float(max(b, value)), bench.figures.get(key))
        for key, value, a, b in zip(wanted, middle, low, high, strict=True)
    ]


def play_middle(fit: Fit, bench: Bench, keys: Sequence[Key], runs: int = 9) -> np.ndarray:
    """Return the median over *runs* replays of *bench* at the best vector."""
    replica = fit.shape.replica(fit.x)
    table = [
        [found[key] for key in keys] for found in (play(bench, replica, 9_000 + s, False, keys) for s in range(runs))
    ]
    return np.asarray(np.nanmedian(np.array(table), axis=0))


def as_run(fit: Fit, bench: Bench) -> Bench:
    """Return *bench* with what its load was in truth: the client's gap, the rate at which requests really came.

    The gap is interpolated between the closed loops that were fitted. Exponential gaps of a few hundred requests miss
    their rate by percents, and the length of the run tells by how much, as long as the system kept up: the rate is the
    one at which the played run lasts as long.
    """
    if bench.kind == "closed" and not bench.think_s:
        known = sorted((one.load, one.think_s) for one in fit.benches if one.kind == "closed")
        if known:
            gap = float(np.interp(bench.load, [row[0] for row in known], [row[1] for row in known]))
            return replace(bench, think_s=gap)
    rate = bench.request_rate
    drawn = bench.kind == "open" and bench.arrivals == "poisson" and not bench.same_span and bench.arrival_s is None
    if not drawn or rate is None or rate < KEEPS_UP * bench.load:
        return bench
    key = ("request_rate", "mean")
    replica = fit.shape.replica(fit.x)
    steady = replace(bench, same_span=True)
    for _ in range(4):
        played = float(np.mean([play(steady, replica, 700 + seed, True, [key])[key] for seed in range(5)]))
        steady = replace(steady, load=steady.load * rate / played)
    unlikely = abs(steady.load / bench.load - 1.0) > 3.0 / np.sqrt(bench.requests)
    return bench if unlikely else steady
