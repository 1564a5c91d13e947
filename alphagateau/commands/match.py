"""`alphagateau match`."""

from pathlib import Path

from alphagateau.games.pgn import to_pgn
from alphagateau.games.variants import get_game
from alphagateau.matches.final_match import print_scores, score_of
from alphagateau.matches.match import play_match
from alphagateau.matches.openings import make_openings, read_openings
from alphagateau.matches.player_specs import board_of, load_player
from alphagateau.matches.scheduler import Match
from alphagateau.ratings.sprt import sprt
from alphagateau.runs import files


def run_match(spec_a: str, spec_b: str, options: dict[str, str | None]) -> int:
    """`alphagateau match`: plays, prints the table, writes PGN; 1 if games are missing a result.

    Raises MatchError, PlayerError, CheckpointError: each one sentence.
    """
    num_games = _number(options, "games", 64)
    if num_games % 2:
        raise MatchError(f"--games must be even, as each opening is played with both colors, got {num_games}")
    simulations = _number(options, "simulations", 0) or None
    game = get_game(board_of([spec_a, spec_b], options["game"]))
    a, b = (load_player(spec, game.name, simulations) for spec in (spec_a, spec_b))
    seed = _number(options, "seed", 0)
    if options["openings"]:
        openings = read_openings(game, options["openings"])
    else:
        openings = make_openings(game, num_games // 2, _number(options, "opening-plies", 4), seed)
    test = _sprt_bounds(options["sprt"])
    result = play_match(
        game,
        Match(a.player, b.player, openings, seed),
        num_rows=_number(options, "rows", 64),
        is_decided=test and (lambda counts: sprt(counts, *test).decision != "continue"),
    )
    print_scores([score_of(a.name, b.name, result)], f"{game.name}")
    print(
        f"openings by points of {a.name} (0, 1/2, 1, 3/2, 2): {' '.join(map(str, result.pentanomial))}; "
        f"{result.moves} moves, {result.live_fraction:.0%} of searched rows live"
    )
    if test:
        print(sprt(result.pentanomial, *test))
    if options["pgn"]:
        text = "\n\n".join(to_pgn(played.record) for played in result.records)
        files.write_text(Path(options["pgn"]), text + "\n")
    for name, failure in result.failures.items():
        print(f"{name} left the match: {failure}")
    return 1 if result.unfinished and not test else 0


class MatchError(ValueError):
    """A match that cannot be played as asked; one sentence."""


def _number(options: dict[str, str | None], name: str, default: int) -> int:
    text = options[name]
    if text is None:
        return default
    if not text.isdecimal():
        raise MatchError(f"--{name} must be a whole number, got {text!r}")
    return int(text)


def _sprt_bounds(text: str | None) -> tuple[float, float] | None:
    """(elo0, elo1) of "0,10"."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise MatchError(f"--sprt must be two Elo differences such as 0,10, got {text!r}") from None
    return low, high
