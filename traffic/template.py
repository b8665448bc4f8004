"""A day made from published figures, for those who have no trace of their own yet.

`weekday` is 24 hours of a light inference tier whose model holds 1,024 tokens of context. Its rate follows
the hour of the day, wanders from minute to minute, and is Poisson below that; prompts and answers are drawn
as pairs, and lean on the rate as they do in the trace they come from. Left out: sessions, tenants, outages,
and burstiness inside a minute.

Sources, as read in November 2026: - RAGPulse: 7,106 requests in seven days of September 2025, hours UTC+8
(MIT); own count. - BurstGPT_1: mean requests per hour of the day over 61 days, hours UTC+8 (CC-BY-4.0);
published analysis. - Azure LLM inference trace 2023, conv: 19,366 requests in 58 minutes of 16 November
2023 (CC-BY-4.0); own computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError, suggest
from fleetcast.traffic.arrivals import spread
from fleetcast.traffic.trace import Trace, make_trace
from fleetcast.units import DAY

MOST_RATE = 500.0
"""The highest mean rate of a day: 43 million requests, for which some 4 GB of memory are needed."""

STREAMS = ("rate", "arrivals", "lengths")
"""The sources of randomness, each with a stream of its own; a new one goes to the end."""

NOMINAL_START = datetime(2026, 1, 7)
"""A Wednesday, so that plots have a clock; the day is none in particular."""

# Requests by hour of the day, from 00:00 (RAGPulse, all seven days; BurstGPT_1, mean).
RAGPULSE_HOURS = (46, 16, 9, 4, 3, 4, 4, 15, 33, 43, 64, 66, 54, 60, 68, 70, 63, 54, 62, 66, 55, 52, 58, 47)
BURSTGPT_HOURS = (
    940, 893, 572, 513, 368, 342, 194, 153, 178, 416, 879, 1287,
    1744, 1501, 1796, 1401, 1476, 1356, 1181, 1568, 1353, 1175, 1129, 1026,
)  # fmt: skip

# Counts per minute of Azure conv: mean 332, index of dispersion 16.4, lag-1 autocorrelation 0.85. Less the
# Poisson part (an index of 1, uncorrelated) that leaves the rate a coefficient of variation of sqrt(15.4 /
# 332) = 0.215 and a lag-1 autocorrelation of 0.85 * 16.4 / 15.4 = 0.905.
MINUTE_CV = 0.215
MINUTE_CORRELATION = 0.905

# Input tokens of Azure conv by quantile, and output tokens by quantile for each quartile of the input. The
# answers have two modes (around 100 and 400) whose shares change with the prompt's length up and down
# again: median output by input quartile 98, 109, 406, 89.
INPUT_SHARES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1)
INPUT_TOKENS = (2, 29, 181, 207, 396, 1020, 1189, 2734, 4083, 4142, 6179, 14050)
OUTPUT_SHARES = (0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1)
OUTPUT_TOKENS = (
    (7, 12, 18, 50, 74, 98, 161, 202, 217, 253, 1000, 1000),
    (10, 42, 72, 82, 92, 109, 388, 416, 441, 568, 662, 921),
    (28, 49, 120, 375, 394, 406, 429, 495, 559, 666, 993, 1000),
    (15, 27, 35, 41, 55, 89, 150, 330, 408, 511, 755, 954),
)

# Azure conv has prompts of 1,155 and answers of 211 tokens on average; these factors make them about 250
# and 100, within a context of 1,024 tokens of which a prompt leaves the answer at least 64.
INPUT_SCALE = 0.211
OUTPUT_SCALE = 0.475
CONTEXT = 1_024
LONGEST_INPUT = CONTEXT - 64

# In busy minutes conv answers are shorter: so much does an answer's normal score, within its quartile of
# the input, correlate with its minute's count. (A prompt's does not: 0.02.)
OUTPUT_LEAN = -0.18


def make_day(template: str, mean_rate: float, seed: int) -> Trace:
    """Return 24 hours of traffic from 00:00 on, `mean_rate` requests per second on average."""
    if template not in TEMPLATES:
        raise ScenarioError(f"no traffic template named {template!r}", fix=suggest(template, TEMPLATES))
    _check(mean_rate, seed)
    streams = {
        name: np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        for number, name in enumerate(STREAMS)
    }
    return TEMPLATES[template](float(mean_rate), seed, streams)


def _check(mean_rate: float, seed: int) -> None:
    write = "write for example 10, for 864,000 requests in the day"
    if not (math.isfinite(mean_rate) and mean_rate > 0):
        raise ScenarioError(f"mean rate = {mean_rate!r}", why="a rate is a number of requests/s above 0", fix=write)
    if mean_rate > MOST_RATE:
        raise ScenarioError(
            f"mean rate = {mean_rate!r}",
            why=f"a day of {mean_rate * DAY:,.0f} requests does not fit into memory",
            fix=f"write at most {MOST_RATE:g}, and scale fleet and traffic alike",
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ScenarioError(f"seed = {seed!r}", why="a seed is a whole number, 0 or more", fix="write for example 0")


def _weekday(mean_rate: float, seed: int, streams: Mapping[str, np.random.Generator]) -> Trace:
    shape = hourly_shape()
    score = _wander(len(shape), streams["rate"])
    spread_of_log = math.sqrt(math.log1p(MINUTE_CV**2))
    wanted = shape * np.exp(spread_of_log * score)
    counts = streams["arrivals"].poisson(mean_rate * DAY * wanted / wanted.sum())
    if not counts.any():
        why = "not one request came in the whole day"
        raise ScenarioError(f"mean rate = {mean_rate!r}", why=why, fix="write for example 10")
    arrival_s = spread(counts, 0.0, streams["arrivals"])
    inputs, outputs = _lengths(np.repeat(score, counts), streams["lengths"])
    return make_trace(
        arrival_s,
        inputs,
        outputs,
        name="weekday",
        start=NOMINAL_START,
        recipe=f"template weekday, mean rate {mean_rate:g}/s, seed {seed}; the date is nominal",
    )


TEMPLATES: Mapping[str, Callable[[float, int, Mapping[str, np.random.Generator]], Trace]] = {"weekday": _weekday}


def hourly_shape() -> NDArray[np.float64]:
    """Return the rate in each minute of the weekday, relative to the day's mean.

    The mean of both published profiles, each relative to its own; smooth (monotone cubic interpolation of
    the requests so far, Fritsch and Butland 1984), and exact in every hour's total.
    """
    profiles = [np.array(hours) / np.mean(hours) for hours in (RAGPULSE_HOURS, BURSTGPT_HOURS)]
    hour = np.mean(profiles, axis=0)
    before, after = np.roll(hour, 1), np.roll(hour, -1)
    left = 2 * before * hour / (before + hour)  # the rate where hours meet is the harmonic mean of theirs
    right = 2 * hour * after / (hour + after)
    x = np.linspace(0, 1, 61)[:, None]
    so_far = hour * (3 * x**2 - 2 * x**3) + left * (x - 2 * x**2 + x**3) + right * (x**3 - x**2)
    shape: NDArray[np.float64] = 60 * np.diff(so_far, axis=0).T.ravel()
    return shape


def _wander(minutes: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a stationary first-order autoregression of standard normal scores."""
    steps = rng.standard_normal(minutes)
    steps[1:] *= math.sqrt(1 - MINUTE_CORRELATION**2)
    for minute in range(1, minutes):
        steps[minute] += MINUTE_CORRELATION * steps[minute - 1]
    return steps


def _lengths(busy: NDArray[np.float64], rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return a pair of lengths for each request, given the score of its minute's rate."""
    from scipy.special import ndtr

    share = rng.random(len(busy))
    score = rng.standard_normal(len(busy)) * math.sqrt(1 - OUTPUT_LEAN**2) + OUTPUT_LEAN * busy
    answer_share = ndtr(score)
    inputs = np.interp(share, INPUT_SHARES, INPUT_TOKENS) * INPUT_SCALE
    outputs = np.empty(len(busy))
    quartile = (4 * share).astype(np.int64)
    for number, tokens in enumerate(OUTPUT_TOKENS):
        rows = np.flatnonzero(quartile == number)
        outputs[rows] = np.interp(answer_share[rows], OUTPUT_SHARES, tokens) * OUTPUT_SCALE
    whole_inputs = np.clip(np.rint(inputs), 1, LONGEST_INPUT).astype(np.int32)
    whole_outputs = np.clip(np.rint(outputs), 1, CONTEXT - whole_inputs).astype(np.int32)
    return whole_inputs, whole_outputs
