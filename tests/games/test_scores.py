"""Scores of values, by hand."""

import numpy as np
from chess.engine import Cp
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from alphagateau.games.scores import centipawns, white_score, win_chance, win_probability
from alphagateau.play.uci.text import score_text
from alphagateau.search.growing.tree_lines import Line


def test_centipawns_are_those_of_lichess():
    """1 / (1 + exp(-0.00368208 c)) is the chance of winning; a sure win is the most that a label may have."""
    assert win_chance(100) == approx(0.591026, abs=1e-6) and win_chance(-300) == approx(0.248874, abs=1e-6)
    assert centipawns(0) == 0 and centipawns(0.5) == 298 and win_chance(298.37) == approx(0.75, abs=1e-5)
    assert (centipawns(1), centipawns(-1)) == (30_000, -30_000) and win_chance(10**9) == win_chance(30_000) == 1


def test_one_value_is_one_score_everywhere():
    """Half way to a win: a chance of 75 %, in UCI, in PGN and as a label."""
    code = centipawns(0.5)
    assert score_text(Line((), 1, 0.5, None), False) == f"score cp {code}" and white_score(0.5, True) == Cp(code)
    assert win_probability(np.array([code])) == approx(0.75, abs=5e-4)


@given(st.floats(-1, 1))
def test_scores_are_odd(value: float):
    assert centipawns(-value) == -centipawns(value)


def test_a_score_in_pgn_is_whites_and_of_the_position_after_the_move():
    assert white_score(0.5, True) == Cp(298) and white_score(0.5, False) == Cp(-298)
    assert white_score(1.0, True) == Cp(30_000) and white_score(1.0, False) == Cp(-30_000)
