"""Imports point one way, as TABLE says; read from the source, so that an import inside a function counts."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import alphagateau

PACKAGE = Path(alphagateau.__file__).parent
OUTSIDE = {"eval", "examples", "experiments", "benchmarks", "tests"}

# What the modules of each package, its rooms included, may import of the others. `training`, `matches` and `reports`
# never meet.
TABLE: dict[str, set[str]] = {
    "config": set(),
    "games": {"config"},  # its register
    "distributed": set(),
    "ratings": {"runs"},
    "runs": {"config", "games", "distributed"},
    "networks": {"config", "games", "distributed", "runs"},
    "search": {"config", "games", "networks"},
    "engines": {"games", "runs"},
    "data": {"games", "runs", "engines"},
    "training": {"config", "games", "networks", "search", "distributed", "runs", "data"},
    "matches": {"config", "games", "networks", "search", "distributed", "runs", "ratings", "engines"},
    "suites": {"config", "games", "networks", "search", "distributed", "runs", "data", "matches", "ratings"},
    "studies": {"config", "ratings", "runs"},
    "reports": {"config", "games", "ratings", "runs", "studies"},
    "play": {"config", "games", "networks", "search", "distributed", "runs", "matches", "ratings", "reports"},
    "envs": {"games"},  # and pgx
    "builtin": {"config", "games", "networks", "search", "training"},
}
TABLE["cli"] = TABLE["api"] = {*TABLE, "cli"}
TABLE["commands"] = {*TABLE}
# The rooms within packages, and which sisters each may import.
ROOMS: dict[str, set[str]] = {
    "games/pgn": set(),
    "networks/gateau": set(),
    "networks/alphazero": {"gateau"},  # the features of its planes are those of the graph's nodes
    "networks/chessformer": {"gateau"},
    "networks/tokens": set(),
    "networks/giraffe": set(),
    "search/gumbel": set(),
    "search/minimax": set(),
    "search/growing": set(),
    "training/losses": set(),
    "training/selfplay": {"losses"},
    "training/labels": {"losses"},
    "matches/ladder": set(),
    "reports/drawing": set(),
    "runs/logging": set(),
    "play/board": set(),
    "play/uci": set(),
}
FILES = {"builtin"}  # beside the packages
MOST_FILES = 16  # modules of a folder, its face aside; `commands` has one a command


def package_of(module: str) -> str:
    """The package of a module, a file beside the packages being its own; "" for the whole package's face."""
    return module.split(".")[1] if "." in module else ""


def room_of(module: str) -> str:
    """The room within a package that a module lies in, such as "networks/gateau"; "" for the package's own files."""
    room = "/".join(module.split(".")[1:3])
    return room if (PACKAGE / room).is_dir() and "/" in room else ""


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports_of(path: Path) -> frozenset[str]:
    """All modules that a file imports, `from package import module` counted as the module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}, line {node.lineno}: a relative import"
            of_names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else node.module or "" for name in of_names}
    return frozenset(found)


def inner_imports(module: str) -> set[str]:
    """The other modules of the package that a module imports; the face hands on what `api` has when asked for it."""
    found = {name for name in imports_of(modules()[module]) if name in modules()} - {module}
    return set() if module == "alphagateau" else found


def test_every_package_is_in_the_table():
    packages = {package_of(module) for module in modules()} - {""}
    assert packages == set(TABLE)


@pytest.mark.parametrize("module", [m for m in modules() if package_of(m)])
def test_a_module_imports_only_what_the_table_allows(module):
    allowed = TABLE[package_of(module)] | {package_of(module), ""}
    assert {package_of(other) for other in inner_imports(module)} <= allowed


@pytest.mark.parametrize("module", [m for m in modules() if room_of(m)])
def test_a_room_imports_no_sister_but_those_named(module):
    package, room = room_of(module).split("/")
    rooms = {room_of(other) for other in inner_imports(module) if package_of(other) == package} - {""}
    assert rooms <= {f"{package}/{name}" for name in ROOMS[f"{package}/{room}"] | {room}}


def test_every_room_is_named():
    assert {room_of(module) for module in modules()} - {""} == set(ROOMS)


def test_no_folder_holds_more_than_a_reader_takes_in():
    for folder in {path.parent for path in modules().values()} - {PACKAGE / "commands"}:
        assert len(list(folder.glob("*.py"))) - 1 <= MOST_FILES, folder


def test_modules_import_one_another_without_a_cycle():
    order = TopologicalSorter({module: inner_imports(module) for module in modules()})
    order.prepare()  # graphlib.CycleError names the cycle


@pytest.mark.parametrize("package", sorted({*TABLE, *ROOMS} - FILES - {"config"}))
def test_a_package_says_what_it_holds_and_imports_nothing(package):
    body = ast.parse((PACKAGE / package / "__init__.py").read_text()).body
    assert len(body) == 1 and isinstance(body[0], ast.Expr)


def test_only_networks_see_graphs():
    for module, path in modules().items():
        if package_of(module) != "networks":
            found = imports_of(path)
            assert not {name for name in found if name.startswith(("jraph", "alphagateau.networks.gateau.graph"))}, (
                module
            )


def test_a_submodule_that_is_imported_is_used():
    """As `import scipy.linalg`, which linters pass over while another submodule of scipy is used."""
    for module, path in modules().items():
        source = path.read_text()
        for name in re.findall(r"^ *import (\w+\.[\w.]+)$", source, re.MULTILINE):
            assert re.search(rf"(?<!import ){re.escape(name)}\.\w", source), f"{module}: {name}"


def test_a_docstring_begins_with_a_verb_or_a_noun_of_the_field():
    """The form "what goes in, what comes out" names neither."""
    for module, path in modules().items():
        first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
        assert not re.search(r"\bin[,;] .*\bout\b", first), module


def test_nothing_imports_what_stands_outside_the_package():
    for module, path in modules().items():
        assert not OUTSIDE & {name.partition(".")[0] for name in imports_of(path)}, module


def test_a_run_starts_without_what_it_needs_later_or_never():
    """Pgx compiles programs when it is imported; orbax and Aim are imported with the first checkpoint and log."""
    later = {"pgx", "orbax", "aim", "statsmodels", "scipy", "pandas", "matplotlib"}
    code = f"import sys, alphagateau.commands.train, alphagateau.training.loop; print({later} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize("module", ["config", "ratings.rate", "runs.stop", "runs.logging.aim_log", "commands.main"])
def test_what_must_start_quickly_imports_no_jax(module):
    """In a process of its own; an import inside a function is not made until it is called."""
    code = f"import sys, alphagateau.{module}; print({{'jax', 'flax', 'aim'}} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
