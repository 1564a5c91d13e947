"""Turns a position and moves on it into what templates/diagram.html draws, for any square board."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import chess


class Diagram(NamedTuple):
    """A board of 100 x 100 squares, White below: (x, y, shade), (x, y, letter, color), (path, kind)."""

    label: str
    size: int
    squares: Sequence[tuple[int, int, str]]
    pieces: Sequence[tuple[int, int, str, str]]
    arrows: Sequence[tuple[str, str]]


def diagram(fen: str, label: str, arrows: Sequence[tuple[str, str]] = ()) -> Diagram:
    """The board of a FEN. arrows: (move in UCI, kind), the kind being a class of page.css."""
    rows = fen.split()[0].split("/")
    size, pieces = len(rows), []
    for y, row in enumerate(rows):
        x = 0
        for sign in re.findall(r"\d+|.", row):
            if not sign.isdigit():
                pieces.append((100 * x, 100 * y, sign.lower(), "white" if sign.isupper() else "black"))
            x += int(sign) if sign.isdigit() else 1
    shades = [(100 * x, 100 * y, "dark" if (size - y + x) % 2 else "light") for y in range(size) for x in range(size)]
    return Diagram(label, size, shades, pieces, [(_arrow(size, uci), kind) for uci, kind in arrows if uci])


def _arrow(size: int, uci: str) -> str:
    """The path of an arrow from the middle of one square to that of another."""
    move = chess.Move.from_uci(uci)
    ends = (move.from_square, move.to_square)
    (x1, y1), (x2, y2) = (
        (100 * chess.square_file(at) + 50, 100 * (size - 1 - chess.square_rank(at)) + 50) for at in ends
    )
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bx, by = x2 - 34 * ux, y2 - 34 * uy  # the foot of the head
    head = f"L{bx - 20 * uy:.0f} {by + 20 * ux:.0f}L{x2} {y2}L{bx + 20 * uy:.0f} {by - 20 * ux:.0f}L{bx:.0f} {by:.0f}"
    return f"M{x1} {y1}L{bx:.0f} {by:.0f}{head}"
