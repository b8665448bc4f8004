"""Laws for token counts, and pairs of them: what a prompt and its answer measure where no trace says so.

A law draws one length, a `LengthModel` pairs of (input, output). The pair is drawn through a Gaussian copula, so that
both have exactly their own law and the rank correlation asked for. What no pair of laws can say (chat answers have two
modes whose shares change with the prompt) is better drawn from recorded pairs. Lengths beyond a law's bounds are drawn
again, not clipped: a clipped law piles up at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetcast.errors import ScenarioError, suggest

MOST_LENGTH = 10_000_000
"""The longest prompt or answer that is taken for one: the largest context windows announced hold 10 M tokens."""

_CHUNK = 1 << 20  # pairs drawn at once, which bounds the memory

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """One law of lengths.

    `kind` and its parameters: fixed (value) · uniform (min, max) · normal (mean, sd) · lognormal (mean, cv) ·
    exponential (mean) · gamma (mean, cv) · weibull (mean, shape) · pareto-lognormal (share, from, alpha, mean, cv: the
    *share* of the lengths in a Pareto tail from `from` on, the rest lognormal) · histogram (edges, weights: uniform
    inside a bin) · quantiles (shares, tokens: straight lines in the logarithm between). `low` and
    `high` bound what is drawn.
    """

    kind: str
    parameters: Mapping[str, Any]
    low: int = 1
    high: int = MOST_LENGTH

    def quantile(self, u: Floats) -> Floats:
        """Return the lengths below which the shares *u* of the untruncated law lie."""
        lengths: Floats = _QUANTILES[self.kind](self.parameters, u)
        return lengths

    def share_below(self, x: float) -> float:
        """Return the share of the untruncated law below *x*, by bisection."""
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if float(self.quantile(np.array([middle]))[0]) < x else (low, middle)
        return low

    def lengths(self, u: Floats) -> NDArray[np.int32]:
        """Return whole lengths at the shares *u* of the law between its bounds."""
        bottom, top = self.share_below(self.low - 0.5), self.share_below(self.high + 0.5)
        if top - bottom < 1e-9:
            raise ScenarioError(
                f"{self.kind} law between {self.low:,} and {self.high:,} tokens",
                why="the law has next to nothing between its bounds",
                fix="widen `min` and `max`",
            )
        drawn = np.rint(self.quantile(bottom + u * (top - bottom)))
        return np.clip(drawn, self.low, self.high).astype(np.int32)


@dataclass(frozen=True)
class LengthModel:
    """Pairs of lengths: two laws and the rank correlation between them, or weighted pairs (`buckets`)."""

    name: str
    input: Law | None = None
    output: Law | None = None
    rank_correlation: float = 0.0
    buckets: tuple[tuple[int, int, float], ...] = ()
    most_together: int | None = None
    source: str = ""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return *n* pairs (inputs, outputs); `most_together` draws an answer's place again within what is left."""
        if self.buckets:
            table = np.array([pair[:2] for pair in self.buckets], np.int32)
            weight = np.array([pair[2] for pair in self.buckets])
            rows = rng.choice(len(table), n, p=weight / weight.sum())
            return table[rows, 0], table[rows, 1]
        if self.input is None or self.output is None:
            raise ScenarioError(f"length model {self.name!r} has no laws", fix="write both [input] and [output]")
        from scipy.special import ndtr

        normal = 2 * math.sin(math.pi * self.rank_correlation / 6)  # Pearson of the scores, for Spearman of the ranks
        inputs, outputs = np.empty(n, np.int32), np.empty(n, np.int32)
        for first in range(0, n, _CHUNK):
            last = min(first + _CHUNK, n)
            one = rng.standard_normal(last - first)
            other = normal * one + math.sqrt(1 - normal**2) * rng.standard_normal(last - first)
            inputs[first:last], outputs[first:last] = self.input.lengths(ndtr(one)), self.output.lengths(ndtr(other))
        if self.most_together is not None:
            outputs = np.minimum(outputs, np.maximum(self.most_together - inputs, 1)).astype(np.int32)
        return inputs, outputs


def law_from(table: object, where: str) -> Law:
    """Return the law that a table such as `{law = "lognormal", mean = 800, cv = 1.1, max = 8192}` describes."""
    if isinstance(table, int) and not isinstance(table, bool):
        table = {"law": "fixed", "value": table}
    if not isinstance(table, Mapping):
        raise ScenarioError(f"{where} = {table!r}", why="a law is a table", fix='write {law = "fixed", value = 100}')
    given = dict(table)
    kind = given.pop("law", None)
    if kind not in PARAMETERS:
        raise ScenarioError(f"{where}: law = {kind!r}", fix=suggest(str(kind), PARAMETERS))
    bounds = {}
    for name, key, default in (("min", "low", 1), ("max", "high", MOST_LENGTH)):
        value = default if kind == "uniform" else given.pop(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_LENGTH:
            raise ScenarioError(f"{where}: {name} = {value!r}", why=f"tokens are whole, 0 to {MOST_LENGTH:,}")
        bounds[key] = value
    wanted = PARAMETERS[kind]
    for name in given:
        if name not in wanted:
            raise ScenarioError(f"{where}: {kind} has no `{name}`", fix=suggest(name, (*wanted, "min", "max")))
    for name in wanted:
        if name not in given:
            raise ScenarioError(f"{where}: {kind} needs `{name}`", fix=f"its parameters: {', '.join(wanted)}")
        _check(given[name], name, f"{where}: {name}")
    law = Law(kind, given, **bounds)
    _check_shape(law, where)
    return law


def law_table(law: Law) -> dict[str, Any]:
    """Return *law* as the table that `law_from` reads."""
    table: dict[str, Any] = {"law": law.kind, **law.parameters}
    if law.kind != "uniform":
        table |= {"min": law.low} if law.low != 1 else {}
        table |= {"max": law.high} if law.high != MOST_LENGTH else {}
    return table


def model_from(table: Mapping[str, Any], where: str) -> LengthModel:
    """Return the length model of a table: `preset`, or `input` and `output` laws, or `bucket` pairs."""
    known = ("preset", "input", "output", "rank_correlation", "bucket", "most_together", "source", "name")
    for name in table:
        if name not in known:
            raise ScenarioError(f"{where}: no key `{name}`", fix=suggest(name, known))
    if "preset" in table:
        return preset(str(table["preset"]))
    if "bucket" in table:
        return LengthModel(str(table.get("name", "buckets")), buckets=_buckets(table["bucket"], where))
    for name in ("input", "output"):
        if name not in table:
            raise ScenarioError(f"{where}: `{name}` is missing", fix=f'write {where}.{name}, or preset = "chat"')
    rank = table.get("rank_correlation", 0.0)
    if not isinstance(rank, int | float) or isinstance(rank, bool) or not -1 < rank < 1:
        raise ScenarioError(f"{where}: rank_correlation = {rank!r}", why="it lies between -1 and 1")
    most = table.get("most_together")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 2):
        raise ScenarioError(f"{where}: most_together = {most!r}", why="a context holds two tokens or more")
    return LengthModel(
        str(table.get("name", "laws")),
        law_from(table["input"], f"{where}.input"),
        law_from(table["output"], f"{where}.output"),
        float(rank),
        most_together=most,
        source=str(table.get("source", "")),
    )


def model_table(model: LengthModel) -> dict[str, Any]:
    """Return *model* as the table that `model_from` reads."""
    if model.name in PRESETS and PRESETS[model.name] == model:
        return {"preset": model.name}
    if model.buckets:
        return {"bucket": [{"input": i, "output": o, "weight": w} for i, o, w in model.buckets]}
    assert model.input is not None and model.output is not None
    table = {"input": law_table(model.input), "output": law_table(model.output)}
    return {
        **table,
        "rank_correlation": model.rank_correlation,
        **({"most_together": model.most_together} if model.most_together else {}),
        **({"source": model.source} if model.source else {}),
    }


def preset(name: str) -> LengthModel:
    """Return a named length model; ScenarioError lists them."""
    if name not in PRESETS:
        raise ScenarioError(f"no length preset named {name!r}", fix=suggest(name, PRESETS))
    return PRESETS[name]


def _buckets(value: object, where: str) -> tuple[tuple[int, int, float], ...]:
    rows = value if isinstance(value, list) else []
    found = []
    for place, row in enumerate(rows):
        said = f"{where}.bucket[{place}]"
        try:
            pair = (int(row["input"]), int(row["output"]), float(row.get("weight", 1)))
        except (KeyError, TypeError, ValueError):
            raise ScenarioError(f"{said} = {row!r}", fix="write {input = 128, output = 64, weight = 25}") from None
        if not (0 <= pair[0] <= MOST_LENGTH and 1 <= pair[1] <= MOST_LENGTH and 0 <= pair[2] < math.inf):
            raise ScenarioError(f"{said} = {row!r}", why=f"tokens are at most {MOST_LENGTH:,}, outputs 1 or more")
        found.append(pair)
    if not sum(weight for *_, weight in found) > 0:
        raise ScenarioError(f"{where}: no bucket has a weight", fix="write {input = 128, output = 64, weight = 25}")
    return tuple(found)


def _check(value: Any, name: str, where: str) -> None:
    several = name in ("edges", "weights", "shares", "tokens")
    values = value if isinstance(value, list | tuple) and several else [value]
    if several and not isinstance(value, list | tuple):
        raise ScenarioError(f"{where} = {value!r}", why="this is a list of numbers", fix="write [1, 100, 1000]")
    for number in values:
        good = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        if not good or number < 0 or (number == 0 and name in ("mean", "cv", "shape", "alpha", "sd", "from")):
            raise ScenarioError(f"{where} = {number!r}", why="this is not a finite number above 0", fix="correct it")


def _check_shape(law: Law, where: str) -> None:
    given = law.parameters
    if law.kind in ("histogram", "quantiles"):
        x, y = (given["edges"], given["weights"]) if law.kind == "histogram" else (given["tokens"], given["shares"])
        wanted = len(x) - 1 if law.kind == "histogram" else len(x)
        rising = all(a <= b for a, b in pairwise(x))
        if len(y) != wanted or len(x) < 2 or not rising or not sum(y) > 0:
            raise ScenarioError(
                f"{where}: {law.kind} of {len(x)} and {len(y)} values", why="edges rise, one weight a bin"
            )
        if law.kind == "quantiles" and (y[0], y[-1]) != (0, 1):
            raise ScenarioError(f"{where}: shares {y[0]:g} to {y[-1]:g}", why="shares go from 0 to 1")
    if law.kind == "uniform" and given["min"] > given["max"]:
        raise ScenarioError(f"{where}: min = {given['min']:g} is above max = {given['max']:g}")
    if law.kind == "pareto-lognormal" and not 0 <= given["share"] <= 1:
        raise ScenarioError(f"{where}: share = {given['share']:g}", why="a share is between 0 and 1")
    if law.low > law.high:
        raise ScenarioError(f"{where}: min = {law.low:,} is above max = {law.high:,}")


# --- quantile functions ----------------------------------------------------------------------------------


def _scores(u: Floats) -> Floats:
    from scipy.special import ndtri

    scores: Floats = ndtri(np.clip(u, 1e-15, 1 - 1e-15))
    return scores


def _lognormal(p: Mapping[str, Any], u: Floats) -> Floats:
    variance = math.log1p(p["cv"] ** 2)
    log: Floats = math.log(p["mean"]) - variance / 2 + math.sqrt(variance) * _scores(u)
    lengths: Floats = np.exp(log)
    return lengths


def _gamma(p: Mapping[str, Any], u: Floats) -> Floats:
    from scipy.special import gammaincinv

    shape = 1 / p["cv"] ** 2
    drawn: Floats = gammaincinv(shape, np.minimum(u, 1 - 1e-15)) * (p["mean"] / shape)
    return drawn


def _weibull(p: Mapping[str, Any], u: Floats) -> Floats:
    drawn: Floats = (-np.log1p(-np.minimum(u, 1 - 1e-15))) ** (1 / p["shape"])
    drawn *= p["mean"] / math.gamma(1 + 1 / p["shape"])
    return drawn


def _pareto_lognormal(p: Mapping[str, Any], u: Floats) -> Floats:
    """The mixture's quantiles, by bisection on the sum of both distribution functions."""
    from scipy.special import ndtr

    variance = math.log1p(p["cv"] ** 2)
    mu, sigma = math.log(p["mean"]) - variance / 2, math.sqrt(variance)
    low, high = np.full(u.shape, -2.0), np.full(u.shape, 40.0)  # of the logarithm
    for _ in range(60):
        middle = (low + high) / 2
        tail = np.where(middle > math.log(p["from"]), -np.expm1(-p["alpha"] * (middle - math.log(p["from"]))), 0.0)
        below = (1 - p["share"]) * ndtr((middle - mu) / sigma) + p["share"] * tail
        low, high = np.where(below < u, middle, low), np.where(below < u, high, middle)
    lengths: Floats = np.minimum(np.exp(high), 1e12)
    return lengths


def _histogram(p: Mapping[str, Any], u: Floats) -> Floats:
    so_far = np.concatenate(([0.0], np.cumsum(np.asarray(p["weights"], np.float64))))
    return np.interp(u, so_far / so_far[-1], np.asarray(p["edges"], np.float64))


_QUANTILES: Mapping[str, Callable[[Mapping[str, Any], Floats], Any]] = {
    "fixed": lambda p, u: np.full(u.shape, float(p["value"])),
    "uniform": lambda p, u: p["min"] - 0.5 + u * (p["max"] - p["min"] + 1),
    "normal": lambda p, u: p["mean"] + p["sd"] * _scores(u),
    "lognormal": _lognormal,
    "exponential": lambda p, u: -p["mean"] * np.log1p(-np.minimum(u, 1 - 1e-15)),
    "gamma": _gamma,
    "weibull": _weibull,
    "pareto-lognormal": _pareto_lognormal,
    "histogram": _histogram,
    "quantiles": lambda p, u: np.exp(np.interp(u, p["shares"], np.log(np.maximum(p["tokens"], 0.5)))),
}
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("value",),
    "uniform": ("min", "max"),
    "normal": ("mean", "sd"),
    "lognormal": ("mean", "cv"),
    "exponential": ("mean",),
    "gamma": ("mean", "cv"),
    "weibull": ("mean", "shape"),
    "pareto-lognormal": ("share", "from", "alpha", "mean", "cv"),
    "histogram": ("edges", "weights"),
    "quantiles": ("shares", "tokens"),
}


def _quantiles(tokens: tuple[int, ...]) -> Law:
    """A law through min, p1, p25, p50, p75, p90, p95, p99, p99.9 and max."""
    shares = (0.0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
    return Law("quantiles", {"shares": list(shares), "tokens": list(tokens)}, low=tokens[0], high=tokens[-1])


def _through(shares: tuple[float, ...], tokens: tuple[int, ...]) -> Law:
    return Law("quantiles", {"shares": list(shares), "tokens": list(tokens)}, low=tokens[0], high=tokens[-1])


PRESETS: Mapping[str, LengthModel] = {
    model.name: model
    for model in (
        LengthModel(
            "chat",
            _quantiles((2, 29, 396, 1020, 1189, 2734, 4083, 4142, 6179, 14_050)),
            _quantiles((7, 16, 85, 129, 395, 424, 451, 601, 954, 1_000)),
            0.07,
            source="Azure LLM inference trace 2023, conv: 19,366 requests (CC-BY-4.0); own computation, November 2026",
        ),
        LengthModel(
            "code",
            _quantiles((3, 17, 578, 1469, 2744, 5187, 7303, 7436, 7437, 7_437)),
            _quantiles((6, 6, 9, 13, 24, 55, 90, 251, 825, 1_899)),
            -0.02,
            source="Azure LLM inference trace 2023, code: 8,819 requests (CC-BY-4.0); own computation, November 2026",
        ),
        LengthModel(
            "rag",
            _quantiles((1052, 1052, 2754, 3139, 3436, 3958, 4425, 5438, 6432, 7_712)),
            _quantiles((7, 36, 131, 234, 385, 563, 670, 891, 1182, 2_183)),
            0.42,
            source="RAGPulse: 7,106 requests in seven days of September 2025 (MIT); own computation, November 2026",
        ),
        LengthModel(
            "summarise",
            Law("lognormal", {"mean": 2588, "cv": 0.3}, high=3_800),
            Law("lognormal", {"mean": 291, "cv": 0.6}, high=1_024),
            -0.46,
            most_together=4_096,
            source="arXiv summaries in the Vidur simulator: 28,257 pairs, means and correlation; the spread (cv 0.3 "
            "and 0.6, within 4,096 tokens) is assumed",
        ),
        LengthModel(
            "reasoning",
            _through((0.0, 0.5, 0.9, 0.99, 1.0), (4, 208, 2_092, 23_423, 65_536)),
            _through((0.0, 0.5, 0.9, 0.99, 1.0), (16, 792, 3_432, 12_607, 32_768)),
            0.0,
            source="ServeGen, deepseek-r1, 73 clients of one day (Apache-2.0): p50, p90 and p99; the ends and the "
            "independence of prompt and answer are assumed",
        ),
        LengthModel(
            "agent",
            Law("lognormal", {"mean": 3041, "cv": 0.6}),
            Law("lognormal", {"mean": 425, "cv": 0.6}),
            0.0,
            source="agent workload of a published NVFP4 benchmark on one GB10: mean prompt 3,041, mean answer about "
            "425; the spread (cv 0.6) and the independence are assumed",
        ),
    )
}
