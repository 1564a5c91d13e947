"""The text of the UCI protocol: commands and options as GUIs send them and as nobody should, scores as printed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.games.entries import GAMES
from alphagateau.play.uci import text as uci_text
from alphagateau.play.uci.text import (
    Go,
    describe_option,
    info_text,
    options,
    read_go,
    read_option,
    read_position,
    score_text,
    simulations_of,
    wdl,
)
from alphagateau.search.growing.tree_lines import Line


def test_numbers_are_declared_with_their_bounds():
    declared = [describe_option(name, option) for name, option in options().items()]
    assert "option name MultiPV type spin default 1 min 1 max 220" in declared
    assert "option name Move Overhead type spin default 50 min 0 max 5000" in declared
    assert "option name Device type combo default auto var auto var cpu var gpu var tpu" in declared
    asked_for = {"Simulations", "Temperature", "MultiPV", "Seed", "Device", "Move Overhead", "UCI_ShowWDL"}
    assert asked_for <= set(options())
    assert all(line.count(" min ") == line.count(" max ") == 1 for line in declared if " type spin " in line)
    assert "option name UCI_ShowWDL type check default false" in declared
    assert {
        "option name Threads type spin default 1 min 1 max 1024",
        "option name Ponder type check default false",
    } <= {*declared}
    assert (
        "option name UCI_Variant type combo default chess var chess var gardner var losalamos var fischerandom"
        in declared
    )
    assert options()["MultiPV"].high == max(entry.max_legal_moves for entry in GAMES.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" name MultiPV value 3", ("MultiPV", 3)),
        (" name multipv   value 3 ", ("MultiPV", 3)),
        (" name Move Overhead value 100", ("Move Overhead", 100)),
        (" name moveoverhead value 100", ("Move Overhead", 100)),
        (" name Device value CPU", ("Device", "cpu")),
        (" name UCI_ShowWDL value True", ("UCI_ShowWDL", True)),
        (" name UCI_Variant value gardner", ("UCI_Variant", "gardner")),
    ],
)
def test_an_option(text: str, expected: tuple):
    assert read_option(text) == expected


def test_a_choice_is_known_in_any_case_as_it_is_written(monkeypatch):
    variants = uci_text.Option("chess", choices=("chess", "MiniFour"))
    monkeypatch.setattr(uci_text, "options", lambda: {"UCI_Variant": variants})
    assert read_option(" name UCI_Variant value minifour") == ("UCI_Variant", "MiniFour")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected setoption name NAME value VALUE"),
        (" value 3", "expected setoption name NAME value VALUE"),
        (" name Contempt value 3", "there is no option 'Contempt': expected one of Simulations, "),
        (" name MultiPV", "option MultiPV is '': expected 1 to 220"),
        (" name MultiPV value 0", "option MultiPV is '0': expected 1 to 220"),
        (" name Hash value 1e3", "option Hash is '1e3': expected 16 to 65536"),
        (" name Seed value " + "9" * 5000, "expected 0 to 2147483647"),
        (" name UCI_ShowWDL value maybe", "option UCI_ShowWDL is 'maybe': expected one of true, false"),
        (" name UCI_Variant value atomic", "expected one of chess, gardner, losalamos"),
    ],
)
def test_an_option_that_is_none(text: str, message: str):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        read_option(text)
    assert len(str(error.value)) < 300 and "\n" not in str(error.value)


def test_a_position():
    assert read_position(["startpos", "moves", "e2e4", "e7e5"]) == (None, ["e2e4", "e7e5"])
    assert read_position(["startpos", "moves"]) == read_position(["startpos"]) == (None, [])
    fen = "k4/5/2K2/5/4R w - - 3 9"
    assert read_position(f"fen {fen} moves e1e5".split()) == (fen, ["e1e5"])
    assert read_position(["fen", "k4/5/2K2/5/4R", "w", "-", "-"]) == ("k4/5/2K2/5/4R w - -", [])
    for words in ([], ["here"], ["startpos", "e2e4"]):
        with pytest.raises(ValueError, match="was given: expected"):
            read_position(words)


def test_a_go():
    go = read_go(
        ["wtime", "1000", "btime", "-5", "winc", "10", "searchmoves", "e2e4", "d2d4", "movestogo", "3", "ponder"]
    )
    numbers = {"wtime": 1000, "btime": -5, "winc": 10, "movestogo": 3}
    assert go == Go(numbers, ("e2e4", "d2d4"), ())
    wrong = read_go(["nodes", "many", "depth", "xyzzy", "3", "movetime"])
    assert not wrong.numbers and len(wrong.complaints) == 3
    assert wrong.complaints[0] == "go nodes 'many' was given: expected a whole number"


def test_depth_is_a_number_of_simulations():
    asked = {"": None, "depth 1": 16, "depth 5": 256, "depth 0": 16, "depth 500": 2**23, "depth 5 nodes 99": 99}
    asked |= {"nodes 7": 7, "nodes 0": 1, "nodes -3": 1, "wtime 5": None}
    for text, simulations in asked.items():
        assert simulations_of(read_go(text.split())) == simulations


@given(st.floats(-1, 1))
def test_wdl_sums_to_a_thousand(value: float):
    wins, draws, losses = wdl(value)
    assert wins + draws + losses == 1000 and min(wins, draws, losses) >= 0
    assert abs((wins - losses) / 1000 - value) < 0.0011


@pytest.mark.parametrize(
    ("plies", "text"), [(1, "mate 1"), (3, "mate 2"), (5, "mate 3"), (-2, "mate -1"), (-4, "mate -2")]
)
def test_a_mate_is_counted_in_moves(plies: int, text: str):
    assert score_text(Line((1,), 1, 1.0 if plies > 0 else -1.0, plies), False) == f"score {text}"


def test_a_line_of_information():
    line = Line((1, 2), 10, 0.0, None)
    assert (
        info_text(line, ["e2e4", "e7e5"], True, {"nodes": 16, "nps": 100})
        == "info depth 2 score cp 0 wdl 250 500 250 nodes 16 nps 100 pv e2e4 e7e5"
    )
