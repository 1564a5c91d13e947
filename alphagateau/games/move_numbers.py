"""The vocabulary of UCI moves of searchless chess (Ruoss et al. 2024; its utils.py)."""

import chess

from alphagateau.games.entries import QUEEN
from alphagateau.games.rules import Game


def action_names(game: Game) -> list[str]:
    """UCI moves in the order of their numbers, 1968 on 8x8; the first share their embeddings with the characters.

    From a1, b1 to the last square: the queen's moves, then the knight's, each by rising square; then promotions.
    """
    size, kinds = game.size, {QUEEN, *game.promotions.tolist()}
    letters = [letter for letter in "qrbn" if chess.PIECE_SYMBOLS.index(letter) in kinds]
    squares = [(file, rank) for rank in range(size) for file in range(size)]
    names = []
    for start in squares:
        steps = {end: (abs(end[0] - start[0]), abs(end[1] - start[1])) for end in squares if end != start}
        of_queen = [end for end, (right, up) in steps.items() if right == up or not right or not up]
        of_knight = [end for end, step in steps.items() if sorted(step) == [1, 2]]
        names += [square_name(start) + square_name(end) for end in of_queen + of_knight]
    for rank, last in ((1, 0), (size - 2, size - 1)):
        for file in range(size):
            ends = [to_file for to_file in (file, file - 1, file + 1) if 0 <= to_file < size]
            names += [
                square_name((file, rank)) + square_name((end, last)) + letter for end in ends for letter in letters
            ]
    return names


def square_name(place: tuple[int, int]) -> str:
    """The name of a square, such as e4, of (file, rank) from 0."""
    return f"{'abcdefgh'[place[0]]}{place[1] + 1}"
