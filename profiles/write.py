"""A profile to TOML text that reads back equal: durations with their unit, everything else as the file has it.

What is written follows from the types of the profile, so a table that is added there is written as well. Comments are
not kept: a profile that a person commented on is better edited than written again.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, BeforeValidator

from fleetcast import units
from fleetcast.errors import ScenarioError
from fleetcast.profiles.profile import Duration, Hardware, Mixing, Profile

_DURATION = next(mark for mark in get_args(Duration) if isinstance(mark, BeforeValidator))
_ALWAYS = {(Hardware, "count")}  # where it is absent, it is what the instance has
_MIXING = next(mark for mark in get_args(Mixing) if isinstance(mark, BeforeValidator))


def to_toml(profile: Profile, comments: Sequence[str] = ()) -> str:
    """Return *profile* as the text of a file, headed by *comments*."""
    lines = [f"# {' '.join(comment.split())}" for comment in comments]
    tables: list[str] = []
    for name, value in _stated(profile):
        if isinstance(value, BaseModel):
            tables += ["", f"[{name}]", *(f"{key} = {text}" for key, text in _pairs(value))]
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for item in value:
                tables += ["", f"[[{name}]]", *(f"{key} = {text}" for key, text in _pairs(item))]
        else:
            lines.append(f"{name} = {_text(value)}")
    return "\n".join([*lines, *tables]) + "\n"


def write_profile(profile: Profile, path: str | Path, comments: Sequence[str] = ()) -> None:
    """Write *profile* to *path*: to a temporary name in the same folder first, then renamed."""
    target = Path(path).expanduser()
    text = to_toml(profile, comments)
    try:
        if target.is_dir():
            raise IsADirectoryError(f"{path} is a folder")
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8", newline="\n")
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fix = "name a file in a folder that exists and that you may write to"
        raise ScenarioError(f"cannot write {path}", why=why, fix=fix) from None


def _stated(table: BaseModel) -> list[tuple[str, Any]]:
    """Return the keys of a table that differ from what their absence means, in the order of the type."""
    found = []
    for name, field in type(table).model_fields.items():
        value = getattr(table, name)
        absent = value is None or (value == field.default and not field.is_required())
        if absent and (value is None or (type(table), name) not in _ALWAYS):
            continue
        found.append((field.alias or name, value))
    return found


def _pairs(table: BaseModel) -> list[tuple[str, str]]:
    """Return a table's keys and values as TOML has them; tables inside it are written in one line."""
    kinds = {field.alias or name: field for name, field in type(table).model_fields.items()}
    found = []
    for name, value in _stated(table):
        field = kinds[name]
        marks = _marks((field.annotation, *field.metadata))
        if _DURATION in marks:
            text = _seconds(value) if isinstance(value, float) else f"[{', '.join(map(_seconds, value))}]"
        elif _MIXING in marks:
            text = '"max"' if math.isinf(value) else _text(value)
        else:
            text = _text(value)
        found.append((name if name.replace("_", "").isalnum() else json.dumps(name), text))
    return found


def _marks(kind: Any) -> list[Any]:
    """Return every validator in an annotation, however deep it stands."""
    parts = kind if isinstance(kind, tuple) else (getattr(kind, "__metadata__", ()), *get_args(kind))
    if isinstance(kind, BeforeValidator):
        return [kind]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return []
    return [mark for part in parts for mark in _marks(part)]


def _text(value: Any) -> str:
    if isinstance(value, BaseModel):
        return "{ " + ", ".join(f"{key} = {text}" for key, text in _pairs(value)) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and value.is_integer() and 1e6 <= abs(value) < 1e21:
        text = f"{value:.10e}".split("e")
        short = f"{float(text[0]):.15g}e{int(text[1])}"
        return short if float(short) == value and "." in short else f"{value!r}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return f"{int(value)}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_text(item) for item in value)}]"
    return repr(value)


def _seconds(value: float) -> str:
    """Return a duration with the unit that reads best, in as few digits as give exactly this number back."""
    sizes = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
    best = next((unit for unit, scale in sizes.items() if value * scale >= (10 if unit == "s" else 1)), "ns")
    best = best if value else "s"
    for digits in range(1, 18):
        text = (
            f"{float(f'{value * sizes[best]:.{digits}g}'):.17g}" if digits > 15 else _plain(value * sizes[best], digits)
        )
        if units.duration(f"{text} {best}", "") == value:
            return f'"{text} {best}"'
    return f'"{value!r} s"'


def _plain(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    return f"{float(text):.15g}" if "e" in text else text
