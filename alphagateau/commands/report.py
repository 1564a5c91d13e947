"""`alphagateau report`: a run in, one self-contained HTML page out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau.commands.arguments import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one self-contained HTML page of a run.

    Curves, health, calibration, cost, versions, sample games.

    Example: alphagateau report checkpoints/quickstart
    """

    run: tyro.conf.Positional[Path]
    """the run's folder"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html")] = None
    """where to; None: RUN/report.html"""


def run(words: Sequence[str]) -> int:
    """Prints the page's path."""
    arguments = parse(Arguments, words, "report")
    from alphagateau.reports.run import write_report

    print(write_report(arguments.run, arguments.out))
    return 0
