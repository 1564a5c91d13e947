"""Attacks on a board: the least attacker of every square, the number of attackers, and checks.

Squares are numbered as in `rules.py`. Pieces block the lines of others; pinned pieces attack too.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from alphagateau.games.bitsets import count, is_empty, pack
from alphagateau.games.entries import KING, PAWN
from alphagateau.games.legality import make_views, sight
from alphagateau.games.state import Array

# By a piece's code (Giraffe's values); the king's is above all others.
PIECE_VALUES = np.array([0, 100, 325, 325, 500, 975, 1500], np.int32)


class AttackMaps(NamedTuple):
    """Attacks of both sides; the pieces of the first are positive, its pawns go up."""

    least: Array  # int32 [2, N], worth of the least valuable attacker of a square, 0 without one
    count: Array  # int32 [2, N], attackers of a square  # pyright: ignore[reportIncompatibleMethodOverride]


def piece_sets(board: Array) -> Array:
    """uint32 [2, 6, W] of a board int [N]: each side's pawns, knights, bishops, rooks, queens and kings."""
    codes = np.arange(PAWN, KING + 1, dtype=np.int32)
    return pack(board == jnp.asarray(np.stack([codes, -codes]))[..., None])


def attack_maps(size: int, board: Array) -> AttackMaps:
    """The AttackMaps of a board int [N]."""
    views = make_views(size)
    straight, diagonal = sight(views.rays, pack(board != 0)[:, None])
    least, number = [], []
    for pieces, pawns in zip(piece_sets(board), (views.own_pawns, views.pawns), strict=True):
        visible = pawns, views.leaps, diagonal, straight, straight | diagonal, views.near
        pawn, knight, bishop, rook, queen, king = (
            seen & own[:, None] for seen, own in zip(visible, pieces, strict=True)
        )
        worth = jnp.zeros(board.shape, jnp.int32)
        for attackers, kind in ((king, 6), (queen, 5), (rook, 4), (bishop | knight, 3), (pawn, 1)):
            worth = jnp.where(is_empty(attackers), worth, PIECE_VALUES[kind])
        least.append(worth)
        number.append(count(pawn | knight | bishop | rook | queen | king))
    return AttackMaps(jnp.stack(least), jnp.stack(number))
