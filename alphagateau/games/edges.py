"""The static move graph of a board: all moves that some piece can make, with AlphaZero's labels.

A label is `sender * num_planes + plane`. The planes: 9 under-promotions, rook, bishop, knight, each straight up, up
right, up left; then the queen's moves along 4 lines, by -(size - 1) to size - 1 squares; then 8 knight's moves. Their
order is pgx's, whose actions on 5x5 and 8x8 are thus these labels.
"""

from dataclasses import dataclass

import numpy as np

from alphagateau.games.entries import BISHOP, KNIGHT, ROOK, GameEntry


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges (from, to, under-promotion), ordered by receiver, sender, promotion."""

    senders: np.ndarray  # int32 [E], square a piece leaves
    receivers: np.ndarray  # int32 [E], square it reaches
    promotions: np.ndarray  # int8 [E], KNIGHT, BISHOP or ROOK for an under-promotion, else 0
    labels: np.ndarray  # int32 [E], AlphaZero's action of the edge, as its network and pgx have it
    num_labels: int  # A, labels of the board, most of which are no edge


def move_planes(size: int) -> list[tuple[int, int, int]]:
    """(files right, ranks up, under-promotion or 0) of each plane."""
    under = [(right, 1, kind) for kind in (ROOK, BISHOP, KNIGHT) for right in (0, 1, -1)]
    rising, falling = [*range(1, size)], [*range(size - 1, 0, -1)]
    up = [(0, -n, 0) for n in falling] + [(0, n, 0) for n in rising]
    right = [(-n, 0, 0) for n in falling] + [(n, 0, 0) for n in rising]
    up_right = [(-n, -n, 0) for n in falling] + [(n, n, 0) for n in rising]
    up_left = [(-n, n, 0) for n in falling] + [(n, -n, 0) for n in rising]
    leaps = [(-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2)]
    return under + up + right + up_right + up_left + [(*leap, 0) for leap in leaps]


def make_edges(entry: GameEntry) -> Edges:
    """All moves that stay on the board, and only the promotions that the game has."""
    size, planes = entry.size, move_planes(entry.size)
    found = []
    for sender in range(size * size):
        file, rank = divmod(sender, size)
        for plane, (right, up, promotion) in enumerate(planes):
            is_on_board = 0 <= file + right < size and 0 <= rank + up < size
            is_move = rank == size - 2 and promotion in entry.under_promotions if promotion else True
            if is_on_board and is_move:
                receiver = (file + right) * size + rank + up
                found.append((receiver, sender, promotion, sender * len(planes) + plane))
    receivers, senders, promotions, labels = np.array(sorted(found), np.int32).T
    return Edges(senders, receivers, promotions.astype(np.int8), labels, size * size * len(planes))
