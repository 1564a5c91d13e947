"""Finds openings that an engine holds for even, for the players of a reference pool.

    python benchmarks/pool_openings.py BOARD ENGINE > eval/pools/BOARD/openings.txt

Lines of random plies after which the engine's expected score, for White, is between 0.35 and 0.65: the UCI moves of one
on each line.
"""

import argparse
import itertools
import sys

from alphagateau.engines.engine import Engine, EngineSetup
from alphagateau.games.scores import win_chance
from alphagateau.games.variants import get_game
from alphagateau.matches.openings import random_openings

LEAST, MOST = 0.35, 0.65  # expected score


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("board")
    parser.add_argument("engine")
    parser.add_argument("--openings", type=int, default=128)
    parser.add_argument("--plies", type=int, default=4)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--nodes", type=int, default=100_000)
    arguments = parser.parse_args()
    game = get_game(arguments.board)
    engine = Engine(EngineSetup(arguments.engine), game)
    num_seen = 0

    def is_even(moves: tuple[str, ...]) -> bool:
        nonlocal num_seen
        num_seen += 1
        position = f"fen {game.start_fen} moves {' '.join(moves)}"
        line = engine.go(position, f"nodes {arguments.nodes}").line
        if line is None or line.kind == "mate":
            return False
        chance = win_chance(line.number)
        return LEAST <= (chance if len(moves) % 2 == 0 else 1 - chance) <= MOST

    lines = (moves for _, _, moves in random_openings(game, arguments.plies, arguments.seed))
    for moves in itertools.islice(filter(is_even, lines), arguments.openings):
        print(*moves, flush=True)
    engine.close()
    print(f"{num_seen} openings of {arguments.plies} plies looked at by {engine.name}", file=sys.stderr)


if __name__ == "__main__":
    main()
