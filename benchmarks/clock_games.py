"""Games of the UCI engine by a real clock, on one CPU core: python benchmarks/clock_games.py CHECKPOINT

Against an opponent that moves at random and at once, so that games are long and all the time is the engine's. Prints
each game's moves and the least time left, then how many flags fell. The engine runs with one core where the system can
say so (Linux).
"""

import argparse
import os
import random
import sys
import time
from pathlib import Path

import chess
import chess.engine

from alphagateau.games.variants import get_game


def play(engine: chess.engine.SimpleEngine, board: chess.Board, base: float, increment: float, seed: int) -> float:
    """Plays a game, with white if the seed is even. Returns the least time left; a negative one is a fallen flag."""
    rng, color, game, clock, least = random.Random(seed), seed % 2 == 0, object(), base, base
    while not board.is_game_over(claim_draw=True) and least > 0:
        if board.turn != color:
            board.push(rng.choice(list(board.legal_moves)))
            continue
        limit = chess.engine.Limit(white_clock=clock, black_clock=clock, white_inc=increment, black_inc=increment)
        started = time.monotonic()
        move = engine.play(board, limit, game=game).move or chess.Move.null()
        clock -= time.monotonic() - started
        least, clock = min(least, clock), clock + increment
        board.push(move)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--game", default="chess")
    parser.add_argument("--base", type=float, default=60.0, help="seconds")
    parser.add_argument("--increment", type=float, default=0.0, help="seconds")
    parser.add_argument("--games", type=int, default=10)
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    board_class, found = get_game(args.game).board_class, []
    words = [sys.executable, "-m", "alphagateau.commands.main", "uci", str(args.checkpoint), "--platform", "cpu"]
    with chess.engine.SimpleEngine.popen_uci(words, timeout=600) as engine:
        engine.analyse(board_class(), chess.engine.Limit(nodes=16))  # compiles
        for number in range(args.games):
            board = board_class()
            found.append(play(engine, board, args.base, args.increment, number))
            print(f"game {number + 1}: {board.ply()} plies, least time left {found[-1]:.2f} s", flush=True)
    flags = sum(least <= 0 for least in found)
    print(f"{len(found)} games at {args.base:g}+{args.increment:g}: {flags} flags fell, least {min(found):.2f} s")
    sys.exit(flags > 0)


if __name__ == "__main__":
    main()
