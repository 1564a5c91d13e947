"""Milliseconds a board of players, one board at a time and 64 at once: ChessBench's table of inference times (B.2).

    python benchmarks/inference_times.py checkpoints/chess_labelled?search=policy "uci:stockfish?nodes=400&Hash=1"
    python benchmarks/inference_times.py > table.md          # the published players of 8x8 and 5x5, and engines

Positions are the end of random games of 20 plies, the same for all. Each player answers all of them once before it is
timed (compilation; an engine's hash), then in turns with the others of its board; medians of the rounds. Networks use
all cores of the machine, engines one.
"""

import argparse
import statistics
import sys

import jax
from throughput.ratios import in_turns

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.games.state import stack_rows
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import make_openings
from alphagateau.matches.player_specs import load_player
from alphagateau.matches.specs import board_of, read_spec
from alphagateau.suites.answers import find_answers, positions_of_states

PUBLISHED = (
    *(f"checkpoints/chess_labelled?{search}" for search in ("search=policy", "search=state_value", "simulations=64")),
    *(f"checkpoints/chess_selfplay?{search}" for search in ("search=policy", "simulations=64")),
    *(f"uci:stockfish?nodes={nodes}&Hash=1" for nodes in (1, 1000, 10_000)),
)
PUBLISHED_5X5 = (
    *(f"checkpoints/gardner_selfplay?{search}" for search in ("search=policy", "simulations=64")),
    *(
        f"checkpoints/gardner_labelled_{name}?search=action_value"
        for name in ("gateau", "chessformer", "cnn", "tokens")
    ),
    *(f"uci:fairy-stockfish?nodes={nodes}&Hash=1" for nodes in (50, 1000)),
)
AT_ONCE = 64


def times(specs: tuple[str, ...], rounds: int) -> list[str]:
    """A row of the table for each player."""
    found = [read_spec(spec) for spec in specs]
    game = get_game(board_of(found))
    states = stack_rows([opening.state for opening in make_openings(game, AT_ONCE, 20, seed=1)])
    positions = positions_of_states(game, states, seed=1)
    players = {spec.text: load_player(spec, game.name) for spec in found}

    def call(player, num_rows: int):
        return lambda: [answers.moves for answers in find_answers(game, player, positions, num_rows)]

    calls = {}
    for text, player in players.items():
        calls[text] = call(player, 1)
        if player.search is not None:
            calls[f"{text}, {AT_ONCE} at once"] = call(player, AT_ONCE)
    seconds = in_turns(calls, rounds)
    median = {name: f"{1000 / AT_ONCE * statistics.median(values):.3g}" for name, values in seconds.items()}
    for player in players.values():
        player.close()
    return [
        f"| {game.name} | `{text}` | {median[text]} | {median.get(f'{text}, {AT_ONCE} at once', '')} |"
        for text in players
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("players", nargs="*", help="of one board; none: the published ones")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    use_compilation_cache()
    print(f"| board | player | ms a board, one at a time | {AT_ONCE} at once |\n|---|---|---|---|")
    for specs in [tuple(args.players)] if args.players else (PUBLISHED, PUBLISHED_5X5):
        print("\n".join(times(specs, args.rounds)), flush=True)
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}", file=sys.stderr)


if __name__ == "__main__":
    main()
