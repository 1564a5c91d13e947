"""Backs up the values of minimax trees, and follows their principal variations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array
from alphagateau.search.minimax.node_pool import FULL, Nodes, Trees

MATE_STEP, MATE_PLIES = 0.001, 19  # a mate's value falls by so much a ply from the root, up to so many plies


class BackedUp(NamedTuple):
    """Minimax values of P nodes, each for its player to move."""

    value: Array  # float32 [P]
    move_value: Array  # float32 [P], of the move that led to a node, for the player who made it
    has_best: Array  # bool [P], False where a node was not expanded, or standing pat is best
    best: Array  # int32 [P], the child of the best move, the first of equals


def move_values(nodes: Nodes, value: Array) -> Array:
    """[P]: the value of the move that led to each node of value `value`, for its player; near mates are worth more."""
    mate = 1 - MATE_STEP * jnp.minimum(nodes.depth, MATE_PLIES)
    return nodes.reward * mate + nodes.discount * value


def back_up(trees: Trees) -> BackedUp:
    """Minimax from the deepest nodes up; a QUIET node is worth at least its static evaluation."""
    nodes, num_nodes = trees.nodes, len(trees.expansion)
    is_child = (jnp.arange(num_nodes) < trees.count) & (nodes.depth > 0)
    is_expanded, is_full = trees.expansion > 0, trees.expansion == FULL

    def one_level(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        depth, value, best = carry
        parents = jnp.where(is_child & (nodes.depth == depth), nodes.parent, num_nodes)
        best = best.at[parents].max(move_values(nodes, value), mode="drop")
        backed = jnp.where(is_full, best, jnp.maximum(best, nodes.value))
        return depth - 1, jnp.where(is_expanded & (nodes.depth == depth - 1), backed, value), best

    deepest = jnp.max(jnp.where(is_child, nodes.depth, 0))
    start = deepest, nodes.value, jnp.full(num_nodes, -jnp.inf)
    _, value, best = jax.lax.while_loop(lambda carry: carry[0] > 0, one_level, start)
    move_value = move_values(nodes, value)
    is_best = is_child & (move_value == best[nodes.parent])
    places = jnp.arange(num_nodes, dtype=jnp.int32)
    first = jnp.full(num_nodes, num_nodes, jnp.int32).at[jnp.where(is_best, nodes.parent, num_nodes)]
    return BackedUp(
        value=value,
        move_value=move_value,
        has_best=is_expanded & (is_full | (best > nodes.value)),
        best=first.min(places, mode="drop"),
    )


def last_of_line(backed: BackedUp, num_roots: int) -> Array:
    """int32 [B]: the last node of each root's principal variation."""

    def step(node: Array) -> Array:
        return jnp.where(backed.has_best[node], backed.best[node], node)

    start = jnp.arange(num_roots, dtype=jnp.int32)
    return jax.lax.while_loop(lambda node: backed.has_best[node].any(), step, start)


def root_move_values(trees: Trees, backed: BackedUp, num_slots: int) -> Array:
    """float32 [B, S]: values of the roots' moves; -inf on empty slots and of roots that were not expanded."""
    nodes, num_roots = trees.nodes, len(trees.used)
    is_first = (jnp.arange(len(trees.expansion)) < trees.count) & (nodes.depth == 1)
    rows = jnp.where(is_first, nodes.game, num_roots)
    return jnp.full((num_roots, num_slots), -jnp.inf).at[rows, nodes.slot].set(backed.move_value, mode="drop")


def without_distance(value: Array) -> Array:
    """Values with every mate as 1 or -1, however far."""
    return jnp.where(jnp.abs(value) > 1 - MATE_STEP * (MATE_PLIES + 0.5), jnp.sign(value), value)
