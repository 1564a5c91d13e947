"""Kendall's tau-b and the published number that is none: worked examples, and how moves are numbered."""

import math

import chess
import numpy as np
import pytest

from alphagateau.suites.rank_correlation import _number, tau_b, tau_published

TRUTH, PREDICTION = np.array([0.2, 0.4, 0.1, 0.3, 0.5]), np.array([0.1, 0.4, 0.2, 0.3, 0.5])
MOVES = ["a1b1", "a1c1", "a1d1", "a1e1", "a1f1"]


def test_one_exchanged_pair_of_ten_is_a_tau_of_eight_tenths_and_published_as_four():
    assert tau_b(TRUTH, PREDICTION) == pytest.approx(0.8)
    assert tau_published(TRUTH, PREDICTION, MOVES) == pytest.approx(0.4)
    assert tau_published(TRUTH[::-1], PREDICTION[::-1], MOVES[::-1]) == pytest.approx(0.4)


def test_ties():
    """Of three pairs one agrees, and each side ties one other: 1 / sqrt(2 * 2)."""
    assert tau_b(np.array([1, 1, 2]), np.array([1, 2, 2])) == pytest.approx(0.5)
    assert math.isnan(tau_b(np.ones(3), np.arange(3))) and tau_b(np.arange(3), np.ones(3)) == 0
    assert tau_published(np.ones(3), np.ones(3), MOVES[:3]) == pytest.approx(1)


def test_of_a_single_move_the_order_is_right():
    assert tau_b(np.ones(1), np.ones(1)) == tau_published(np.ones(1), np.ones(1), ["a1a2"]) == 1


def test_moves_are_numbered_as_published():
    """Of the code's 1968 moves, some numbers by which it is known."""
    moves = []
    for start in chess.SQUARES:
        ends = chess.BB_KNIGHT_ATTACKS[start] | chess.BB_DIAG_ATTACKS[start][0] | chess.BB_RANK_ATTACKS[start][0]
        moves += [chess.Move(start, end).uci() for end in chess.SquareSet(ends | chess.BB_FILE_ATTACKS[start][0])]
    for color, rank in ((chess.WHITE, 6), (chess.BLACK, 1)):
        for file in range(8):
            start = chess.square(file, rank)
            step = 8 if color else -8
            ends = [start + step, *chess.SquareSet(chess.BB_PAWN_ATTACKS[color][start])]
            moves += [chess.Move(start, end, kind).uci() for end in ends for kind in (2, 3, 4, 5)]
    numbers = {move: number for number, move in enumerate(sorted(moves, key=_number))}
    assert len(numbers) == 1968
    known = {"a1b1": 0, "e1g1": 102, "g1f3": 169, "e2e4": 317, "e7e5": 1497, "e7e8": 1510, "a2a1q": 1792}
    known |= {"e7e8q": 1924, "e7e8n": 1927, "h7g8n": 1967}
    assert {move: numbers[move] for move in known} == known
