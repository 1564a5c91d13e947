"""Converts between centipawns, winning chances, values in [-1, 1] and the int16 codes of labels, by one formula.

A chance of winning is 1 / (1 + exp(-0.00368208 c)) of c centipawns, as Lichess (https://lichess.org/page/accuracy) and
ChessBench (Ruoss et al. 2024) have it; the value of a search is twice the chance, less 1.

Codes are centipawns up to MAX_CENTIPAWNS either way; the mover mates in k moves: MATE - k, is mated in k: k - MATE.
"""

import math
from typing import Any

import chess.engine
import numpy as np

SCALE = 0.00368208  # of centipawns, in the exponent
MAX_CENTIPAWNS = 30_000  # of a sure win
NO_SCORE = -32768
MATE = 32_000
SLOWEST_MATE, MATE_STEPS = 20, 500  # of graded mates: all slower ones are worth the same, one move is 1 / 500


def win_chance(centipawns: Any) -> Any:
    """Winning chances in [0, 1] of a score or an array of scores, for the same player."""
    return 1 / (1 + np.exp(-SCALE * np.clip(centipawns, -MAX_CENTIPAWNS, MAX_CENTIPAWNS)))


def centipawns(value: float) -> int:
    """The score whose chance of winning is (1 + value) / 2, for the same player."""
    if abs(value) >= 1:
        return MAX_CENTIPAWNS if value > 0 else -MAX_CENTIPAWNS
    return round(math.log((1 + value) / (1 - value)) / SCALE)


def white_score(value: float, is_white: bool) -> chess.engine.Score:
    """White's score by a search's value, which is for the player to move, White or not."""
    return chess.engine.Cp(centipawns(value) if is_white else -centipawns(value))


def score_text(score: chess.engine.Score) -> str:
    """A score as text, such as "+0.23" in pawns, "#-3", or "#" of a mate on the board."""
    if score.is_mate():
        return f"#{score.mate() or ''}"
    return f"{(score.score() or 0) / 100:+.2f}"


def encode(kind: str, number: int) -> int:
    """The code of UCI's `score cp NUMBER` or `score mate NUMBER`, for the player to move."""
    if kind == "cp":
        return min(max(number, -MAX_CENTIPAWNS), MAX_CENTIPAWNS)
    moves = min(abs(number), MATE - MAX_CENTIPAWNS - 1)
    return MATE - moves if number > 0 else moves - MATE


def win_probability(scores: np.ndarray, mate_value: str = "certain") -> np.ndarray:
    """float64 in [0, 1] for the player to move, of coded scores; NaN where there is none.

    Centipawns give `win_chance`; a mate for the mover gives 1, against it 0 (Ruoss et al. 2024, section 2). With
    `mate_value` "graded" a mate in k moves gives 1 - min(k, 20) / 500, so that a player of values that has won goes on.
    """
    scores = np.asarray(scores, np.int16).astype(np.float64)
    moves = np.minimum(MATE - np.abs(scores), SLOWEST_MATE) if mate_value == "graded" else 0
    of_mate = np.where(scores > 0, 1 - moves / MATE_STEPS, moves / MATE_STEPS)
    q = np.where(np.abs(scores) > MAX_CENTIPAWNS, of_mate, win_chance(scores))
    return np.where(scores == NO_SCORE, np.nan, q)
