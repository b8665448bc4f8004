"""Imports go one way only, and heavy libraries are loaded where they are needed.

    errors < units < profiles, traffic < sim < reports < cli

The graph is read from the source, so that an import inside a function or under `TYPE_CHECKING` counts too.
The front door (`fleetcast/__init__.py`) stands above all but cli; its laziness is tested here as well.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest
from house import ROOT, modules

import fleetcast

FLOORS = {
    "fleetcast.errors": 0,
    "fleetcast.units": 1,
    "fleetcast.profiles": 2,
    "fleetcast.traffic": 2,
    "fleetcast.sim": 3,
    "fleetcast.reports": 4,
    "fleetcast": 5,
    "fleetcast.cli": 6,
}
# Who alone may import what: everybody else goes through them.
KEPT = {
    "altair": {"fleetcast.reports"},
    "jinja2": {"fleetcast.reports"},
    "numba": {"fleetcast.sim.kernel"},
    "pydantic": {"fleetcast.profiles", "fleetcast.traffic", "fleetcast.sim"},
    "rich": {"fleetcast.reports", "fleetcast.cli"},
    "scipy": {"fleetcast.profiles", "fleetcast.traffic", "fleetcast.sim"},
    "simpy": {"fleetcast.sim"},
    "typer": {"fleetcast.cli"},
    "vl_convert": {"fleetcast.reports"},
}


def imports(name: str) -> Iterator[str]:
    """What module *name* imports, anywhere in its text, in full: `fleetcast.sim.kernel`, `rich.console`."""
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} line {node.lineno}: relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else str(node.module)
        elif isinstance(node, ast.Call) and called(node) in (
            "import_module",
            "importlib.import_module",
            "__import__",
        ):
            yield from (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))


def called(node: ast.Call) -> str:
    return ast.unparse(node.func)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def home(name: str) -> str:
    """The part of the house that *name* belongs to."""
    return max((part for part in FLOORS if within(name, part)), key=len)


def links() -> list[tuple[str, str]]:
    """Who imports whom among ourselves."""
    return [(name, other) for name in modules() for other in imports(name) if within(other, "fleetcast")]


def test_the_walk_sees_the_house() -> None:
    assert {home(name) for name in modules()} == set(FLOORS)
    assert ("fleetcast.units", "fleetcast.errors") in links()


def test_what_is_imported_exists() -> None:
    assert [(name, other) for name, other in links() if other not in modules()] == []


def test_imports_go_one_way() -> None:
    wrong = []
    for name, other in links():
        mine, theirs = home(name), home(other)
        if mine != theirs and FLOORS[theirs] >= FLOORS[mine] and other != "fleetcast":
            wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_inside_only_the_version_comes_through_the_front_door() -> None:
    wrong = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "fleetcast" and home(name) != "fleetcast.cli":
                names = {a.name for a in node.names if f"fleetcast.{a.name}" not in modules()}
                wrong += [f"{name} line {node.lineno}: {names}"] if names - {"__version__"} else []
            if isinstance(node, ast.Import) and any(alias.name == "fleetcast" for alias in node.names):
                wrong.append(f"{name} line {node.lineno}: import fleetcast")
    assert wrong == []


def test_no_import_runs_in_a_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in modules()}
    for name, other in links():
        if name != other and "fleetcast" not in (name, other):  # the front door is everybody's parent
            graph[name].add(other)
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail("circle: " + " < ".join(error.args[1]))


def test_each_library_has_its_place() -> None:
    wrong = [
        f"{name} imports {other}"
        for name in modules()
        for other in imports(name)
        for library, places in KEPT.items()
        if within(other, library) and not any(within(name, place) for place in places)
    ]
    assert wrong == []


def test_only_the_command_line_prints_and_exits() -> None:
    wrong = []
    for name, tree in modules().items():
        if home(name) == "fleetcast.cli":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                act = called(node)
                printing = act.split(".")[-1] == "Console" and not any(k.arg == "file" for k in node.keywords)
                bad = printing or act in (
                    "print",
                    "input",
                    "exit",
                    "quit",
                    "sys.exit",
                    "os._exit",
                    "SystemExit",
                )
            else:
                bad = isinstance(node, ast.Attribute) and ast.unparse(node) in (
                    "sys.stdout",
                    "sys.stderr",
                    "sys.argv",
                )
            if bad:
                wrong.append(f"{name} line {node.lineno}: {ast.unparse(node)}")
    assert wrong == []


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.__stdout__)"


@pytest.mark.parametrize("arguments", [["--help"], ["traffic", "--help"], ["profile", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"""
import sys
sys.argv = ["simulate", *{arguments!r}]
from fleetcast.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("END OF HELP")
{LOADED}
"""
    text, _, loaded = run(code).partition("END OF HELP")
    assert "--help" in text
    assert {"numba", "polars", "altair", "scipy"}.isdisjoint(loaded.split())


def test_the_front_door_alone_loads_nothing() -> None:
    loaded = run(f"import fleetcast\n{LOADED}").split()
    assert "fleetcast" in loaded
    assert {"numpy", "numba", "polars", "altair", "scipy", "pydantic", "rich", "typer"}.isdisjoint(loaded)


@pytest.mark.parametrize("name", fleetcast.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fleetcast, name) is not None
    assert name in dir(fleetcast)


def test_type_checkers_see_the_same_names() -> None:
    declared = {
        alias.name: node.module
        for node in ast.walk(modules()["fleetcast"])
        if isinstance(node, ast.ImportFrom) and within(str(node.module), "fleetcast")
        for alias in node.names
    }
    assert declared == fleetcast._HOMES
    assert sorted([*declared, "__version__"]) == sorted(fleetcast.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'fleetcast' has no attribute 'simulat'"):
        fleetcast.simulat  # noqa: B018
