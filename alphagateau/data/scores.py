"""Codes scores of positions as int16, and converts them to probabilities of winning.

Centipawns lie in [-CENTIPAWNS, CENTIPAWNS]; the mover mates in k moves: MATE - k, is mated in k: k - MATE.
"""

import numpy as np

from alphagateau.games.scores import MAX_CENTIPAWNS as CENTIPAWNS
from alphagateau.games.scores import win_chance

NO_SCORE = -32768
MATE = 32_000
SLOWEST_MATE, MATE_STEPS = 20, 500  # of graded mates: all slower ones are worth the same, one move is 1 / 500


def encode(kind: str, number: int) -> int:
    """The code of UCI's `score cp NUMBER` or `score mate NUMBER`, for the player to move."""
    if kind == "cp":
        return min(max(number, -CENTIPAWNS), CENTIPAWNS)
    moves = min(abs(number), MATE - CENTIPAWNS - 1)
    return MATE - moves if number > 0 else moves - MATE


def win_probability(scores: np.ndarray, mate_value: str = "certain") -> np.ndarray:
    """float64 in [0, 1] for the player to move, of coded scores; NaN where there is none.

    Centipawns give `win_chance`; a mate for the mover gives 1, against it 0 (Ruoss et al. 2024, section 2). With
    `mate_value` "graded" a mate in k moves gives 1 - min(k, 20) / 500, so that a player of values that has won goes on.
    """
    scores = np.asarray(scores, np.int16).astype(np.float64)
    moves = np.minimum(MATE - np.abs(scores), SLOWEST_MATE) if mate_value == "graded" else 0
    of_mate = np.where(scores > 0, 1 - moves / MATE_STEPS, moves / MATE_STEPS)
    q = np.where(np.abs(scores) > CENTIPAWNS, of_mate, win_chance(scores))
    return np.where(scores == NO_SCORE, np.nan, q)
