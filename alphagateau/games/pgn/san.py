"""Parses moves in SAN, long algebraic or UCI notation, as people and programs spell them."""

import re

import chess

ATTACHED = re.compile(r"(?:e\.?p\.?|ch|[+#=±∓⩲⩱∞→↑⇆!?.,-])+$")  # to a move
CASTLING = re.compile(r"[oO0]-?[oO0](-?[oO0])?")
PROMOTED = re.compile(r"(?i)(.*[a-h][1-8])[=/(]+([qrbn])\)?")  # a8=Q, a8/Q, a8(Q)
MAX_LETTERS = 40  # of a move; what has more is none
NULL_MOVES = ("--", "Z0", "0000", "@@@@")


def read_move(board: chess.Board, text: str) -> chess.Move:
    """The legal move of a text. Raises ValueError, in one sentence, for a text of none, or of several."""
    if len(text) > MAX_LETTERS:
        raise ValueError(f"invalid san: {text[:MAX_LETTERS]!r}...: expected a legal move")
    plain = ATTACHED.sub("", text).replace(":", "x")
    if text in NULL_MOVES or plain in NULL_MOVES:
        raise ValueError(f"{text!r} is a null move: expected a legal move")
    if castling := CASTLING.fullmatch(plain):
        plain = "O-O-O" if castling[1] else "O-O"
    plain = PROMOTED.sub(lambda found: f"{found[1]}={found[2].upper()}", plain)
    try:
        return board.parse_san(plain)
    except ValueError as error:
        try:  # B2B4 may be squares, B2b4 is a bishop's
            return board.parse_uci(plain if re.match("B.*[a-h]", plain) else plain.replace("=", "").lower())
        except ValueError:
            raise ValueError(f"{str(error)[:200]}: expected a legal move") from None
