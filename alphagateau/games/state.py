"""Records of a game, State and Position, and batches of them.

Letters: B batch, T plies, N squares (nodes), E edges, S legal-move slots of a game, W window. Shapes are those of
jaxtyping: `*B` stands for any leading axes, none of one game, [B] or [T, B] of what `vmap` or `scan` made.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int8, Int16, UInt8, UInt32

Array = jax.Array
Row = TypeVar("Row")

HISTORY = 8  # positions that a network sees: the current one and the 7 before it
KEYS = 108  # position keys kept: 100 reversible plies, and so for each of the 8 positions of the history


class State(NamedTuple):
    """A game in progress, small enough to be stored at every node of a search tree.

    Boards are seen by the player to move: own pieces positive, own side at the bottom.
    """

    boards: Int8[Array, "*B 8 N"]  # newest first; +-1 pawn .. +-6 king, 0 empty (or before the start)
    keys: UInt32[Array, "*B 108 2"]  # hashes of the newest positions, newest first; 0 before the start
    color: Int8[Array, "*B"]  # 0 white to move, 1 black
    # own queen side, own king side, the opponent's two; on chess960 1 + the rook's file, 0 without the right
    castling: Bool[Array, "*B 4"] | Int8[Array, "*B 4"]
    en_passant: Int8[Array, "*B"]  # the square a legal en passant capture would reach, else -1
    halfmove_count: Int16[Array, "*B"]  # plies since the last capture or pawn move
    ply: Int16[Array, "*B"]  # plies since the game began (by the FEN's move number)
    legal_edges: Int16[Array, "*B S"]  # edges of the legal moves in rising order, then -1
    terminated: Bool[Array, "*B"]
    reward: Float32[Array, "*B"]  # for the player who made the last move: 1 checkmate, else 0


class Position(NamedTuple):
    """All that a network may need of a State, and enough to write its FEN."""

    boards: Int8[Array, "*B 8 N"]  # as in State
    repeated: UInt8[Array, "*B"]  # bit i: the position i plies ago occurred at least twice in this game
    color: Int8[Array, "*B"]
    castling: UInt8[Array, "*B"]  # bit i: castling[i] of State
    en_passant: Int8[Array, "*B"]
    halfmove_count: Int16[Array, "*B"]
    ply: Int16[Array, "*B"]
    legal: UInt8[Array, "*B E8"]  # legal-edge mask, packed big-endian as numpy.packbits does


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
