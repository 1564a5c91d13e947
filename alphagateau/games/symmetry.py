"""Mirror images of positions and edges: file a is exchanged with the last file, the next with the one before it.

All rules but castling are symmetric: without castling rights, an image has the same legal moves and value.
"""

from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.actions import edge_numbers, edges_by_slot, legal_edge_mask, slots_to_edges
from alphagateau.games.moves import flip_square
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position

T = TypeVar("T")


def mirror_square(size: int, square: Any) -> Any:
    """The number of a square's mirror image."""
    return (size - 1 - square // size) * size + square % size


def mirror_edges(game: Game) -> np.ndarray:
    """int32 [E]: the mirror image of each edge; its own inverse."""
    number, image = edge_numbers(game.name), partial(mirror_square, game.size)
    return np.array([number[image(sender), image(receiver), kind] for sender, receiver, kind in number], np.int32)


def edges_from_other_side(game: Game) -> np.ndarray:
    """int32 [E]: the edge between the same two squares as the other player sees them; of a promotion, without it."""
    number, flip = edge_numbers(game.name), partial(flip_square, game.size)
    return np.array([number[int(flip(sender)), int(flip(receiver)), 0] for sender, receiver, _ in number], np.int32)


def has_mirror(positions: Position) -> Array:
    """Bool [B]: whether the mirror image of each Position is a position of the same worth."""
    return positions.castling == 0


def mirror_positions(game: Game, positions: Position) -> Position:
    """Mirror images of Positions [B] and their past; without meaning where not `has_mirror`."""
    en_passant = positions.en_passant
    return positions._replace(
        boards=positions.boards[..., mirror_square(game.size, np.arange(game.num_squares))],
        en_passant=jnp.where(en_passant < 0, en_passant, mirror_square(game.size, en_passant)),
        legal=jnp.packbits(legal_edge_mask(game, positions)[..., mirror_edges(game)], axis=-1),
    )


def mirror_slots(game: Game, positions: Position, by_slot: Array) -> Array:
    """Values by slot [B, S] of each Position, reordered by its mirror image's slots; 0 on empty ones."""
    legal, edges = legal_edge_mask(game, positions), mirror_edges(game)
    by_edge, edge_of = slots_to_edges(legal, by_slot)[:, edges], edges_by_slot(legal[:, edges], by_slot.shape[-1])
    found = jnp.take_along_axis(by_edge, jnp.minimum(edge_of, game.num_edges - 1), axis=-1)
    return jnp.where(edge_of < game.num_edges, found, 0).astype(by_slot.dtype)


def select(mask: Array, one: T, other: T) -> T:
    """Selects rows of two trees of arrays [B, ...]: the first's where `mask` [B] is True, else the second's."""
    return jax.tree.map(lambda x, y: jnp.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x, y), one, other)
