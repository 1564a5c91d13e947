"""Embeds the squares of Positions as Chessformer's tokens, from 112 features a square that are never stored.

Their order is Leela Chess Zero's: of each of 8 positions, newest first, own pawn to king, the opponent's pawn to king,
repetition; then castling rights (own queen side and king side, theirs), the square of an en passant capture, plies
without progress / 100, ply / the game's limit (0 there), and 1. The attackers of a square may be embedded too.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.attacks import PIECE_VALUES, attack_maps
from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Array, Position
from alphagateau.networks.graph_gather import lookup
from alphagateau.networks.layers import GLOROT, ZEROS, Weight, dense
from alphagateau.networks.planes import CODE_PLANES, board_codes, position_scalars

NUM_INPUTS = 112
CASTLING, EN_PASSANT, PROGRESS = 104, 108, 109  # first feature of each kind
PLANES = np.delete(CODE_PLANES, 12, axis=1)  # [26, 13], without the plane of no repetition
WORTHS = np.unique(PIECE_VALUES)  # of the least attacker, 0 for none
NUM_COUNTS = 4  # counts of attackers: 0, 1, 2, more
MAX_SIZE = 8  # squares a side of the largest board


def input_weights(config, num_squares: int) -> dict[str, Any]:
    """The weights of `embed_tokens`, `embed_attacks` and `scale_and_shift`, by name, of a ChessformerConfig.

    The table of attacks has a row by side, worth of the least attacker and number of attackers. Scale and shift are
    tables [edge, distance, d], or a row a square.
    """
    d = config.hidden_size
    weights: dict[str, Any] = {"embed": dense(NUM_INPUTS, d)}
    if config.attacks:
        weights["attacks"] = Weight((2 * len(WORTHS) * NUM_COUNTS, d), GLOROT)
    if config.square_embedding != "none":
        shape = (4, MAX_SIZE, d) if config.square_embedding == "edges" else (num_squares, d)
        weights["squares"] = {"scale": Weight(shape, ZEROS), "shift": Weight(shape, ZEROS)}
    return weights


def embed_tokens(params: dict[str, Array], game: Game, positions: Position) -> Array:
    """The features of B Positions times their kernel, plus bias, [B * N, d]; for planes a sum of rows."""
    planes, rights, en_passant, rest = jnp.split(params["kernel"], [CASTLING, EN_PASSANT, PROGRESS])
    tables = jnp.asarray(PLANES) @ planes.reshape(HISTORY, PLANES.shape[1], -1)
    codes = board_codes(positions).transpose(1, 0, 2).reshape(HISTORY, -1)
    _, ply, *castling, progress = position_scalars(game, positions).T
    everywhere = jnp.stack(castling, axis=1) @ rights
    everywhere = everywhere + jnp.stack([progress, ply, jnp.ones_like(ply)], axis=1) @ rest + params["bias"]
    is_en_passant = positions.en_passant[:, None] == jnp.arange(game.num_squares)
    at_squares = everywhere[:, None] + jnp.where(is_en_passant[..., None], en_passant, 0)
    return lookup(tables, codes) + at_squares.reshape(-1, tables.shape[-1])


def embed_attacks(table: Array, game: Game, positions: Position) -> Array:
    """The attackers of each square of B Positions by either side, as a sum of two rows, [B * N, d]."""
    maps = jax.vmap(partial(attack_maps, game.size))(positions.boards[:, 0].astype(jnp.int32))
    least = jnp.searchsorted(jnp.asarray(WORTHS), maps.least, method="compare_all")
    codes = least * NUM_COUNTS + jnp.minimum(maps.count, NUM_COUNTS - 1)  # [B, 2, N]
    return lookup(table.reshape(2, -1, table.shape[-1]), codes.transpose(1, 0, 2).reshape(2, -1))


def scale_and_shift(params: dict[str, Array], size: int, x: Array) -> Array:
    """Tokens x [B, N, d] times max(1 + scale, 0), plus shift, by square; both are 0 at first.

    Scale and shift of a square are its row, or the sum of rows by distance to the board's four edges.
    """
    if not params:
        return x
    scale, shift = params["scale"], params["shift"]
    if scale.ndim == 3:
        file, rank = np.divmod(np.arange(size * size, dtype=np.int32), size)
        distances = jnp.asarray(np.stack([file, size - 1 - file, rank, size - 1 - rank]))
        scale, shift = (lookup(table, distances) for table in (scale, shift))
    return x * jnp.maximum(1 + scale, 0) + shift
