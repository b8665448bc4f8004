"""The project keeps its own rules: it speaks of itself alone, stays small, and leaves nothing to chance."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import re
import shutil
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from house import ROOT, files, modules
from pydantic import BaseModel

from fleetcast import units
from fleetcast.profiles.profile import Profile
from fleetcast.sim.scenario import Scenario

ASSUMPTIONS = ROOT / "docs" / "assumptions.md"
SCRIPTS = [*sorted((ROOT / "scripts").iterdir()), ROOT / ".ci" / "run"]

# A file of more than about 400 lines wants to be two. The kernel is compiled as a whole and may be longer.
LINES = {"fleetcast/sim/kernel/": 800, "": 420}
TEST_LINES = 600


@cache
def tracked() -> list[Path]:
    """Every file under version control; skips the test where there is none, as in an unpacked archive."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def places(pattern: str) -> list[str]:
    """Where tracked files match *pattern*, as `file:line`."""
    sought = re.compile(pattern.encode())
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if sought.search(line)
    ]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    # Written with [/] so that this very line is not found.
    assert places(r"(?<![\w.~>-])[/](work|root|Users)[/]") == []
    assert places(r"(?<![\w.~>-])[/]home[/]\w") == []


def test_no_file_names_a_package_index() -> None:
    assert places(r"(?i)\b(pypi[.]org|pythonhosted[.]org|pypi[.]python[.]org)\b|--(extra-)?index-url") == []


def test_no_file_is_a_copy_of_the_shared_data(shared_data: Path) -> None:
    def hashed(path: Path) -> str:
        return hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n").strip()).hexdigest()

    theirs = {hashed(path): path.name for path in shared_data.rglob("*") if path.is_file()}
    copies = [f"{path.relative_to(ROOT)} = {theirs[hashed(path)]}" for path in tracked() if hashed(path) in theirs]
    assert copies == []


def test_no_tracked_file_is_large() -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > 500_000] == []


def test_every_module_says_what_it_is() -> None:
    assert [name for name, tree in modules().items() if not ast.get_docstring(tree)] == []


def test_modules_stay_short() -> None:
    long = []
    for name, path in files().items():
        limit = next(lines for prefix, lines in LINES.items() if name.startswith(prefix))
        length = len(path.read_text(encoding="utf-8").splitlines()) if path.suffix == ".py" else 0
        long += [f"{name}: {length} lines, at most {limit}"] if length > limit else []
    for path in sorted((ROOT / "tests").glob("*.py")):
        length = len(path.read_text(encoding="utf-8").splitlines())
        long += [f"tests/{path.name}: {length} lines, at most {TEST_LINES}"] if length > TEST_LINES else []
    assert long == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_can_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n# ")
    assert "\nset -euo pipefail\n" in text
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    read = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr


# numpy's names that draw from a generator somebody made, or make one from a seed.
SEEDED = {"BitGenerator", "Generator", "PCG64", "PCG64DXSM", "Philox", "SFC64", "SeedSequence", "default_rng"}
CHANCE = {"random", "secrets", "uuid"}
CLOCKS = {
    "date.today", "datetime.now", "datetime.today", "datetime.utcnow", "time.monotonic", "time.perf_counter",
    "time.process_time", "time.time", "time.time_ns",
}  # fmt: skip


def test_nothing_is_left_to_chance_or_to_the_clock() -> None:
    """No global random state anywhere; the day and the time are asked for in cli alone, and handed down."""
    found = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                bad = any(alias.name.split(".")[0] in CHANCE for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
                bad = node.module in CHANCE or (node.module == "numpy.random" and not names <= SEEDED)
            elif isinstance(node, ast.Attribute):
                text = ast.unparse(node)
                drawn = re.fullmatch(r"(?:np|numpy)\.random\.(\w+)", text)
                clock = ".".join(text.split(".")[-2:]) in CLOCKS and not name.startswith("fleetcast.cli")
                bad = bool(drawn and drawn[1] not in SEEDED) or clock
            elif isinstance(node, ast.Call):
                act = ast.unparse(node.func).split(".")[-1]
                bare = not node.args and not node.keywords
                bad = act == "hash" or (bare and act in ("default_rng", "SeedSequence"))
            else:
                bad = False
            if bad:
                found.append(f"{name} line {node.lineno}: {ast.unparse(node)}")
    assert found == []


def numbers(cell: object) -> list[float]:
    """The quantities in a cell of a table, or in a constant, as plain numbers in ascending order."""
    if isinstance(cell, str):
        found = re.findall(r"([0-9][0-9,.]*)(?: ?(%|(?:ms|s|h|kB|B)\b))?", cell)
        scale = {**units.DURATIONS, **units.SIZES, **units.SHARES, "": 1.0}
        return sorted(float(number.replace(",", "")) * scale[unit] for number, unit in found)
    if isinstance(cell, tuple):
        return sorted(number for part in cell for number in numbers(part))
    return [float(str(cell))]


def assumed() -> list[tuple[str, str]]:
    """The rows of docs/assumptions.md with a constant or a key in their third column: that, and the default."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| `([\w.]+)` \|", ASSUMPTIONS.read_text(encoding="utf-8"), re.M)
    return [(where, default) for default, where in rows]


def default_of(where: str) -> object:
    """The value of a constant (`fleetcast.…`), or the default of a key of the scenario, else of the profile."""
    if where.startswith("fleetcast."):
        module, _, name = where.rpartition(".")
        return getattr(import_module(module), name)
    *tables, key = where.split(".")
    for owner in (Scenario, Profile):
        table: type[BaseModel] = owner
        for name in tables:
            kinds = table.model_fields[name].annotation
            (table,) = (
                kind for kind in (kinds, *get_args(kinds)) if inspect.isclass(kind) and issubclass(kind, BaseModel)
            )
        if (default := table.model_fields[key].default) is not None:
            return default
    raise AssertionError(f"{where} has no default")


def test_the_list_of_assumptions_is_read() -> None:
    assert len(assumed()) >= 25


@pytest.mark.parametrize(("where", "stated"), assumed())
def test_assumptions_say_what_the_code_does(where: str, stated: str) -> None:
    default = default_of(where)
    if isinstance(default, str):
        assert default in stated
    else:
        assert numbers(stated) == pytest.approx(numbers(default))


def test_documents_name_files_that_exist() -> None:
    for document in (ASSUMPTIONS, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"):
        text = document.read_text(encoding="utf-8")
        named = set(re.findall(r"`((?:profiles|traffic|sim|reports|fleetcast|tests|scripts|typings)/[\w./-]*)`", text))
        named |= {link for link in re.findall(r"\]\(([^)#:]+)\)", text)}
        gone = sorted(name for name in named if not (ROOT / name).exists() and not (document.parent / name).exists())
        assert gone == [], document.name
