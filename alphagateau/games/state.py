"""The records that the modules hand to one another, with their shapes.

Letters: B batch, T plies, N squares (nodes), E edges, S legal-move slots of a game, W window. A leading B or T
axis is added by `vmap` or `scan`; the shapes below are those of one game, one position, one frame.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

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
