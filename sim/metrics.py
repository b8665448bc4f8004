"""From many days to the metrics of the result: each an Estimate over all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from fleetcast.sim import estimate as est
from fleetcast.sim.cost import Bill
from fleetcast.sim.estimate import Estimate
from fleetcast.sim.kernel import bin_edges
from fleetcast.sim.replicate import Day
from fleetcast.units import HOUR

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
LATENCIES = ("ttft", "tpot", "e2e")


def latency_metrics(days: Sequence[Day], noise_cv: float) -> dict[str, Estimate]:
    """Return percentiles and means of TTFT, TPOT, ITL and E2E, pooled over the runs."""
    found: dict[str, Estimate] = {}
    for latency in LATENCIES:
        runs = [getattr(day, f"{latency}_s") for day in days]
        for name, estimate in zip(QUANTILES, est.percentiles(runs, list(QUANTILES.values())), strict=True):
            found[f"{name}({latency})"] = estimate
        found[f"mean({latency})"] = est.pooled_mean(runs)
    names = [*QUANTILES, "mean"]
    for name, estimate in zip(names, _token_metrics(days, noise_cv, names), strict=True):
        found[f"{name}(itl)"] = estimate
    return found


def token_counts(days: Sequence[Day], noise_cv: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (runs, bins) tokens by the time of their iteration and the bins' edges, cut to the bins in use.

    The kernel counts an iteration at its time without noise; the law of the noise is laid over the counts here, on the
    logarithm, where it is the same for every bin.
    """
    counts = np.stack([day.histogram for day in days])
    edges = bin_edges()
    used = np.flatnonzero(counts.any(axis=0))
    if len(used) == 0:
        return counts[:, :1], edges[:2]
    if noise_cv <= 0:
        return counts[:, used[0] : used[-1] + 1], edges[used[0] : used[-1] + 2]
    return _blurred(counts, edges, used, noise_cv)


BLUR_RATIO = 1.004
BLUR_TAIL = 1e-9


def _blurred(
    counts: NDArray[np.int64], edges: NDArray[np.float64], used: NDArray[np.intp], noise_cv: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Multiply every token's time by a Gamma of mean one: a convolution on a grid of equal ratios."""
    law = gamma(noise_cv**-2, scale=noise_cv**2)
    reach = np.log(law.isf(BLUR_TAIL)), -np.log(max(law.ppf(BLUR_TAIL), 1e-6))
    up, down = (int(np.ceil(r / np.log(BLUR_RATIO))) for r in reach)
    offsets = np.arange(-down, up + 1)
    kernel = np.diff(law.cdf(BLUR_RATIO ** (np.append(offsets, up + 1) - 0.5)))
    kernel /= kernel.sum()
    low = np.log(edges[used[0]])
    middle = (np.log(edges[used]) + np.log(edges[used + 1])) / 2
    at = np.rint((middle - low) / np.log(BLUR_RATIO)).astype(np.int64)
    found = []
    for run in counts:
        grid = np.bincount(at, weights=run[used], minlength=int(at.max()) + 1)
        spread = np.cumsum(np.convolve(grid, kernel))
        found.append(np.diff(np.rint(spread), prepend=0.0))  # rounded sums: no token is lost
    size = found[0].size
    steps = np.arange(size + 1) - down - 0.5
    return np.stack(found).astype(np.int64), np.exp(low + steps * np.log(BLUR_RATIO))


FLEET = (
    "offered", "completed", "rejected", "unfinished", "errors", "goodput", "throughput", "request_rate", "batch",
    "utilisation", "occupancy_full", "preemptions", "replica_hours",
)  # fmt: skip
"""Metrics of the whole fleet that need no bill; counts and hours are means per run."""


def fleet_metric(days: Sequence[Day], name: str) -> Estimate:
    """Return one of FLEET."""

    def column(field: str) -> NDArray[np.float64]:
        return np.array([getattr(day, field) for day in days], dtype=np.float64)

    def occupancy() -> NDArray[np.float64]:
        return np.stack([day.occupancy.sum(axis=0) for day in days])

    runs = len(days)
    match name:
        case "errors":
            return est.share(column("offered") - column("completed"), column("offered"))
        case "goodput":
            return est.share(column("good"), column("offered"))
        case "throughput":
            return est.ratio(column("output_tokens"), column("span_s"), n=runs)
        case "request_rate":
            return est.ratio(column("completed"), column("span_s"), n=runs)
        case "batch":
            seconds = occupancy()
            return est.ratio(seconds @ np.arange(seconds.shape[1]), column("busy_s"), n=runs)
        case "utilisation":
            return _at_most_all(est.ratio(column("busy_s"), _replica_s(days), n=runs))
        case "occupancy_full":
            return _at_most_all(est.ratio(occupancy()[:, -1], column("busy_s"), n=runs))
        case "replica_hours":
            return est.ratio(_replica_s(days) / HOUR, np.ones(runs), n=runs)
        case _:
            return est.ratio(column(name), np.ones(runs), n=runs)


def _at_most_all(share: Estimate) -> Estimate:
    """Cut a share of time, and its interval, at all of it."""
    value, low, high = (None if part is None else min(part, 1.0) for part in (share.value, share.low, share.high))
    return replace(share, value=value, low=low, high=high)


def _replica_s(days: Sequence[Day]) -> NDArray[np.float64]:
    return np.array([sum(day.lives_s) for day in days])


def fleet_metrics(days: Sequence[Day], bill: Bill) -> dict[str, Estimate]:
    """Return every metric of the fleet and of its bill."""
    found = {name: fleet_metric(days, name) for name in FLEET}
    return {**found, "cost": bill.usd_per_mtok, "cost_per_day": bill.usd_per_day}


def metric_of(days: Sequence[Day], metric: str, noise_cv: float, *, enough: bool = True) -> Estimate:
    """Return a single metric that needs no bill; without *enough*, a percentile of however few samples."""
    statistic, _, latency = metric.rstrip(")").partition("(")
    if not latency:
        return fleet_metric(days, metric)
    if latency == "itl":
        return _token_metrics(days, noise_cv, [statistic], enough)[0]
    runs = [getattr(day, f"{latency}_s") for day in days]
    if statistic == "mean":
        return est.pooled_mean(runs)
    return est.percentiles(runs, [QUANTILES[statistic]], enough=enough)[0]


def _token_metrics(
    days: Sequence[Day], noise_cv: float, statistics: Sequence[str], enough: bool = True
) -> list[Estimate]:
    counts, edges = token_counts(days, noise_cv)
    quantiles = [QUANTILES[name] for name in statistics if name != "mean"]
    found = iter(est.histogram_quantiles(counts, edges, quantiles, enough=enough) if quantiles else [])
    tokens = counts.sum(axis=1)
    seconds = counts @ np.sqrt(edges[1:] * edges[:-1])
    mean = est.ratio(seconds, tokens, n=int(tokens.sum()), note=est.NO_SAMPLES)
    return [mean if name == "mean" else next(found) for name in statistics]
