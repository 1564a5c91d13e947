"""The planes of a Position, those of pgx's chess (Table 1 of AlphaGateau), and codes to look them up by.

Boards are those of the player to move, who always plays up the board.
"""

import jax.numpy as jnp
import numpy as np

from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Array, Position

NUM_PLANES = 14 * HISTORY + 7  # 119


def unpack_bits(bits: Array, count: int) -> Array:
    """The bits bool [B, count] of uint8 [B], the lowest first."""
    return jnp.unpackbits(bits[:, None], axis=-1, count=count, bitorder="little").astype(bool)


def board_codes(positions: Position) -> Array:
    """int32 [B, HISTORY, N]: the row of `CODE_PLANES` of each square of each board."""
    repeated = unpack_bits(positions.repeated, HISTORY)  # [B, HISTORY]
    return positions.boards.astype(jnp.int32) + 6 + 13 * repeated[..., None]


def _code_planes() -> np.ndarray:
    """float32 [26, 14]: the planes of a square by piece code + 6, and + 13 if the position is repeated.

    Own pawn .. king, the opponent's, not repeated, repeated.
    """
    planes = np.zeros((2, 13, 14), np.float32)
    for piece in range(1, 7):
        planes[:, 6 + piece, piece - 1] = planes[:, 6 - piece, piece + 5] = 1
    planes[0, :, 12] = planes[1, :, 13] = 1
    return planes.reshape(26, 14)


CODE_PLANES = _code_planes()


def position_scalars(game: Game, positions: Position) -> Array:
    """float32 [B, 7]: color, ply / ply limit (at most 1), 4 castling rights, plies without progress / 100."""
    castling = unpack_bits(positions.castling, 4)
    ply, progress = jnp.minimum(positions.ply / game.max_plies, 1.0), positions.halfmove_count / 100.0
    return jnp.column_stack([positions.color, ply, castling, progress]).astype(jnp.float32)


def square_planes(game: Game, positions: Position) -> Array:
    """float32 [B, N, 119]: of each square the planes of the last 8 positions, newest first, then the scalars."""
    planes = jnp.asarray(CODE_PLANES)[board_codes(positions).transpose(0, 2, 1)]
    planes = planes.reshape(*planes.shape[:2], -1)
    scalars = position_scalars(game, positions)
    everywhere = jnp.broadcast_to(scalars[:, None], (*planes.shape[:2], scalars.shape[1]))
    return jnp.concatenate([planes, everywhere], axis=-1)
