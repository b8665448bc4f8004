"""From a name or a path to a Profile, and from whatever is wrong with the file to one clear sentence.

A name is one of the built-in library; a path ends in `.toml`, holds a separator or names a file that exists. The
library is never shadowed by a file of the same name: what a result says it ran is what it ran.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from fleetcast.errors import DataError, ScenarioError, nearest
from fleetcast.profiles.profile import EXAMPLES, SCHEMA, Mistake, Profile

LIBRARY = Path(__file__).parent / "library"


@dataclass(frozen=True)
class LoadedProfile:
    """A profile, the name or path it was asked for by, and the SHA-256 of the bytes it was read from."""

    profile: Profile
    path: str
    sha256: str
    origin: Literal["file", "built-in"]


@cache
def library() -> tuple[str, ...]:
    """Return the names of the built-in profiles, sorted."""
    return tuple(sorted(file.stem for file in LIBRARY.glob("*.toml")))


def load_profile(name_or_path: str, root: Path | None = None) -> LoadedProfile:
    """Read a built-in profile by name, or a profile file by path (relative to *root*, else to the current folder).

    ScenarioError where there is no such profile, DataError where the file is not one.
    """
    text = name_or_path.strip()
    if text in library():
        path, origin = LIBRARY / f"{text}.toml", "built-in"
    else:
        path, origin = (root or Path()) / Path(text).expanduser(), "file"
        if not text or not (_looks_like_path(text) or path.is_file()):
            raise _unknown(text, root or Path())
    raw = _bytes_of(path, text)
    profile = parse_profile(raw, text)
    if origin == "built-in" and profile.source is None:
        raise DataError(f"{text}: [source] is missing", why="every built-in profile cites its measurement")
    kind: Literal["file", "built-in"] = "built-in" if origin == "built-in" else "file"
    return LoadedProfile(profile, name_or_path, hashlib.sha256(raw).hexdigest(), kind)


def parse_profile(raw: bytes, where: str) -> Profile:
    """Check the TOML bytes of a profile; *where* names the file in a DataError."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        why = f"byte {error.start} (line {line}) is not UTF-8, which TOML is written in"
        raise DataError(f"{where} is not a text file", why=why, fix="save it as UTF-8") from None
    if not text.strip():
        raise DataError(
            f"{where} is empty", fix="it needs schema, name, [model], [hardware], [engine] and a [step] or a [[point]]"
        )
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise bad_toml(text, where, error) from None
    if data.get("schema", SCHEMA) != SCHEMA or isinstance(data.get("schema"), bool):
        fix = f"write schema = {SCHEMA}"
        raise DataError(
            f"{where}: schema = {_shown(data['schema'])}", why=f"this version reads schema {SCHEMA}", fix=fix
        )
    try:
        return Profile.model_validate(data)
    except ValidationError as error:
        raise wording(error, where) from None


def _looks_like_path(text: str) -> bool:
    return text.endswith(".toml") or "/" in text or "\\" in text


def _bytes_of(path: Path, text: str) -> bytes:
    if path.is_dir():
        raise DataError(
            f"{text} is a directory", why="a profile is one TOML file", fix=f"write {text.rstrip('/')}/NAME.toml"
        )
    try:
        return path.read_bytes()
    except FileNotFoundError:
        close = nearest(Path(text).stem, library())
        others = nearest(path.name, [p.name for p in path.parent.glob("*.toml")] if path.parent.is_dir() else [])
        found = [str(Path(text).with_name(other)) for other in others] + close
        fix = f"closest: {', '.join(found)}" if found else "list the built-in ones with: simulate profile list"
        raise ScenarioError(f"there is no file {text}", fix=fix) from None
    except OSError as error:
        raise DataError(f"{text} cannot be read", why=error.strerror or str(error)) from None


def _unknown(text: str, root: Path) -> ScenarioError:
    close = nearest(text, library())
    why = f"the built-in library has {len(library())}; closest: {', '.join(close)}" if close else ""
    file = next(
        (f for f in (Path(f"{text}.toml"), Path("profiles") / f"{text}.toml") if text and (root / f).is_file()), None
    )
    fix = f"a file is given by its path: {file}" if file else "list them with: simulate profile list"
    return ScenarioError(f'no profile named "{text}"', why=why, fix=fix)


def bad_toml(text: str, where: str, error: Exception) -> DataError:
    """Word what `tomllib` found in *text*: the line, and whether the file just ends there."""
    match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
    reason, lines = str(error).split(" (at ")[0], text.splitlines()
    last = len(text.rstrip().splitlines())
    line, column = (int(match[1]), int(match[2])) if match else (last, 0)
    shown = lines[line - 1] if line <= len(lines) else ""
    cut = match is None or line > last or (line == last and column > len(shown.rstrip()))
    if cut and not reason.startswith("Cannot"):
        return DataError(f"{where}:{min(line, last)}: {reason}", why="the file ends here: is it complete?")
    return DataError(f"{where}:{line}: {reason}", why=f"at column {column} of: {_shown(shown)}")


def wording(error: ValidationError, where: str) -> DataError:
    """Word the most telling of pydantic's errors: a wrong key explains a missing one."""
    every = error.errors(include_url=False)
    first = min(every, key=lambda e: (not _is_unknown_key(e), e["type"] == "missing"))
    key = _path(first["loc"])
    mistake = first.get("ctx", {}).get("error")
    if isinstance(mistake, Mistake):
        key = f"{key}.{mistake.key}" if key and mistake.key else key or mistake.key
        shown = "" if mistake.value is None else f" = {_shown(mistake.value)}"
        missing = " is missing" if mistake.value is None and mistake.key and "." not in mistake.key else shown
        return DataError(f"{where}: {key}{missing}", why=mistake.why, fix=mistake.fix)
    if first["type"] == "missing":
        plain = re.sub(r"\[\d+\]", "", key)
        return DataError(f"{where}: {key} is missing", fix=f"add {EXAMPLES[plain]}" if plain in EXAMPLES else "")
    why, fix = _in_words(first)
    return DataError(f"{where}: {key} = {_shown(first['input'])}", why=why, fix=fix)


def _is_unknown_key(error: Mapping[str, Any]) -> bool:
    mistake = error.get("ctx", {}).get("error")
    return isinstance(mistake, Mistake) and mistake.why == "there is no such key"


def _path(loc: tuple[int | str, ...]) -> str:
    """`("point", 1, "ttft", "p99")` as `point[1].ttft.p99`, without pydantic's names of a union's branches."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in ("int", "float", "function-before[validate(), float]"):
            path += f".{part}" if path else part
    return path


_EXPECTED = {
    "int_type": "a whole number is expected",
    "float_type": "a number is expected",
    "string_type": "text is expected",
    "string_too_short": "the text is empty",
    "finite_number": "a finite number is expected",
    "model_type": "a table is expected",
    "tuple_type": "a list is expected",
    "too_short": "the list is empty",
    "bool_type": "true or false is expected",
}


def _in_words(error: Mapping[str, Any]) -> tuple[str, str]:
    kind, context = str(error["type"]), error.get("ctx", {})
    for end, sign in (("greater_than_equal", "≥"), ("less_than_equal", "≤"), ("greater_than", ">"), ("less_than", "<")):
        if kind == end:
            return f"it must be {sign} {next(iter(context.values())):g}", ""
    if kind == "literal_error":
        names = re.findall("'([^']*)'", str(context.get("expected", "")))
        close = nearest(str(error["input"]), names, 1)
        return f"known: {', '.join(names)}", f'write "{close[0]}"' if close else ""
    if kind == "string_type" and isinstance(error["input"], int | float):
        return _EXPECTED[kind], f'write "{error["input"]}"'
    return _EXPECTED.get(kind, str(error["msg"])), ""


def _shown(value: object) -> str:
    value = list(value) if isinstance(value, tuple) else value
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
