"""Accuracy as Lichess defines it, by hand."""

from itertools import pairwise

import pytest
from chess.engine import Cp
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.games.pgn.accuracy import AnalysedGame, game_accuracy, judgement_of, judgements, move_accuracy
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.variants import get_game

near = pytest.approx


def test_accuracy_of_a_move():
    assert move_accuracy(50, 50) == move_accuracy(50, 90) == near(99.9999)
    assert move_accuracy(50, 40) == near(63.5827, abs=1e-3)  # 103.1668 e^-0.4354 - 3.1669
    assert move_accuracy(60, 40) == near(40.0205, abs=1e-3)
    assert move_accuracy(100, 0) == 0


def test_accuracy_of_a_game():
    """White loses 10 percent, Black nothing, White gains 20: weights 5, 0.5 and 10, the deviations of [50, 40], ..."""
    white, black = game_accuracy([50, 40, 40, 60])
    weighted = (5 * 63.5827 + 10 * 99.9999) / 15
    harmonic = 2 / (1 / 63.5827 + 1 / 99.9999)
    assert white == near((weighted + harmonic) / 2, abs=1e-3) == near(82.799, abs=1e-2)
    assert black == near(99.9999)
    assert game_accuracy([50, 40, 60]) == near((63.5827, 40.0205), abs=1e-3)
    assert game_accuracy([50, 60], white_begins=False) == (None, near(63.5827, abs=1e-3))
    assert game_accuracy([50]) == (None, None)


def test_windows_of_volatility_grow_with_the_game():
    """40 plies, windows of 4 that begin two plies before a move: White's one loss weighs on that move and its next."""
    white, black = game_accuracy([50.0] * 21 + [30.0] * 20)
    swing = 75**0.5  # deviation of [50, 50, 50, 30] and of [50, 30, 30, 30]; 18 other moves weigh 0.5 each
    weighted = (40.0205 * swing + 99.9999 * (swing + 18 * 0.5)) / (2 * swing + 18 * 0.5)
    harmonic = 20 / (19 / 99.9999 + 1 / 40.0205)
    assert white == near((weighted + harmonic) / 2, abs=1e-3) and black == near(99.9999)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=60), st.booleans())
def test_accuracy_lies_between_0_and_100(chances, white_begins):
    for accuracy in game_accuracy(chances, white_begins):
        assert accuracy is None or 0 <= accuracy <= 100
    if all(after >= before for before, after in pairwise(chances)) and white_begins:
        assert game_accuracy(chances)[0] == near(99.9999)


def test_judgements_go_by_winning_chances_lost():
    names = [found and found.name for found in map(judgement_of, [50] * 5, [45.1, 45, 40, 35, 60])]
    assert names == [None, "inaccuracy", "mistake", "blunder", None]


def test_the_move_that_the_analyst_would_have_made_is_no_blunder():
    start = get_game("gardner_chess").start_fen
    record = GameRecord("gardner_chess", start, ("b1c3", "d4c3", "b2c3"), "*")
    scores, chances = (Cp(0), Cp(-300), Cp(300), Cp(300)), (50.0, 24.9, 75.1, 75.1)
    found = judgements(AnalysedGame(record, scores, chances, ("a2a3", "d4c3", "b2c3", "a4a3"), "somebody"))
    assert [one and one.glyph for one in found] == ["??", None, None]
