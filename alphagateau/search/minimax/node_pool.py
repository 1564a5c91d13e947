"""Grows the minimax trees of many games in one pool of nodes, from one queue of fixed width.

A round takes from the queue as many nodes as have children for one batch, evaluates these children together and
enqueues those to be expanded in turn. The order of a game's nodes depends on no other game, and a game without room for
a node's children is closed. So each tree depends on its game alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edge_at
from alphagateau.games.bitsets import pack, weighted_members
from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import Array, State

FULL, QUIET = 1, 2  # expansion by all moves, or by some, where the player to move may stand pat
STATIC_LIMIT = 0.98  # evaluations are clipped to it, and mates are worth more

# States [C] -> (shares of the moves, which sum to 1 over the legal ones, [C, S], or [C, 1] where all are equal;
# values [C], 0 of a finished game).
NodeEvaluator = Callable[[State], tuple[Array, Array]]


class Nodes(NamedTuple):
    """P nodes: the B roots first, children after their parents, siblings side by side by slot."""

    states: State
    game: Array  # int32, of the tree
    parent: Array  # int32
    slot: Array  # int32, of the move that led here, in the parent's legal edges
    depth: Array  # int32, plies from the root
    quiet: Array  # int32, plies of quiescence that may follow; one above the limit: a node of the main tree
    probability: Array  # float32, product of the shares of the moves from the root
    shares: Array  # float32 [P, S] or [P, 1], of its own moves
    value: Array  # float32, the static evaluation, for the player to move
    reward: Array  # float32, of the move that led here, for the player who made it
    discount: Array  # float32


class Trees(NamedTuple):
    """The trees of B games in progress."""

    nodes: Nodes
    expansion: Array  # int32 [P]: 0, FULL or QUIET
    count: Array  # int32, nodes in the pool  # pyright: ignore[reportIncompatibleMethodOverride]
    used: Array  # int32 [B], nodes of each game
    is_open: Array  # bool [B], no node of the game was refused for lack of room


class Queue(NamedTuple):
    """Nodes to be expanded, those from head to tail."""

    nodes: Array  # int32 [P]
    head: Array
    tail: Array


class Growth(NamedTuple):
    """Rules of expansion: the moves of a node, and the children that are expanded in turn."""

    # nodes [K] -> (slots to expand bool [K, S], FULL or QUIET int32 [K], `quiet` of the children [K])
    choose: Callable[[Nodes], tuple[Array, Array, Array]]
    is_expandable: Callable[[Nodes], Array]  # nodes [C] -> bool [C]; finished games are none anyhow
    batch: int  # C, children of a round; no node has more. K = 2 C nodes are taken from the queue in it
    max_nodes: Array  # int32, of a game; only a root may exceed it


def take_nodes(nodes: Any, rows: Array) -> Any:
    """Rows of Nodes, or of another tree of arrays [P, ...]."""
    return jax.tree.map(lambda x: x[rows], nodes)


def init_trees(evaluate: NodeEvaluator, states: State, quiet: int, size: int) -> Trees:
    """The Trees of B roots alone, with room for `size` nodes."""
    batch = len(states.ply)
    shares, value = evaluate(states)
    zeros, games = jnp.zeros(batch, jnp.int32), jnp.arange(batch, dtype=jnp.int32)
    roots = Nodes(
        states=states,
        game=games,
        parent=games,
        slot=zeros,
        depth=zeros,
        quiet=zeros + quiet,
        probability=jnp.ones(batch),
        shares=shares,
        value=jnp.clip(value, -STATIC_LIMIT, STATIC_LIMIT),
        reward=jnp.zeros(batch),
        discount=jnp.zeros(batch),
    )
    nodes = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:]), x.dtype).at[:batch].set(x), roots)
    return Trees(nodes, jnp.zeros(size, jnp.int32), jnp.int32(batch), zeros + 1, jnp.ones(batch, bool))


def frontier(trees: Trees, is_expandable: Callable[[Nodes], Array]) -> Array:
    """The mask bool [P] of leaves that may be expanded, of games with room."""
    is_node = jnp.arange(len(trees.expansion)) < trees.count
    is_live = is_node & (trees.expansion == 0) & ~trees.nodes.states.terminated
    return is_live & trees.is_open[trees.nodes.game] & is_expandable(trees.nodes)


def grow(game: Game, evaluate: NodeEvaluator, growth: Growth, trees: Trees) -> Trees:
    """Expands the leaves that may be, in the order of the pool, and all that they lead to while a game has room."""
    leaves = frontier(trees, growth.is_expandable)
    (nodes,) = jnp.nonzero(leaves, size=len(leaves), fill_value=len(leaves))
    queue = Queue(nodes.astype(jnp.int32), jnp.int32(0), leaves.sum(dtype=jnp.int32))

    def is_left(carry: tuple[Trees, Queue]) -> Array:
        trees, queue = carry
        places = jnp.arange(len(queue.nodes))
        is_queued = (queue.head <= places) & (places < queue.tail)
        return (is_queued & trees.is_open[trees.nodes.game[queue.nodes]]).any()

    def one_round(carry: tuple[Trees, Queue]) -> tuple[Trees, Queue]:
        trees, queue = carry
        trees, head, moves = _admit(growth, trees, queue)
        children, is_queued = _make_children(game, evaluate, growth, trees.nodes, moves)
        queue = _enqueue(queue._replace(head=head), trees.count, is_queued)
        return _append(trees, children, moves.is_real), queue

    return jax.lax.while_loop(is_left, one_round, (trees, queue))[0]


class _Moves(NamedTuple):
    """The C moves of a round; those after the real ones are padding."""

    parent: Array  # int32 [C], in the pool
    slot: Array  # int32 [C]
    quiet: Array  # int32 [C], of the child
    is_real: Array  # bool [C]


def _admit(growth: Growth, trees: Trees, queue: Queue) -> tuple[Trees, Array, _Moves]:
    """(Trees with the expansions of this round marked, the queue's next head, the moves to play)."""
    width = 2 * growth.batch
    places = queue.head + jnp.arange(width)
    is_entry = places < queue.tail
    node = queue.nodes[jnp.where(is_entry, places, 0)]
    at = take_nodes(trees.nodes, node)
    mask, kind, quiet = growth.choose(at)
    is_admissible = is_entry & trees.is_open[at.game]
    number = jnp.where(is_admissible, mask.sum(axis=-1, dtype=jnp.int32), 0)
    earlier = (at.game[:, None] == at.game) & jnp.tri(width, dtype=bool)
    is_over = trees.used[at.game] + (earlier * number).sum(axis=-1) > growth.max_nodes
    is_over = is_admissible & is_over & (at.depth > 0)
    number = jnp.where(is_over, 0, number)
    is_taken = is_entry & (jnp.cumsum(number) <= growth.batch)
    is_expanded = is_taken & (number > 0)
    nowhere = len(trees.expansion)
    closed = jnp.zeros(trees.is_open.shape, jnp.int32).at[at.game].add(is_over & is_taken) > 0
    trees = trees._replace(
        expansion=trees.expansion.at[jnp.where(is_expanded, node, nowhere)].set(kind, mode="drop"),
        used=trees.used.at[at.game].add(jnp.where(is_expanded, number, 0)),
        is_open=trees.is_open & ~closed,
    )
    sets = pack(mask & is_expanded[:, None]).T
    entry, slot, _ = weighted_members(sets, jnp.zeros_like(sets), 1, growth.batch)
    is_real = entry < width
    entry, slot = jnp.where(is_real, entry, 0), jnp.where(is_real, slot, 0)
    moves = _Moves(node[entry], slot, quiet[entry], is_real)
    return trees, queue.head + is_taken.sum(dtype=jnp.int32), moves


def _make_children(
    game: Game, evaluate: NodeEvaluator, growth: Growth, nodes: Nodes, moves: _Moves
) -> tuple[Nodes, Array]:
    """(children [C], which of them are to be expanded)."""
    parents = take_nodes(nodes, moves.parent)
    before = parents.states
    after = jax.vmap(game.step)(before, edge_at(before, moves.slot))
    reward, discount = reward_and_discount(before, after)
    shares, value = evaluate(after)
    place = jnp.minimum(moves.slot, shares.shape[-1] - 1)  # in the shares, of which there may be one for all moves
    children = Nodes(
        states=after,
        game=parents.game,
        parent=moves.parent,
        slot=moves.slot,
        depth=parents.depth + 1,
        quiet=moves.quiet,
        probability=parents.probability * jnp.take_along_axis(parents.shares, place[:, None], axis=-1)[:, 0],
        shares=shares,
        value=jnp.clip(value, -STATIC_LIMIT, STATIC_LIMIT),
        reward=reward,
        discount=discount,
    )
    return children, moves.is_real & ~after.terminated & growth.is_expandable(children)


def _append(trees: Trees, children: Nodes, is_real: Array) -> Trees:
    """Appends the children; the next round overwrites the padding after the last real one."""

    def write(pool: Array, new: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(pool, new.astype(pool.dtype), trees.count, axis=0)

    nodes = jax.tree.map(write, trees.nodes, children)
    return trees._replace(nodes=nodes, count=trees.count + is_real.sum(dtype=jnp.int32))


def _enqueue(queue: Queue, first: Array, mask: Array) -> Queue:
    """Enqueues those of the nodes `first`, `first` + 1, ... that `mask` [C] marks."""
    places = jnp.where(mask, queue.tail + jnp.cumsum(mask) - 1, len(queue.nodes))
    nodes = queue.nodes.at[places].set(first + jnp.arange(len(mask), dtype=jnp.int32), mode="drop")
    return Queue(nodes, queue.head, queue.tail + mask.sum(dtype=jnp.int32))
