"""Evaluates the leaves of a growing tree: moves are stepped 16 at a time, and the network runs on what is new.

By a network without history no game that is over is evaluated, nor a position that was before. On a CPU the cost of the
rest grows with its rows, so it is split into batches of few sizes, each compiled once.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import State
from alphagateau.networks.network import Network, Variables
from alphagateau.search.growing.tree import BATCH, Evaluate, Evaluations, Leaves
from alphagateau.search.search import Search, evaluate_states

SIZES = (1, 4, 8, BATCH)  # rows that the network is compiled for
MOST_KNOWN = 16384  # evaluations that are kept, some 20 MB on 8x8
LOOK_TEMPERATURE = 0.005  # of a probability of winning, as published for players of values


def batch_sizes(num_rows: int) -> list[int]:
    """The SIZES whose batches hold so many rows with the least work, if work grows with rows; the last may be padded.

    A batch is padded by one row, or by a fifth of its rows.
    """
    found = []
    while num_rows > 0:
        most = num_rows + max(1, num_rows // 5)
        padded = [size for size in SIZES if num_rows <= size <= most]
        found.append(padded[0] if padded else max(size for size in SIZES if size <= num_rows))
        num_rows -= found[-1]
    return found


def whole_batch(num_rows: int) -> list[int]:
    """The one size of all batches, of a device on which a batch costs as much as a row."""
    return [BATCH] if num_rows else []


def make_evaluate(game: Game, network: Network, sizes_of: Callable[[int], list[int]] = batch_sizes) -> Evaluate:
    """Makes the evaluation of a tree's leaves; `sizes_of`: the batches of the network for a number of rows."""

    @jax.jit
    def step(states: State, edges: jax.Array) -> tuple:
        after = jax.vmap(game.step)(states, edges)
        return after, *reward_and_discount(states, after)

    @jax.jit
    def apply(variables: Variables, states: State, rows: jax.Array) -> tuple:
        return evaluate_states(game, network, variables, _take(states, rows))

    def evaluate(variables: Variables, states: State, edges: Any = None, known: Evaluations | None = None) -> Leaves:
        count = len(states.color)
        rows = np.resize(np.arange(count), BATCH)
        after = _take(states, rows), np.zeros(BATCH, np.float32), np.ones(BATCH, np.float32)
        if edges is not None:
            after = step(after[0], edges[rows])
        if known is None:  # nothing to wait for before the network can run
            known, wanted = {}, [(row, row) for row in range(count)]
        else:
            states, _, discounts = jax.device_get(after)
            wanted = [(row, key) for row, key in enumerate(_position_keys(states)[:count]) if discounts[row]]
        if len(known) > MOST_KNOWN:
            known.clear()
        new = {key: row for row, key in wanted if key not in known}
        left, batches = list(new.values()), []
        for size in sizes_of(len(new)):
            batches.append(apply(variables, after[0], np.resize(left[:size], size)))
            left = left[size:]
        (states, rewards, discounts), batches = jax.device_get((after, batches))
        found = (row for batch in batches for row in zip(*batch, strict=True))
        known.update(zip(new, found, strict=False))  # the last batch ends in rows of no meaning
        logits, values = np.zeros(states.legal_edges.shape, np.float32), np.zeros(BATCH, np.float32)
        for row, key in wanted:
            logits[row], values[row] = known[key]
        return _take(Leaves(states, logits, values, rewards, discounts), slice(count))

    return evaluate


def _take(tree: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: x[rows], tree)


def _position_keys(states: State) -> list[bytes]:
    """What a network without history sees of each State [B]; the legal moves follow from it."""
    seen = (states.boards[:, 0], states.color, states.castling, states.en_passant, states.halfmove_count, states.ply)
    return [b"".join(x[row].tobytes() for x in seen) for row in range(len(states.color))]


def make_root_evaluate(search: Search) -> Evaluate:
    """Makes the evaluation, for `start_tree`, of one State by a player without a growing tree.

    Where the player values moves, the priors are the softmax of these values, so that the highest is its move, and each
    branch starts with its value.
    """

    @jax.jit
    def look(variables: Variables, states: State, edges: None, known: None) -> Leaves:
        del edges, known
        found = search(variables, jax.random.split(jax.random.key(0), 1), states)
        logits, values = found.prior_logits, found.move_values
        if values is not None:  # exact near the highest, where it matters
            logits = (values - values.max(axis=-1, keepdims=True)) / (2 * LOOK_TEMPERATURE)
            is_played = states.legal_edges == found.edge[:, None]
            logits = jnp.where(is_played & (logits < 0), 1.0, logits)  # of a finisher's choice, or one of equals
        return Leaves(states, logits, found.search_value, jnp.zeros(1), jnp.ones(1), values, found.num_nodes)

    return look
