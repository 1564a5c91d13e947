"""Splits the command lines of other programs into words."""

import os
import shlex


def split_command(command: str, is_windows: bool = os.name == "nt") -> list[str]:
    r"""The words of a command, as a shell takes them; on Windows a backslash stands for itself, as in C:\engines\x.exe.

    Raises ValueError for a quote that is not closed.
    """
    words = shlex.split(command, posix=not is_windows)
    return [word[1:-1] if is_windows and word[:1] == word[-1:] == '"' else word for word in words]
