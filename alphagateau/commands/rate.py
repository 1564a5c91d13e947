"""`alphagateau rate`: anybody's results in, ratings out."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from alphagateau.commands.arguments import UsageError, parse
from alphagateau.commands.outputs import RATINGS


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Rate the players of a table of results or of PGN games, without playing.

    A table has the columns player,opponent,wins,draws,losses; docs/ratings.md describes the methods. For `history`
    players called RUN/ITERATION, such as quickstart/14, are checkpoints of one run.

    Example: alphagateau rate results.csv --method wls --out ratings
    """

    results: tyro.conf.Positional[Path]
    """RESULTS.csv or GAMES.pgn, also compressed: GAMES.pgn.gz"""
    method: Literal["bradley-terry", "history", "wls"] = "bradley-terry"
    """how ratings are estimated"""
    anchor: Annotated[str | None, tyro.conf.arg(metavar="PLAYER")] = None
    """the player whose rating is 0; None: the mean is 1000"""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), RATINGS] = None
    """write the table, the plot and a page there too"""


def run(words: Sequence[str]) -> int:
    """Prints the ratings."""
    arguments = parse(Arguments, words, "rate")
    from alphagateau.ratings.curves import curves_by_name
    from alphagateau.ratings.rate import rate
    from alphagateau.ratings.results import ResultsError
    from alphagateau.ratings.results_files import read_any_results
    from alphagateau.reports.ratings import RatingsReport, print_ratings, write_ratings_report

    path = arguments.results
    try:
        results, notes = read_any_results(str(path))
        ratings = rate(results, arguments.method, arguments.anchor)
    except (ResultsError, OSError) as error:
        raise UsageError(str(error)) from None
    print_ratings(ratings, str(path))
    for note in notes:
        print(f"note: {note}")
    if arguments.out:
        curves = curves_by_name(results.players)
        write_ratings_report(arguments.out, RatingsReport(path.stem, results, ratings, curves, notes=notes))
    return 0
