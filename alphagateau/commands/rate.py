"""Rates the players of a table of results or of PGN games."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from alphagateau.cli.arguments import FileOptions, UsageError, number
from alphagateau.cli.outputs import RATINGS


@dataclasses.dataclass(frozen=True)
class Arguments(FileOptions):
    """Rate the players of a table of results or of PGN games, without playing.

    A table has the columns player,opponent,wins,draws,losses. The method `history` takes players named RUN/ITERATION,
    such as quickstart/14, as checkpoints of one run. docs/ratings.md describes the methods.

    Example: alphagateau rate results.csv --method wls --out ratings
    """

    results: tyro.conf.Positional[Path]
    """RESULTS.csv or GAMES.pgn, also packed: .gz, .bz2, .xz, .zst"""
    method: Literal["bradley-terry", "history", "wls"] = "bradley-terry"
    """how ratings are estimated"""
    anchor: Annotated[str | None, tyro.conf.arg(metavar="PLAYER")] = None
    """the player whose rating is the anchor rating; UCI_Elo: engines at its levels; None: 1000 is the mean"""
    anchor_rating: Annotated[float, number(float, -1e6, 1e6)] = 0.0
    """rating of the anchor, Elo"""
    format: Literal["text", "markdown", "latex", "json"] = "text"
    """of the table printed; LaTeX needs the package booktabs"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), RATINGS] = None
    """also write the table, the plot and a page there; a folder that holds other results is refused"""


def run(arguments: Arguments) -> int:
    """Prints the ratings."""
    if arguments.anchor_rating and arguments.anchor in (None, "UCI_Elo"):
        raise UsageError(f"--anchor-rating {arguments.anchor_rating:g} needs --anchor, the player who has it")
    from alphagateau.matches.recorded_results import read_any_results
    from alphagateau.ratings.curves import curves_by_name
    from alphagateau.ratings.rate import rate
    from alphagateau.reports.ratings import RatingsReport, print_ratings, write_ratings_report

    path = arguments.results
    results, notes = read_any_results(str(path), arguments.bounds)
    ratings = rate(results, arguments.method, arguments.anchor, anchor_rating=arguments.anchor_rating)
    curves = curves_by_name(results.players)
    rated = RatingsReport(path.stem, results, ratings, curves, notes=notes)
    print_ratings(rated._replace(title=str(path)), arguments.format)
    for note in notes:
        print(f"note: {note}", file=sys.stdout if arguments.format == "text" else sys.stderr)
    if arguments.out:
        write_ratings_report(arguments.out, rated)
    return 0
