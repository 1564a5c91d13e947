"""`alphagateau ladder`: players in, games, ratings and a page out."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau import config
from alphagateau.cli.arguments import UsageError, parse
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import LADDER
from alphagateau.config import LadderConfig

if TYPE_CHECKING:
    pass


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
    from alphagateau.cli.ladders import merge_into_ladder, run_ladder, watch_ladder
    from alphagateau.runs.lock import locked
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


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
