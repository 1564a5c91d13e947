"""`alphagateau ladder`: players in, games, ratings and a page out."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau import config
from alphagateau.commands.arguments import UsageError, parse
from alphagateau.commands.compilation import use_compilation_cache
from alphagateau.config import LadderConfig

if TYPE_CHECKING:
    from alphagateau.ratings.rate import Ratings


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play, rate, and write ratings.csv, results.csv, games.pgn, ratings.svg and index.html.

    Every finished game is on disk at once; the same command goes on. A run stands for all its checkpoints. A ladder
    file has these options as keys, with underscores.

    Example: alphagateau ladder checkpoints/quickstart random --every 4 --games-per-pair 10
    """

    players: tyro.conf.Positional[tuple[str, ...]]
    """a ladder file, or runs, checkpoints, random, uci:COMMAND"""
    settings: Annotated[LadderConfig, tyro.conf.arg(name="")]
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """where to; None: eval/<name of the file>, or eval/ladder"""


def read_ladder(words: Sequence[str]) -> tuple[LadderConfig, Path]:
    """(ladder, folder). Raises UsageError, ConfigError."""
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
    return ladder, arguments.out or Path("eval") / (Path(players[0]).stem if is_file else "ladder")


def run(words: Sequence[str]) -> int:
    """Plays what is left, and prints the page's path."""
    ladder, folder = read_ladder(words)
    use_compilation_cache()
    from alphagateau.runs.run_folder import locked
    from alphagateau.runs.stop import StopRequest

    stop = StopRequest()
    try:
        with locked(folder), stop.listening():
            run_ladder(ladder, folder, lambda text: print(text, file=sys.stderr), lambda: stop.reason is not None)
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
) -> "list[Ratings]":
    """Plays what is left, and writes and prints each board's table, plot, games and page."""
    from alphagateau.matches.ladder import play_ladder
    from alphagateau.reports.ratings import RatingsReport, print_ratings, write_ratings_report

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
