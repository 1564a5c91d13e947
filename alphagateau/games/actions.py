"""Converts actions between edges of the move graph, slots among a position's legal edges, and masks; plays random ones.

Slots hold a position's legal edges in rising order.
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
    """Spreads values by slot [B, S] over edges [B, E], 0 on illegal ones; `legal` bool [B, E]."""
    slot = jnp.cumsum(legal, axis=-1) - 1
    found = jnp.take_along_axis(by_slot, jnp.clip(slot, 0, by_slot.shape[-1] - 1), axis=-1)
    return jnp.where(legal, found, 0.0)


def edges_by_slot(legal: Array, num_slots: int) -> Array:
    """The legal edges [B, S] of a mask [B, E] in rising order, then E."""
    slots = jnp.arange(1, num_slots + 1)
    return jax.vmap(jnp.searchsorted, (0, None))(jnp.cumsum(legal, axis=-1), slots)


def edges_to_slots(states: State, by_edge: Array, empty: float) -> Array:
    """Gathers values by edge [B, E] into the slots [B, S] of States, `empty` into slots left over."""
    slots = states.legal_edges.astype(jnp.int32)
    return jnp.where(slots >= 0, jnp.take_along_axis(by_edge, jnp.maximum(slots, 0), axis=-1), empty)


def random_positions(game: Game, batch: int, num_plies: int = 20) -> Position:
    """B Positions after `num_plies` random legal moves; a game that ends before stays at its end."""

    def one_ply(states, key):
        logits = jnp.where(states.legal_edges >= 0, 0.0, -jnp.inf)
        slot = jax.random.categorical(key, jnp.where(states.terminated[:, None], 0.0, logits))
        return jax.vmap(game.step)(states, edge_at(states, slot)), None

    def roll(key):
        start = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), game.init())
        states, _ = jax.lax.scan(one_ply, start, jax.random.split(key, num_plies))
        return jax.vmap(game.position)(states)

    return jax.jit(roll)(jax.random.key(0))
