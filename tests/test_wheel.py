"""Wheel and source distribution are whole: they install the same package, which works where no checkout is."""

import csv
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from environments import make_environment, run

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def build(source: Path, out: Path, target: str) -> Path:
    """Builds a `wheel` or an `sdist` of the package in `source` without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), "-t", target]
    subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    (built,) = out.glob({"wheel": "*.whl", "sdist": "*.tar.gz"}[target])
    return built


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("built")
    return {target: build(ROOT, out, target) for target in ("wheel", "sdist")}


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


@pytest.mark.whole
def test_a_wheel_holds_the_package_with_its_experiments_and_nothing_else(built):
    files = {path.relative_to(ROOT).as_posix(): path for path in files_below(ROOT / "alphagateau")}
    files |= {f"alphagateau/{path.relative_to(ROOT).as_posix()}": path for path in files_below(ROOT / "experiments")}
    found = contents(built["wheel"])
    described = {name for name in found if name.startswith(f"alphagateau-{PROJECT['version']}.dist-info/")}
    assert {name: found[name] for name in {*found} - described} == {name: files[name].read_bytes() for name in files}
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE", "NOTICE"}
    assert {name.rpartition("/")[2] for name in described} == about
    assert "alphagateau/py.typed" in found and max(map(len, found.values())) < 2**18


@pytest.mark.whole
def test_the_source_distribution_builds_the_same_wheel(built, tmp_path):
    with tarfile.open(built["sdist"]) as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # of Python 3.11.4
        archive.extractall(tmp_path, **safely)
    (source,) = tmp_path.iterdir()
    assert max(path.stat().st_size for path in files_below(source)) < 2**21
    assert contents(build(source, tmp_path / "again", "wheel")) == contents(built["wheel"])


def install(package: Path, tmp_path: Path) -> tuple[dict[str, str], Path, Path]:
    """The variables of an environment with a package installed, an empty folder to work in, and where it lies."""
    environment, folder = make_environment(tmp_path / "environment"), tmp_path / "empty"
    folder.mkdir()
    run(environment, folder, "pip", "install", str(package))
    where = run(environment, folder, "python", "-c", "import alphagateau; print(alphagateau.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "environment")
    return environment, folder, Path(where.strip()).parent


@pytest.mark.whole
def test_the_source_distribution_installs_what_the_wheel_holds(built, tmp_path):
    """So that what holds of the wheel's package holds of it."""
    environment, folder, package = install(built["sdist"], tmp_path)
    found = {path.relative_to(package.parent).as_posix(): path.read_bytes() for path in files_below(package)}
    held = contents(built["wheel"])
    assert found == {name: held[name] for name in held if name.startswith("alphagateau/")}
    assert run(environment, folder, "alphagateau", "--version") == f"alphagateau {PROJECT['version']}\n"


@pytest.mark.whole
def test_what_is_installed_trains_plays_and_rates_in_an_empty_folder(built, tmp_path):
    environment, folder, _ = install(built["wheel"], tmp_path)

    def alphagateau(*words: str) -> str:
        return run(environment, folder, "alphagateau", *words)

    assert alphagateau("--version") == f"alphagateau {PROJECT['version']}\n"
    alphagateau("train", "smoke", "--num-iterations", "1")
    assert json.loads(alphagateau("info", "checkpoints/smoke", "--json"))["iteration"] == 1
    alphagateau("match", "checkpoints/smoke", "random", "--games", "2", "--simulations", "2")
    options = ["--matching", "all", "--games-per-pair", "2", "--simulations", "2"]
    alphagateau("ladder", "checkpoints/smoke", "random", *options, "--out", "rated")
    with open(folder / "rated" / "results.csv", encoding="utf-8") as file:
        played = [sum(int(row[result]) for result in ("wins", "draws", "losses")) for row in csv.DictReader(file)]
    assert played == [2, 2, 2]  # of iterations 0 and 1 and the random mover
    assert "random" in alphagateau("rate", "rated/results.csv")
    alphagateau("report", "checkpoints/smoke")
