"""Plays a match between two players."""

import dataclasses
import math
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from alphagateau.cli.arguments import FileOptions, PlayerOptions, UsageError, number, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import PGN, check_own_games
from alphagateau.cli.streams import report
from alphagateau.config.records import counted
from alphagateau.runs import files
from alphagateau.runs.logging.progress import say
from alphagateau.runs.stop import StopRequest

if TYPE_CHECKING:  # they bring JAX, which --help and a typo must not wait for
    from alphagateau.games.rules import Game
    from alphagateau.matches.match import MatchResult
    from alphagateau.matches.match_games import Match
    from alphagateau.ratings.sprt import Sprt


def _read_bounds(words: list[str]) -> tuple[float, float]:
    """(elo0, elo1) of "0,10"."""
    try:
        low, high = map(float, words[0].split(","))
    except ValueError:
        raise ValueError(f"must be two Elo differences such as 0,10, got {words[0]!r}") from None
    return low, high


BOUNDS = PrimitiveConstructorSpec(
    1, "ELO0,ELO1", _read_bounds, lambda x: x is None or len(x) == 2, lambda x: [f"{x[0]:g},{x[1]:g}" if x else "None"]
)


@dataclasses.dataclass(frozen=True)
class Arguments(PlayerOptions, FileOptions):
    """Play games between two players.

    Every opening is played twice, with colors swapped, without noise. A player is `random`, a checkpoint, a run (its
    newest checkpoint), or an engine `uci:COMMAND?nodes=50` (also movetime, depth, or any UCI option). Options of a
    checkpoint follow it: `?simulations=64`, `?search=probability&nodes=500`, `?search=policy` or `?mirrors=true`.

    Example: alphagateau match checkpoints/quickstart random --games 128
    """

    a: tyro.conf.Positional[str]
    """the first player"""
    b: tyro.conf.Positional[str]
    """its opponent"""
    games: int = 0
    """an even number; 0: 64, or twice as many as there are openings in the file"""
    game: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """the board; None: what the first checkpoint learnt on"""
    opening_plies: int = 4
    """random plies of each opening"""
    openings: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """a file of openings instead: FENs, EPD or UCI moves, one a line, or the games of a PGN file; may be packed"""
    rows: int = 0
    """games in progress at a time; 0: 64, on an accelerator as many as its memory allows"""
    sprt: Annotated[tuple[float, float] | None, BOUNDS] = None
    """stop as soon as a sequential test decides whether A is stronger than B by ELO0 or by ELO1"""
    normalized: bool = False
    """ELO0 and ELO1 are normalized Elo, 347 for one standard deviation of a game's points"""
    alpha: Annotated[float, number(float)] = 0.05
    """the test's chance to decide for ELO1 where ELO0 is true"""
    beta: Annotated[float, number(float)] = 0.05
    """the test's chance to decide for ELO0 where ELO1 is true"""
    pgn: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), PGN] = None
    """write the games; a file is replaced only if it holds games of the same two players by this command"""


def run(arguments: Arguments) -> int:
    """1 if games are missing a result."""
    check(arguments)
    use_compilation_cache()
    with usage_errors():  # of players, openings and boards
        game, match = read(arguments)
    title = f"{match.a.name} against {match.b.name}"
    if arguments.pgn:
        from alphagateau.games.pgn.pgn import plain_tag

        check_own_games("--pgn", arguments.pgn, "Event", plain_tag(title), arguments.bounds)
    return play(arguments, game, match, title)


def check(arguments: Arguments) -> None:
    """Raises UsageError for options that contradict one another."""
    if arguments.games % 2:
        raise UsageError(f"--games must be even, as each opening is played with both colors, got {arguments.games}")
    if arguments.sprt:
        with usage_errors("--sprt"):
            sequential_test(arguments, [0] * 5)
    elif arguments.normalized or (arguments.alpha, arguments.beta) != (Arguments.alpha, Arguments.beta):
        raise UsageError(
            "--alpha, --beta and --normalized are of a sequential test: give its bounds, such as --sprt 0,10"
        )


def read(arguments: Arguments) -> "tuple[Game, Match]":
    """The board, and the players with their openings. Raises ValueError, CheckpointError."""
    from alphagateau.games.variants import get_game
    from alphagateau.matches.match_games import Match
    from alphagateau.matches.openings import make_openings, read_openings
    from alphagateau.matches.player_specs import distinct, load_player
    from alphagateau.matches.specs import board_of, read_spec

    specs = [read_spec(arguments.a), read_spec(arguments.b)]
    game = get_game(board_of(specs, arguments.game))
    if arguments.openings:
        openings, notes = read_openings(game, arguments.openings, arguments.bounds)
        for note in notes:
            report(note)
        if (number := arguments.games // 2) > len(openings):
            raise ValueError(f"{number} openings were asked for, and there are {len(openings)}: ask for fewer games")
        openings = openings[: number or None]
    else:
        openings = make_openings(game, (arguments.games or 64) // 2, arguments.opening_plies, arguments.seed)
    a, b = (load_player(spec, game.name, arguments.simulations or None) for spec in specs)
    return game, Match(a, distinct(b, {a.name}), openings, arguments.seed)


def play(arguments: Arguments, game: "Game", match: "Match", title: str) -> int:
    """Plays the games, prints the table and writes PGN."""
    from alphagateau.matches.match import games_to_pgn, play_match

    stop = StopRequest()
    with ExitStack() as held:
        held.callback(match.a.close)
        held.callback(match.b.close)
        held.enter_context(stop.listening())
        result = play_match(
            game,
            match,
            num_rows=arguments.rows,
            should_stop=lambda: stop.reason is not None,
            is_decided=arguments.sprt and (lambda counts: sequential_test(arguments, counts).decision != "continue"),
        )
    if arguments.pgn:  # first, as who reads the table may have gone
        files.write_result(arguments.pgn, games_to_pgn(result.records, title))
    print_result(arguments, game, match, result)
    for name, failure in result.statistics.failures.items():
        print(f"{name} left the match: {failure}")
    if stop.reason:
        print(f"stopped ({stop.reason}): {counted(result.unfinished, 'game')} without a result")
    return 1 if stop.reason or result.statistics.failures or (result.unfinished and not arguments.sprt) else 0


def sequential_test(arguments: Arguments, counts: Sequence[int]) -> "Sprt":
    """The test that the options name, of pairs of games counted by their points [5]."""
    from alphagateau.ratings.sprt import sprt

    assert arguments.sprt
    return sprt(counts, *arguments.sprt, arguments.alpha, arguments.beta, is_normalized=arguments.normalized)


def print_result(arguments: Arguments, game: "Game", match: "Match", result: "MatchResult") -> None:
    """Prints the table, and sentences on the games and the sequential test."""
    from alphagateau.matches.final_match import Score, print_scores

    print_scores([Score(match.a.name, match.b.name, *result[:5])], game.name)
    live = f", {result.statistics.live_fraction:.0%} of searched rows live"
    live = live if match.a.variables or match.b.variables else ""
    say(
        f"openings by points of {match.a.name} (0, 1/2, 1, 3/2, 2): {' '.join(map(str, result.pentanomial))}; "
        f"{counted(result.statistics.moves, 'move')}{live}"
    )
    by_color = [f"{name} {_score(result, is_white)}" for name, is_white in (("white", True), ("black", False))]
    if any(played.score is not None for played in result.records):
        say(f"score of {match.a.name} with {', with '.join(by_color)}; {result.draws / sum(result[:3]):.0%} drawn")
    has_search = any(player.variables or player.move for player in (match.a, match.b))
    if has_search and not all(map(math.isnan, result.nodes)):
        print("nodes a move: " + " to ".join("?" if math.isnan(nodes) else f"{nodes:.1f}" for nodes in result.nodes))
    if arguments.sprt:
        low, high = arguments.sprt
        unit = "normalized Elo" if arguments.normalized else "Elo"
        test = f"{unit} {low:g} against {high:g}, alpha {arguments.alpha:g}, beta {arguments.beta:g}"
        say(f"the sequential test ({test}) {sequential_test(arguments, result.tested)}")


def _score(result: "MatchResult", is_white: bool) -> str:
    """Points a finished game of A with one color."""
    points = [played.score for played in result.records if played.score is not None and played.a_is_white == is_white]
    return f"{sum(points) / len(points):.3f}" if points else "-"
