"""`alphagateau ladder`: players in, games, ratings and a page out."""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau import config
from alphagateau.cli.arguments import UsageError, parse
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import LADDER
from alphagateau.config import LadderConfig

if TYPE_CHECKING:
    from alphagateau.matches.ladder.ladder import RatedPool
    from alphagateau.ratings.rate import Ratings

WATCH_SECONDS = 5.0  # between two looks for new checkpoints


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play, rate, and write ratings.csv, results.csv, games.pgn, ratings.svg and index.html.

    Every finished game is on disk at once; the same command goes on. A run stands for all its checkpoints. A ladder
    file has these options as keys, with underscores. docs/ratings.md describes methods and protocols.

    Example: alphagateau ladder checkpoints/quickstart random --every 4 --games-per-pair 10
    """

    players: tyro.conf.Positional[tuple[str, ...]]
    """a ladder file, or runs, checkpoints, random, uci:COMMAND"""
    settings: Annotated[LadderConfig, tyro.conf.arg(name="")]
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), LADDER] = None
    """where to; None: eval/<name of the file>, or eval/ladder"""
    watch: bool = False
    """never end: take up new checkpoints of the runs as they appear, until a signal stops it"""
    merge: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDERS")] = ()
    """play nothing: take up the games of the same ladder from other machines, as folders or games.jsonl, and rate"""


def read_arguments(words: Sequence[str]) -> tuple[LadderConfig, Path, Arguments]:
    """(ladder, folder, what else is asked for), by a file and by options. Raises UsageError, ConfigError."""
    nobody = LadderConfig(players=("random",))
    players = parse(Arguments, words, "ladder", Arguments((), nobody)).players
    if not players:
        raise UsageError("ladder needs a ladder file or players: alphagateau ladder eval/quickstart.toml")
    is_file = len(players) == 1 and players[0].endswith(".toml")
    ladder = config.load_ladder(players[0]) if is_file else LadderConfig(players=players)
    arguments = parse(Arguments, words, "ladder", Arguments(players, ladder))
    table: Mapping[str, Any] = arguments.settings  # pyright: ignore[reportAssignmentType]
    ladder = config.make_ladder(
        {"players": ladder.players, **table}, f"{players[0]} with the options given" if is_file else "ladder"
    )
    if "--merge" in words and not arguments.merge:
        raise UsageError("--merge needs whose games to take up: folders of ladders, or games.jsonl")
    if arguments.watch and arguments.merge:
        raise UsageError("--merge plays nothing, so it does not go with --watch: merge first, then watch")
    name = config.check_folder_name(Path(players[0]).stem, "the ladder's file name") if is_file else "ladder"
    out = arguments.out or Path("eval") / name
    return ladder, out, arguments


def run(words: Sequence[str]) -> int:
    """Plays what is left, and prints the page's path."""
    ladder, folder, arguments = read_arguments(words)
    use_compilation_cache()
    from alphagateau.runs.run_folder import locked
    from alphagateau.runs.stop import StopRequest

    stop = StopRequest()
    try:
        with locked(folder), stop.listening():
            if arguments.merge:
                merge_into_ladder(ladder, folder, arguments.merge, _say)
            elif arguments.watch:
                watch_ladder(ladder, folder, _say, lambda: stop.reason is not None)
            else:
                run_ladder(ladder, folder, _say, lambda: stop.reason is not None)
    except ValueError as error:  # players, boards or openings that cannot be
        raise UsageError(str(error)) from None
    if stop.reason:
        print(f"stopped ({stop.reason}); the same command goes on", file=sys.stderr)
    print(f"{folder / 'index.html'}")
    return 0


def run_ladder(
    ladder: LadderConfig,
    folder: Path,
    say: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
    should_renew: Callable[[], bool] = lambda: False,
) -> "list[Ratings]":
    """Plays what is left, and writes and prints each board's table, plot, games and page."""
    from alphagateau.matches.ladder.ladder import play_ladder
    from alphagateau.matches.ladder.rounds import Say

    return _report(ladder, folder, play_ladder(ladder, folder, Say(say, should_stop, should_renew)))


def merge_into_ladder(
    ladder: LadderConfig, folder: Path, sources: Sequence[Path], say: Callable[[str], None]
) -> "list[Ratings]":
    """Takes up the games of other ladders, and writes and prints what `run_ladder` does."""
    from alphagateau.matches.ladder.ladder import merge_ladders
    from alphagateau.matches.ladder.rounds import Say

    return _report(ladder, folder, merge_ladders(ladder, folder, sources, Say(say)))


def watch_ladder(
    ladder: LadderConfig, folder: Path, say: Callable[[str], None], should_stop: Callable[[], bool]
) -> None:
    """Plays for ever: each time that the checkpoints of its runs are others, on with them."""
    from alphagateau.matches.ladder.ladder import MissingPlayers
    from alphagateau.runs.checkpoint import CheckpointError

    while not should_stop():
        has_changed = _every_seconds(WATCH_SECONDS, partial(_has_changed, ladder, _specs(ladder)))
        try:
            run_ladder(ladder, folder, say, should_stop, has_changed)
        except (MissingPlayers, CheckpointError) as error:
            say(str(error))
        limit = f"; max_games is {ladder.max_games:,}, newcomers included" if ladder.max_games else ""
        say(f"waiting for new checkpoints; the page so far is {folder / 'index.html'}{limit}")
        while not (should_stop() or has_changed()):
            time.sleep(0.2)


def _specs(ladder: LadderConfig) -> list[str]:
    from alphagateau.matches.ladder.players import list_specs

    return list_specs(ladder.players, ladder.every)


def _has_changed(ladder: LadderConfig, known: list[str]) -> bool:
    return _specs(ladder) != known


def _every_seconds(seconds: float, ask: Callable[[], bool]) -> Callable[[], bool]:
    """`ask`, asked at most every so many seconds; once it has said yes it is not asked again."""
    state = {"next": 0.0, "answer": False}

    def answer() -> bool:
        if not state["answer"] and time.monotonic() >= state["next"]:
            state.update(next=time.monotonic() + seconds, answer=ask())
        return bool(state["answer"])

    return answer


def _report(ladder: LadderConfig, folder: Path, pools: "Iterable[RatedPool]") -> "list[Ratings]":
    """Writes and prints what there is to say of each board, as it ends, and at last of all of them."""
    from alphagateau.cli.ladder_report import report_of
    from alphagateau.reports.boards_page import write_boards_page
    from alphagateau.reports.ratings import print_ratings, write_ratings_report

    reports = {}
    for pool in pools:
        reports[pool.board] = report_of(pool)
        write_ratings_report(pool.folder, reports[pool.board])
        print_ratings(pool.ratings, pool.title)
    if len(ladder.boards) > 1:
        write_boards_page(folder, reports)
    return [report.ratings for report in reports.values()]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
