"""What is installed is whole: declared dependencies are what the code imports, and a wheel works without a checkout."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PRIVATE_JAX = {"alphagateau/distributed/jax_internals.py"}


def name_of(requirement: str) -> str:
    """The package that a requirement asks for, spelt as the standard says."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def imports(path: Path) -> set[str]:
    """The modules that a file imports, dotted, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def imported_packages() -> set[str]:
    """Packages, as pip names them, of all third-party modules that the code imports."""
    modules = {name.partition(".")[0] for path in (ROOT / "alphagateau").rglob("*.py") for name in imports(path)}
    providers = packages_distributions()
    ours = {"alphagateau", *sys.stdlib_module_names}
    return {name_of(providers[module][0]) for module in modules - ours}


def test_every_package_that_the_code_imports_is_a_declared_dependency_and_no_other():
    assert imported_packages() == {name_of(requirement) for requirement in PROJECT["dependencies"]}


def test_jax_is_bounded_as_long_as_private_modules_of_it_are_imported():
    private = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "alphagateau").rglob("*.py")
        if any(name.startswith("jax._src") for name in imports(path))
    }
    assert private <= PRIVATE_JAX
    (bounds,) = [requirement for requirement in PROJECT["dependencies"] if name_of(requirement) == "jax"]
    assert not private or re.fullmatch(r"jax>=0\.\d+\.\d+,<0\.\d+", bounds)


def test_constraints_pin_every_dependency_to_one_version():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").split()
    pinned = {name_of(line) for line in lines if re.fullmatch(r"[\w.-]+==[\w.]+", line)}
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    assert {name_of(requirement) for requirement in wanted} <= pinned


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which a wheel of the package, built here, is installed without its dependencies."""
    wheels, target = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-w", str(wheels)], check=True)
    (wheel,) = wheels.glob("alphagateau-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--target", str(target), str(wheel)], check=True)
    return target


def run_installed(installed: Path, folder: Path, *words: str) -> str:
    """Standard output of a Python of its own that finds the installed package and no checkout."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.whole
def test_a_wheel_holds_all_that_a_run_reads(installed):
    files = {path: path.relative_to(ROOT) for path in (ROOT / "alphagateau").rglob("*") if path.is_file()}
    files |= {path: Path("alphagateau", path.relative_to(ROOT)) for path in (ROOT / "experiments").rglob("*.toml")}
    for path, place in files.items():
        if path.suffix != ".pyc":
            assert (installed / place).read_bytes() == path.read_bytes()
    (licenses,) = installed.glob("alphagateau-*.dist-info/licenses")
    assert {path.name for path in licenses.iterdir()} == {"LICENSE", "NOTICE"}


@pytest.mark.whole
def test_a_wheel_finds_quickstart_by_name_without_a_checkout(installed, tmp_path):
    where = run_installed(installed, tmp_path, "-P", "-c", "import alphagateau; print(alphagateau.__file__)")
    assert Path(where.strip()).is_relative_to(installed)
    assert "--seed" in run_installed(
        installed, tmp_path, "-m", "alphagateau.commands.main", "train", "quickstart", "--help"
    )
