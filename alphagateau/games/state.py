"""Records of a game, State and Position, and batches of them.

Letters: B batch, T plies, N squares (nodes), E edges, S legal-move slots of a game, W window. A leading B or T
axis is added by `vmap` or `scan`; the shapes below are those of one game, one position, one frame.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array
Row = TypeVar("Row")

HISTORY = 8  # positions that a network sees: the current one and the 7 before it
KEYS = 108  # position keys kept: 100 reversible plies, and so for each of the 8 positions of the history


class State(NamedTuple):
    """A game in progress, small enough to be stored at every node of a search tree.

    Boards are seen by the player to move: own pieces positive, own side at the bottom.
    """

    boards: Array  # int8 [HISTORY, N], newest first; +-1 pawn .. +-6 king, 0 empty (or before the start)
    keys: Array  # uint32 [KEYS, 2], hashes of the newest positions, newest first; 0 before the start
    color: Array  # int8, 0 white to move, 1 black
    castling: Array  # bool [4]: own queen side, own king side, the opponent's two
    en_passant: Array  # int8, the square a legal en passant capture would reach, else -1
    halfmove_count: Array  # int16, plies since the last capture or pawn move
    ply: Array  # int16, plies since the game began (by the FEN's move number)
    legal_edges: Array  # int16 [S], edges of the legal moves in rising order, then -1
    terminated: Array  # bool
    reward: Array  # float32, for the player who made the last move: 1 checkmate, else 0


class Position(NamedTuple):
    """All that a network may need of a State, and enough to write its FEN."""

    boards: Array  # int8 [HISTORY, N], as in State
    repeated: Array  # uint8, bit i: the position i plies ago occurred at least twice in this game
    color: Array  # int8
    castling: Array  # uint8, bit i: castling[i] of State
    en_passant: Array  # int8
    halfmove_count: Array  # int16
    ply: Array  # int16
    legal: Array  # uint8 [ceil(E / 8)], legal-edge mask, packed big-endian as numpy.packbits does


def without_past(positions: Position) -> Position:
    """Positions [...] without the boards before theirs, and without repetitions."""
    boards = positions.boards.at[..., 1:, :].set(0)
    return positions._replace(boards=boards, repeated=jnp.zeros_like(positions.repeated))


def pad_rows(rows: Sequence[Row], num_rows: int | None = None) -> list[Row]:
    """The rows, the first repeated up to `num_rows` of them, or to the next power of two. Raises ValueError."""
    if num_rows is None:
        num_rows = 1 << max(len(rows) - 1, 0).bit_length()
    if not 0 < len(rows) <= num_rows:
        raise ValueError(f"expected 1 to {num_rows} rows in a batch, got {len(rows)}")
    return [*rows, *[rows[0]] * (num_rows - len(rows))]


def stack_rows(rows: Sequence[Row]) -> Row:
    """Trees of arrays [...], such as States, as one tree of numpy arrays [B, ...]."""
    return jax.tree.map(lambda *x: np.stack(x), *rows)
