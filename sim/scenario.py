"""What is to be simulated: the scenario file, the command line's flags and the defaults, as one frozen type.

Every flag is a key and the reverse. Precedence: default < scenario file < `--set key=value` < flag. Durations are
seconds once read; `resolved` writes them back with their unit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from fleetcast.errors import DataError, FleetcastError, ScenarioError, suggest
from fleetcast.profiles.profile import Duration, Mistake, Mixing, Share, Table, Text
from fleetcast.profiles.read import bad_toml, wording
from fleetcast.sim.contract import POLICIES, ROUTINGS
from fleetcast.sim.thresholds import Threshold, parse_threshold, parse_thresholds
from fleetcast.traffic.change import check_change
from fleetcast.units import DAY

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
        raise Mistake("", value, "no such routing", suggest(str(value), ROUTINGS))
    return value


def _policy(value: object) -> object:
    if value is not None and value not in POLICIES:
        raise Mistake("", value, "no such engine policy", suggest(str(value), POLICIES))
    return value


def _schema(value: object) -> object:
    if value != SCHEMA or isinstance(value, bool):
        raise Mistake("", value, f"this version reads schema {SCHEMA}", f"write schema = {SCHEMA}")
    return value


def _tls(value: object) -> object:
    """Take 1.2 for "1.2": a shell strips the quotes of `--set network.tls="1.2"`."""
    return str(value) if isinstance(value, float) else value


def _limits_table(value: object) -> object:
    if not isinstance(value, Mapping):
        raise Mistake("", value, "a table is expected", 'write for example "p99(ttft)" = "< 500 ms" under [thresholds]')
    return value


Yes = Annotated[bool, Field(strict=True)]
Short = Annotated[Duration, Field(le=DAY)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]


class Reading(Table):
    """What the traffic file does not say itself: the options of `simulate traffic convert`, which are checked there."""

    columns: dict[str, str] | None = None
    time_unit: Text | None = None
    time_zone: Text | None = None
    sampling: Annotated[float, Field(allow_inf_nan=False)] | None = None
    strict: Yes | None = None
    failures: Text | None = None
    values: Text | None = None
    missing: Text | None = None
    lengths: Text | None = None


class Traffic(Table):
    """The file, how much days differ from each other, and how long after its end a random day may still drain."""

    file: Text
    read: Reading | None = None
    day_cv: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.3
    drain: Duration = 21_600.0


class Fleet(Table):
    """Equal replicas, one per instance, in one region; `replicas` left out: the smallest fleet that will do."""

    replicas: Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)] | None = None
    region: Text = "us-east-1"
    instance: Text | None = None
    routing: Annotated[str, BeforeValidator(_routing)] = "least-outstanding"


def _think(value: object) -> object:
    return {"mean": value} if isinstance(value, str) else value


class Think(Table):
    """Think time: a mean and a coefficient of variation (0: always the mean, 1: exponential; a Gamma law)."""

    mean: Duration = 0.0
    cv: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0


class Users(Table):
    """Closed loop: so many users, each of whom sends the next request when the answer has arrived and been read.

    The traffic gives lengths alone; each user starts at a random moment of the first think time.
    """

    count: Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
    think: Annotated[Think, BeforeValidator(_think)] = Think()


class Sessions(Table):
    """Every request of the traffic opens a session of further turns (or an agent's sequential calls, without thinking).

    A turn's prompt is the drawn one plus, with `history`, all prompts and answers before it.
    """

    turns: Annotated[float, Field(ge=1, le=1_000, allow_inf_nan=False)] = 1.0
    fixed: Yes = False
    think: Annotated[Think, BeforeValidator(_think)] = Think()
    history: Yes = True


class Engine(Table):
    """What overrides the profile's [engine] and model limits; `beyond` is what a batch above the last entry does."""

    max_num_seqs: Count | None = None
    policy: Annotated[str | None, BeforeValidator(_policy)] = None
    max_batched_tokens: Count | None = None
    max_prompts_per_iteration: Count | None = None
    batch_delay: Duration | None = None
    kv_blocks: Count | None = None
    max_context: Count | None = None
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
    privatelink_latency: Short = 0.0003
    round_trip: Short | None = None
    tail: Annotated[float, Field(ge=1, le=1_000, allow_inf_nan=False)] = 1.06
    new_connection_share: Share = 0.01
    tls: Annotated[Literal["1.3", "1.2", "none"], BeforeValidator(_tls)] = "1.3"
    endpoint_zones: Annotated[int, Field(strict=True, ge=1, le=6)] = 1


class Purchase(Table):
    """How the instances are bought."""

    option: Literal["on-demand"] = "on-demand"


def _changes(value: object) -> object:
    """Take [[traffic_change]] tables as they are, checked one by one."""
    if not isinstance(value, list | tuple) or not all(isinstance(row, Mapping) for row in value):
        raise Mistake("", value, "tables are expected", 'write [[traffic_change]] change = "spike", at = "14 h", …')
    for place, row in enumerate(value):
        try:
            check_change(row)
        except ScenarioError as error:
            why = f"{error.what}: {error.why}" if error.why else error.what
            raise Mistake(str(place), row, why, error.fix) from None
    return tuple(dict(row) for row in value) or None


class Scenario(Table):
    """One what-if, fully resolved but for the files it names."""

    schema_: Annotated[int, BeforeValidator(_schema)] = Field(SCHEMA, alias="schema")
    profile: Text
    traffic: Traffic
    runs: Annotated[int, Field(strict=True, ge=1, le=100_000)] = 20
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0
    replay: Yes = False
    as_of: Annotated[str | None, BeforeValidator(lambda v: v if v is None else _as_of(v))] = None
    users: Users | None = None
    sessions: Sessions | None = None
    traffic_change: Annotated[tuple[dict[str, Any], ...] | None, BeforeValidator(_changes)] = None
    fleet: Fleet = Fleet()
    engine: Engine = Engine()
    step: Step = Step()
    network: NetworkSettings = NetworkSettings()
    purchase: Purchase = Purchase()
    thresholds: Annotated[dict[str, Any], BeforeValidator(_limits_table)] = Field(default_factory=dict)

    @field_validator("traffic", mode="before")
    @classmethod
    def _a_file_alone(cls, value: object) -> object:
        return {"file": value} if isinstance(value, str) else value

    @field_validator("network", mode="before")
    @classmethod
    def _a_kind_alone(cls, value: object) -> object:
        return {"kind": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_loop(self) -> Self:
        if self.users is not None and self.sessions is not None:
            raise Mistake("sessions", None, "[users] and [sessions] are two ways to close the loop", "keep one of them")
        return self

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
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ScenarioError(f"there is no file {path}", why="--scenario names a TOML file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file", why="a scenario is a TOML file in UTF-8") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{path} cannot be read", why=why, fix="name a TOML file that you may read") from None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise bad_toml(text, str(path), error) from None


def put(tables: dict[str, Any], key: str, value: Any) -> None:
    """Write *value* at a dotted *key*; a text that stands for a whole table becomes that table first."""
    table, _, metric = key.partition(".")
    *path, last = (table, metric.strip("\"'")) if table == "thresholds" and metric else key.split(".")
    for depth, name in enumerate(path):
        inner = tables.get(name, {})
        if isinstance(inner, str) and depth == 0 and name in ("traffic", "network"):
            inner = {"file" if name == "traffic" else "kind": inner}
        if not isinstance(inner, Mapping):
            here = ".".join(path[: depth + 1])
            raise ScenarioError(f"{here} = {inner!r}", why=f"a table is expected, for {key}", fix=f"write [{here}]")
        tables[name] = dict(inner)
        tables = tables[name]
    tables[last] = value


_KEY = re.compile(r"""[A-Za-z_][\w.]*|thresholds\.(["']?)[\w.()\s]+\1""")


def setting(text: str) -> tuple[str, Any]:
    """Read `key=value` of --set; the value is TOML where it can be, else text.

    A metric is a key of the thresholds, with or without quotes: `thresholds.p99(ttft)=< 1 s`.
    """
    key, sign, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not sign or not _KEY.fullmatch(key):
        raise ScenarioError(
            f'--set "{text}"', why="this is not key=value", fix="write for example --set fleet.replicas=4"
        )
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


COMMAND_LINE = "the command line"


def scenario_from(
    tables: Mapping[str, Any], where: str, thresholds: Iterable[str] = (), typed: Collection[str] = ()
) -> Scenario:
    """Check *tables* (file, settings and flags together) and lay the *thresholds* of flags over theirs.

    *where* names the tables in an error, but for the keys that were *typed* on the command line.
    """
    try:
        scenario = Scenario.model_validate(dict(tables))
    except ValidationError as error:
        raise _as_scenario_error(wording(error, where), where, typed) from None
    flags = (parse_threshold(text) for text in thresholds)
    merged = {**_one_each(scenario.limits()), **_one_each(flags)}
    return scenario.model_copy(update={"thresholds": merged})


def _one_each(thresholds: Iterable[Threshold]) -> dict[str, str]:
    """Return thresholds as a scenario writes them, metric by metric."""
    found: dict[str, str] = {}
    for threshold in thresholds:
        metric = threshold.metric
        if metric in found:
            other = f"{metric} {found[metric]}"
            raise ScenarioError(f'threshold "{threshold.text}"', why=f'there is "{other}" too', fix="keep one of them")
        found[metric] = threshold.text.removeprefix(metric).strip()
    return found


def _as_scenario_error(error: FleetcastError, where: str, typed: Collection[str]) -> ScenarioError:
    what = error.what.removeprefix(f"{where}: ")
    key = what.split(" ")[0]
    place = COMMAND_LINE if any(key == name or key.startswith(f"{name}.") for name in typed) else where
    return ScenarioError(f"{place}: {what}", why=error.why, fix=error.fix)
