"""An oracle: the moves of the boards that pgx has, from our State to a board after the move.

pgx plays a move by functions that it does not publish, so its version is bounded in pyproject.toml.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pgx.gardner_chess as pgx_gardner
from pgx._src.games import chess as pgx_chess

from alphagateau.games.moves import Moved
from alphagateau.games.state import Array, State


def _chess_move(state: State, label: Array) -> Moved:
    x = pgx_chess.GameState(
        board=state.boards[0].astype(jnp.int32),
        color=state.color.astype(jnp.int32),
        castling_rights=state.castling.reshape(2, 2),
        en_passant=state.en_passant.astype(jnp.int32),
        halfmove_count=state.halfmove_count.astype(jnp.int32),
    )
    x = pgx_chess._flip(pgx_chess._apply_move(x, pgx_chess.Action._from_label(label)))
    return Moved(x.board, x.castling_rights.reshape(4), x.en_passant, x.halfmove_count)


def _gardner_move(state: State, label: Array) -> Moved:
    x = pgx_gardner.State(
        _board=state.boards[0].astype(jnp.int32),
        _turn=state.color.astype(jnp.int32),
        _halfmove_count=state.halfmove_count.astype(jnp.int32),
    )
    x = pgx_gardner._flip(pgx_gardner._apply_move(x, pgx_gardner.Action._from_label(label)))
    return Moved(x._board, state.castling, jnp.int32(-1), x._halfmove_count)


MOVES = {"chess": _chess_move, "gardner_chess": _gardner_move}  # by pgx's name of the environment


def make_pgx_move(pgx_id: str, labels: np.ndarray) -> Callable[[State, Array], Moved]:
    """The function (state, edge) -> Moved of a game that pgx has; `labels` int32 [E], pgx's action of each edge."""

    def move(state: State, edge: Array) -> Moved:
        return MOVES[pgx_id](state, jnp.asarray(labels)[edge])

    return move
