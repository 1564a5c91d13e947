"""Quiescence moves of the leaves of a minimax tree: captures, promotions, answers to checks."""

from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.games.attacks import PIECE_VALUES, attack_maps
from alphagateau.games.entries import KING, PAWN
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.search.minimax.node_pool import FULL, QUIET, Nodes


def noisy_moves(game: Game, state: State) -> tuple[Array, Array]:
    """(slots of a State's noisy moves bool [S], whether the player to move is in check).

    Noisy are promotions to a queen, and captures of an undefended piece or one of at least the capturer's worth; an
    under-promotion is neither. Whether the victim is defended is read before the move.
    """
    board, edge = state.boards[0].astype(jnp.int32), state.legal_edges.astype(jnp.int32)
    sender, receiver, promotion = (jnp.asarray(x)[edge] for x in (game.senders, game.receivers, game.promotions))
    maps, mover, victim = attack_maps(game.size, board), board[sender], -board[receiver]
    is_pawn = mover == PAWN
    victim = jnp.where(is_pawn & (receiver == state.en_passant), PAWN, jnp.maximum(victim, 0))
    worth, is_defended = jnp.asarray(PIECE_VALUES), maps.count[1][receiver] > 0
    is_good = (victim > 0) & ((worth[victim] >= worth[mover]) | ~is_defended)
    is_queening = is_pawn & (receiver % game.size == game.size - 1)
    is_noisy = (edge >= 0) & (promotion == 0) & (is_good | is_queening)
    return is_noisy, ((board == KING) & (maps.count[1] > 0)).any()


def quiet_choice(game: Game, num_plies: int, nodes: Nodes) -> tuple[Array, Array, Array]:
    """`Growth.choose` of quiescence: all moves of a main-tree leaf in check, else the noisy ones."""
    is_noisy, in_check = jax.vmap(partial(noisy_moves, game))(nodes.states)
    is_extended = in_check & (nodes.quiet > num_plies)
    mask = jnp.where(is_extended[:, None], nodes.states.legal_edges >= 0, is_noisy)
    left = jnp.minimum(nodes.quiet, num_plies)
    return mask, jnp.where(is_extended, FULL, QUIET), jnp.where(is_extended, left, left - 1)
