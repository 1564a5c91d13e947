"""Plays a ladder, prints its ratings and writes its tables, plot and pages."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from alphagateau.cli.ladder_report import report_of
from alphagateau.config import LadderConfig
from alphagateau.matches.ladder.ladder import MissingPlayers, RatedPool, merge_ladders, play_ladder
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.specs import PlayerSpec
from alphagateau.ratings.rate import Ratings
from alphagateau.reports.boards_page import write_boards_page
from alphagateau.reports.ratings import print_ratings, write_ratings_report
from alphagateau.runs.checkpoint import CheckpointError

WATCH_SECONDS = 5.0  # between two scans for new checkpoints


def run_ladder(
    ladder: LadderConfig,
    folder: Path,
    report: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
    should_renew: Callable[[], bool] = lambda: False,
    specs: Sequence[PlayerSpec] | None = None,
) -> list[Ratings]:
    """Plays the games that are left, and writes and prints each board's table, plot, games and page.

    `specs`: the players, found before, in the place of those that the ladder names.
    """
    specs = list_specs(ladder.players, ladder.every) if specs is None else specs
    return _report(ladder, folder, play_ladder(ladder, specs, folder, Callbacks(report, should_stop, should_renew)))


def merge_into_ladder(
    ladder: LadderConfig, folder: Path, sources: Sequence[Path], report: Callable[[str], None]
) -> list[Ratings]:
    """Adds the games of other ladders, and writes and prints what `run_ladder` does."""
    specs = list_specs(ladder.players, ladder.every)
    return _report(ladder, folder, merge_ladders(ladder, specs, folder, sources, Callbacks(report)))


def watch_ladder(
    ladder: LadderConfig, folder: Path, report: Callable[[str], None], should_stop: Callable[[], bool]
) -> None:
    """Plays until it is stopped, and begins anew whenever the checkpoints of its runs change."""
    while not should_stop():
        specs = list_specs(ladder.players, ladder.every)
        has_changed = _watch(ladder, [spec.text for spec in specs])
        try:
            run_ladder(ladder, folder, report, should_stop, has_changed, specs)
        except (MissingPlayers, CheckpointError) as error:
            report(str(error))
        limit = f"; max_games is {ladder.max_games:,}, newcomers included" if ladder.max_games else ""
        report(f"waiting for new checkpoints; the page so far is {folder / 'index.html'}{limit}")
        while not (should_stop() or has_changed()):
            time.sleep(0.2)


def _watch(ladder: LadderConfig, known: list[str]) -> Callable[[], bool]:
    """A call that is True once other checkpoints are there than those known; it scans every WATCH_SECONDS."""
    next_scan, is_changed = 0.0, False

    def has_changed() -> bool:
        nonlocal next_scan, is_changed
        if not is_changed and time.monotonic() >= next_scan:
            next_scan = time.monotonic() + WATCH_SECONDS
            is_changed = [spec.text for spec in list_specs(ladder.players, ladder.every)] != known
        return is_changed

    return has_changed


def _report(ladder: LadderConfig, folder: Path, pools: Iterable[RatedPool]) -> list[Ratings]:
    """Writes and prints the results of each board as it ends, and at last the page of all boards."""
    reports = {}
    for pool in pools:
        reports[pool.board] = report_of(pool)
        write_ratings_report(pool.folder, reports[pool.board])
        print_ratings(pool.ratings, pool.title)
    if len(ladder.boards) > 1:
        write_boards_page(folder, reports)
    return [report.ratings for report in reports.values()]
