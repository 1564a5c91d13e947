"""Dependencies: declared are those that the code imports and no other, each pinned and under a known licence."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import distributions, packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
# Programs of the `dev` extra, which no test imports, and the file that calls them.
PROGRAMS = {
    "pytest-xdist": ("README.md", "pytest -n 2"),
    "pytest-cov": (".ci/run", "--cov=alphagateau"),
    "ruff": (".ci/run", "ruff check"),
    "pyright": (".ci/run", "pyright --pythonpath"),
    "hatchling": ("tests/test_wheel.py", '"-m", "hatchling"'),
}
BROUGHT = {"tensorstore", "packaging"}  # by orbax-checkpoint and pytest
GPL = {"chess", "pyffish"}  # NOTICE has the first; the second is for tests alone
PRIVATE_JAX = {"alphagateau/distributed/jax_internals.py"}


def name_of(requirement: str) -> str:
    """The package that a requirement asks for, spelt as the standard says."""
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports, dotted, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return frozenset(found)


def imported_packages(*folders: str) -> set[str]:
    """Packages, as pip names them, of all third-party modules that the code in folders imports.

    Peers that `benchmarks/peers.py` compares with are the user's to install.
    """
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    files = [path for path in paths if path.parent.name != "peer_programs"]
    modules = {name.partition(".")[0] for path in files for name in imports(path)}
    providers = packages_distributions()
    helpers = {name for path in paths if "alphagateau" not in folders for name in (path.stem, path.parent.name)}
    ours = {"alphagateau", *sys.stdlib_module_names, *helpers}
    return {name_of(providers[module][0]) for module in modules - ours}


def names_of(requirements: list[str]) -> set[str]:
    return {name_of(requirement) for requirement in requirements}


def test_every_package_that_the_code_imports_is_a_declared_dependency_and_no_other():
    assert imported_packages("alphagateau") == names_of(CORE)


def test_every_package_of_the_dev_extra_is_imported_by_tests_or_called_by_name():
    dev = names_of(EXTRAS["dev"])
    assert imported_packages("tests", "benchmarks") - names_of(CORE) - BROUGHT == dev - {*PROGRAMS}
    assert not [name for name in PROGRAMS if name not in dev]
    for file, call in PROGRAMS.values():
        assert call in (ROOT / file).read_text(encoding="utf-8")


def test_the_other_extras_choose_a_build_of_a_dependency():
    assert {name for extra in {*EXTRAS} - {"dev"} for name in names_of(EXTRAS[extra])} == {"jax"}


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


def test_the_page_of_dependencies_has_a_row_for_each():
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w-]+) \| [^|]+ \| [A-Z]", page, re.M)  # the third column is a licence
    assert sorted(rows) == sorted(names_of(CORE) | names_of(EXTRAS["dev"]))


def test_no_pinned_package_is_under_the_gpl_but_those_that_are_named():
    pinned = names_of((ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    installed = {name_of(found.name): found.metadata for found in distributions()}
    found = set()
    for name in pinned & {*installed}:
        about = installed[name]
        licence = (about["License"] or "").partition("\n")[0]
        kinds = [line for line in about.get_all("Classifier") or [] if line.startswith("License")]
        if re.search(r"GPL|General Public", " ".join([about["License-Expression"] or "", licence, *kinds])):
            found.add(name)
    assert found == GPL & {*installed}


def test_every_accepted_advisory_has_its_reason_on_the_page_of_security():
    lines = (ROOT / ".ci" / "audit.txt").read_text(encoding="utf-8").splitlines()
    accepted = [line.split(maxsplit=1) for line in lines if not line.startswith("#")]
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert accepted and all(re.fullmatch(r"(CVE|GHSA|PYSEC)-[\w-]+", name) and name in page for name, _ in accepted)


@pytest.mark.parametrize("code", [0, 1])
def test_the_audit_asks_about_every_file_of_pins_and_accepts_what_is_listed(code, tmp_path):
    for file in (ROOT / ".ci" / "audit", ROOT / ".ci" / "audit.txt", *ROOT.glob("constraints*.txt")):
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(file, target)
    program = tmp_path / ".venv-audit" / "bin" / "pip-audit"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$@"\n[ "$5" != constraints.txt ] || exit {code}\n')
    program.chmod(0o755)
    done = subprocess.run([tmp_path / ".ci" / "audit", "--desc"], capture_output=True, text=True)
    asked = [line for line in done.stdout.splitlines() if line.startswith("--strict")]
    accepted = "--ignore-vuln CVE-2025-5321 --ignore-vuln CVE-2025-51464 --desc"
    files = sorted(path.name for path in ROOT.glob("constraints*.txt"))
    assert sorted(asked) == [f"--strict --no-deps --disable-pip -r {name} {accepted}" for name in files]
    assert done.returncode == code
