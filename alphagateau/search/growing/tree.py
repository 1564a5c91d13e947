"""The search tree as arrays of fixed capacity: improved policy, proofs, re-rooting after a move, packing when full.

A node owns a run of branches, one a legal move, the highest prior first, so that branches already taken come before the
others. A node's values are for the player to move, a branch's for the player who takes it. Each visit updates the sums
that a descent needs: a call of numpy on thirty numbers costs as much as one on three, so that descents and what they
back up read and write one number at a time, through memory views of the arrays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, State
from alphagateau.networks.network import Variables

BATCH = 16  # leaves evaluated at a time, at most
SIZES = (4, BATCH)  # rows that an evaluation is compiled for: on a CPU few rows cost less
BRANCHES_PER_NODE = 48  # room for so many on average
OF_NODES: dict[str, Any] = {  # the arrays [M] of a Tree
    **dict.fromkeys(("values", "discounts", "rest"), np.float32),
    **dict.fromkeys(("taken_priors", "node_totals"), np.float64),
    **dict.fromkeys(("parents", "first", "counts", "taken", "node_visits", "node_tries"), np.int32),
    "is_stale": np.bool_,
}
OF_BRANCHES: dict[str, Any] = {  # the arrays [L] of a Tree
    "edges": np.int16,
    "totals": np.float64,
    **dict.fromkeys(("visits", "tries", "children", "plies"), np.int32),
    **dict.fromkeys(("priors", "means", "improved", "worth"), np.float32),
}


class Sigma(NamedTuple):
    """How values are weighed beside priors: Gumbel MuZero's keys of these names, mctx's where a search has none."""

    value_scale: float = 0.1
    maxvisit_init: float = 50.0
    rescale_values: bool = True


class Leaves(NamedTuple):
    """Evaluations of the States after B moves, by the device."""

    states: State  # [B], after the move
    prior_logits: Array  # float32 [B, S], over the slots of the states
    values: Array  # float32 [B], for the player to move there; 0 if the game is over
    rewards: Array  # float32 [B], for the player who moved
    discounts: Array  # float32 [B], of `reward_and_discount`: 0 if the game is over
    move_values: Array | None = None  # float32 [B, S], of a search that values every move
    num_nodes: Array | None = None  # int32 [B], positions visited by a search


# (variables, states [B], edges int [B]), B of SIZES or 1, -> Leaves; edge -1: the state itself is evaluated.
Evaluate = Callable[[Variables, State, Any], Leaves]


class Proof(NamedTuple):
    """The proven value of a branch or a node, with best play."""

    worth: float  # 1, 0 or -1
    plies: int  # to the end of a game that is won or lost


@dataclass
class Tree:
    """A search tree of up to M nodes and L branches, changed in place."""

    evaluate: Evaluate
    variables: Variables
    sigma: Sigma
    states: State  # numpy [M, ...]
    values: np.ndarray  # float32 [M], of the network
    discounts: np.ndarray  # float32 [M], of the branch that leads to the node
    parents: np.ndarray  # int32 [M], less than the node's own number
    first: np.ndarray  # int32 [M], the node's first branch
    counts: np.ndarray  # int32 [M], its number of branches
    taken: np.ndarray  # int32 [M], number of branches that have been taken
    taken_priors: np.ndarray  # float64 [M], the sum of their priors
    node_visits: np.ndarray  # int32 [M], 1 + the visits of its branches
    node_totals: np.ndarray  # float64 [M], the node's value + the totals of its branches
    node_tries: np.ndarray  # int32 [M], the tries of its branches
    is_stale: np.ndarray  # bool [M], whether `improved` and `rest` are older than the last visit
    rest: np.ndarray  # float32 [M], improved policy / prior of branches not yet taken
    edges: np.ndarray  # int16 [L], of the move graph
    priors: np.ndarray  # float32 [L]
    visits: np.ndarray  # int32 [L], those backed up
    tries: np.ndarray  # int32 [L], visits and pending descents
    totals: np.ndarray  # float64 [L], the sum of backed-up values
    means: np.ndarray  # float32 [L], totals / visits; without visits the node's value; if proven its worth
    improved: np.ndarray  # float32 [L], the improved policy, of branches that have been taken
    children: np.ndarray  # int32 [L], the node below, -1: none yet
    worth: np.ndarray  # float32 [L], of the Proof, NaN if not proven
    plies: np.ndarray  # int32 [L], of the Proof, from after the move
    at: SimpleNamespace  # memory views of the arrays above, by name, whose items are Python's numbers
    num_nodes: int = 0
    num_branches: int = 0
    deepest: int = 0  # plies below the root
    root: int = 0
    num_leaves: int = 0  # since the last change of root
    considered: Any = ()  # int [up to 16], branches of the root that the next leaves are below


def bytes_per_node(game: Game) -> int:
    """Bytes of a tree's arrays a node."""
    state = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(jax.eval_shape(game.init)))
    of_node, of_branch = (sum(np.dtype(kind).itemsize for kind in of.values()) for of in (OF_NODES, OF_BRANCHES))
    return state + of_node + BRANCHES_PER_NODE * of_branch


def make_tree(game: Game, evaluate: Evaluate, variables: Variables, capacity: int, sigma: Sigma | None = None) -> Tree:
    """An empty tree for `capacity` nodes; the system commits its memory as nodes are written."""
    capacity = max(capacity, 2 * BATCH)
    branches = max(capacity * BRANCHES_PER_NODE, 2 * BATCH * game.max_legal_moves)
    states = jax.tree.map(lambda x: np.zeros((capacity, *x.shape), x.dtype), jax.eval_shape(game.init))
    arrays: dict[str, Any] = {name: np.zeros(capacity, kind) for name, kind in OF_NODES.items()}
    arrays |= {name: np.zeros(branches, kind) for name, kind in OF_BRANCHES.items()}
    at = SimpleNamespace(**{name: memoryview(array) for name, array in arrays.items()})
    return Tree(evaluate, variables, sigma or Sigma(), states, at=at, **arrays)


def branches_of(tree: Tree, node: int) -> slice:
    """The branches of a node."""
    start = int(tree.first[node])
    return slice(start, start + int(tree.counts[node]))


def proof_of(tree: Tree, node: int) -> Proof | None:
    """The Proof of a node for the player to move: a win by one won branch, else by all branches proven."""
    here = branches_of(tree, node)
    worth, plies = tree.worth[here], tree.plies[here]
    wins = worth == 1
    if wins.any():
        return Proof(1.0, 1 + int(plies[wins].min()))
    if not len(worth) or np.isnan(worth).any():
        return None
    best = worth.max()
    return Proof(float(best), 1 + int(plies[worth == best].max()))


def set_worth(tree: Tree, branch: int, worth: float, plies: int) -> None:
    """Stores the Proof of a branch."""
    tree.worth[branch], tree.plies[branch] = worth, plies
    tree.means[branch] = worth


def is_full(tree: Tree, share: float = 1.0) -> bool:
    """Whether another batch may not fit into this share of the capacity."""
    num_slots = tree.states.legal_edges.shape[-1]
    has_nodes = tree.num_nodes + BATCH <= share * len(tree.values)
    return not has_nodes or tree.num_branches + BATCH * num_slots > share * len(tree.edges)


def improve(tree: Tree, node: int) -> None:
    """Computes the improved policy of a node, softmax(log prior + sigma(Q)), without branches proven lost.

    Danihelka et al. 2022, section 4 and appendix D, as in mctx: Q of a branch not yet visited mixes the node's value
    and those visited, and sigma multiplies all by value_scale (maxvisit_init + most visits), stretched to 0 to 1 first
    if `rescale_values`.
    """
    at, sigma, first, taken = tree.at, tree.sigma, tree.at.first[node], tree.at.taken[node]
    here = slice(first, first + taken)
    priors, means, visits = at.priors[here].tolist(), at.means[here].tolist(), at.visits[here].tolist()
    is_lost = [worth == -1 for worth in at.worth[here].tolist()]
    is_known = [count and not lost for count, lost in zip(visits, is_lost, strict=True)]
    mixed = _mixed_value(tree, node, [row for row in range(taken) if is_known[row]], priors, means)
    qvalues = [mean if known else mixed for mean, known in zip(means, is_known, strict=True)]
    has_rest = taken < at.counts[node]
    alive = [q for q, lost in zip(qvalues, is_lost, strict=True) if not lost] + [mixed] * has_rest or [mixed]
    high, low = max(alive), min(alive)
    scale = sigma.value_scale * (sigma.maxvisit_init + max(visits))
    scale /= max(high - low, 1e-8) if sigma.rescale_values else 1
    weights = [
        0.0 if lost else prior * math.exp(scale * (qvalue - high))
        for prior, qvalue, lost in zip(priors, qvalues, is_lost, strict=True)
    ]
    rest = math.exp(scale * (mixed - high)) if has_rest else 0.0
    total = max(sum(weights) + rest * max(0.0, 1 - at.taken_priors[node]), 1e-30)
    tree.improved[here], at.rest[node] = [weight / total for weight in weights], rest / total
    at.is_stale[node] = False


def _mixed_value(tree: Tree, node: int, known: list[int], priors: list[float], means: list[float]) -> float:
    """The Q of a branch not yet visited: the node's value and those of `known` branches, mixed."""
    value, num_visits = tree.at.values[node], tree.at.node_visits[node] - 1
    if not known:
        return value
    weights = sum(priors[row] for row in known)
    mean = sum(priors[row] * means[row] for row in known) / max(weights, 1e-30)
    return (value + num_visits * mean) / (1 + num_visits)


def improved_policy(tree: Tree, node: int) -> np.ndarray:
    """The improved policy, float32, of a node's branches."""
    if tree.is_stale[node]:
        improve(tree, node)
    here, taken = branches_of(tree, node), int(tree.taken[node])
    return np.append(tree.improved[here][:taken], tree.priors[here][taken:] * tree.rest[node])


def advance(tree: Tree, edges: Sequence[int]) -> bool:
    """Makes the node after the moves `edges` the root, without freeing room (`pack`); False if there is none."""
    node = tree.root
    for edge in edges:
        here = branches_of(tree, node)
        found = np.flatnonzero(tree.edges[here] == edge)
        node = int(tree.children[here.start + found[0]]) if len(found) else -1
        if node < 0:
            return False
    tree.root, tree.num_leaves, tree.deepest = node, 0, max(0, tree.deepest - len(edges))
    return True


def pack(tree: Tree) -> None:
    """Frees what is not below the root; takes about 3 microseconds a kept node."""
    is_below = np.zeros(tree.num_nodes, bool)
    is_below[tree.root], parents, count = True, tree.parents[: tree.num_nodes], 0
    while is_below.sum() > count:
        count = is_below.sum()
        is_below |= is_below[parents]
    _keep(tree, np.flatnonzero(is_below))
    tree.root = 0


def _keep(tree: Tree, nodes: np.ndarray) -> None:
    """Moves these nodes and their branches to the front, and frees the others."""
    counts = tree.counts[nodes]
    starts = np.cumsum(counts) - counts
    branches = np.repeat(tree.first[nodes] - starts, counts) + np.arange(counts.sum())
    renumbered = np.full(tree.num_nodes + 1, -1, np.int32)  # the last: of a branch without a node
    renumbered[nodes] = np.arange(len(nodes))
    for stored in (*tree.states, *(getattr(tree, name) for name in OF_NODES)):
        stored[: len(nodes)] = stored[nodes]
    for stored in (getattr(tree, name) for name in OF_BRANCHES):
        stored[: len(branches)] = stored[branches]
    tree.parents[: len(nodes)] = np.maximum(renumbered[tree.parents[: len(nodes)]], 0)
    tree.first[: len(nodes)] = starts
    tree.children[: len(branches)] = renumbered[tree.children[: len(branches)]]
    tree.num_nodes, tree.num_branches = len(nodes), len(branches)
