"""Zobrist hashing: 64-bit keys of positions, by whose equality repetitions are found.

A key hashes board, side to move, castling rights and en passant square; in practice only equal positions share one.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array


def make_position_key(num_squares: int) -> Callable[[Array, Array, Array, Array], Array]:
    """The function (board, color, castling, en_passant) -> uint32 [2] of boards with so many squares."""
    rng = np.random.default_rng(2024)
    on_board, on_side, on_castling, on_en_passant = (
        rng.integers(1, 2**32, size=(*shape, 2), dtype=np.uint32)
        for shape in ((num_squares, 13), (), (4,), (num_squares + 1,))
    )

    def position_key(board: Array, color: Array, castling: Array, en_passant: Array) -> Array:
        words = jnp.asarray(on_board)[jnp.arange(num_squares), board.astype(jnp.int32) + 6]
        key = jax.lax.reduce(words, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        key ^= jnp.where(color == 0, jnp.asarray(on_side), jnp.uint32(0))
        rights = jnp.where(castling[:, None], jnp.asarray(on_castling), jnp.uint32(0))
        key ^= jax.lax.reduce(rights, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        return key ^ jnp.asarray(on_en_passant)[en_passant]

    return position_key
