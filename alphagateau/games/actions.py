"""Actions in their three forms: an edge of the move graph, its slot among a position's legal edges, a mask over edges.

Slots hold a position's legal edges in rising order; what is stored by slot is spread over edges here, and gathered.
"""

from functools import lru_cache

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, State
from alphagateau.games.variants import get_game


@lru_cache
def edge_numbers(game_name: str) -> dict[tuple[int, int, int], int]:
    """The edge of each (sender, receiver, under-promotion), in rising order."""
    game = get_game(game_name)
    columns = (game.senders.tolist(), game.receivers.tolist(), game.promotions.tolist())
    return {triple: edge for edge, triple in enumerate(zip(*columns, strict=True))}


def legal_edge_mask(game: Game, positions: Position) -> Array:
    """Bool [B, E], True where the edge is a legal move; of Positions [B]."""
    return jnp.unpackbits(positions.legal, axis=-1, count=game.num_edges).astype(bool)


def edge_at(states: State, slot: Array) -> Array:
    """The edge int16 [B] in `slot` [B] of each State."""
    return jnp.take_along_axis(states.legal_edges, slot[:, None], axis=-1)[:, 0]


def slots_to_edges(legal: Array, by_slot: Array) -> Array:
    """[B, E] of [B, S]: what is stored of the legal edges in rising order, 0 on illegal edges; `legal` bool [B, E]."""
    slot = jnp.cumsum(legal, axis=-1) - 1
    found = jnp.take_along_axis(by_slot, jnp.clip(slot, 0, by_slot.shape[-1] - 1), axis=-1)
    return jnp.where(legal, found, 0.0)


def edges_by_slot(legal: Array, num_slots: int) -> Array:
    """[B, S]: the edges that are legal, bool [B, E], in rising order, then E."""
    slots = jnp.arange(1, num_slots + 1)
    return jax.vmap(jnp.searchsorted, (0, None))(jnp.cumsum(legal, axis=-1), slots)


def edges_to_slots(states: State, by_edge: Array, empty: float) -> Array:
    """[B, S] of [B, E]: what belongs to each legal edge of a State in rising order, `empty` on slots left over."""
    slots = states.legal_edges.astype(jnp.int32)
    return jnp.where(slots >= 0, jnp.take_along_axis(by_edge, jnp.maximum(slots, 0), axis=-1), empty)
