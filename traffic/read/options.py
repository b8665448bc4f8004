"""How a traffic file is to be read, where its format leaves something open; and what reading it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from fleetcast.errors import ScenarioError, suggest
from fleetcast.traffic.counts import Counts
from fleetcast.traffic.lengths import LengthModel
from fleetcast.traffic.read.report import ReadReport
from fleetcast.traffic.trace import Trace

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
ROLES = ("arrival", "input", "output", "value", "session", "turn", "model", "tenant", "region", "prefix")


@dataclass(frozen=True)
class Options:
    """What the file does not say itself.

    `columns` names a file's column by its role. `missing` is what a step without a value means, `values` whether a
    monitoring series holds requests per step or per second. `strict` refuses the first bad row instead of counting it
    as dropped; `failures` says what becomes of requests without output. `seed` is that of the spread inside a tick, of
    arrivals drawn from counts and of lengths drawn from a model.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    time_unit: str | None = None
    time_zone: str | None = None
    sampling: float = 1.0
    spread_ticks: bool = True
    strict: bool = False
    failures: str = "drop"
    values: str | None = None
    missing: str | None = None
    lengths: LengthModel | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _one_of("time_unit", self.time_unit, (None, *get_args(Unit)))
        _one_of("failures", self.failures, ("drop", "keep"))
        _one_of("values", self.values, (None, "count", "rate"))
        _one_of("missing", self.missing, (None, "zero", "gap"))
        for role in self.columns:
            _one_of("columns", role, ROLES)
        if not 0 < self.sampling <= 1:
            raise ScenarioError(
                f"sampling = {self.sampling!r}",
                why="the share of the requests that the file holds is above 0 and at most 1",
                fix="write for example 0.1 for one request in ten",
            )
        if isinstance(self.seed, bool) or self.seed < 0:
            raise ScenarioError(f"seed = {self.seed!r}", why="a seed is a whole number, 0 or more", fix="write 0")


def _one_of(name: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        raise ScenarioError(f"{name} = {value!r}", fix=suggest(str(value), [k for k in known if k]))


@dataclass(frozen=True)
class Reading:
    """What a file held: a trace, or counts (then `trace` is drawn from them where a length model was given)."""

    report: ReadReport
    trace: Trace | None = None
    counts: Counts | None = None
