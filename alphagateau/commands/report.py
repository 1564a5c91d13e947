"""Writes a page of a run, or anew the page of a study or the curves of a ladder."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau.cli.outputs import DRAWING


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Write one self-contained HTML page of a run.

    It shows curves, health, calibration, cost, versions and sample games. For a study's results in eval/<study>, its
    page and drawings are written anew from study.json. For a ladder's results, curves of Elo against iterations,
    frames, device-hours and FLOPs are drawn from ratings.csv.

    Example: alphagateau report checkpoints/quickstart
    """

    run: tyro.conf.Positional[Path]
    """folder of the run, or of the results of a study or ladder"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE.html"), DRAWING] = None
    """the file to write; None: RUN/report.html, index.html of a study, curves.svg of a ladder"""


def run(arguments: Arguments) -> int:
    """Prints the page's path."""
    if (arguments.run / "study.json").exists():
        from alphagateau.reports.study_page import rewrite_study as write
    elif (arguments.run / "ratings.csv").exists():
        from alphagateau.reports.ladder_page import draw_curves as write
    else:
        from alphagateau.reports.run import write_report as write
    print(write(arguments.run, arguments.out))
    return 0
