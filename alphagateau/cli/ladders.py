"""Plays a ladder, prints its ratings and writes its tables, plot and pages."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from alphagateau.cli.ladder_report import report_of
from alphagateau.config import LadderConfig
from alphagateau.matches.ladder.ladder import MissingPlayers, RatedPool, merge_ladders, play_ladder
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.ladder.rounds import Say
from alphagateau.ratings.rate import Ratings
from alphagateau.reports.boards_page import write_boards_page
from alphagateau.reports.ratings import print_ratings, write_ratings_report
from alphagateau.runs.checkpoint import CheckpointError

WATCH_SECONDS = 5.0  # between two scans for new checkpoints


def run_ladder(
    ladder: LadderConfig,
    folder: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
    should_renew: Callable[[], bool] = lambda: False,
) -> list[Ratings]:
    """Plays what is left, and writes and prints each board's table, plot, games and page."""
    return _report(ladder, folder, play_ladder(ladder, folder, Say(say, should_stop, should_renew)))


def merge_into_ladder(
    ladder: LadderConfig, folder: Path, sources: Sequence[Path], say: Callable[[str], None]
) -> list[Ratings]:
    """Takes up the games of other ladders, and writes and prints what `run_ladder` does."""
    return _report(ladder, folder, merge_ladders(ladder, folder, sources, Say(say)))


def watch_ladder(
    ladder: LadderConfig, folder: Path, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> None:
    """Plays for ever: each time that the checkpoints of its runs are others, on with them."""
    while not should_stop():
        known = list_specs(ladder.players, ladder.every)
        has_changed = _every_seconds(WATCH_SECONDS, partial(_has_changed, ladder, known))
        try:
            run_ladder(ladder, folder, say, should_stop, has_changed)
        except (MissingPlayers, CheckpointError) as error:
            say(str(error))
        limit = f"; max_games is {ladder.max_games:,}, newcomers included" if ladder.max_games else ""
        say(f"waiting for new checkpoints; the page so far is {folder / 'index.html'}{limit}")
        while not (should_stop() or has_changed()):
            time.sleep(0.2)


def _has_changed(ladder: LadderConfig, known: list[str]) -> bool:
    return list_specs(ladder.players, ladder.every) != known


def _every_seconds(seconds: float, ask: Callable[[], bool]) -> Callable[[], bool]:
    """`ask`, asked at most every so many seconds; once it has said yes it is not asked again."""
    state = {"next": 0.0, "answer": False}

    def answer() -> bool:
        if not state["answer"] and time.monotonic() >= state["next"]:
            state.update(next=time.monotonic() + seconds, answer=ask())
        return bool(state["answer"])

    return answer


def _report(ladder: LadderConfig, folder: Path, pools: Iterable[RatedPool]) -> list[Ratings]:
    """Writes and prints what there is to say of each board, as it ends, and at last of all of them."""
    reports = {}
    for pool in pools:
        reports[pool.board] = report_of(pool)
        write_ratings_report(pool.folder, reports[pool.board])
        print_ratings(pool.ratings, pool.title)
    if len(ladder.boards) > 1:
        write_boards_page(folder, reports)
    return [report.ratings for report in reports.values()]
