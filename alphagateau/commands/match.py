"""`alphagateau match`: two players in, their games and the score out."""

import dataclasses
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from alphagateau.commands.arguments import MaxMegabytes, UsageError, parse
from alphagateau.commands.compilation import use_compilation_cache
from alphagateau.games.text_files import MEGABYTES, bounds_of

MOST_ELO = 4000  # of a test's bounds: far beyond it a score is 0 or 1 to the last digit


def _read_bounds(words: list[str]) -> tuple[float, float]:
    """(elo0, elo1) of "0,10"."""
    try:
        low, high = map(float, words[0].split(","))
    except ValueError:
        raise ValueError(f"must be two Elo differences such as 0,10, got {words[0]!r}") from None
    if not low < high:
        raise ValueError(f"must be two Elo differences, the lower one first, got {words[0]!r}")
    if low < -MOST_ELO or high > MOST_ELO:
        raise ValueError(f"must be two Elo differences from {-MOST_ELO} to {MOST_ELO}, got {words[0]!r}")
    return low, high


def _write_bounds(bounds: tuple[float, float] | None) -> list[str]:
    return ["None" if bounds is None else f"{bounds[0]:g},{bounds[1]:g}"]


BOUNDS = PrimitiveConstructorSpec(1, "ELO0,ELO1", _read_bounds, lambda x: x is None or len(x) == 2, _write_bounds)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Play games between two players.

    Every opening is played twice, with colors swapped, without noise. A player is a run (its newest checkpoint), a
    checkpoint, `random`, or an engine `uci:COMMAND?nodes=50` (also movetime, depth, or any UCI option); a checkpoint
    may be followed by `?simulations=64`, `?search=probability&nodes=500`, `?search=policy` or `?mirrors=true`.

    Example: alphagateau match checkpoints/quickstart random --games 128
    """

    a: tyro.conf.Positional[str]
    """the first player"""
    b: tyro.conf.Positional[str]
    """its opponent"""
    games: int = 0
    """an even number; 0: 64, or twice as many as there are openings in the file"""
    simulations: int = 0
    """search simulations a ply of players that do not say; 0: as in their training"""
    game: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """the board; None: what the first checkpoint learnt on"""
    opening_plies: int = 4
    """random plies of each opening"""
    openings: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """openings from a file instead: FENs, EPD or UCI moves, one a line, or the games of a PGN file; also packed"""
    max_megabytes: MaxMegabytes = MEGABYTES
    """read a file of openings up to this size, unpacked"""
    seed: int = 0
    """of the openings and the random mover"""
    rows: int = 0
    """games in progress at a time; 0: 64, on an accelerator as its memory allows"""
    sprt: Annotated[tuple[float, float] | None, BOUNDS] = None
    """stop as soon as a sequential test has decided between two Elo differences of A over B"""
    pgn: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """write the games"""


def run(words: Sequence[str]) -> int:
    """1 if games are missing a result."""
    arguments = parse(Arguments, words, "match")
    if arguments.games % 2 or arguments.games < 0:
        raise UsageError(f"--games must be even, as each opening is played with both colors, got {arguments.games}")
    use_compilation_cache()
    try:
        return play(arguments)
    except ValueError as error:  # of openings and boards that cannot be
        raise UsageError(str(error)) from None


def play(arguments: Arguments) -> int:
    """Plays, prints the table, writes PGN. Raises ValueError, PlayerError, CheckpointError, EngineError."""
    from alphagateau.games.variants import get_game
    from alphagateau.matches.final_match import print_scores, score_of
    from alphagateau.matches.match import games_to_pgn, play_match
    from alphagateau.matches.match_games import Match
    from alphagateau.matches.openings import make_openings, read_openings
    from alphagateau.matches.player_specs import board_of, distinct, load_player
    from alphagateau.ratings.sprt import sprt
    from alphagateau.runs import files
    from alphagateau.runs.stop import StopRequest

    game = get_game(board_of([arguments.a, arguments.b], arguments.game))
    a, b = (load_player(spec, game.name, arguments.simulations or None) for spec in (arguments.a, arguments.b))
    b = distinct(b, {a.name})
    if arguments.openings:
        openings = read_openings(game, arguments.openings, bounds_of(arguments.max_megabytes))
        for note in openings.notes:
            print(note, file=sys.stderr)
        if arguments.games:
            openings = openings.first(arguments.games // 2)
    else:
        openings = make_openings(game, (arguments.games or 64) // 2, arguments.opening_plies, arguments.seed)
    test, stop = arguments.sprt, StopRequest()
    with stop.listening():
        result = play_match(
            game,
            Match(a.player, b.player, openings, arguments.seed),
            num_rows=arguments.rows,
            should_stop=lambda: stop.reason is not None,
            is_decided=test and (lambda counts: sprt(counts, *test).decision != "continue"),
        )
    print_scores([score_of(a.name, b.name, result)], f"{game.name}")
    print(
        f"openings by points of {a.name} (0, 1/2, 1, 3/2, 2): {' '.join(map(str, result.pentanomial))}; "
        f"{result.moves} moves, {result.live_fraction:.0%} of searched rows live"
    )
    if not all(map(math.isnan, result.nodes)):
        print("nodes a move: " + " to ".join("?" if math.isnan(nodes) else f"{nodes:.1f}" for nodes in result.nodes))
    if test:
        print(sprt(result.judged, *test))
    if arguments.pgn:
        files.write_result(arguments.pgn, games_to_pgn(result.records, f"{a.name} against {b.name}"))
    for name, failure in result.failures.items():
        print(f"{name} left the match: {failure}")
    if stop.reason:
        print(f"stopped ({stop.reason}): {result.unfinished} games have no result")
    return 1 if stop.reason or result.failures or (result.unfinished and not test) else 0
