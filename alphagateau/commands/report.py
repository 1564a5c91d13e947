"""`alphagateau report`: a run, or the results of a study or a ladder in, one self-contained page or drawing out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau.cli.arguments import parse
from alphagateau.cli.outputs import DRAWING


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one self-contained HTML page of a run.

    Curves, health, calibration, cost, versions, sample games. Of the results of a study, eval/<study>, its page and
    beside it curves.svg are made anew from study.json; neither runs nor games are needed. Of the results of a ladder
    its curves are drawn from ratings.csv: Elo against iterations, frames, device-hours, FLOPs.

    Example: alphagateau report checkpoints/quickstart
    """

    run: tyro.conf.Positional[Path]
    """the run's folder, or that of a study's or a ladder's results"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html"), DRAWING] = None
    """where to; None: RUN/report.html, index.html of a study, curves.svg of a ladder"""


def run(words: Sequence[str]) -> int:
    """Prints the page's path."""
    arguments = parse(Arguments, words, "report")
    if (arguments.run / "study.json").exists():
        from alphagateau.reports.study import rewrite_study

        print(rewrite_study(arguments.run, arguments.out))
        return 0
    if (arguments.run / "ratings.csv").exists():
        from alphagateau.reports.ladder_files import draw_curves

        print(draw_curves(arguments.run, arguments.out))
        return 0
    from alphagateau.reports.run import write_report

    print(write_report(arguments.run, arguments.out))
    return 0
