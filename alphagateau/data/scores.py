"""An engine's score of a position as one int16, and as the probability of winning that ChessBench learns.

Centipawns lie in [-CENTIPAWNS, CENTIPAWNS]; the mover mates in k moves: MATE - k, is mated in k: k - MATE.
"""

import math

import numpy as np

SCALE = 0.00368208  # of centipawns, in the exponent
NO_SCORE = -32768
MATE, CENTIPAWNS = 32_000, 30_000
SLOWEST_MATE, MATE_STEPS = 20, 500  # of graded mates: all slower ones are worth the same, one move is 1 / 500


def encode(kind: str, number: int) -> int:
    """The code of UCI's `score cp NUMBER` or `score mate NUMBER`, for the player to move."""
    if kind == "cp":
        return min(max(number, -CENTIPAWNS), CENTIPAWNS)
    moves = min(abs(number), MATE - CENTIPAWNS - 1)
    return MATE - moves if number > 0 else moves - MATE


def encode_value(value: float) -> int:
    """The code of a value in [-1, 1], for the player to move: centipawns whose `win_probability` is (1 + value) / 2."""
    if abs(value) >= 1:
        return encode("cp", CENTIPAWNS if value > 0 else -CENTIPAWNS)
    return encode("cp", round(math.log((1 + value) / (1 - value)) / SCALE))


def win_probability(scores: np.ndarray, mate_value: str = "certain") -> np.ndarray:
    """float64 in [0, 1] for the player to move, of coded scores; NaN where there is none.

    1 / (1 + exp(-0.00368208 cp)); a mate for the mover is 1, against it 0 (Ruoss et al. 2024, section 2). With
    `mate_value` "graded" a mate in k moves is 1 - min(k, 20) / 500, so that a player of values that has won goes on.
    """
    scores = np.asarray(scores, np.int16).astype(np.float64)
    by_centipawns = 1 / (1 + np.exp(-SCALE * scores))
    moves = np.minimum(MATE - np.abs(scores), SLOWEST_MATE) if mate_value == "graded" else 0
    of_mate = np.where(scores > 0, 1 - moves / MATE_STEPS, moves / MATE_STEPS)
    found = np.where(np.abs(scores) > CENTIPAWNS, of_mate, by_centipawns)
    return np.where(scores == NO_SCORE, np.nan, found)
