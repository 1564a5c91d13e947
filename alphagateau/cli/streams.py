"""Standard streams of a command: the input of those that converse, and reports of progress."""

import io
import sys
import time
from collections.abc import Callable
from typing import TextIO

from alphagateau.cli.arguments import UsageError
from alphagateau.runs.logging.progress import warn as report

REPORT_SECONDS = 10


def open_input(command: str) -> TextIO:
    """Standard input, with a replacement character for bytes that are no text. Raises UsageError if it is closed."""
    if sys.__stdin__ is None:
        raise UsageError(f"{command} has a closed standard input: expected a terminal, a file or a pipe to read from")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return sys.stdin


def make_reporter(total: int, unit: str, name: str = "") -> Callable[[int], None]:
    """Makes a call, with the number of `total` that are done, which reports at most every REPORT_SECONDS."""
    last = time.monotonic()

    def report_done(done: int) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_SECONDS:
            last = time.monotonic()
            report(f"{name}{': ' if name else ''}{done:,} of {total:,} {unit}")

    return report_done
