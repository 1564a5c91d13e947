"""Fits ratings to wins, draws and losses, up to a shift of the scale; `rate.py` makes them a table.

`fit_bradley_terry` is maximum likelihood with Davidson's draws; `fit_wls` is the AlphaGateau paper's
weighted least squares. docs/ratings.md compares them.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.special

POINTS = np.array([1, 0.5, 0])  # of a win, a draw, a loss
ELO_PER_NAT = 400 / math.log(10)  # Elo of one unit of log-odds (173.72)
MAX_STATSMODELS_PLAYERS = 150  # above, dense statsmodels takes minutes, normal equations a second
MIN_DISPERSION_FREEDOM = 10  # fewer spare pairs say nothing about the scatter


class ResultsError(ValueError):
    """Results that cannot be used: one sentence saying where and what was expected."""


class Row(NamedTuple):
    """Games of one pair, from `player`'s side; color +1: it had white, -1: black, 0: mixed."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int
    color: int = 0


@dataclass(frozen=True)
class Results:
    """A results table; `results.make_results` checks and builds one. Players may have no games."""

    players: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


class Games(NamedTuple):
    """Results as arrays of P rows: first, second, color [P]; counts [P, 3] wins, draws, losses."""

    first: np.ndarray
    second: np.ndarray
    color: np.ndarray
    counts: np.ndarray
    num_players: int

    @property
    def total(self) -> np.ndarray:
        return self.counts.sum(axis=1)

    @property
    def points(self) -> np.ndarray:
        return self.counts @ POINTS


class Fit(NamedTuple):
    """A fit in log-odds of points; covariance [K + 1, K + 1] of (theta [K], white)."""

    theta: np.ndarray
    white: float
    draw_parameter: float
    covariance: np.ndarray


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
    other, both ways, directly or through others.
    """
    forward, backward = games.points > 0, games.points < games.total
    start = np.concatenate([games.first[forward], games.second[backward]])
    end = np.concatenate([games.second[forward], games.first[backward]])
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


def fit_bradley_terry(games: Games, prior_draws: np.ndarray) -> Fit:
    """Maximum-likelihood fit of the Bradley-Terry model, a draw as half a win and half a loss.

    With draws so counted (Glickman 1999, Appl. Statist. 48, 377-394) it is the fit of Davidson's
    model at nu = 2, the one whose expected score is Elo's curve (Szczecinski and Djebbi 2020, J.
    Quant. Anal. Sports 16, 211-220). The share of draws then gives nu, which the variances use: the
    covariance is the sandwich A^-1 B A^-1 of the information A and the variance B of its score
    (White 1982, Econometrica 50, 1-25).

    prior_draws [K]: weight of each player's virtual draws with one common opponent at theta 0; the
    first player of a component without any is held at theta 0. If rows have colors, a virtual draw
    between equals keeps the white advantage finite.
    """
    design, total, points, free = _equations(games, prior_draws)
    prior = np.append(prior_draws, 0.0)
    x, information = _maximise(design, total, points, prior, free)
    score = scipy.special.expit(design @ x)
    nu = _draw_parameter(score[:-1], games)
    spread = scipy.sparse.diags_array(total * score_variance(score, nu))
    chance = scipy.special.expit(x)
    spread = design.T @ spread @ design + scipy.sparse.diags_array(prior * chance * (1 - chance))
    inverse = _inverse(information.toarray())
    covariance = np.zeros((len(x), len(x)))
    covariance[np.ix_(free, free)] = inverse @ (spread.tocsr()[free][:, free] @ inverse)
    return Fit(x[:-1], float(x[-1]), nu, covariance)


def _equations(games: Games, prior_draws: np.ndarray):
    """Design [P + 1, K + 1], games and points [P + 1], and which unknowns are not held at 0."""
    has_white = bool(games.color.any())
    pairs = scipy.sparse.vstack([_design(games), np.zeros((1, games.num_players))])
    color = scipy.sparse.csr_array(np.append(games.color, 1.0)[:, None])
    design = scipy.sparse.hstack([pairs, color]).tocsr()
    total = np.append(games.total, float(has_white))
    points = np.append(games.points, has_white / 2)
    free = np.union1d(_free_players(connected(games)), np.flatnonzero(prior_draws > 0))
    return design, total, points, np.append(free, [games.num_players] * has_white).astype(int)


def _maximise(design, total, points, prior, free, max_steps: int = 500) -> tuple[np.ndarray, Any]:
    """Solution [m] and information of its free part, by damped Newton steps.

    A step that changes log-odds by at most d is shortened ln(1 + d) / d times, with which it always
    converges on a logistic likelihood (Sun and Tran-Dinh 2019, Math. Program. 178, 145-213).
    """
    x = np.zeros(len(prior))
    for _ in range(max_steps):
        gradient, information = _derivatives(x, design, total, points, prior)
        step, information = np.zeros_like(x), information[free][:, free]
        step[free] = _solve(information, gradient[free])
        change = max(np.abs(design @ step).max(initial=0), np.abs(step * (prior > 0)).max())
        if change < 1e-6:  # the error left is of the order of its square
            return x + step, information
        x += step * math.log1p(change) / change
    raise RuntimeError(f"the Bradley-Terry fit did not settle in {max_steps} Newton steps")


def _derivatives(x, design, total, points, prior) -> tuple[np.ndarray, Any]:
    """Gradient [m] and sparse information [m, m] of the log-likelihood at x = (theta [K], white)."""
    score, chance = scipy.special.expit(design @ x), scipy.special.expit(x)
    gradient = design.T @ (points - total * score) + prior * (0.5 - chance)
    information = design.T @ scipy.sparse.diags_array(total * score * (1 - score)) @ design
    information += scipy.sparse.diags_array(prior * chance * (1 - chance))
    return gradient, information.tocsr()


def _solve(matrix, target: np.ndarray) -> np.ndarray:
    """Sparse symmetric positive definite solve, on one core."""
    options = {"SymmetricMode": True}
    factor = scipy.sparse.linalg.splu(matrix.tocsc(), "MMD_AT_PLUS_A", 0.0, options=options)
    return factor.solve(target)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    factor = scipy.linalg.cho_factor(matrix, lower=True)
    return scipy.linalg.cho_solve(factor, np.eye(len(matrix)))


def _draw_parameter(score: np.ndarray, games: Games) -> float:
    """The nu at which as many games are expected to be drawn as were.

    One virtual game between equals, half drawn, keeps it finite; 0 if no game was drawn.
    """
    drawn, num_games = games.counts[:, 1].sum(), games.total.sum()
    if not drawn:
        return 0.0

    def missing(nu: float) -> float:
        return games.total @ outcome_chances(score, nu)[:, 1] + nu / (2 + nu) - drawn - 0.5

    most = 4 * num_games + 2  # if all games were between equals and drawn
    root: Any = scipy.optimize.brentq(missing, 0, most) if missing(most) > 0 else most
    return float(root)


def estimate_dispersion(games: Games, fit: Fit) -> float | None:
    """How many times the model's variance pairs scatter; None below MIN_DISPERSION_FREEDOM.

    Pearson's statistic corrected for small counts by Fletcher (2012), Biometrika 99, 230-237.
    """
    num_fitted = len(_free_players(connected(games))) + bool(games.color.any())
    freedom = len(games.first) - num_fitted
    if freedom < MIN_DISPERSION_FREEDOM:
        return None
    delta = fit.theta[games.first] - fit.theta[games.second] + fit.white * games.color
    score = scipy.special.expit(delta)
    variance = score_variance(score, fit.draw_parameter)
    nudge = 1e-4 * score * (1 - score)
    slope = (score_variance(score + nudge, fit.draw_parameter) - variance) / nudge
    error = games.points / games.total - score
    pearson = np.sum(games.total * error**2 / variance) / freedom
    return float(pearson / max(1 + np.mean(slope / variance * error), 0.1))


def fit_wls(games: Games) -> tuple[np.ndarray, np.ndarray]:
    """The paper's weighted least squares (AlphaGateau 2024, equations 11 and 15).

    One equation a pair, r_i - r_j = 400 / ln(10) * ln(p / (1 - p)), of variance
    (400 / ln(10))^2 / (n p (1 - p)), with p = (w + (d + 1) / 2) / (n + 1) from the pair's n games
    and one draw added. Gives ratings [K] and covariance [K, K], Elo, up to a shift of each component.
    """
    share = (games.points + 0.5) / (games.total + 1)
    target = ELO_PER_NAT * np.log(share / (1 - share))
    weights = games.total * share * (1 - share) / ELO_PER_NAT**2
    small = games.num_players <= MAX_STATSMODELS_PLAYERS
    solve = _solve_statsmodels if small else _solve_normal_equations
    rating, covariance = np.zeros(games.num_players), np.zeros((games.num_players,) * 2)
    free = _free_players(connected(games))
    if len(free):
        found = solve(_design(games)[:, free], target, weights)
        rating[free], covariance[np.ix_(free, free)] = found
    return rating, covariance


def _solve_statsmodels(design, target, weights) -> tuple[np.ndarray, np.ndarray]:
    """Solution [m] and covariance [m, m] of weighted equations of known variance."""
    from statsmodels.regression.linear_model import WLS  # its import takes a second

    fitted = WLS(target, design.toarray(), weights=weights).fit(cov_type="fixed scale")
    return np.asarray(fitted.params), np.asarray(fitted.cov_params())


def _solve_normal_equations(design, target, weights) -> tuple[np.ndarray, np.ndarray]:
    """The same, for thousands of players."""
    weighted = scipy.sparse.diags_array(weights) @ design
    covariance = _inverse((design.T @ weighted).toarray())
    return covariance @ (weighted.T @ target), covariance


def _design(games: Games) -> scipy.sparse.csr_array:
    """[P, K] sparse: +1 at the first player of each row, -1 at the second."""
    rows = np.arange(len(games.first))
    values = np.repeat([1.0, -1.0], len(rows))
    places = (np.tile(rows, 2), np.concatenate([games.first, games.second]))
    return scipy.sparse.csr_array((values, places), shape=(len(rows), games.num_players))


def _free_players(component: np.ndarray) -> np.ndarray:
    """All but the first player of each component, who is held at 0 while fitting."""
    return np.setdiff1d(np.arange(len(component)), np.unique(component, return_index=True)[1])
