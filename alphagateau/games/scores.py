"""Converts between centipawns, winning chances and values in [-1, 1], by one formula.

A chance of winning is 1 / (1 + exp(-0.00368208 c)) of c centipawns, as Lichess (https://lichess.org/page/accuracy) and
ChessBench (Ruoss et al. 2024) have it; the value of a search is twice the chance, less 1.
"""

import math
from typing import Any

import chess.engine
import numpy as np

SCALE = 0.00368208  # of centipawns, in the exponent
MAX_CENTIPAWNS = 30_000  # of a sure win


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
