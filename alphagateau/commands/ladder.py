"""Plays a ladder and rates its players."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from alphagateau import config
from alphagateau.cli.arguments import UsageError, parse, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import LADDER, OutputError, ladder_files, overwritten
from alphagateau.cli.streams import report
from alphagateau.config import LadderConfig
from alphagateau.runs.stop import StopRequest


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play games between many players and rate them all.

    Writes ratings.csv, results.csv, games.pgn, ratings.svg and index.html. Every finished game is on disk at once; the
    same command continues. A run stands for all its checkpoints. The keys of a ladder file are these options, with
    underscores. docs/ratings.md describes methods and protocols.

    Example: alphagateau ladder checkpoints/quickstart random --every 4 --games-per-pair 10
    """

    players: tyro.conf.Positional[tuple[str, ...]]
    """a ladder file, or runs, checkpoints, random, uci:COMMAND"""
    settings: Annotated[LadderConfig, tyro.conf.arg(name="")]
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), LADDER] = None
    """where the results go; None: eval/<name of the file>, or eval/ladder"""
    watch: bool = False
    """take up new checkpoints of the runs as they appear, until a signal stops it"""
    merge: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDERS")] = ()
    """play nothing, and rate with the games of the same ladder from elsewhere: folders, games.jsonl or games.pgn"""


def read_arguments(words: Sequence[str]) -> tuple[LadderConfig, Path, Arguments]:
    """(ladder, folder, other arguments) from a file and options. Raises UsageError, ConfigError."""
    nobody = LadderConfig(players=("random",))
    players = parse(Arguments, words, "ladder", Arguments((), nobody)).players
    if not players:
        raise UsageError("ladder needs a ladder file or players: alphagateau ladder eval/quickstart.toml")
    is_file = len(players) == 1 and players[0].endswith(".toml")
    ladder = config.load_ladder(players[0]) if is_file else LadderConfig(players=players)
    arguments = parse(Arguments, words, "ladder", Arguments(players, ladder))
    table: Mapping[str, Any] = arguments.settings  # pyright: ignore[reportAssignmentType]
    name = f"{players[0]} with the options given" if is_file else "ladder"
    ladder = config.make_record(LadderConfig, {"players": ladder.players, **table}, name)
    if "--merge" in words and not arguments.merge:
        raise UsageError("--merge needs whose games to take up: folders of ladders, or games.jsonl")
    if arguments.watch and arguments.merge:
        raise UsageError("--merge plays nothing, so it does not go with --watch: merge first, then watch")
    name = config.check_folder_name(Path(players[0]).stem, "the ladder's file name") if is_file else "ladder"
    out = arguments.out or Path("eval") / name
    if read := overwritten(ladder_files(out, ladder.boards), [*players, *ladder.players, ladder.openings]):
        raise OutputError(f"{read} is what this command reads: write somewhere else by --out")
    return ladder, out, arguments


def run(ladder: LadderConfig, folder: Path, arguments: Arguments) -> int:
    """Plays what is left, and prints the page's path."""
    use_compilation_cache()
    from alphagateau.cli.ladders import run_ladder, watch_ladder
    from alphagateau.matches.ladder.rounds import Callbacks
    from alphagateau.runs.run_folder import locked

    stop = StopRequest()
    with usage_errors(), locked(folder), stop.listening():  # of players, boards and openings
        callbacks = Callbacks(report, lambda: stop.reason is not None)
        if arguments.watch:
            watch_ladder(ladder, folder, callbacks)
        else:
            run_ladder(ladder, folder, callbacks, sources=arguments.merge)
    if stop.reason:
        report(f"stopped ({stop.reason}); the same command goes on")
    print(folder / "index.html")
    return 0
