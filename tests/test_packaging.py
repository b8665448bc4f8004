"""What is installed is what lies in the tree: the archive, the wheel made from it, and its dependencies."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from house import HOMES, ROOT, files, modules

import fleetcast

DESCRIPTION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TYPINGS = ROOT / "typings" / "fleetcast"


def run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive and the wheel built from it, of a copy: a build leaves files where it builds."""
    copy = tmp_path_factory.mktemp("build") / "copy"
    litter = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*cache")
    for folder in (*HOMES.values(), ROOT / "tests", ROOT / "scripts"):
        shutil.copytree(folder, copy / folder.name, ignore=litter)
    for name in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, copy)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."], copy)
    return copy / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_the_wheel_holds_the_tree_and_nothing_else(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert sorted(files().keys() - held) == [], "missing: see packages and package-data in pyproject.toml"
    assert sorted(held - files().keys()) == []


def test_the_wheel_carries_licence_and_commands(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    info = f"fleetcast-{fleetcast.__version__}.dist-info"
    assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    commands = archive.read(f"{info}/entry_points.txt").decode()
    assert "simulate = fleetcast.cli:main" in commands
    assert "fleetcast = fleetcast.cli:main" in commands


def test_the_wheel_works_without_the_tree(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(target)
    code = f"""
import importlib, pathlib
for name in {sorted(modules())!r}:
    place = pathlib.Path(importlib.import_module(name).__file__)
    assert place.is_relative_to({str(target)!r}), f"{{name}} came from {{place}}"
from fleetcast.cli import main
assert callable(main)
"""
    run([sys.executable, "-W", "error", "-c", code], tmp_path, PYTHONPATH=str(target))


def test_the_source_archive_can_be_tested(dist: Path) -> None:
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "CHANGELOG.md",
        "scripts/test",
        "tests/conftest.py",
        "tests/house.py",
    } <= held


def test_every_package_is_declared() -> None:
    found = {name.removesuffix("/__init__.py").replace("/", ".") for name in files() if name.endswith("/__init__.py")}
    assert sorted(found) == sorted(DESCRIPTION["tool"]["setuptools"]["packages"])


def test_dependencies_are_those_imported() -> None:
    used = set()
    for tree in modules().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                used |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                used.add(str(node.module).partition(".")[0])
    used -= {"fleetcast", *sys.stdlib_module_names}
    owners = packages_distributions()
    needed = {canonical(owners.get(name, [name])[0]) for name in used}
    project = DESCRIPTION["project"]
    declared = {canonical(text) for text in project["dependencies"]}
    optional = {
        canonical(t) for extra, texts in project["optional-dependencies"].items() if extra != "dev" for t in texts
    }
    assert sorted(needed - declared - optional) == [], "imported, not declared"
    assert sorted(declared - needed) == [], "declared, not imported"


def canonical(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_one_version_everywhere() -> None:
    version = DESCRIPTION["project"]["version"]
    assert fleetcast.__version__ == version
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not TYPINGS.is_dir(), reason="typings/ is for a checkout; the source archive leaves it out")
def test_type_checkers_see_the_whole_package() -> None:
    front = [path for path in HOMES["fleetcast"].iterdir() if not path.name.startswith("_") or path.suffix == ".py"]
    rooms = [folder for package, folder in HOMES.items() if package != "fleetcast"]
    expected = {path.name: path for path in (*front, *rooms)}
    links = {path.name: path.resolve() for path in TYPINGS.iterdir() if not path.name.startswith(".")}
    assert links == expected, "each entry of fleetcast/ and each room needs a link in typings/fleetcast"
