"""Levels of strength of the UCI engine, by the measured ratings of a checkpoint."""

import json
import threading
from functools import partial
from pathlib import Path

import pytest
from tiny_checkpoints import save_tiny

from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.play.levels import Levels, read_levels
from alphagateau.play.opponents import player_of
from alphagateau.play.uci.engine import serve
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError

RISING = {"simulations": [1, 4, 64], "elo": [600.0, 800.0, 1200.4]}


@pytest.fixture
def found(tmp_path: Path) -> Checkpoint:
    return save_tiny(tmp_path, "gardner_chess", GateauConfig)


def write_levels(found: Checkpoint, **values) -> None:
    of_these = {"weights_hash": found.manifest["weights_hash"], "boards": {"gardner_chess": RISING}}
    (found.path / "levels.json").write_text(json.dumps({**of_these, **values}))


def converse(found: Checkpoint, *lines: str) -> list[str]:
    said: list[str] = []
    serve(player_of(found), iter(lines), partial(_put, said, threading.Lock()))
    return [line for text in said for line in text.splitlines()]


def _put(said: list[str], lock: threading.Lock, text: str) -> None:
    with lock:
        said.append(text)


def test_simulations_of_a_level_by_hand():
    levels = Levels(**RISING)
    assert levels.range == (600, 1200)
    assert [levels.simulations_of(elo) for elo in (0, 600, 700, 800, 1000.2, 1200, 9000)] == [1, 1, 2, 4, 16, 64, 64]


def test_without_a_measured_level_none_is_offered_and_one_asked_for_is_refused(found):
    said = converse(found, "uci", "setoption name UCI_LimitStrength value true", "setoption name UCI_Elo value 900")
    assert not any("option name UCI_LimitStrength" in line or "option name UCI_Elo" in line for line in said)
    refused = "info string no level of this player is measured on chess: it plays at its full strength"
    assert said.count(refused) == 2
    assert refused not in converse(found, "setoption name UCI_LimitStrength value false")  # as GUIs set it unasked


def test_a_level_is_played_by_its_simulations_on_its_board_alone(found):
    write_levels(found)
    gardner, limit = "setoption name UCI_Variant value gardner", "setoption name UCI_LimitStrength value true"
    said = converse(found, gardner, "setoption name UCI_Elo value 599", limit, "go nodes 8", "go nodes 2")
    assert "info string option UCI_Elo is 599: expected 600 to 1200, the levels measured on gardner_chess" in said
    assert [line.split(" nodes ")[1].split()[0] for line in _last_lines(said)] == ["8", "2"]
    said = converse(found, gardner, limit, "setoption name UCI_Elo value 700", "go nodes 8", "go movetime 60000")
    assert [line.split(" nodes ")[1].split()[0] for line in _last_lines(said)] == ["2", "2"]
    said = converse(found, gardner, limit, "setoption name UCI_Variant value losalamos")
    assert any("no level of this player is measured on los_alamos_chess" in line for line in said)
    elo = "setoption name UCI_Elo value 700"  # GUIs choose the order, in which the board may come last
    said = converse(found, limit, elo, gardner, "go nodes 8", "setoption name UCI_Elo value 1300", "go nodes 8")
    assert [line.split(" nodes ")[1].split()[0] for line in _last_lines(said)] == ["2", "2"]
    assert "info string option UCI_Elo is 1300: expected 600 to 1200, the levels measured on gardner_chess" in said


def _last_lines(said: list[str]) -> list[str]:
    """The last line of information before each best move."""
    ends = [n for n, line in enumerate(said) if line.startswith("bestmove")]
    return [next(line for line in reversed(said[:n]) if " nodes " in line) for n in ends]


@pytest.mark.parametrize("board", ["chess", "gardner_chess"])
def test_levels_are_offered_of_whichever_board(found, board):
    write_levels(found, boards={board: RISING})
    said = converse(found, "uci")
    assert {
        "option name UCI_LimitStrength type check default false",
        "option name UCI_Elo type spin default 1200 min 600 max 1200",
    } <= {*said}


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"weights_hash": "f" * 16}, "has the levels of other weights"),
        ({"boards": {"chess": {**RISING, "elo": [1.0, 3.0, 2.0]}}}, "must be as many, and rise"),
        ({"boards": {"chess": {**RISING, "elo": [1.0, 3.0]}}}, "must be as many, and rise"),
        ({"boards": {"chess": {"simulations": [0, 1], "elo": [1, 2]}}}, "has no levels"),
        ({"boards": 3}, "has no levels"),
        ({"boards": {"x" * 70_000: RISING}}, "has no levels"),
    ],
)
def test_levels_that_are_none_are_refused(found, values, why):
    write_levels(found, **values)
    with pytest.raises(CheckpointError, match=why):
        read_levels(found)
