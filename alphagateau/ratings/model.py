"""The model of all fits: results as arrays, components of linked players, chances and variance of a game."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import scipy.special

from alphagateau.ratings.results import Results, without_colors

POINTS = np.array([1, 0.5, 0])  # of a win, a draw, a loss
PAIR_POINTS = np.linspace(0, 2, 5)  # of a pair of games
MIN_PAIR_FREEDOM = 30  # spare pairs of games; from fewer their correlation is not estimated
ELO_PER_NAT = 400 / math.log(10)  # Elo of one unit of log-odds (173.72)


class Games(NamedTuple):
    """Results as arrays of P pairs."""

    first: np.ndarray  # [P]
    second: np.ndarray  # [P]
    color: np.ndarray  # [P], of the first: 1 white, -1 black, 0 mixed
    counts: np.ndarray  # [P, 3], wins, draws, losses of the first
    num_players: int  # K
    links: np.ndarray = np.zeros((0, 2), int)  # [L, 2], players that a curve ties to one another
    twins: np.ndarray = np.zeros((0, 2), int)  # [T, 2], rows of two players, of the first with white and with black
    pentanomials: np.ndarray = np.zeros((0, 5))  # [T, 5], pairs of games of these rows by points of the first

    @property
    def total(self) -> np.ndarray:
        return self.counts.sum(axis=1)

    @property
    def points(self) -> np.ndarray:
        return self.counts @ POINTS


def game_arrays(results: Results, use_colors: bool) -> Games:
    """The pairs (and colors) of a table that have games, each once, the earlier player first.

    Without colors games of one opening are not told together either.
    """
    table = results if use_colors else without_colors(results)
    index = {name: k for k, name in enumerate(table.players)}
    rows = sorted((index[r.player], index[r.opponent], r.color, *r[2:5]) for r in table.rows if any(r[2:5]))
    place = {row[:3]: k for k, row in enumerate(rows)}
    columns = np.array(rows, dtype=np.float64).reshape(-1, 6)
    (first, second), color = columns[:, :2].T.astype(int), columns[:, 2]
    twins = [[place[index[p.player], index[p.opponent], color] for color in (1, -1)] for p in table.pairs]
    pentanomials = np.array([p.counts for p in table.pairs], dtype=np.float64).reshape(-1, 5)
    games = Games(first, second, color, columns[:, 3:], len(index), pentanomials=pentanomials)
    return games._replace(twins=np.array(twins, dtype=int).reshape(-1, 2))


def pair_correlation(games: Games, variance: np.ndarray) -> float:
    """The correlation of the points of two games of one opening with colors exchanged, 0 below MIN_PAIR_FREEDOM.

    It explains how the points of pairs scatter about their mean, of two players each, beyond the games' `variance` [P]:
    one moment estimate for all, as in generalised estimating equations (Liang and Zeger 1986, Biometrika 73, 13-22),
    with one more pair whose games are independent, which keeps it from -1.
    """
    counts, (white, black) = games.pentanomials, games.twins.T
    num_pairs, sums = counts.sum(axis=1), counts @ PAIR_POINTS
    freedom = np.maximum(num_pairs - 1, 0)
    if freedom.sum() < MIN_PAIR_FREEDOM:
        return 0.0
    squares = counts @ PAIR_POINTS**2 - sums**2 / np.maximum(num_pairs, 1)
    excess = squares.sum() - freedom @ (variance[white] + variance[black])
    spread = freedom @ np.sqrt(variance[white] * variance[black]) * (1 + 1 / freedom.sum())
    return float(np.clip(excess / (2 * spread), -1, 1))


def points_covariance(games: Games, total: np.ndarray, variance: np.ndarray, correlation: float) -> Any:
    """Sparse covariance [P, P] of the rows' points: `total` [P] games of `variance` [P], those of a pair correlated.

    Further rows may follow those of the games.
    """
    white, black = games.twins.T
    shared = correlation * games.pentanomials.sum(axis=1) * np.sqrt(variance[white] * variance[black])
    places = np.concatenate([white, black]), np.concatenate([black, white])
    within_pairs = scipy.sparse.coo_array((np.tile(shared, 2), places), (len(total), len(total)))
    return scipy.sparse.diags_array(total * variance) + within_pairs


def by_players(games: Games, columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The M pairs of players [2, M], the earlier first, and sums [N, M] of N columns [P], over colors."""
    pairs, row = np.unique(np.stack([games.first, games.second]), axis=1, return_inverse=True)
    return pairs, np.stack([np.bincount(row.reshape(-1), column, pairs.shape[1]) for column in columns])


def component_labels(games: Games, connection: str = "weak") -> np.ndarray:
    """The component of each player [K], 0 the largest.

    `weak` joins players who met, directly or through others; `strong` joins those who scored against each other, both
    ways, directly or through others. Links join in both.
    """
    forward, backward = games.points > 0, games.points < games.total
    start = np.concatenate([games.first[forward], games.second[backward], *games.links.T])
    end = np.concatenate([games.second[forward], games.first[backward], *games.links.T[::-1]])
    shape = (games.num_players, games.num_players)
    graph = scipy.sparse.coo_array((np.ones(len(start)), (start, end)), shape=shape)
    _, label = scipy.sparse.csgraph.connected_components(graph.tocsr(), connection=connection)
    by_size = np.argsort(-np.bincount(label), kind="stable")
    return np.argsort(by_size)[label]


def centered(
    values: np.ndarray, covariance: np.ndarray, component: np.ndarray, anchor: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Values [K] and covariance [K, K] relative to their component's mean, or to the mean of players `anchor`."""
    origin = np.equal.outer(np.unique(component), component).astype(np.float64)
    origin /= np.maximum(origin.sum(axis=1, keepdims=True), 1)
    if anchor is not None:
        origin[component[anchor]] = 0
        origin[component[anchor], anchor] = 1 / len(anchor)

    def relative(x: np.ndarray) -> np.ndarray:
        return x - (origin @ x)[component]

    return relative(values), relative(relative(covariance).T)


def expected_score(difference: np.ndarray | float) -> np.ndarray:
    """Expected points a game, in [0, 1], of the player who is `difference` Elo stronger."""
    return scipy.special.expit(np.asarray(difference, dtype=np.float64) / ELO_PER_NAT)


def outcome_chances(score: np.ndarray | float, draw_parameter: float) -> np.ndarray:
    """[..., 3] chances of win, draw, loss in a game of expected points `score`.

    Davidson's (1970) relation draw = nu sqrt(win loss), J. Amer. Statist. Assoc. 65, 317-328, is solved for the draw
    with win + draw / 2 = score. nu 0: no draws; nu 2: as two games of half a point.
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
    """The inverse of a symmetric positive definite matrix."""
    factor = scipy.linalg.cho_factor(matrix, lower=True)
    return scipy.linalg.cho_solve(factor, np.eye(len(matrix)))


def embed(free: np.ndarray, matrix: np.ndarray, size: int) -> np.ndarray:
    """Embeds a covariance `matrix` of the indices `free` into [size, size], 0 elsewhere."""
    covariance = np.zeros((size, size))
    covariance[np.ix_(free, free)] = matrix
    return covariance


def difference_variance(covariance: np.ndarray, i, j) -> np.ndarray:
    """Variance of x[i] - x[j], for indices of any shape."""
    return covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]


def difference_design(plus: np.ndarray, minus: np.ndarray, num_columns: int) -> scipy.sparse.csr_array:
    """[P, num_columns] sparse: in each row +1 at `plus` [P], -1 at `minus` [P]."""
    rows = np.arange(len(plus))
    values = np.repeat([1.0, -1.0], len(rows))
    return scipy.sparse.csr_array((values, (np.tile(rows, 2), np.concatenate([plus, minus]))), (len(rows), num_columns))


def free_players(games: Games) -> np.ndarray:
    """All but the first player of each component, whom a fit holds at 0."""
    return np.setdiff1d(np.arange(games.num_players), np.unique(component_labels(games), return_index=True)[1])
