"""Plays a move on any chess-like board: a State and an edge to the board that the next player sees.

What a game has of castling, double steps and promotions is read from its entry and its edges. The move is taken to be
legal. Not pgx's, which compiles a dozen programs when it is imported; the tests hold the two equal.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from alphagateau.games.edges import Edges
from alphagateau.games.entries import KING, PAWN, QUEEN, ROOK, GameEntry
from alphagateau.games.state import Array, State


class Moved(NamedTuple):
    """A board after a move, already seen by the next player."""

    board: Array  # int32 [N]
    castling: Array  # [4], as in State
    en_passant: Array  # int32, the square a pawn stepped over, else -1
    halfmove_count: Array  # int32


def flip_square(size: int, square: Array | int) -> Array | int:
    """The number that the other player gives to a square."""
    return square // size * size + size - 1 - square % size


def flip_boards(size: int, boards: Array) -> Array:
    """Boards [..., N] as the other player sees them."""
    return -boards.reshape(*boards.shape[:-1], size, size)[..., ::-1].reshape(boards.shape)


def move(entry: GameEntry, edges: Edges, state: State, edge: Array) -> Moved:
    """Plays an edge."""
    size = entry.size
    square = np.arange(size * size, dtype=np.int32)
    sender, receiver, promotion = (
        jnp.asarray(x)[edge].astype(jnp.int32) for x in (edges.senders, edges.receivers, edges.promotions)
    )
    board, en_passant = state.boards[0].astype(jnp.int32), jnp.int32(-1)
    piece, is_capture = board[sender], board[receiver] < 0
    is_pawn = piece == PAWN
    becomes = jnp.where(is_pawn & (receiver % size == size - 1), QUEEN, piece)
    becomes = jnp.where(promotion > 0, promotion, becomes)
    if entry.double_step_rank is not None:
        is_passing = is_pawn & (state.en_passant >= 0) & (receiver == state.en_passant)
        board = jnp.where(is_passing & (square == receiver - 1), 0, board)
        is_double_step = is_pawn & (receiver == sender + 2)
        en_passant = jnp.where(is_double_step, flip_square(size, sender + 1), -1)
    for king, king_to, rook, rook_to in () if entry.is_fischer_random else entry.castlings:
        is_castling = (piece == KING) & (sender == king) & (receiver == king_to)
        after = np.where(square == rook_to, ROOK, 0)
        board = jnp.where(is_castling & np.isin(square, (rook, rook_to)), after, board)
    # Written last, and not chosen as above: XLA then keeps the board, and does not compute it for each use again.
    board = board.at[sender].set(0).at[receiver].set(becomes)
    if entry.is_fischer_random:
        is_castling = (piece == KING) & (state.boards[0, receiver] == ROOK)
        board = jnp.where(is_castling, _castled(entry, board, sender, receiver), board)
    return Moved(
        board=flip_boards(size, board),
        castling=_castling_after(entry, state.castling, piece, sender, receiver),
        en_passant=en_passant,
        halfmove_count=jnp.where(is_pawn | is_capture, 0, state.halfmove_count.astype(jnp.int32) + 1),
    )


def _castled(entry: GameEntry, board: Array, king: Array, rook: Array) -> Array:
    """The board after a king moved onto its own rook, with both where they castle to."""
    squares = jnp.array([[side.king_to, side.rook_to] for side in entry.castlings])[(rook > king).astype(jnp.int32)]
    return board.at[rook].set(0).at[squares].set(jnp.array([KING, ROOK]))


def _castling_after(entry: GameEntry, castling: Array, piece: Array, sender: Array, receiver: Array) -> Array:
    """The rights [4] as the next player sees them: a king's or rook's move and a rook's capture end them."""
    if not entry.castlings:
        return castling
    if entry.is_fischer_random:
        rooks = (castling.astype(jnp.int32) - 1) * entry.size + np.array([0, 0, 1, 1]) * (entry.size - 1)
        is_kept = jnp.concatenate([(piece != KING) & (sender != rooks[:2]), receiver != rooks[2:]])
        return jnp.roll(jnp.where(is_kept, castling, 0), 2)
    own = jnp.stack([(sender != side.king) & (sender != side.rook) for side in entry.castlings])
    others = jnp.stack([receiver != flip_square(entry.size, side.rook) for side in entry.castlings])
    return jnp.concatenate([castling[2:] & others, castling[:2] & own])
