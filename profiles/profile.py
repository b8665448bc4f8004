"""What was measured of one model on one instance: the profile file, as frozen types.

A profile states facts (the model, the hardware, the engine's limits, where the figures come from) and either operating
points of a benchmark, or a step model `[step]`, or both. Everything here is what the file says: nothing is fitted,
modelled or priced. Times are seconds and rates are per second once read; in the file a duration carries its unit.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from fleetcast.profiles import hardware as catalogue
from fleetcast.profiles.calibrated import Draws, Residual
from fleetcast.profiles.fields import (
    Amount,
    Count,
    Date,
    Duration,
    Mistake,
    Mixing,
    NotNegative,
    Positive,
    Rate,
    Share,
    Size,
    Table,
    Text,
    Whole,
)

__all__ = [
    "ASSUMED_TOKEN_CV",
    "EXAMPLES",
    "SCHEMA",
    "Assumption",
    "Duration",
    "Durations",
    "Engine",
    "Hardware",
    "Mistake",
    "Mixing",
    "Model",
    "Point",
    "Profile",
    "Provenance",
    "Share",
    "Source",
    "Step",
    "Table",
    "Text",
    "TokenCount",
]

SCHEMA = 1
ASSUMED_TOKEN_CV = 0.6  # of token counts whose mean alone was published: lognormal with this spread


@dataclass(frozen=True)
class Assumption:
    """Something a number rests on that was not measured: what, with which value, and who says so."""

    text: str
    value: str
    source: str


class Model(Table):
    """The model that was served; `active_parameters` is what one token uses of a mixture of experts."""

    name: Text
    parameters: Positive | None = None
    active_parameters: Positive | None = None
    precision: Text | None = None
    max_context: Whole | None = None
    kv_bytes_per_token: Size | None = None
    layers: Whole | None = None
    kv_heads: Whole | None = None
    head_dim: Whole | None = None

    @model_validator(mode="after")
    def _active_is_part(self) -> Self:
        if self.active_parameters and self.parameters and self.active_parameters > self.parameters:
            raise Mistake("active_parameters", self.active_parameters, "more than model.parameters")
        return self


class Hardware(Table):
    """Where it ran: an instance, and what of it was used (all of it unless `count` says less)."""

    instance: Text
    accelerator: Text | None = None
    count: Amount = 1

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in what the instance catalogue knows; refuse what contradicts it."""
        name = data.get("instance") if isinstance(data, dict) else None
        if not isinstance(name, str):
            return data
        if name.startswith("ml."):
            ec2 = name.removeprefix("ml.")
            raise Mistake("instance", name, "this is a SageMaker name; profiles carry EC2's", f'write "{ec2}"')
        known = catalogue.instances().get(name)
        if known is None:
            return data
        stated = data.get("accelerator")
        if isinstance(stated, str) and catalogue.knows_accelerator(stated):
            canonical = catalogue.accelerator(stated).name
            if not canonical.startswith(known.accelerator) and not known.accelerator.startswith(canonical):
                why = f"{name} has {known.count:g} × {known.accelerator}"
                raise Mistake("accelerator", stated, why, "correct the one or the other")
        count = data.get("count")
        if isinstance(count, int | float) and count > known.count:
            why = f"{name} has {known.count:g} × {known.accelerator}"
            raise Mistake("count", count, why, f"write count = {known.count:g} or a larger instance")
        return {"accelerator": known.accelerator, "count": known.count, **data}


class Engine(Table):
    """The serving engine and its limits; absent `kv_blocks` (of 16 tokens) are derived or unlimited.

    `assumed` names the keys of this table that nobody stated: a calibration may choose them.
    """

    name: Text | None = None
    version: Text | None = None
    policy: Literal["chunked", "prefill-first", "static", "dynamic", "no-evict"]
    max_num_seqs: Whole
    max_batched_tokens: Whole = 2_048
    max_prompts_per_iteration: Whole | None = None  # prefill-first
    batch_delay: Duration | None = None  # dynamic
    kv_blocks: Whole | None = None
    assumed: tuple[Literal["policy", "max_num_seqs"], ...] = ()


class Source(Table):
    """Who measured it and where that is written."""

    title: Text
    url: Text | None = None
    date: Date | None = None
    licence: Text | None = None
    command: Text | None = None


class Durations(Table):
    """What was published of a latency's distribution, in seconds; key "p99.9" is `p99_9`."""

    mean: Duration | None = None
    min: Duration | None = None
    p1: Duration | None = None
    p5: Duration | None = None
    p10: Duration | None = None
    p25: Duration | None = None
    p50: Duration | None = None
    p75: Duration | None = None
    p90: Duration | None = None
    p95: Duration | None = None
    p99: Duration | None = None
    p99_9: Annotated[Duration | None, Field(alias="p99.9")] = None
    max: Duration | None = None
    std: Duration | None = None

    ORDER: ClassVar = ("min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")

    @model_validator(mode="before")
    @classmethod
    def _is_a_table(cls, data: Any) -> Any:
        if isinstance(data, str | int | float):
            text = data if isinstance(data, str) else f"{data} ms"
            raise Mistake("", data, "say which figure this is", f'write {{ mean = "{text}" }} or {{ p50 = … }}')
        return data

    @model_validator(mode="after")
    def _rises(self) -> Self:
        last: tuple[str, float] | None = None
        for name in self.ORDER:
            value = getattr(self, name)
            if value is None:
                continue
            if last is not None and value < last[1]:
                raise Mistake(name.replace("_", "."), value, f"in seconds, less than {last[0]} = {last[1]:g}")
            last = (name, value)
        return self


class TokenCount(Table):
    """Tokens of a prompt or an answer: a mean with its spread, or a histogram (`tokens`, `count`)."""

    mean: NotNegative | None = None
    cv: NotNegative | None = None
    tokens: Annotated[tuple[NotNegative, ...], Field(min_length=1)] | None = None
    count: Annotated[tuple[NotNegative, ...], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_number(cls, data: Any) -> Any:
        if isinstance(data, int | float) and not isinstance(data, bool):
            return {"mean": data}
        if not isinstance(data, dict | cls):
            raise Mistake("", data, "a number of tokens is expected", "write 128 or { mean = 128, cv = 0.6 }")
        return data

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        fix = "write { mean = 128, cv = 0.6 } or { tokens = [64, 128], count = [3, 1] }"
        if self.tokens is None and self.count is None:
            if self.mean is None:
                raise Mistake("mean", None, "the mean is missing", fix)
        elif self.tokens is None or self.count is None or self.mean is not None or self.cv is not None:
            raise Mistake("", None, "a histogram is tokens and count, without mean and cv", fix)
        elif len(self.tokens) != len(self.count):
            raise Mistake("count", self.count, f"{len(self.tokens)} values of tokens need as many counts", fix)
        elif sum(self.count) == 0:
            raise Mistake("count", self.count, "all counts are 0", fix)
        return self

    @property
    def average(self) -> float:
        """Mean tokens a request."""
        if self.tokens is None or self.count is None:
            return self.mean or 0.0
        return math.fsum(t * c for t, c in zip(self.tokens, self.count, strict=True)) / math.fsum(self.count)

    @property
    def spread_is_assumed(self) -> bool:
        """True where only a mean was published, so that `ASSUMED_TOKEN_CV` stands for its spread."""
        return self.tokens is None and self.cv is None


class Provenance(Table):
    """The file a point was read from: the tool that wrote it, and what its bytes hash to."""

    tool: Text
    version: Text | None = None
    file: Text | None = None
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    date: Date | None = None
    command: Text | None = None


class Point(Table):
    """One benchmark run: how the load was applied, and what came out.

    `closed` keeps `concurrency` users busy, `open` sends requests at `rate`, `static` starts `batch` sequences together
    and waits for the last one: `latency` is then the time until the whole batch is done, which is no TTFT. Two points
    of one load are repeats. `requests` are the completed ones, `unfinished` those cut off when the run ended; `warmup`
    and `warmup_requests` came before and are not counted. Of an open point `burstiness` is the shape of gamma gaps,
    `max_concurrency` the most that its client lets be in flight, `achieved_rate` the rate it really sent at.
    """

    kind: Literal["closed", "open", "static"]
    concurrency: Whole | None = None
    rate: Rate | None = None
    arrivals: Literal["poisson", "constant", "gamma"] | None = None
    burstiness: Positive | None = None
    max_concurrency: Whole | None = None
    batch: Whole | None = None
    requests: Whole | None = None
    duration: Annotated[Duration, Field(gt=0)] | None = None
    warmup: Duration | None = None
    warmup_requests: Count | None = None
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    output_tps: Positive | None = None
    total_tps: Positive | None = None  # prompt tokens included
    request_throughput: Rate | None = None  # completed requests
    achieved_rate: Rate | None = None
    mean_concurrency: Positive | None = None  # requests in flight, as the tool measured it
    ttft: Durations | None = None
    tpot: Durations | None = None
    itl: Durations | None = None
    e2e: Durations | None = None
    latency: Annotated[Duration, Field(gt=0)] | None = None
    errors: Share | None = None
    unfinished: Count | None = None
    empty: Count | None = None  # completed without a token, and counted with a first token after 0 s
    note: Text | None = None
    provenance: Provenance | None = None

    LOAD: ClassVar = {"closed": "concurrency", "open": "rate", "static": "batch"}

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        mine = self.LOAD[self.kind]
        if getattr(self, mine) is None:
            example = {"concurrency": "concurrency = 16", "rate": 'rate = "1.2 /s"', "batch": "batch = 64"}[mine]
            raise Mistake(mine, None, f'a point of kind "{self.kind}" needs it', f"add {example}")
        owners = {"concurrency": "closed", "batch": "static", "latency": "static"}
        owners |= dict.fromkeys(("rate", "arrivals", "burstiness", "max_concurrency", "achieved_rate"), "open")
        for key, owner in owners.items():
            if owner != self.kind and getattr(self, key) is not None:
                raise Mistake(
                    key, getattr(self, key), f'only a point of kind "{owner}" has it, this one is {self.kind}'
                )
        figures = ("output_tps", "total_tps", "request_throughput", "ttft", "tpot", "itl", "e2e", "latency")
        if all(getattr(self, key) is None for key in figures):
            raise Mistake("", self.kind, "this point has no measurement", f"add one of {', '.join(figures)}")
        return self

    @property
    def load(self) -> float:
        """The load that was applied: users, requests per second or sequences, by kind."""
        return float(getattr(self, self.LOAD[self.kind]))


class Step(Table):
    """How long an iteration takes, by hand: see `fleetcast.profiles.curve.StepModel` for what each key means.

    A calibration adds which points it was fitted to (`points`, their hash), between which batches they tell
    (`measured`), what it found (`found`), what is left over, and draws; a step written by hand has none of these.
    """

    batch: Annotated[tuple[Whole, ...], Field(min_length=1)]
    time: Annotated[tuple[Duration, ...], Field(min_length=1)]
    prefill_fixed: Duration = 0.0
    prefill_per_token: Duration = 0.0
    kv_per_token: Duration = 0.0
    mixing: Mixing = 1.0
    request_overhead: Duration = 0.0
    noise_cv: Annotated[float, Field(strict=True, ge=0, le=1)] = 0.0
    points: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    measured: tuple[Whole, Whole] | None = None
    found: tuple[Text, ...] = ()
    residual: tuple[Residual, ...] = ()
    draws: Draws | None = None

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        if len(self.batch) != len(self.time):
            why = f"{len(self.batch)} batch sizes need as many times, here are {len(self.time)} (in seconds)"
            raise Mistake("time", self.time, why, "give one time for each batch size")
        for i in range(1, len(self.batch)):
            if self.batch[i] <= self.batch[i - 1]:
                raise Mistake(f"batch[{i}]", self.batch[i], "batch sizes must rise", "sort them, each one once")
            if self.time[i] < self.time[i - 1]:
                before = self.batch[i - 1]
                why = f"in seconds, less than {self.time[i - 1]:g} at batch {before}, and a larger batch is not faster"
                fix = f"measure again, or write the time of batch {before} here too"
                raise Mistake(f"time[{i}]", self.time[i], why, fix)
        for row in self.draws.time if self.draws else ():
            if len(row) != len(self.batch):
                why = f"every draw has a factor for each of the {len(self.batch)} batch sizes"
                raise Mistake("draws.time", row, why, "calibrate again")
        return self


class Profile(Table):
    """A measured serving profile: one model, precision, engine and instance."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Text
    model: Model
    hardware: Hardware
    engine: Engine
    source: Source | None = None
    point: tuple[Point, ...] = ()
    step: Step | None = None

    @model_validator(mode="after")
    def _has_a_speed(self) -> Self:
        if self.step is None and not self.point:
            raise Mistake("step", None, "a profile needs a [step] table or at least one [[point]]", STEP_EXAMPLE)
        return self

    @property
    def points_hash(self) -> str:
        """Sha256 of the points as they were read: a calibration is of these."""
        text = "".join(point.model_dump_json(exclude_none=True, by_alias=True) for point in self.point)
        return hashlib.sha256(text.encode()).hexdigest()


STEP_EXAMPLE = 'add [step] with batch = [1, 64] and time = ["6 ms", "10 ms"]'
# What to type for a key that is required and missing.
EXAMPLES = {
    "schema": "schema = 1",
    "name": 'name = "my-profile"',
    "model": '[model] with name = "Llama-3.1-8B"',
    "model.name": 'name = "Llama-3.1-8B" under [model]',
    "hardware": '[hardware] with instance = "g6e.xlarge"',
    "hardware.instance": 'instance = "g6e.xlarge" under [hardware]',
    "engine": '[engine] with policy = "chunked" and max_num_seqs = 64',
    "engine.policy": 'policy = "chunked" under [engine]',
    "engine.max_num_seqs": "max_num_seqs = 64 under [engine]",
    "source.title": "title = … under [source]",
    "step.batch": "batch = [1, 64] under [step]",
    "step.time": 'time = ["6 ms", "10 ms"] under [step]',
    "point.kind": 'kind = "closed", "open" or "static" in the [[point]]',
}
