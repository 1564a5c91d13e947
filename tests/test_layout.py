"""Imports point one way, as the design says; read from the source, so that an import inside a function counts."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import alphagateau

PACKAGE = Path(alphagateau.__file__).parent
OUTSIDE = {"eval", "experiments", "benchmarks", "tests"}
CHAIN = ["games", "graphs", "networks", "search", "selfplay", "engine", "run", "cli"]


def units() -> dict[str, list[Path]]:
    """Each module with its file, each folder with all of its files."""
    found = {path.stem: [path] for path in PACKAGE.glob("*.py") if path.stem != "__init__"}
    folders = {path.parent for path in PACKAGE.glob("*/*.py")}
    return found | {folder.name: sorted(folder.rglob("*.py")) for folder in folders}


@cache
def imports_of(path: Path) -> frozenset[tuple[str, str]]:
    """(module, name) of all that a file imports; a plain `import module` has no name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}, line {node.lineno}: a relative import"
            found |= {(node.module or "", alias.name) for alias in node.names}
    return frozenset(found)


@cache
def imported_units(unit: str) -> frozenset[str]:
    """The other units of the package that a unit imports itself."""
    known, found = units(), set()
    for module, name in {pair for path in known[unit] for pair in imports_of(path)}:
        root, _, rest = module.partition(".")
        if root == "alphagateau":
            found.add(rest.partition(".")[0] or name)
    return frozenset(found & known.keys() - {unit})


@cache
def reached(unit: str) -> frozenset[str]:
    """All units that a unit imports, others in between or not."""
    found, new = set(), {unit}
    while new:
        found |= new
        new = {other for x in new for other in imported_units(x)} - found
    return frozenset(found - {unit})


def test_the_package_is_read():
    assert {"types", "games", "networks", "search", "cli"} <= units().keys()
    assert {"games", "types"} <= imported_units("search")
    assert "networks" in reached("run")


def test_imports_have_no_cycle():
    order = TopologicalSorter({unit: imported_units(unit) for unit in units()})
    order.prepare()  # graphlib.CycleError names the cycle


@pytest.mark.parametrize("place", range(len(CHAIN)), ids=CHAIN)
def test_no_module_reaches_one_further_down_the_chain(place):
    assert not reached(CHAIN[place]) & set(CHAIN[place + 1 :])


@pytest.mark.parametrize("unit", ["config", "types", "elo", "stopping"])
def test_the_foundations_import_nothing_of_the_package(unit):
    assert imported_units(unit) == set()


@pytest.mark.parametrize("unit", ["replay", "training", "checkpoint", "metrics", "sharding"])
def test_the_parts_of_the_loop_do_not_know_it(unit):
    assert not reached(unit) & {"selfplay", "engine", "run", "cli", "arena", "match"}


def test_playing_matches_needs_no_training():
    training = {"selfplay", "replay", "training", "engine", "run", "cli"}
    assert "search" in reached("arena")
    assert not reached("arena") & training and not reached("match") & training


def test_only_networks_see_graphs():
    for unit in units().keys() - {"graphs", "networks"}:
        pairs = {pair for path in units()[unit] for pair in imports_of(path)}
        names = {name for module, name in pairs if module == "alphagateau.graphs"}
        names |= {"graphs"} & {name for module, name in pairs if module == "alphagateau"}
        assert not names, unit
        assert "jraph" not in {module.partition(".")[0] for module, _ in pairs}, unit


def test_nothing_imports_what_stands_outside_the_package():
    for unit in units():
        for path in units()[unit]:
            assert not OUTSIDE & {module.partition(".")[0] for module, _ in imports_of(path)}, path


@pytest.mark.parametrize("unit", ["config", "elo", "stopping", "cli"])
def test_what_must_start_quickly_imports_no_jax(unit):
    """In a process of its own; an import inside a function is not made until it is called."""
    code = f"import sys, alphagateau.{unit}; print({{'jax', 'flax', 'aim'}} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
