"""How the values of a profile file are read: quantities with units, counts, dates; and what is said of a wrong one."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fleetcast import units
from fleetcast.errors import ScenarioError, suggest


class Mistake(ValueError):
    """One wrong value in a profile; *key* is the path below the table it was found in, "" for the table itself."""

    def __init__(self, key: str, value: object, why: str, fix: str = "") -> None:
        super().__init__(why)
        self.key, self.value, self.why, self.fix = key, value, why, fix


def _read_with(parse: Callable[[object, str], float]) -> Callable[[object], float]:
    """Turn a parser of `fleetcast.units` into a validator: its error gets its place from the caller."""

    def validate(value: object) -> float:
        try:
            number = parse(value, "")
        except ScenarioError as error:
            raise Mistake("", value, error.why, error.fix) from None
        if number < 0:
            raise Mistake("", value, "it cannot be negative")
        return number

    return validate


def _bytes(value: object, where: str) -> float:
    return units.size(value, where) if isinstance(value, str) else units.size(f"{_number(value)!r} B", where)


def _rate(value: object, where: str) -> float:
    if not isinstance(value, str):
        return _number(value)
    per = {"/s": 1.0, "/min": 1 / 60.0, "/h": 1 / 3_600.0}
    parts = units.split_quantity(value)
    if parts is None or parts[1] not in per:
        raise Mistake("", value, "this is not a rate of requests", 'write for example "1.2 /s"')
    return parts[0] * per[parts[1]]


def _share(value: object, where: str) -> float:
    return units.share(value, where) if isinstance(value, str) else _number(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Mistake("", value, "a finite number is expected")
    return float(value)


def _count(value: object) -> int | float:
    number = _number(value)
    if number <= 0:
        raise Mistake("", value, "it must be > 0")
    return int(number) if number.is_integer() else number


def _mixing(value: object) -> float:
    if value == "max":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise Mistake("", value, "mixing is a number from 1 (times add up) to max", 'write 1 or "max"')
    return float(value)


def _date(value: object) -> object:
    text = value.isoformat() if isinstance(value, datetime.date) else value
    if not isinstance(text, str) or not re.fullmatch(r"\d{4}(-\d\d(-\d\d)?)?", text):
        raise Mistake("", value, "this is not a date", 'write for example "2026-07-20", "2026-07" or "2026"')
    return text


Duration = Annotated[float, BeforeValidator(_read_with(units.duration))]
Size = Annotated[float, BeforeValidator(_read_with(_bytes))]
Rate = Annotated[float, BeforeValidator(_read_with(_rate)), Field(gt=0)]
Share = Annotated[float, BeforeValidator(_read_with(_share)), Field(le=1)]
Mixing = Annotated[float, BeforeValidator(_mixing)]
Amount = Annotated[int | float, BeforeValidator(_count)]
Whole = Annotated[int, Field(strict=True, ge=1)]
Count = Annotated[int, Field(strict=True, ge=0)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]
Date = Annotated[str, BeforeValidator(_date)]


class Table(BaseModel):
    """A TOML table whose keys are all known; an unknown one is named with the nearest that exists."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            names = {*known, *cls.model_fields}
            for key, value in data.items():
                if key not in names:
                    raise Mistake(str(key), value, "there is no such key", suggest(str(key), known))
        return data
