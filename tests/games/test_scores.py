"""Scores of values, by hand."""

from chess.engine import Cp, Mate
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.games.scores import centipawns, white_score


def test_a_score_is_an_elo_difference():
    assert centipawns(0) == 0
    assert centipawns(9 / 11) == 400  # ten times as many wins as losses
    assert centipawns(1) == 2120 and centipawns(-1) == -2120


@given(st.floats(-1, 1))
def test_scores_are_odd(value: float):
    assert centipawns(-value) == -centipawns(value)


def test_a_score_in_pgn_is_whites_and_of_the_position_after_the_move():
    assert white_score(9 / 11, True) == Cp(400) and white_score(9 / 11, False) == Cp(-400)
    assert white_score(1.0, True, 1) is None  # this move mates
    assert white_score(1.0, True, 3) == Mate(1) and white_score(1.0, False, 5) == Mate(-2)
    assert white_score(-1.0, True, -2) == Mate(-1) and white_score(-1.0, False, -4) == Mate(2)
