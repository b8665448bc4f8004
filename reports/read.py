"""Read a result back from the folder that a simulation wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fleetcast.errors import DataError

RESULTS = "results.json"
SCHEMA = 1
_NEEDED = ("metrics", "summary", "thresholds")


def read_result(path: str | Path) -> dict[str, Any]:
    """Return the result in *path*, a folder with a results.json or that file itself."""
    path = Path(path)
    file = path if path.is_file() else path / RESULTS
    fix = "write one with: simulate … --out DIR"
    if not path.exists():
        raise DataError(f"no folder {path}", fix=fix)
    if not file.exists():
        raise DataError(f"{path} holds no {RESULTS}", why="a report is made from that file", fix=fix)
    try:
        found = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read", why=str(error.strerror), fix="check its permissions") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{file} is not JSON", why=str(error), fix=fix) from None
    if not isinstance(found, dict) or any(not isinstance(found.get(key), dict | list) for key in _NEEDED):
        raise DataError(f"{file} is not a result of fleetcast", why=f"it lacks {', '.join(_NEEDED)}", fix=fix)
    if found.get("schema") != SCHEMA:
        why = f"its schema is {found.get('schema')!r}, this version reads {SCHEMA}"
        raise DataError(f"{file} cannot be read", why=why, fix="use the fleetcast version that wrote it")
    return found
