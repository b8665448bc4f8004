"""Whole-file snapshots: what a report said is compared with the file in `golden/`, byte for byte.

After a wanted change: UPDATE_GOLDEN=1 pytest tests/test_terminal.py tests/test_charts.py, then read the diff.
"""

from __future__ import annotations

import copy
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


@cache
def _result() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "result.json").read_text("utf-8"))
    return found


def result() -> dict[str, Any]:
    """Return the hand-made result, fresh, to be changed at will."""
    return copy.deepcopy(_result())


def same(name: str, text: str) -> bool:
    """Tell whether golden file *name* holds exactly *text*; with UPDATE_GOLDEN, write it there."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    return path.read_text("utf-8") == text
