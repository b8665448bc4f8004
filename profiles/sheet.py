"""Dated CSV sheets of the catalogue: `# key: value` lines on top say where the figures come from, and of when."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CATALOGUE = Path(__file__).parent / "catalogue"


@dataclass(frozen=True)
class Sheet:
    """The rows of one sheet as written, and what its head says: `date`, `source` and remarks."""

    head: Mapping[str, str]
    rows: tuple[Mapping[str, str], ...]


@cache
def read_sheet(name: str) -> Sheet:
    """Return the sheet `catalogue/NAME.csv`, which is part of the package."""
    lines = (CATALOGUE / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    remarks = [line.removeprefix("#").strip().partition(": ") for line in lines if line.startswith("#")]
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return Sheet({key: value for key, _, value in remarks}, tuple(rows))
