"""Gathers boards of games, to be labelled."""

import dataclasses
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from alphagateau.cli.arguments import FileOptions, PlayerOptions, UsageError, number, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import BOARDS
from alphagateau.cli.streams import make_reporter, report
from alphagateau.config.records import counted
from alphagateau.games.pgn.text import read_games
from alphagateau.games.pgn.text_files import read_lines
from alphagateau.runs.files import write_text

if TYPE_CHECKING:
    from alphagateau.games.pgn.pgn import GameRecord


@dataclasses.dataclass(frozen=True)
class Arguments(PlayerOptions, FileOptions):
    """Gather the boards of games, each once, for `alphagateau label`.

    Sources are PGN files (also .gz, .bz2, .xz, .zst), the sample games of runs, and games of --players against one
    another, which are kept as games.pgn. A board is for training or for tests as the
    game where it is first met is, so games of both share their openings. Games of
    other boards and games that break the rules are left out and counted.

    Example: alphagateau positions club.pgn checkpoints/quickstart --output data/club
    """

    sources: tyro.conf.Positional[tuple[Path, ...]]
    """PGN files and runs"""
    output: Annotated[Path, tyro.conf.arg(metavar="FOLDER"), BOARDS]
    """where train.parquet and test.parquet go"""
    game: str = "chess"
    """the board"""
    test_share: Annotated[float, number(float, 0, 1)] = 0.1
    """share of the games whose boards, where new, are for tests"""
    max_boards: int = 0
    """keep a sample of so many boards; 0: all"""
    random_moves: Annotated[float, number(float, 0, 1)] = 0.0
    """share of boards after which the board behind a random move is taken too, as a search meets mistakes"""
    players: tuple[str, ...] = ()
    """players of more games: uci:COMMAND?nodes=50, random, checkpoints; one alone plays itself"""
    games: int = 100
    """games of each pair, an even number: each opening is played with both colors; one player alone plays each once"""
    opening_plies: int = 8
    """random plies that open their games"""


def run(arguments: Arguments) -> int:
    """Writes the boards and prints how many there are."""
    from alphagateau.data.positions import gather
    from alphagateau.data.tables import DataError
    from alphagateau.games.variants import get_game
    from alphagateau.matches.specs import PlayerError

    with usage_errors("--game"):
        game = get_game(arguments.game)
    if not arguments.sources and not arguments.players:
        raise UsageError("positions needs sources or --players, as in: alphagateau positions games.pgn --output data/x")
    if arguments.games % 2:
        raise UsageError(f"--games must be even, as each opening is played with both colors, got {arguments.games}")
    left_out: list[str] = []
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        games = chain(games_of(arguments, left_out), played_games(arguments, left_out))
        rules = arguments.test_share, arguments.max_boards, arguments.random_moves
        found = gather(game, games, arguments.output, *rules)
    except (DataError, PlayerError, ValueError) as error:
        hint = f"; left out: {left_out[0]}" if left_out else ""
        raise UsageError(f"{error}{hint}") from None
    if left_out:
        report(f"{len(left_out)} of the games and players left out, the first: {left_out[0]}")
    boards = ", ".join(f"{counted(number, 'board')} for {split}" for split, number in found.boards.items())
    repeated = counted(found.repeated, "repeated board")
    print(f"{arguments.output}: {boards}, from {counted(found.games, 'game')}; {repeated} removed")
    return 0


def games_of(arguments: Arguments, left_out: list[str]) -> Iterator["GameRecord"]:
    """The games of the sources on one board; `left_out` takes the reasons against others."""
    from alphagateau.games.pgn.pgn import replay

    for source in arguments.sources:
        files = sorted((source / "games").glob("*.pgn")) if source.is_dir() else [source]
        if not files:
            raise UsageError(f"{source} holds no games: expected a PGN file or a run with a folder games")
        for path in files:
            for written in read_games(read_lines(path, arguments.bounds), arguments.bounds):
                replayed = replay(written)
                if replayed.record is None or replayed.fault:
                    left_out.append(f"{path}, line {written.line}, game {written.number}: {replayed.fault}")
                elif replayed.record.game != arguments.game:
                    left_out.append(f"{path}, line {written.line}: a game of {replayed.record.game}")
                else:
                    yield replayed.record


def played_games(arguments: Arguments, left_out: list[str]) -> Iterator["GameRecord"]:
    """The finished games of the players against one another, kept as games.pgn. Raises PlayerError, ValueError."""
    if not arguments.players:
        return
    from alphagateau.games.variants import get_game
    from alphagateau.matches.match import games_to_pgn, play_games
    from alphagateau.matches.match_games import Match, PlayedGame
    from alphagateau.matches.openings import make_openings
    from alphagateau.matches.player_specs import load_player
    from alphagateau.matches.specs import read_spec

    use_compilation_cache()
    game, specs = get_game(arguments.game), list(map(read_spec, arguments.players))
    is_alone = len(specs) == 1  # it then plays itself, each opening once, as the game of the other colors is the same
    num_openings = arguments.games if is_alone else arguments.games // 2
    done = range(1, 2 * num_openings, 2) if is_alone else ()
    openings = make_openings(game, num_openings, arguments.opening_plies, arguments.seed)
    specs = specs * 2 if is_alone else specs
    players = [load_player(spec, game.name, arguments.simulations or None) for spec in specs]
    pairs = enumerate(combinations(players, 2))
    matches = [Match(a, b, openings, arguments.seed + number, done) for number, (a, b) in pairs]
    records: list[PlayedGame] = []
    report_games = make_reporter(len(matches) * arguments.games, "games")
    try:
        statistics = play_games(
            game, matches, on_game=lambda played: report_games(records.append(played) or len(records))
        )
    finally:
        for player in players:
            player.close()
    left_out += [f"{name} left: {why}" for name, why in statistics.failures.items()]
    finished = [played for played in records if played.score is not None]
    write_text(arguments.output / "games.pgn", games_to_pgn(finished, "alphagateau positions"))
    yield from (played.record for played in sorted(finished, key=lambda x: (x.match, x.opening, not x.a_is_white)))
