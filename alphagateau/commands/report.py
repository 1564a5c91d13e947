"""`alphagateau report`: a run or the results of a study in, one self-contained HTML page out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau.commands.arguments import parse


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one self-contained HTML page of a run.

    Curves, health, calibration, cost, versions, sample games. Of the results of a study, eval/<study>, its page is
    made anew from study.json; neither runs nor games are needed.

    Example: alphagateau report checkpoints/quickstart
    """

    run: tyro.conf.Positional[Path]
    """the run's folder, or that of a study's results"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html")] = None
    """where to; None: RUN/report.html, or index.html of a study"""


def run(words: Sequence[str]) -> int:
    """Prints the page's path."""
    arguments = parse(Arguments, words, "report")
    if (arguments.run / "study.json").exists():
        from alphagateau.reports.study import rewrite_study

        print(rewrite_study(arguments.run, arguments.out))
        return 0
    from alphagateau.reports.run import write_report

    print(write_report(arguments.run, arguments.out))
    return 0
