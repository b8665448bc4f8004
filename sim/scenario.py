"""What is to be simulated: the scenario file, the command line's flags and the defaults, as one frozen type.

Every flag is a key and the reverse. Precedence: default < scenario file < `--set key=value` < flag. Durations are
seconds once read; `resolved` writes them back with their unit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from fleetcast.errors import DataError, FleetcastError, ScenarioError
from fleetcast.profiles.profile import Duration, Mistake, Mixing, Share, Table, Text, Whole
from fleetcast.profiles.read import wording
from fleetcast.sim.contract import ROUTINGS
from fleetcast.sim.thresholds import Threshold, parse_threshold, parse_thresholds

SCHEMA = 1
MOST_REPLICAS = 10_000
DEFAULT_THRESHOLD = "p99(ttft) < 1 s"
"""What a chosen fleet has to hold where nothing else is asked."""


def _as_of(value: object) -> object:
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d(-\d\d)?", text):
        try:
            date.fromisoformat(text if len(text) == 10 else f"{text}-01")
            return text
        except ValueError:
            pass
    raise Mistake("", value, "this is not a month or a day", 'write for example "2026-11" or "2026-11-30"')


def _routing(value: object) -> object:
    if value not in ROUTINGS:
        raise Mistake("", value, f"known: {', '.join(ROUTINGS)}")
    return value


class Traffic(Table):
    """The file, how much days differ from each other, and how long after its end a random day may still drain."""

    file: Text
    day_cv: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.3
    drain: Duration = 21_600.0


class Fleet(Table):
    """Equal replicas, one per instance, in one region; `replicas` left out: the smallest fleet that will do."""

    replicas: Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)] | None = None
    region: Text = "us-east-1"
    instance: Text | None = None
    routing: Annotated[str, BeforeValidator(_routing)] = "least-outstanding"


class Engine(Table):
    """What overrides the profile's [engine] and model limits; `beyond` is what a batch above the last entry does."""

    max_num_seqs: Whole | None = None
    max_batched_tokens: Whole | None = None
    kv_blocks: Whole | None = None
    max_context: Whole | None = None
    beyond: Literal["refuse", "extrapolate"] = "refuse"


class Step(Table):
    """What overrides the profile's [step]."""

    prefill_fixed: Duration | None = None
    prefill_per_token: Duration | None = None
    kv_per_token: Duration | None = None
    mixing: Mixing | None = None
    request_overhead: Duration | None = None
    noise_cv: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None


class NetworkSettings(Table):
    """The way from the clients to the fleet; `kind` "none" puts the client beside the replica."""

    kind: Literal["privatelink", "public", "none"] = "privatelink"
    client_region: Text | None = None
    privatelink_latency: Duration = 0.0003
    round_trip: Duration | None = None
    tail: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.06
    new_connection_share: Share = 0.01
    tls: Literal["1.3", "1.2", "none"] = "1.3"
    endpoint_zones: Annotated[int, Field(strict=True, ge=1, le=6)] = 1


class Purchase(Table):
    """How the instances are bought."""

    option: Literal["on-demand"] = "on-demand"


class Scenario(Table):
    """One what-if, fully resolved but for the files it names."""

    schema_: Literal[1] = Field(1, alias="schema")
    profile: Text
    traffic: Traffic
    runs: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 20
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0
    replay: bool = False
    as_of: Annotated[str | None, BeforeValidator(lambda v: v if v is None else _as_of(v))] = None
    fleet: Fleet = Fleet()
    engine: Engine = Engine()
    step: Step = Step()
    network: NetworkSettings = NetworkSettings()
    purchase: Purchase = Purchase()
    thresholds: dict[str, Any] = Field(default_factory=dict)

    @field_validator("traffic", mode="before")
    @classmethod
    def _a_file_alone(cls, value: object) -> object:
        return {"file": value} if isinstance(value, str) else value

    @field_validator("network", mode="before")
    @classmethod
    def _a_kind_alone(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    def limits(self) -> tuple[Threshold, ...]:
        """Return the thresholds that were asked for."""
        return parse_thresholds(self.thresholds)

    def resolved(self) -> dict[str, Any]:
        """Return the scenario as its file would say it, with every default filled in."""
        return _written(self)


def _written(table: Table) -> dict[str, Any]:
    """Return *table* as plain values; durations are text with their unit, what is left out stays out."""
    found: dict[str, Any] = {}
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        if value is None:
            continue
        if isinstance(value, Table):
            value = _written(value)
        elif _is_duration(field):
            value = f"{value!r} s"
        elif isinstance(value, float) and value == float("inf"):
            value = "max"
        found[field.alias or name] = value
    return found


def _is_duration(field: FieldInfo) -> bool:
    marker = get_args(Duration)[1]
    return marker in field.metadata or any(marker in get_args(part) for part in get_args(field.annotation))


def read_scenario(path: Path) -> dict[str, Any]:
    """Return the tables of a scenario file, unchecked but for TOML's own rules."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ScenarioError(f"there is no file {path}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read", why=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file", why="a scenario is a TOML file in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: {error}", why="this is not TOML") from None


def put(tables: dict[str, Any], key: str, value: Any) -> None:
    """Write *value* at a dotted *key*; a text that stands for a whole table becomes that table first."""
    *path, last = key.split(".")
    for depth, name in enumerate(path):
        inner = tables.get(name)
        if isinstance(inner, str) and depth == 0 and name in ("traffic", "network"):
            inner = {"file" if name == "traffic" else "kind": inner}
        tables[name] = dict(inner) if isinstance(inner, Mapping) else {}
        tables = tables[name]
    tables[last] = value


def setting(text: str) -> tuple[str, Any]:
    """Read `key=value` of --set; the value is TOML where it can be, else text."""
    key, sign, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not sign or not re.fullmatch(r"[A-Za-z_][\w.]*", key):
        raise ScenarioError(
            f'--set "{text}"', why="this is not key=value", fix="write for example --set fleet.replicas=4"
        )
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def scenario_from(tables: Mapping[str, Any], where: str, thresholds: Iterable[str] = ()) -> Scenario:
    """Check *tables* (file, settings and flags together); *where* names them in an error."""
    try:
        scenario = Scenario.model_validate(dict(tables))
    except ValidationError as error:
        raise _as_scenario_error(wording(error, where)) from None
    merged = {**scenario.thresholds}
    for text in thresholds:
        found = parse_threshold(text)
        merged[found.metric] = found.text.removeprefix(found.metric).strip()
    parse_thresholds(merged)
    return scenario.model_copy(update={"thresholds": merged})


def _as_scenario_error(error: FleetcastError) -> ScenarioError:
    return ScenarioError(error.what, why=error.why, fix=error.fix)
