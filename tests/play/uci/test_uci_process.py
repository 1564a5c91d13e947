"""The UCI engine as a process of its own: games by python-chess, how it starts and how it ends."""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import chess
import chess.engine
import pytest
from boards import GardnerBoard
from tiny_checkpoints import save_tiny

from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.runs.checkpoint import Checkpoint


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_tiny(tmp_path_factory.mktemp("uci"), "gardner_chess", GateauConfig)


def command(found: Checkpoint) -> list[str]:
    return [sys.executable, "-m", "alphagateau.commands.main", "uci", str(found.path), "--platform", "cpu"]


@pytest.mark.slow
@pytest.mark.parametrize("board_class", [GardnerBoard, chess.Board])
def test_a_game_by_python_chess(found: Checkpoint, board_class: Callable[[], chess.Board]):
    rng, board = random.Random(0), board_class()
    with chess.engine.SimpleEngine.popen_uci(command(found), timeout=120) as engine:
        while not board.is_game_over(claim_draw=True) and board.ply() < 40:
            limit = chess.engine.Limit(white_clock=2, black_clock=2, white_inc=0.1, black_inc=0.1)
            played = engine.play(board, limit, game=1, info=chess.engine.INFO_ALL)
            assert played.move in board.legal_moves
            board.push(played.move)
            if not board.is_game_over():
                board.push(rng.choice(list(board.legal_moves)))
        analysis = engine.analyse(board_class(), chess.engine.Limit(nodes=100), multipv=2)
        assert [info["multipv"] for info in analysis] == [1, 2] and analysis[0]["nodes"] == 100
        assert all(info["pv"] and info["score"] for info in analysis)


def test_a_gui_waits_for_no_compiler():
    code = "import sys, alphagateau.play.uci.engine; print({'pgx', 'flax', 'orbax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.slow
def test_a_checkpoint_that_is_none_is_one_sentence(tmp_path: Path):
    words = [sys.executable, "-m", "alphagateau.commands.main", "uci", str(tmp_path / "none")]
    done = subprocess.run(words, input="uci\n", capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "holds no whole checkpoint" in done.stderr


@pytest.mark.slow
def test_quit_ends_it_while_it_compiles(found: Checkpoint):
    done = subprocess.run(command(found), input="isready\nquit\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr
