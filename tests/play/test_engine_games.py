"""Whole games of the UCI engine on a clock against Stockfish and Fairy-Stockfish: every move legal.

Flags fall by load; `benchmarks/clock_games.py` counts them, and `test_clock.py` plays by a simulated clock.
"""

import random
import shutil
import sys
import time
from pathlib import Path

import chess
import chess.engine
import pytest
from boards import GardnerBoard
from tiny_checkpoints import save_tiny

from alphagateau.networks.gateau.config import GateauConfig

PLACES = "/usr/games:/usr/bin:/usr/local/bin"
OPPONENTS = {
    chess.Board: shutil.which("stockfish", path=PLACES),
    GardnerBoard: shutil.which("fairy-stockfish", path=PLACES),
}
BASE, INCREMENT = 10.0, 0.1  # seconds
NODES = 32  # at most, a move, so that games are quick
GAMES = 100  # with each color


def play(ours: chess.engine.SimpleEngine, other: chess.engine.SimpleEngine, board: chess.Board, color: bool) -> float:
    """Plays a game to its end. Returns the least time left; python-chess raises if an engine breaks the rules."""
    clock = least = BASE
    game = object()
    while not board.is_game_over(claim_draw=True):
        if board.turn == color:
            times = {f"{name}_clock": clock for name in ("white", "black")} | {
                "white_inc": INCREMENT,
                "black_inc": INCREMENT,
            }
            started = time.monotonic()
            move = ours.play(board, chess.engine.Limit(nodes=NODES, **times), game=game).move
            clock -= time.monotonic() - started
            least, clock = min(least, clock), clock + INCREMENT
        else:
            move = other.play(board, chess.engine.Limit(nodes=50), game=game).move
        assert move in board.legal_moves
        board.push(move)
    return least


@pytest.mark.slow
@pytest.mark.parametrize("board_class", OPPONENTS)
def test_no_illegal_move_and_no_crash(tmp_path: Path, board_class: type[chess.Board]):
    opponent = OPPONENTS[board_class]
    if opponent is None:
        pytest.skip("Stockfish or Fairy-Stockfish is not installed (Debian: stockfish, fairy-stockfish)")
    found = save_tiny(tmp_path, "gardner_chess", GateauConfig)
    words = [sys.executable, "-m", "alphagateau.commands.main", "uci", str(found.path), "--platform", "cpu"]
    rng = random.Random(0)
    popen = chess.engine.SimpleEngine.popen_uci
    with popen(words, timeout=120) as ours, popen(opponent, timeout=60) as other:
        ours.analyse(board_class(), chess.engine.Limit(nodes=16))  # compiles
        for number in range(2 * GAMES):
            board = board_class()
            for _ in range(2):
                board.push(rng.choice(list(board.legal_moves)))
            least = play(ours, other, board, number % 2 == 0)
            print(f"game {number + 1}: {board.result(claim_draw=True)}, {board.ply()} plies, {least:.2f} s", flush=True)
