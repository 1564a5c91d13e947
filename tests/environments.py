"""A clean environment for tests of what is installed: this one's dependencies, and the package only as it was built."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

# `pip install` in it takes what lies at hand: no index, no build environment of its own, nothing already installed.
OFFLINE = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_IGNORE_INSTALLED": "1"}


def make_environment(folder: Path) -> dict[str, str]:
    """Makes a virtual environment that finds the packages of this one, and returns the variables to run in it.

    Python reads no `.pth` in a folder that a `.pth` names, so an editable install of the package is not found.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    shared = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    Path(paths["purelib"], "shared.pth").write_text("\n".join(shared), encoding="utf-8")
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m pip --quiet --disable-pip-version-check "$@"\n')
    pip.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return inherited | OFFLINE | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def run(environment: dict[str, str], folder: Path, *words: str) -> str:
    """Standard output of a command of an environment, run in `folder`."""
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout
