"""Runs Gumbel MuZero a level at a time: one visit of each move that sequential halving considers, in one call.

The visits of a level lie in separate subtrees of the root; only the ranking at a halving compares them. So their leaves
are evaluated together, and those of all games are packed into the rows of a call. A game begins its next level when its
own is complete, whatever the others do. Private functions of mctx are used, as in `batched_mctx`.
"""

from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from mctx._src.seq_halving import get_table_of_considered_visits, score_considered

from alphagateau.games.state import Array
from alphagateau.search.gumbel.batched_mctx import ROOT, UNVISITED, Tree, backup

ROWS_A_GAME = 2  # of a call: the narrowest level, so that games of two moves, with the most levels, never wait


class Levels(NamedTuple):
    """The levels of a search by the number of moves considered, up to M, and their order, up to L."""

    visits: Any  # [M + 1, L + 1], of each considered move before the level
    widths: Any  # [M + 1, L + 1], moves visited; 0: no level
    firsts: Any  # [M + 1, L + 1], simulations before the level
    counts: Any  # [M + 1], levels


@cache
def make_levels(max_num_considered: int, num_simulations: int) -> Levels:
    """The levels of mctx's table of considered visits, as numpy arrays; no move considered has none."""
    table = get_table_of_considered_visits(max_num_considered, num_simulations)
    runs = [[(visits, len(list(run))) for visits, run in groupby(row)] for row in table]
    counts = np.array([0, *map(len, runs[1:])], np.int32)
    visits, widths = np.zeros((2, len(runs), counts.max() + 1), np.int32)
    for considered, row in enumerate(runs[1:], 1):
        visits[considered, : len(row)], widths[considered, : len(row)] = np.transpose(row)
    return Levels(visits, widths, np.cumsum(widths, axis=1, dtype=np.int32) - widths, counts)


class Schedule(NamedTuple):
    """How far each of B games has come."""

    levels: Levels  # [B, ...], of each game
    level: Array  # [B]
    taken: Array  # [B], moves of the level that were searched

    @property
    def waiting(self) -> Array:
        """Moves [B] of the level yet to be searched."""
        return self.levels.widths[jnp.arange(len(self.level)), self.level] - self.taken

    @property
    def simulations(self) -> Array:
        """Simulations [B] so far."""
        return self.levels.firsts[jnp.arange(len(self.level)), self.level] + self.taken


class Rows(NamedTuple):
    """What a call searches, packed; an empty row has the number of games as its game, where nothing is written."""

    game: Array  # [R]
    turn: Array  # [R], place of the move in its level
    node: Array  # [R], of the leaf; the root in an empty row


def make_schedule(num_legal: Array, max_num_considered: int, num_simulations: int) -> Schedule:
    """The schedule of games with `num_legal` [B] moves at the root; with fewer than two nothing is searched."""
    considered = jnp.where(num_legal > 1, jnp.minimum(num_legal, max_num_considered), 0)
    tables = make_levels(max_num_considered, num_simulations)
    zeros = jnp.zeros_like(num_legal)
    return Schedule(Levels(*(jnp.asarray(table)[considered] for table in tables)), zeros, zeros)


def pack(schedule: Schedule, num_rows: int) -> tuple[Rows, Schedule, Array]:
    """(rows of the next call, games with most levels left first; the next schedule; games [B] that begin a level)."""
    num_games, waiting = len(schedule.level), schedule.waiting
    order = jnp.argsort(schedule.level - schedule.levels.counts)
    ends = jnp.cumsum(waiting[order])
    row = jnp.arange(num_rows)
    place = jnp.searchsorted(ends, row, side="right", method="compare_all")
    game = order.at[place].get(mode="fill", fill_value=num_games)
    starts = jnp.zeros_like(ends).at[order].set(ends - waiting[order])
    offset = row - starts[game]
    node = jnp.where(game < num_games, schedule.simulations[game] + offset + 1, ROOT)
    rows = Rows(game, schedule.taken[game] + offset, node)
    after = schedule._replace(taken=schedule.taken + jnp.clip(num_rows - starts, 0, waiting))
    is_over = (waiting > 0) & (after.waiting == 0)
    after = after._replace(level=after.level + is_over, taken=jnp.where(is_over, 0, after.taken))
    return rows, after, is_over


def search(
    params: Any, tree: Tree, recurrent_fn: Any, select_interior: Any, qtransform: Any, max_num_considered_actions: int
) -> Tree:
    """The trees of B roots, grown to their capacity; a root with fewer than two moves is not searched."""
    is_invalid, gumbel = tree.root_invalid_actions > 0, tree.extra_data.root_gumbel
    num_games, num_slots = is_invalid.shape
    games, most = jnp.arange(num_games), min(max_num_considered_actions, num_slots, tree.num_simulations)
    schedule = make_schedule((~is_invalid).sum(axis=-1), most, tree.num_simulations)

    def rank(tree: Tree, schedule: Schedule) -> Array:
        """The moves [B, M] of each level, best first."""
        node = nodes_at(tree, games, jnp.full_like(games, ROOT))
        score = jax.vmap(score_considered)(
            schedule.levels.visits[games, schedule.level],
            gumbel,
            node.children_prior_logits[:, 0],
            jax.vmap(qtransform, (0, None))(node, 0),
            node.children_visits[:, 0],
        )
        return jax.lax.top_k(jnp.where(is_invalid, -jnp.inf, score), most)[1]

    def call(carry: tuple[Tree, Schedule, Array]) -> tuple[Tree, Schedule, Array]:
        tree, schedule, slots = carry
        rows, schedule, begins = pack(schedule, min(ROWS_A_GAME, most) * num_games)
        tree = grow(params, tree, rows, slots[rows.game, rows.turn], recurrent_fn, select_interior)
        tree = backup(tree, rows.node, rows.game)
        return tree, schedule, jnp.where(begins[:, None], rank(tree, schedule), slots)

    carry = tree, schedule, rank(tree, schedule)
    tree, _, _ = jax.lax.while_loop(lambda carry: (carry[1].waiting > 0).any(), call, carry)
    seen = tree.children_visits[:, ROOT]
    total = tree.raw_values[:, ROOT] + (seen * tree.qvalues(jnp.full_like(games, ROOT))).sum(axis=-1)
    return tree.replace(node_values=tree.node_values.at[:, ROOT].set(total / (1 + seen.sum(axis=-1))))


def nodes_at(tree: Tree, game: Array, node: Array) -> Tree:
    """The nodes [R] as trees of one node, without States."""
    tree = tree.replace(embeddings=None, root_invalid_actions=None, extra_data=None)
    return jax.tree.map(lambda x: x[game, node][:, None], tree)


def grow(params: Any, tree: Tree, rows: Rows, slot: Array, recurrent_fn: Any, select_interior: Any) -> Tree:
    """The tree with each row's leaf, evaluated, below the move `slot` [R] of its root."""
    key, game = jax.random.key(0), rows.game

    def one_down(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        node, slot, child = carry
        is_inside = child != UNVISITED
        node = jnp.where(is_inside, child, node)
        chosen = jax.vmap(select_interior, (None, 0, None, None))(key, nodes_at(tree, game, node), 0, 0)
        slot = jnp.where(is_inside, chosen, slot)
        return node, slot, tree.children_index[game, node, slot]

    node = jnp.full_like(slot, ROOT)
    start = node, slot, tree.children_index[game, node, slot]
    node, slot, _ = jax.lax.while_loop(lambda carry: (carry[2] != UNVISITED).any(), one_down, start)
    step, states = recurrent_fn(params, key, slot, jax.tree.map(lambda x: x[game, node], tree.embeddings))

    def put(name: str, at: tuple[Array, ...], values: Any) -> Any:
        return jax.tree.map(lambda x, y: x.at[at].set(y, mode="drop"), getattr(tree, name), values)

    leaf, edge = (game, rows.node), (game, node, slot)
    placed = {
        "node_visits": (leaf, 1),
        "raw_values": (leaf, step.value),
        "node_values": (leaf, step.value),
        "parents": (leaf, node),
        "action_from_parent": (leaf, slot),
        "children_prior_logits": (leaf, step.prior_logits),
        "embeddings": (leaf, states),
        "children_index": (edge, rows.node),
        "children_rewards": (edge, step.reward),
        "children_discounts": (edge, step.discount),
    }
    return tree.replace(**{name: put(name, at, values) for name, (at, values) in placed.items()})
