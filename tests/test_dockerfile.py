"""The steps of the image, run one by one in a clean folder without a container engine or a network."""

import json
import re
import shutil
import tomllib
from pathlib import Path
from string import Template

import pytest
import yaml
from environments import make_environment, run

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SKIPPED = {"apt-get": "installs engines into the system, from a network"}


def steps() -> list[tuple[str, str]]:
    """Instructions and their arguments, comments left out and continued lines joined."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def build_context(folder: Path) -> None:
    """Copies what .dockerignore lets through: it leaves out everything and names exceptions."""
    everything, *exceptions = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert everything == "*"
    for name in exceptions:
        assert name.startswith("!")
        copy(ROOT / name[1:], folder / name[1:])


def copy(source: Path, target: Path) -> None:
    """Copies a file, or what a folder holds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target / source.name if target.is_dir() else target)


@pytest.mark.whole
@pytest.mark.parametrize("extra", ["", "[cuda]"])
def test_each_step_of_the_image_works_in_a_clean_folder(tmp_path, extra):
    """CUDA's packages are named and not installed, as all that the package depends on; then the image is started."""
    context, image = tmp_path / "context", tmp_path / "image"
    build_context(context)
    environment = make_environment(tmp_path / "environment")
    arguments, work, entry, skipped = {}, image, [], []
    for name, rest in steps():
        if name == "ARG":
            key, _, value = rest.partition("=")
            arguments[key] = extra if key == "EXTRA" else value.strip('"')
        elif name == "ENV":
            settings = dict(word.split("=", 1) for word in rest.split())
            environment |= {key: value.replace("$PATH", environment["PATH"]) for key, value in settings.items()}
        elif name == "WORKDIR":
            work = image / rest.lstrip("/")
            work.mkdir(parents=True)
        elif name == "COPY":
            *sources, target = rest.split()
            for source in sources:
                copy(context / source, work / target if len(sources) == 1 else Path(work, target, source))
        elif name == "RUN" and rest.split()[0] in SKIPPED:
            skipped.append(rest.split()[0])
        elif name == "RUN":
            command = Template(rest).substitute(arguments)
            assert re.findall(r"\.(\[\w+\])", command) == [extra] * bool(extra)
            run(environment, work, "sh", "-c", command)
        elif name in ("ENTRYPOINT", "CMD"):
            entry += json.loads(rest)
        else:
            assert name == "FROM"
    assert skipped == [*SKIPPED]
    where = run(environment, work, "python", "-c", "import alphagateau; print(alphagateau.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "environment")
    (licenses,) = Path(where.strip()).parents[1].glob("alphagateau-*.dist-info/licenses")
    assert sorted(path.name for path in licenses.iterdir()) == ["LICENSE", "NOTICE"]
    assert "alphagateau COMMAND" in run(environment, work, *entry)
    assert "--num-shares" in run(environment, work, entry[0], "train", "frame_window_256_1m", "--help")


def test_the_image_is_that_of_the_jobset_with_a_python_that_the_package_runs_on():
    jobset = yaml.safe_load((ROOT / "experiments" / "jobset.yaml").read_text(encoding="utf-8"))
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"].endswith(f"/alphagateau:{PROJECT['version']}")
    ((_, image),) = [step for step in steps() if step[0] == "FROM"]
    python = re.fullmatch(r"python:(3\.\d+)-slim", image)
    assert python and f"Programming Language :: Python :: {python[1]}" in PROJECT["classifiers"]
