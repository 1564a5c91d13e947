"""The results of a search tree (`tree.py`): lines of play with values and mates, visits, priors, how full it is."""

from typing import NamedTuple

import numpy as np

from alphagateau.search.growing.tree import Tree, branches_of, improved_policy, proof_of

LONGEST_LINE = 64  # plies


class Line(NamedTuple):
    """A root move and its principal variation; the value is for the player to move at the root."""

    edges: tuple[int, ...]  # of the move graph, the root's move first
    visits: int
    value: float  # in [-1, 1]
    mate: int | None  # plies to a proven mate: above 0 of a win, below of a loss


def lines(tree: Tree, count: int) -> list[Line]:
    """The `count` best lines of the root, best first; fewer if it has fewer moves."""
    found = []
    for branch in _ranking(tree, tree.root)[:count]:
        worth, plies = float(tree.worth[branch]), 1 + int(tree.plies[branch])
        mate = int(worth) * plies if abs(worth) == 1 else None
        found.append(Line(_follow(tree, branch), int(tree.visits[branch]), float(tree.means[branch]), mate))
    return found


def prior_weights(tree: Tree) -> dict[int, float]:
    """The network's policy at the root, by edge."""
    here = branches_of(tree, tree.root)
    return dict(zip(tree.edges[here].tolist(), tree.priors[here].tolist(), strict=True))


def root_value(tree: Tree) -> float:
    """The value of the best move once one has been tried, else the network's; for the player to move."""
    ranking, proof = _ranking(tree, tree.root), proof_of(tree, tree.root)
    if proof:
        return proof.worth
    return float(tree.means[ranking[0]] if ranking and tree.visits[ranking[0]] else tree.values[tree.root])


def hashfull(tree: Tree) -> int:
    """The used share of the tree's capacity, in permille."""
    return int(1000 * max(tree.num_nodes / len(tree.values), tree.num_branches / len(tree.edges)))


def _ranking(tree: Tree, node: int) -> list[int]:
    """A node's branches, best first: the quickest win, then by visits, last the slowest loss.

    Proven draws and branches with at least half of the most visits are one group, by their improved policy.
    """
    here = branches_of(tree, node)
    visits, worth, plies = tree.visits[here], tree.worth[here], tree.plies[here]
    is_end = np.abs(worth) == 1
    is_known = (worth == 0) | (visits * 2 >= visits[~is_end].max(initial=1))
    groups = np.where(is_end, worth * 2, np.where(is_known, 1, 0))
    distance = np.where(is_end, -worth * plies, np.where(groups == 1, 0, visits))
    order = np.lexsort((-improved_policy(tree, node), -distance, -groups))
    return (here.start + order).tolist()


def _follow(tree: Tree, branch: int) -> tuple[int, ...]:
    """The edge of a branch, and the best visited ones after it."""
    edges = [int(tree.edges[branch])]
    while (node := int(tree.children[branch])) >= 0 and len(edges) < LONGEST_LINE:
        branch = _ranking(tree, node)[0]
        if not tree.visits[branch]:
            break
        edges.append(int(tree.edges[branch]))
    return tuple(edges)
