"""Centipawns and chances of winning, by one formula; values in [-1, 1] as the scores that chess programs show.

A chance of winning is 1 / (1 + exp(-0.00368208 c)) of c centipawns, as Lichess (https://lichess.org/page/accuracy) and
ChessBench (Ruoss et al. 2024) have it; the value of a search is twice the chance, less 1.
"""

import math
from typing import Any

import chess.engine
import numpy as np

SCALE = 0.00368208  # of centipawns, in the exponent
MAX_CENTIPAWNS = 30_000  # centipawns, which a sure win has


def win_chance(centipawns: Any) -> Any:
    """In [0, 1], of a score or an array of scores, for the same player."""
    return 1 / (1 + np.exp(-SCALE * np.clip(centipawns, -MAX_CENTIPAWNS, MAX_CENTIPAWNS)))


def centipawns(value: float) -> int:
    """The score whose chance of winning is (1 + value) / 2, for the same player."""
    if abs(value) >= 1:
        return MAX_CENTIPAWNS if value > 0 else -MAX_CENTIPAWNS
    return round(math.log((1 + value) / (1 - value)) / SCALE)


def white_score(value: float, is_white: bool, mate: int | None = None) -> chess.engine.Score | None:
    """White's score of the position after a move, as the player who made it sees it; None if the move mates.

    value: of its search, for that player, White or not. mate: plies from before the move to a mate that is proven,
    above 0 if that player gives it.
    """
    sign = 1 if is_white else -1
    if mate is None:
        return chess.engine.Cp(sign * centipawns(value))
    moves = mate // 2 if mate > 0 else -(-mate // 2)
    return chess.engine.Mate(sign * moves) if moves else None


def score_text(score: chess.engine.Score) -> str:
    """Such as "+0.23" in pawns, "#-3", or "#" of a mate on the board."""
    if score.is_mate():
        return f"#{score.mate() or ''}"
    return f"{(score.score() or 0) / 100:+.2f}"
