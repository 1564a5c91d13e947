"""`alphagateau ladder`."""

from collections.abc import Callable
from pathlib import Path

from alphagateau.matches.ladder import Ladder, play_ladder
from alphagateau.ratings.rate import Ratings
from alphagateau.reports.ratings import RatingsReport, print_ratings, write_ratings_report


def run_ladder(
    ladder: Ladder,
    folder: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Ratings]:
    """Plays what is left, and writes and prints each board's table, plot, games and page."""
    ratings = []
    for pool in play_ladder(ladder, folder, say, should_stop):
        report = RatingsReport(
            pool.title,
            pool.results,
            pool.ratings,
            places=pool.places,
            records=pool.records,
            notes=pool.notes,
            protocol=pool.protocol,
        )
        write_ratings_report(pool.folder, report)
        print_ratings(pool.ratings, pool.title)
        ratings.append(pool.ratings)
    return ratings
