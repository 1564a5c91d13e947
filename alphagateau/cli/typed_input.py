"""Opens standard input for commands that converse: text, whatever bytes it holds."""

import io
import sys
from typing import TextIO

from alphagateau.cli.arguments import UsageError


def open_input(command: str) -> TextIO:
    """Standard input, in which a mark stands for bytes that are no text. Raises UsageError if it is closed."""
    if sys.__stdin__ is None:
        raise UsageError(f"{command} has a closed standard input: expected a terminal, a file or a pipe to read from")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin
