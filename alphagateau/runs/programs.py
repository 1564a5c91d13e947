"""Command lines of other programs as words, and the environment of another Python."""

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
