"""`alphagateau positions`: games in, boards to label out."""

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from alphagateau.commands.arguments import UsageError, parse

if TYPE_CHECKING:
    from alphagateau.games.pgn import GameRecord


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Gather the boards of games, each once, for `alphagateau label`.

    Sources are PGN files (also .gz, .bz2, .xz, .zst) and runs, whose sample games are taken. Games of matches, ladders
    and engines are PGN too: `alphagateau match A B --pgn FILE`. All boards of a game are either for training or for
    tests. Games of other boards, and games that break the rules, are left out, and how many is said.

    Example: alphagateau positions club.pgn checkpoints/quickstart --output data/club
    """

    sources: tyro.conf.Positional[tuple[Path, ...]]
    """PGN files and runs"""
    output: Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
    """where train.parquet and test.parquet go"""
    game: str = "chess"
    """the board"""
    test_share: float = 0.1
    """of the games, whose boards are for tests"""
    max_boards: int = 0
    """of more boards, a sample of so many is kept; 0: all"""


def run(words: Sequence[str]) -> int:
    """Writes the boards and says how many there are."""
    arguments = parse(Arguments, words, "positions")
    from alphagateau.data.positions import gather
    from alphagateau.data.tables import DataError
    from alphagateau.games.entries import GAME_NAMES
    from alphagateau.games.pgn_files import PgnFileError
    from alphagateau.games.variants import get_game

    if arguments.game not in GAME_NAMES:
        raise UsageError(f"--game must be one of {', '.join(GAME_NAMES)}, got {arguments.game!r}")
    if not 0 <= arguments.test_share <= 1:
        raise UsageError(f"--test-share must be from 0 to 1, got {arguments.test_share:g}")
    left_out: list[str] = []
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        games = games_of(arguments.sources, arguments.game, left_out)
        found = gather(get_game(arguments.game), games, arguments.output, arguments.test_share, arguments.max_boards)
    except (DataError, PgnFileError) as error:
        hint = f"; left out: {left_out[0]}" if left_out else ""
        raise UsageError(f"{error}{hint}") from None
    if left_out:
        print(f"{len(left_out)} games left out, the first: {left_out[0]}", file=sys.stderr)
    boards = ", ".join(f"{number:,} boards for {split}" for split, number in found.boards.items())
    print(f"{arguments.output}: {boards}, from {found.games:,} games; {found.repeated:,} repeated boards removed")
    return 0


def games_of(sources: Sequence[Path], game_name: str, left_out: list[str]) -> Iterator["GameRecord"]:
    """The games of the sources on one board; why others are none goes into `left_out`."""
    from alphagateau.games.pgn import replay
    from alphagateau.games.pgn_files import read_lines
    from alphagateau.games.pgn_text import read_games

    for source in sources:
        files = sorted((source / "games").glob("*.pgn")) if source.is_dir() else [source]
        if not files:
            raise UsageError(f"{source} holds no games: expected a PGN file or a run with a folder games")
        for path in files:
            for written in read_games(read_lines(str(path))):
                replayed = replay(written)
                if replayed.record is None or replayed.fault:
                    left_out.append(f"{path}, line {written.line}, game {written.number}: {replayed.fault}")
                elif replayed.record.game != game_name:
                    left_out.append(f"{path}, line {written.line}: a game of {replayed.record.game}")
                else:
                    yield replayed.record
