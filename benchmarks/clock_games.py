"""Games of the UCI engine by a real clock: python benchmarks/clock_games.py CHECKPOINT --base 10 --increment 0.1

The opponent moves at once, so that all time is the engine's: a UCI engine of a few nodes (--opponent), or at random.
Prints of each game the moves that were made without a node, the share of the clock used over the first forty moves (of
a shorter game, over all), and the least time left; then how many flags fell. --load starts busy loops beside it, and
--fen starts elsewhere, as from an ending with seconds left: --base 2.5 --fen "8/8/8/3k4/8/8/8/KQ6 w - - 0 40".
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import chess
import chess.engine

from alphagateau.games.variants import get_game

MEASURED = 40  # moves
Engine = chess.engine.SimpleEngine
Reply = Callable[[chess.Board], chess.Move | None]


class Played(NamedTuple):
    """One game of the engine."""

    moves: int
    unlooked_at: int  # moves of no node
    used: float  # share of the time that it had in the first MEASURED moves
    least: float  # seconds left; a negative number is a fallen flag


def play(engine: Engine, reply: Reply, board: chess.Board, control: tuple[float, float, int], color: bool) -> Played:
    """Plays to the end, the flag or the most moves. control: base, increment, and the most moves."""
    base, increment, most = control
    game, clock, least, moves, unlooked_at, used = object(), base, base, 0, 0, 0.0
    while not board.is_game_over(claim_draw=True) and least > 0 and moves < most:
        if board.turn != color:
            board.push(reply(board) or chess.Move.null())
            continue
        limit = chess.engine.Limit(white_clock=clock, black_clock=clock, white_inc=increment, black_inc=increment)
        started = time.monotonic()
        played = engine.play(board, limit, game=game, info=chess.engine.INFO_ALL)
        clock -= time.monotonic() - started
        least, moves = min(least, clock), moves + 1
        unlooked_at += not played.info.get("nodes")
        if moves <= MEASURED:
            had = base + increment * (moves - 1)
            used = (had - clock) / had
        clock += increment
        board.push(played.move or chess.Move.null())
    return Played(moves, unlooked_at, used, least)


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Loops that take what they can of the processor."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def opponent(command: str | None, nodes: int, seed: int) -> Iterator[Reply]:
    """What moves for the other side."""
    rng = random.Random(seed)
    if command is None:
        yield lambda board: rng.choice(list(board.legal_moves))
        return
    with Engine.popen_uci(command) as engine:
        yield lambda board: engine.play(board, chess.engine.Limit(nodes=nodes)).move


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--game", default="chess")
    parser.add_argument("--base", type=float, default=60.0, help="seconds")
    parser.add_argument("--increment", type=float, default=0.0, help="seconds")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--moves", type=int, default=100, help="at most, of a game")
    parser.add_argument("--fen", help="of the start")
    parser.add_argument("--opponent", help="a UCI engine; none: random moves")
    parser.add_argument("--nodes", type=int, default=20, help="of the opponent's moves")
    parser.add_argument("--load", type=int, default=0, help="busy loops beside the engine")
    parser.add_argument("--one-core", action="store_true", help="for all of it")
    return parser.parse_args()


def main() -> None:
    args, found = read_arguments(), []
    if args.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    board_class, control = get_game(args.game).board_class, (args.base, args.increment, args.moves)
    words = [sys.executable, "-m", "alphagateau.commands.main", "uci", str(args.checkpoint), "--platform", "cpu"]
    with Engine.popen_uci(words, timeout=600) as engine, opponent(args.opponent, args.nodes, 0) as reply:
        engine.analyse(board_class(), chess.engine.Limit(nodes=16))  # compiles
        with busy(args.load):
            for number in range(args.games):
                board = board_class(args.fen) if args.fen else board_class()
                color = board.turn if args.fen else number % 2 == 0
                found.append(play(engine, reply, board, control, color))
                moves, unlooked_at, used, least = found[-1]
                print(
                    f"game {number + 1}: {moves} moves, {unlooked_at} without a node, {used:.0%} of the clock used, "
                    f"least time left {least:.2f} s, {board.result(claim_draw=True)}",
                    flush=True,
                )
    flags, blind = sum(one.least <= 0 for one in found), sum(one.unlooked_at for one in found)
    whole = [one.used for one in found if one.moves >= MEASURED]
    share = f"{sum(whole) / len(whole):.0%}" if whole else "unknown share"
    print(
        f"{len(found)} games at {args.base:g}+{args.increment:g}, {args.load} busy loops: {flags} flags, {blind} moves "
        f"without a node, {share} of the clock used in {MEASURED} moves ({len(whole)} games), "
        f"least {min(one.least for one in found):.2f} s"
    )
    sys.exit(flags > 0)


if __name__ == "__main__":
    main()
