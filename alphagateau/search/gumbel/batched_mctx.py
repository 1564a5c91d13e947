"""Runs mctx's search with a batched backup; its trees equal those of `mctx.search`.

mctx backs a value up by `vmap` of a loop over one tree. While any game's path goes on, such a loop copies and selects
whole arrays of the tree at each step: 289 MB with 256 games of the paper's size. Here a step reads and writes only the
few numbers on each game's path. Private functions of mctx are used, so pyproject.toml bounds its version.
"""

from typing import Any

import jax
import jax.numpy as jnp
import mctx
from mctx._src.action_selection import switching_action_selection_wrapper
from mctx._src.search import expand, simulate

from alphagateau.games.state import Array

Tree = Any  # mctx.Tree of B games; chex types its arrays as what cannot be indexed
ROOT, UNVISITED = mctx.Tree.ROOT_INDEX, mctx.Tree.UNVISITED


def search(params: Any, tree: Tree, recurrent_fn: Any, select_root: Any, select_interior: Any) -> Tree:
    """The trees of B roots, grown to their capacity; no function may be random, as all get the same key."""
    select = switching_action_selection_wrapper(select_root, select_interior)
    key, games = jax.random.key(0), jnp.arange(len(tree.node_visits))
    keys, num_simulations = jnp.broadcast_to(key, games.shape), tree.num_simulations

    def simulation(i: Array, tree: Tree) -> Tree:
        parent, action = simulate(keys, tree, select, num_simulations)
        node = tree.children_index[games, parent, action]
        node = jnp.where(node == UNVISITED, i + 1, node)
        return backup(expand(params, key, tree, recurrent_fn, parent, action, node), node, games)

    return jax.lax.fori_loop(0, num_simulations, simulation, tree)


def backup(tree: Tree, leaf: Array, games: Array) -> Tree:
    """Backs the values of nodes `leaf` [R] of `games` [R] up to the roots.

    Leaves of one game must lie in separate subtrees of the root, whose own mean is right where it has a single one.
    """
    num_nodes = tree.node_visits.shape[1]

    def one_up(carry: tuple[Tree, Array, Array]) -> tuple[Tree, Array, Array]:
        tree, value, node = carry
        is_done = node == ROOT
        action = tree.action_from_parent[games, node]
        parent = jnp.where(is_done, num_nodes, tree.parents[games, node])  # out of bounds: writes are dropped
        edge, count = (games, parent, action), tree.node_visits[games, parent]
        value = tree.children_rewards[edge] + tree.children_discounts[edge] * value
        mean = (tree.node_values[games, parent] * count + value) / (count + 1.0)
        tree = tree.replace(
            children_values=tree.children_values.at[edge].set(tree.node_values[games, node], mode="drop"),
            children_visits=tree.children_visits.at[edge].add(1, mode="drop"),
            node_values=tree.node_values.at[games, parent].set(mean, mode="drop"),
            node_visits=tree.node_visits.at[games, parent].add(1, mode="drop"),
        )
        return tree, value, jnp.where(is_done, ROOT, parent)

    start = tree, tree.node_values[games, leaf], leaf
    return jax.lax.while_loop(lambda carry: (carry[2] != ROOT).any(), one_up, start)[0]
