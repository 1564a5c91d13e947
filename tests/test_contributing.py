"""CONTRIBUTING and what runs for it: the commands that it names exist, and workflows and hooks start what is there."""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from alphagateau.commands.main import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
MARKS = {line.partition(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
# Beside what a virtual environment of the `dev` extra holds.
SYSTEM = {"python", "python3", "bash", "apt", "git", "pre-commit"}


def commands() -> list[str]:
    """The page's commands: indented lines without their comments, and spans of code that begin with a program."""
    blocks = re.findall(r"^    (\S.*?)(?:\s{2,}#.*)?$", PAGE, re.M)
    programs = r"(?:[A-Z_]+=\S+ )?(?:pytest|python|pre-commit|alphagateau|\.ci/\w+$)(?: |$)"
    spans = [span for span in re.findall(r"`([^`\n]+)`", PAGE) if re.match(programs, span)]
    return list(dict.fromkeys(part for line in [*blocks, *spans] for part in line.split(" && ")))


def test_the_page_has_commands():
    assert len(commands()) > 8


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_page_can_be_run(command):
    words = [word for word in command.split() if not re.match(r"[A-Z_]+=", word)]
    program = words[0].removeprefix(".venv/bin/")
    assert program in SYSTEM or is_installed(program) or os.access(ROOT / program, os.X_OK)
    paths = [word for word in words[1:] if re.search(r"^tests\b|\.py$|\.txt$|\.toml$", word)]
    assert not [path for path in paths if not (ROOT / path).exists()]
    if program == "pytest":
        assert set(re.findall(r'-m "?(?:not )?(\w+)', command)) <= MARKS
    if program == "alphagateau":
        assert words[1] in COMMANDS


def is_installed(program: str) -> bool:
    """True if a program lies beside this Python, where an environment has the programs of its packages."""
    return shutil.which(program, path=str(Path(sys.executable).parent)) is not None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_scripts_that_are_there(path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    scripts = [step["run"] for step in steps if "run" in step]
    assert scripts and all(os.access(ROOT / script, os.X_OK) for script in scripts)
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)


def test_workflows_run_what_must_pass_on_every_python_of_the_package():
    (job,) = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"].values()
    versions = next(step["with"]["python-version"] for step in job["steps"] if "with" in step).split()
    classifiers = PROJECT["project"]["classifiers"]
    assert {f"Programming Language :: Python :: {version}" for version in versions} <= {*classifiers}
    assert len(versions) == sum("Python :: 3" in line for line in classifiers)
    assert job["steps"][-1]["run"] == ".ci/run"


def test_hooks_before_a_commit_run_tools_of_the_dev_extra():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    for hook in repository["hooks"]:
        program, *words = hook["entry"].split()
        assert program in PROJECT["project"]["optional-dependencies"]["dev"] and hook["language"] == "system"
        assert not [word for word in words if "/" in word and not (ROOT / word).exists()]


def test_one_version_is_named_everywhere():
    version = PROJECT["project"]["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == version
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert newest and newest[1].rstrip(",") == version
