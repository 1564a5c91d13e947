"""Other programs and packages: words of command lines, the environment of another Python, installed versions."""

import importlib.metadata
import os
import shlex
import sys


def split_command(command: str, is_windows: bool = os.name == "nt") -> list[str]:
    r"""The words of a command, as a shell takes them; on Windows a backslash stands for itself, as in C:\engines\x.exe.

    Raises ValueError for a quote that is not closed.
    """
    words = shlex.split(command, posix=not is_windows)
    return [word[1:-1] if is_windows and word[:1] == word[-1:] == '"' else word for word in words]


def python_environment(**variables: str) -> dict[str, str]:
    """For a Python started with -P that finds the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def own_version() -> str:
    """Our version in one word, as engines name it; a source tree may be on the path and not installed."""
    return version_of("alphagateau") or "uninstalled"
