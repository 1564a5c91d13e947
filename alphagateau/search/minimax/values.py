"""Grown minimax trees in, what their roots are worth and the lines that this comes from out."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array
from alphagateau.search.minimax.node_pool import FULL, Nodes, Trees

MATE_STEP, MATE_PLIES = 0.001, 19  # what a mate loses of 1 a ply from the root, and up to which ply


class Backed(NamedTuple):
    """Values of P nodes after what follows them, each for its player to move."""

    value: Array  # float32 [P]
    move_value: Array  # float32 [P], of the move that led to a node, for the player who made it
    goes_on: Array  # bool [P], a move is played; else the node was not expanded, or none is better than to stand
    best: Array  # int32 [P], the child that is played, the first of the best


def move_values(nodes: Nodes, value: Array) -> Array:
    """[P]: of the move that led to each node whose value is `value`, for the player who made it; near mates first."""
    mate = 1 - MATE_STEP * jnp.minimum(nodes.depth, MATE_PLIES)
    return nodes.reward * mate + nodes.discount * value


def back_up(trees: Trees) -> Backed:
    """Minimax from the deepest nodes up. A node whose expansion was QUIET is worth at least its evaluation."""
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
    return Backed(
        value=value,
        move_value=move_value,
        goes_on=is_expanded & (is_full | (best > nodes.value)),
        best=first.min(places, mode="drop"),
    )


def last_of_line(backed: Backed, num_roots: int) -> Array:
    """int32 [B]: the node in which each root's principal variation ends."""

    def step(node: Array) -> Array:
        return jnp.where(backed.goes_on[node], backed.best[node], node)

    start = jnp.arange(num_roots, dtype=jnp.int32)
    return jax.lax.while_loop(lambda node: backed.goes_on[node].any(), step, start)


def root_move_values(trees: Trees, backed: Backed, num_slots: int) -> Array:
    """float32 [B, S]: what each move of the roots is worth to them; -inf on empty slots and roots that did not grow."""
    nodes, num_roots = trees.nodes, len(trees.used)
    is_first = (jnp.arange(len(trees.expansion)) < trees.count) & (nodes.depth == 1)
    rows = jnp.where(is_first, nodes.game, num_roots)
    return jnp.full((num_roots, num_slots), -jnp.inf).at[rows, nodes.slot].set(backed.move_value, mode="drop")


def without_distance(value: Array) -> Array:
    """Values with mates as 1 and -1, however far."""
    return jnp.where(jnp.abs(value) > 1 - MATE_STEP * (MATE_PLIES + 0.5), jnp.sign(value), value)
