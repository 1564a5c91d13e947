"""Values in [-1, 1] in, what chess programs make of them out: centipawns, scores, the share of games won."""

import math

import chess.engine

LEAST_DOUBT = 1e-5  # a value is never surer than this, as that of a proven mate would be endless


def centipawns(value: float) -> int:
    """400 log10((1 + v) / (1 - v)), for the same player: the Elo difference whose expected score is (1 + v) / 2."""
    value = min(max(value, LEAST_DOUBT - 1), 1 - LEAST_DOUBT)
    return round(400 * math.log10((1 + value) / (1 - value)))


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
    """ "+0.23" in pawns, "#-3", or "#" of a mate on the board."""
    if score.is_mate():
        return f"#{score.mate() or ''}"
    return f"{(score.score() or 0) / 100:+.2f}"
