"""What the hardware can do: instance sizes and accelerators, from dated sheets.

Peak arithmetic and memory bandwidth are data-sheet figures quoted from memory: good enough as priors for what nobody
measured, never a substitute for a measurement. Left out: NVLink and PCIe topology, clocks, power limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fleetcast.errors import ScenarioError, suggest
from fleetcast.profiles.sheet import read_sheet

GIB = 2.0**30


@dataclass(frozen=True)
class Instance:
    """An EC2 size: `count` accelerators (a part of one below 1), each with this usable memory and bandwidth.

    `regions` are those that offered it on `regions_date`; empty where no list is known.
    """

    name: str
    family: str
    accelerator: str
    count: int | float
    memory_bytes_usable: float
    bandwidth_Bps: float
    vcpus: int
    ram_bytes: float
    regions: tuple[str, ...]
    regions_date: str
    source: str


@dataclass(frozen=True)
class Accelerator:
    """One accelerator: dense peak FLOP/s by number format, bytes/s of memory, and the formats it has natively."""

    name: str
    peak_flops: Mapping[str, float]
    bandwidth_Bps: float
    formats: tuple[str, ...]
    source: str
    date: str


@cache
def instances() -> Mapping[str, Instance]:
    """Return every instance size of the catalogue by its EC2 name."""
    sheet = read_sheet("instances")
    found = {}
    for row in sheet.rows:
        count = float(row["count"])
        found[row["instance"]] = Instance(
            name=row["instance"],
            family=row["family"],
            accelerator=row["accelerator"],
            count=int(count) if count.is_integer() else count,
            memory_bytes_usable=float(row["memory_gib"]) * GIB,
            bandwidth_Bps=float(row["memory_gb_s"]) * 1e9,
            vcpus=int(row["vcpu"]),
            ram_bytes=float(row["ram_gib"]) * GIB,
            regions=tuple(row["regions"].split()),
            regions_date=sheet.head["date"],
            source=sheet.head["source"],
        )
    return found


def instance(name: str) -> Instance:
    """Return an instance size by its EC2 name; ScenarioError where the catalogue has none of that name."""
    known = instances()
    if name in known:
        return known[name]
    ec2 = name.removeprefix("ml.")
    if ec2 != name:
        fix = f'write the EC2 name "{ec2}"' if ec2 in known else suggest(ec2, known)
        raise ScenarioError(
            f'instance "{name}"', why="this is a SageMaker name; hardware is listed by EC2 name", fix=fix
        )
    raise ScenarioError(
        f'unknown instance "{name}"', why=suggest(name, known), fix="list them with: simulate prices show"
    )


@cache
def accelerators() -> Mapping[str, Accelerator]:
    """Return every accelerator of the catalogue by its name."""
    sheet = read_sheet("accelerators")
    found = {}
    for row in sheet.rows:
        peak = {f: float(row[f"{f}_tflops"]) * 1e12 for f in ("fp16", "fp8", "int8") if row[f"{f}_tflops"]}
        found[row["accelerator"]] = Accelerator(
            name=row["accelerator"],
            peak_flops=peak,
            bandwidth_Bps=float(row["memory_gb_s"]) * 1e9,
            formats=tuple(row["formats"].split()),
            source=sheet.head["source"],
            date=sheet.head["date"],
        )
    return found


@cache
def _spellings() -> Mapping[str, str]:
    spellings = {}
    for row in read_sheet("accelerators").rows:
        for text in (row["accelerator"], *row["aliases"].split("|")):
            if text:
                spellings[text.lower()] = row["accelerator"]
    return spellings


def accelerator(name: str) -> Accelerator:
    """Return an accelerator by its name or a usual spelling; ScenarioError where the catalogue does not know it."""
    canonical = _spellings().get(name.strip().lower())
    if canonical is None:
        raise ScenarioError(f'unknown accelerator "{name}"', why=suggest(name, accelerators()))
    return accelerators()[canonical]


def knows_accelerator(name: str) -> bool:
    """True where `accelerator(name)` finds one."""
    return name.strip().lower() in _spellings()
