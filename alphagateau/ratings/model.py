"""What every fit shares: results as arrays, who is linked to whom, what a game of a given score spreads."""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.special

from alphagateau.ratings.results import Results

POINTS = np.array([1, 0.5, 0])  # of a win, a draw, a loss


ELO_PER_NAT = 400 / math.log(10)  # Elo of one unit of log-odds (173.72)


class Games(NamedTuple):
    """Results as arrays of P rows: first, second, color [P]; counts [P, 3] wins, draws, losses.

    links [L, 2]: players that are tied to one another by more than games.
    """

    first: np.ndarray
    second: np.ndarray
    color: np.ndarray
    counts: np.ndarray
    num_players: int
    links: np.ndarray = np.zeros((0, 2), int)

    @property
    def total(self) -> np.ndarray:
        return self.counts.sum(axis=1)

    @property
    def points(self) -> np.ndarray:
        return self.counts @ POINTS


def game_arrays(results: Results, use_colors: bool) -> Games:
    """The table's pairs (and colors) that have games, each once, the earlier player first."""
    index = {name: i for i, name in enumerate(results.players)}
    rows = [(index[r.player], index[r.opponent], r.color, *r[2:5]) for r in results.rows]
    first, second, color, *counts = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    is_swapped = first > second
    sign = np.where(is_swapped, -1, 1) * use_colors
    pairs = np.stack([np.minimum(first, second), np.maximum(first, second), color * sign], axis=1)
    pairs, inverse = np.unique(pairs, axis=0, return_inverse=True)
    flipped = np.where(is_swapped, counts[::-1], counts)
    merged = np.zeros((len(pairs), 3))
    np.add.at(merged, inverse.reshape(-1), flipped.T)
    played = merged.any(axis=1)
    first, second, color = pairs[played].T
    return Games(first.astype(int), second.astype(int), color, merged[played], len(index))


def connected(games: Games, connection: str = "weak") -> np.ndarray:
    """[K] component labels, 0 the largest.

    `weak` joins players who met, directly or through others; `strong` those who scored against each
    other, both ways, directly or through others. Links join in both.
    """
    forward, backward = games.points > 0, games.points < games.total
    start = np.concatenate([games.first[forward], games.second[backward], *games.links.T])
    end = np.concatenate([games.second[forward], games.first[backward], *games.links.T[::-1]])
    shape = (games.num_players, games.num_players)
    graph = scipy.sparse.coo_array((np.ones(len(start)), (start, end)), shape=shape)
    _, label = scipy.sparse.csgraph.connected_components(graph.tocsr(), connection=connection)
    by_size = np.argsort(-np.bincount(label), kind="stable")
    return np.argsort(by_size)[label]


def tie(
    values: np.ndarray, covariance: np.ndarray, component: np.ndarray, anchor: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values [K] and covariance [K, K] relative to the component's mean, or to player `anchor`."""
    origin = np.equal.outer(np.unique(component), component).astype(np.float64)
    origin /= np.maximum(origin.sum(axis=1, keepdims=True), 1)
    if anchor is not None:
        origin[component[anchor]] = 0
        origin[component[anchor], anchor] = 1

    def relative(x: np.ndarray) -> np.ndarray:
        return x - (origin @ x)[component]

    return relative(values), relative(relative(covariance).T)


def expected_score(difference: np.ndarray | float) -> np.ndarray:
    """Expected points a game, in [0, 1], of the player who is `difference` Elo stronger."""
    return scipy.special.expit(np.asarray(difference, dtype=np.float64) / ELO_PER_NAT)


def outcome_chances(score: np.ndarray | float, draw_parameter: float) -> np.ndarray:
    """[..., 3] chances of win, draw, loss in a game of expected points `score`.

    Davidson's (1970) relation draw = nu sqrt(win loss), J. Amer. Statist. Assoc. 65, 317-328, solved
    for the draw with win + draw / 2 = score. nu 0: no draws; nu 2: as two games of half a point.
    """
    score, nu = np.asarray(score, dtype=np.float64), draw_parameter
    binary = score * (1 - score)
    root = np.sqrt(np.maximum(nu**2 / 4 + (4 - nu**2) * binary, 0))
    draw = 2 * nu * binary / np.maximum(nu / 2 + root, 1e-300)
    return np.stack([score - draw / 2, draw, 1 - score - draw / 2], axis=-1)


def score_variance(score: np.ndarray | float, draw_parameter: float) -> np.ndarray:
    """Variance of the points of a game of expected points `score`, at least 1e-12."""
    score = np.asarray(score, dtype=np.float64)
    draw = outcome_chances(score, draw_parameter)[..., 1]
    return np.maximum(score * (1 - score) - draw / 4, 1e-12)


def inverse(matrix: np.ndarray) -> np.ndarray:
    factor = scipy.linalg.cho_factor(matrix, lower=True)
    return scipy.linalg.cho_solve(factor, np.eye(len(matrix)))


def pair_design(games: Games) -> scipy.sparse.csr_array:
    """[P, K] sparse: +1 at the first player of each row, -1 at the second."""
    rows = np.arange(len(games.first))
    values = np.repeat([1.0, -1.0], len(rows))
    places = (np.tile(rows, 2), np.concatenate([games.first, games.second]))
    return scipy.sparse.csr_array((values, places), shape=(len(rows), games.num_players))


def free_players(component: np.ndarray) -> np.ndarray:
    """All but the first player of each component, who is held at 0 while fitting."""
    return np.setdiff1d(np.arange(len(component)), np.unique(component, return_index=True)[1])
