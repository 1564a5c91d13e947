"""Grows one position's search tree until told to stop: descents on the host, up to 16 leaves evaluated in a call.

Gumbel MuZero (`gumbel.py`; Danihelka et al. 2022) for play, without noise. Sequential halving shares a known number of
simulations among the moves considered at the root, as there; against a clock each 16 go to half as many moves as the
last, down to 2, and then to up to 16 again. Below the root a descent goes where the share of the tries is the furthest
below the improved policy. Leaves below one move are chosen better one after the other, so a call has one of a move at
first, and more as it is visited; a branch on the way to one counts as tried, which keeps them apart. A game's end is
exact, and what follows from ends is proven upward. The tree is `tree.py`'s.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.rules import Game, reward_and_discount
from alphagateau.games.state import Array, State
from alphagateau.games.symmetry import select
from alphagateau.networks.network import Network, Variables
from alphagateau.search.growing.tree import (
    BATCH,
    SIZES,
    Evaluate,
    Leaves,
    Tree,
    branches_of,
    improve,
    improved_policy,
    is_full,
    proof_of,
    set_worth,
)
from alphagateau.search.search import Search, evaluate_states

CONSIDERED = 16  # moves of the root, at most; then half of them, and so on
CYCLE, LONGEST_CYCLE = 64, 1024  # simulations until all are considered again: against a clock, and at most
VISITS_A_LEAF = 16  # visits that let one more leaf below a move of the root be evaluated with the others
DESCENTS = 4  # for one leaf of a call, of which some meet
LOOK_TEMPERATURE = 0.005  # of a probability of winning, as published for players of values


def make_evaluate(game: Game, network: Network) -> Evaluate:
    """The one function of a search, compiled for SIZES moves at a time and for the root alone, which costs less."""

    def evaluate(variables: Variables, states: State, edges: Array) -> Leaves:
        moved = jax.vmap(game.step)(states, jnp.maximum(edges, 0))
        after = select(edges < 0, states, moved)
        reward, discount = reward_and_discount(states, after)
        logits, value = evaluate_states(game, network, variables, after)
        return Leaves(after, logits, value, reward, discount)

    return jax.jit(evaluate)


def make_root_evaluate(search: Search) -> Evaluate:
    """Makes the evaluation, for `start_tree`, of one State by a player without a growing tree.

    The value is NaN if the player's move is not legal. Where it values moves, priors are the softmax of these values,
    and each branch starts with its value.
    """

    def look(variables: Variables, states: State, edges: Array) -> Leaves:
        found = search(variables, jax.random.split(jax.random.key(0), 1), states)
        logits, values = found.prior_logits, found.move_values
        if values is not None:  # exact near the highest, where it matters
            logits = (values - values.max(axis=-1, keepdims=True)) / (2 * LOOK_TEMPERATURE)
        is_played, most = states.legal_edges == found.edge[:, None], logits.max(axis=-1, keepdims=True)
        is_first = jnp.arange(logits.shape[-1]) == logits.argmax(axis=-1, keepdims=True)
        logits = jnp.where(is_played & ~is_first, most + 1, logits)  # a finisher's choice, or one of equals
        value = jnp.where(is_played.any(axis=-1), found.search_value, jnp.nan)
        return Leaves(states, logits, value, jnp.zeros(1), jnp.ones(1), values, found.num_nodes)

    return jax.jit(look)


def start_tree(tree: Tree, state: State, allowed: Sequence[int] | None = None, evaluate: Evaluate | None = None) -> int:
    """Empties the tree and puts one State at its root, as a game that goes on; `allowed`: the only edges to try.

    `evaluate`: of the root, if not as of all nodes. Returns the positions that it looked at, 0 if it counts none.
    """
    states = jax.tree.map(lambda x: np.asarray(x)[None], state)._replace(terminated=np.zeros(1, bool))
    evaluate = evaluate or tree.evaluate
    leaves = jax.tree.map(np.asarray, evaluate(tree.variables, states, np.full(1, -1, np.int32)))
    tree.num_nodes = tree.num_branches = tree.num_leaves = tree.deepest = tree.root = 0
    _add_nodes(tree, leaves, np.zeros(1, np.int32), np.zeros(1, np.int32), allowed)
    if leaves.move_values is not None:
        here, values = branches_of(tree, 0), dict(zip(states.legal_edges[0], leaves.move_values[0], strict=True))
        tree.means[here] = [v if np.isfinite(v := values[edge]) else tree.values[0] for edge in tree.edges[here]]
    return 0 if leaves.num_nodes is None else int(leaves.num_nodes[0])


def is_done(tree: Tree) -> bool:
    """Whether no simulation would help: the root is proven or has no move, or another batch may not fit."""
    return is_full(tree) or not tree.counts[tree.root] or proof_of(tree, tree.root) is not None


def grow_once(tree: Tree, num_leaves: int, total: int | None = None) -> int:
    """One call: descents until it is full or they keep meeting; all its leaves are evaluated at once.

    total: simulations of the whole search; None: not known, and calls are full, of leaves chosen worse in less time.
    """
    waiting: dict[int, tuple[list[int], list[int]]] = {}  # by branch, the way to it
    met, done, starts = [], 0, _considered(tree, total)
    num_leaves = min(num_leaves, len(starts))
    for number in range(DESCENTS * num_leaves):
        if len(waiting) + done == num_leaves:
            break
        nodes, branches = _descend(tree, starts[number % len(starts)])
        last = branches[-1]
        if last in waiting:
            met.append((nodes, branches))
        elif math.isnan(tree.at.worth[last]):
            waiting[last] = nodes, branches
        else:
            _back_up(tree, nodes, branches, tree.at.worth[last])
            done += 1
    if waiting:
        _expand(tree, list(waiting.values()))
    for nodes, branches in met:
        for node, branch in zip(nodes, branches, strict=True):
            tree.at.node_tries[node] -= 1
            tree.at.tries[branch] -= 1
    tree.num_leaves += done + len(waiting)
    return done + len(waiting)


def _considered(tree: Tree, total: int | None) -> list[int]:
    """The root's branch of each leaf of a call, the best first, up to the next halving.

    They have the highest improved policy, after a halving among those before it unless fewer than two are unproven.
    """
    cycle = min(total, LONGEST_CYCLE) if total else CYCLE
    leaf, count = tree.num_leaves % cycle, min(int(tree.counts[tree.root]), CONSIDERED)
    halvings, end = max(1, math.ceil(math.log2(count))), 0
    while True:  # as in mctx
        end += count * max(1, cycle // (halvings * count)) if total else BATCH
        if leaf < end:
            break
        count = max(2, count // 2)
    order = np.argsort(-improved_policy(tree, tree.root), kind="stable") + tree.first[tree.root]
    order = order[np.isnan(tree.worth[order])]
    if leaf:
        left = order[np.isin(order, tree.considered)]
        order = left if len(left) > 1 else order
    tree.considered = best = order[:count]
    leaves = 1 + tree.visits[best] // VISITS_A_LEAF if total else np.full(len(best), BATCH)
    found = [branch for turn in range(BATCH) for branch in best[leaves > turn].tolist()]
    return found[: min(end, cycle) - leaf]


def _descend(tree: Tree, branch: int) -> tuple[list[int], list[int]]:
    """(nodes, the branch tried at each) from a branch of the root to one that is proven or leads to no node yet."""
    at, nodes, branches, node = tree.at, [], [], tree.root
    while True:
        if branch == at.first[node] + at.taken[node]:
            at.improved[branch] = at.priors[branch] * at.rest[node]
            at.taken[node] += 1
            at.taken_priors[node] += at.priors[branch]
        nodes.append(node)
        branches.append(branch)
        at.node_tries[node] += 1
        at.tries[branch] += 1
        node = at.children[branch]
        if node < 0 or not math.isnan(at.worth[branch]):
            return nodes, branches
        branch = _select(tree, node)


def _select(tree: Tree, node: int) -> int:
    """The branch whose share of the tries is furthest below the improved policy; of those not taken, the first."""
    at = tree.at
    if at.is_stale[node]:
        improve(tree, node)
    first, taken = at.first[node], at.taken[node]
    end, score, best, share = first + taken, -math.inf, first, 1 / (1 + at.node_tries[node])
    for branch in range(first, end):
        if (new := at.improved[branch] - at.tries[branch] * share) > score:
            score, best = new, branch
    if taken < at.counts[node] and at.priors[end] * at.rest[node] > score:
        return end
    return best


def _expand(tree: Tree, ways: list[tuple[list[int], list[int]]]) -> None:
    """Evaluates the last branch of each way on the device; each gets a node, or a proof if the game is over."""
    size = next(size for size in SIZES if size >= len(ways))
    parents, edges = np.zeros(size, np.int32), np.full(size, -1, np.int32)
    parents[: len(ways)] = [nodes[-1] for nodes, _ in ways]
    edges[: len(ways)] = [tree.edges[branches[-1]] for _, branches in ways]
    states = jax.tree.map(lambda x: x[parents], tree.states)
    leaves = jax.tree.map(np.asarray, tree.evaluate(tree.variables, states, edges))
    values, is_over = (leaves.rewards + leaves.discounts * leaves.values).tolist(), (leaves.discounts == 0).tolist()
    rows = np.flatnonzero(leaves.discounts[: len(ways)])
    node = _add_nodes(tree, leaves, rows, parents[rows])
    for row, (nodes, branches) in enumerate(ways):
        tree.deepest = max(tree.deepest, len(branches))
        if is_over[row]:
            set_worth(tree, branches[-1], values[row], 0)
            _prove(tree, nodes, branches)
        else:
            tree.children[branches[-1]] = node
            node += 1
        _back_up(tree, nodes, branches, values[row])


def _add_nodes(
    tree: Tree, leaves: Leaves, rows: np.ndarray, parents: np.ndarray, allowed: Sequence[int] | None = None
) -> int:
    """The number of the first of new nodes, one a row [R], with branches; `allowed`: the only edges to get one."""
    first, last = tree.num_nodes, tree.num_nodes + len(rows)
    for stored, new in zip(tree.states, leaves.states, strict=True):
        stored[first:last] = new[rows]
    slots, logits = np.asarray(leaves.states.legal_edges), np.asarray(leaves.prior_logits)
    edges, priors, counts = _branches(slots[rows], logits[rows], allowed)
    ends = tree.num_branches + np.cumsum(counts)
    tree.values[first:last] = tree.node_totals[first:last] = leaves.values[rows]
    tree.discounts[first:last], tree.parents[first:last] = leaves.discounts[rows], parents
    tree.first[first:last], tree.counts[first:last] = ends - counts, counts
    tree.node_visits[first:last], tree.node_tries[first:last] = 1, 0
    tree.taken[first:last], tree.taken_priors[first:last] = 0, 0
    tree.rest[first:last], tree.is_stale[first:last] = 1, False
    new = slice(tree.num_branches, tree.num_branches + len(edges))
    tree.edges[new], tree.priors[new] = edges, priors
    tree.visits[new], tree.tries[new], tree.totals[new], tree.children[new] = 0, 0, 0, -1
    tree.means[new] = np.repeat(leaves.values[rows], counts)
    tree.worth[new], tree.plies[new] = np.nan, 0
    tree.num_nodes, tree.num_branches = last, new.stop
    return first


def _branches(
    edges: np.ndarray, logits: np.ndarray, allowed: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(edges [L], priors [L], how many are of each row [R]) of slots [R, S]: each row's, the highest prior first."""
    is_branch = edges >= 0 if allowed is None else np.isin(edges, allowed)
    counts = is_branch.sum(axis=1)
    logits = np.where(is_branch, logits, -np.inf)
    order = np.argsort(-logits, axis=1, kind="stable")
    logits = np.take_along_axis(logits, order, axis=1)
    weights = np.exp(logits - np.where(counts > 0, logits[:, 0], 0)[:, None])
    is_branch = np.arange(edges.shape[1]) < counts[:, None]
    priors = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)  # the greatest weight is 1
    return np.take_along_axis(edges, order, axis=1)[is_branch], priors[is_branch], counts


def _back_up(tree: Tree, nodes: list[int], branches: list[int], value: float) -> None:
    """Adds a visit and its value, which is for the player who took the last branch."""
    at = tree.at
    for node, branch in zip(reversed(nodes), reversed(branches), strict=True):
        at.node_visits[node] += 1
        at.node_totals[node] += value
        at.is_stale[node] = True
        at.visits[branch] += 1
        at.totals[branch] += value
        if math.isnan(at.worth[branch]):
            at.means[branch] = at.totals[branch] / at.visits[branch]
        value *= at.discounts[node]


def _prove(tree: Tree, nodes: list[int], branches: list[int]) -> None:
    """Carries a proof of the last branch as far up as it goes."""
    for node, branch in zip(reversed(nodes[1:]), reversed(branches[:-1]), strict=True):
        proof = proof_of(tree, node)
        if proof is None:
            return
        set_worth(tree, branch, float(tree.discounts[node]) * proof.worth, proof.plies)
