"""The project's own shape, for the tests that walk it: folders, modules and the names they install under."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Package and the folder its files lie in: the four rooms stand at the top, beside the front door.
HOMES = {
    "fleetcast": ROOT / "fleetcast",
    "fleetcast.profiles": ROOT / "profiles",
    "fleetcast.reports": ROOT / "reports",
    "fleetcast.sim": ROOT / "sim",
    "fleetcast.traffic": ROOT / "traffic",
}


@cache
def files() -> dict[str, Path]:
    """Every file of the five folders under its installed path, such as `fleetcast/sim/kernel/__init__.py`."""
    found = {}
    for package, folder in HOMES.items():
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inner.parts)
            if path.is_file() and not hidden:
                found["/".join((*package.split("."), *inner.parts))] = path
    return found


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the five folders under its installed name, read but not imported."""
    found = {}
    for name, path in files().items():
        if path.suffix == ".py":
            dotted = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            found[dotted] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return found
