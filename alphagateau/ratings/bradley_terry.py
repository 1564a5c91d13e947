"""Fits ratings to wins, draws and losses by maximum likelihood with Davidson's draws, up to a shift of the scale.

docs/ratings.md compares it with the paper's least squares (`wls.py`).
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg
import scipy.special

from alphagateau.ratings.model import (
    POINTS,
    Games,
    by_players,
    difference_design,
    embed,
    free_players,
    inverse,
    outcome_chances,
    pair_correlation,
    points_covariance,
    score_variance,
)

ROUNDING = 1e-13  # of points, relative to all games
MIN_DISPERSION_FREEDOM = 10  # spare pairs; from fewer the scatter cannot be estimated
MIN_CORRECTION = 0.5  # below it most pairs are one-sided, and say nothing of the scatter


class Fit(NamedTuple):
    """A fit in log-odds of points."""

    theta: np.ndarray  # [K], strengths
    white: float  # the advantage of the white pieces
    draw_parameter: float  # Davidson's nu
    covariance: np.ndarray  # [K + 1, K + 1] of (theta, white)
    pair_correlation: float = 0.0  # of the points of the two games of an opening


class Equations(NamedTuple):
    """The objective in x = (theta [K], white): log-likelihood of all games, less y' Q y / 2 with y = x - c."""

    design: Any  # [P + 1, K + 1] sparse
    total: np.ndarray  # [P + 1], games
    points: np.ndarray  # [P + 1], of these games
    prior: np.ndarray  # [K + 1], virtual draws of each
    free: np.ndarray  # indices of x that are not held at 0
    precision: Any = None  # Q [K + 1, K + 1] sparse
    center: np.ndarray | float = 0.0  # c [K + 1]


def fit_bradley_terry(games: Games, prior_draws: np.ndarray) -> Fit:
    """Maximum-likelihood fit of the Bradley-Terry model, a draw as half a win and half a loss.

    With draws so counted (Glickman 1999, Appl. Statist. 48, 377-394) it is the fit of Davidson's model at nu = 2, the
    one whose expected score is Elo's curve (Szczecinski and Djebbi 2020, J. Quant. Anal. Sports 16, 211-220). The share
    of draws then gives nu, which the variances use: the covariance is the sandwich A^-1 B A^-1 of the information A and
    the variance B of its score (White 1982, Econometrica 50, 1-25). By hand because statsmodels and scipy have no model
    with draws; as wins and losses of a binomial model, half a game each, their variance comes out too large.

    Args:
        prior_draws: [K], weight of each player's virtual draws with one common opponent at theta 0. The first player
            of a component without any is held at theta 0.
    """
    equations = make_equations(games, prior_draws)
    x, information = maximise(equations)
    fit = fit_at(x, equations, games)
    return fit._replace(covariance=sandwich(equations, x, information, games, fit))


def fit_at(x: np.ndarray, equations: Equations, games: Games) -> Fit:
    """The Fit of a solution x [K + 1], without its covariance."""
    score = scipy.special.expit(equations.design @ x)[:-1]
    nu = draw_parameter(score, games)
    return Fit(x[:-1], float(x[-1]), nu, np.zeros((0, 0)), pair_correlation(games, score_variance(score, nu)))


def sandwich(
    equations: Equations, x: np.ndarray, information: Any, games: Games, fit: Fit, factor: float = 1.0
) -> np.ndarray:
    """Covariance [K + 1, K + 1] of x, 0 where it is held.

    Args:
        fit: draws and correlation of pairs, by which the points scatter.
        factor: on that scatter; dispersion, and the square of the weight that the games have in the equations.
    """
    variance = score_variance(scipy.special.expit(equations.design @ x), fit.draw_parameter)
    total = np.append(games.total, float(games.color.any()))
    scatter = factor * points_covariance(games, total, variance, fit.pair_correlation)
    prior, free, chance = equations.prior, equations.free, scipy.special.expit(x)
    spread = equations.design.T @ scatter @ equations.design + scipy.sparse.diags_array(prior * chance * (1 - chance))
    if equations.precision is not None:
        spread = spread + equations.precision
    bread = inverse(information.toarray())
    return embed(free, bread @ (spread.tocsr()[free][:, free] @ bread), len(x))


def make_equations(games: Games, prior_draws: np.ndarray) -> Equations:
    """The objective of a table without Q; if pairs have colors, a virtual draw keeps the white advantage finite."""
    has_white = bool(games.color.any())
    pairs = difference_design(games.first, games.second, games.num_players)
    pairs = scipy.sparse.vstack([pairs, np.zeros((1, games.num_players))])
    color = scipy.sparse.csr_array(np.append(games.color, 1.0)[:, None])
    design = scipy.sparse.hstack([pairs, color]).tocsr()
    total = np.append(games.total, float(has_white))
    points = np.append(games.points, has_white / 2)
    free = np.union1d(free_players(games), np.flatnonzero(prior_draws > 0))
    free = np.append(free, [games.num_players] * has_white).astype(int)
    return Equations(design, total, points, np.append(prior_draws, 0.0), free)


def maximise(equations: Equations, start: np.ndarray | None = None, max_steps: int = 500) -> tuple[np.ndarray, Any]:
    """Solution [K + 1] and sparse information of its free part, by damped Newton steps.

    A step that changes log-odds by at most d is shortened ln(1 + d) / d times, with which it always converges on a
    logistic likelihood (Sun and Tran-Dinh 2019, Math. Program. 178, 145-213).
    """
    design, prior, free = equations.design, equations.prior, equations.free
    x = np.zeros(len(prior)) if start is None else start
    for _ in range(max_steps):
        gradient, information = derivatives(x, equations)
        step = np.zeros_like(x)
        factor = scipy.sparse.linalg.splu(information.tocsc(), "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True})
        step[free] = factor.solve(gradient)  # on one core
        change = max(np.abs(design @ step).max(initial=0), np.abs(step * (prior > 0)).max())
        # The error left is of the order of the change squared; of hundreds of millions of games rounding leaves more.
        if change < 1e-6 or np.abs(gradient).max() < ROUNDING * equations.total.sum():
            return x + step, information
        x = x + step * math.log1p(change) / change
    raise RuntimeError(f"the Bradley-Terry fit did not settle in {max_steps} Newton steps")


def derivatives(x: np.ndarray, equations: Equations) -> tuple[np.ndarray, Any]:
    """Gradient and sparse information of the objective at x, of its free part."""
    design, total, points, prior, free, precision, center = equations
    score, chance = scipy.special.expit(design @ x), scipy.special.expit(x)
    gradient = design.T @ (points - total * score) + prior * (0.5 - chance)
    information = design.T @ scipy.sparse.diags_array(total * score * (1 - score)) @ design
    information += scipy.sparse.diags_array(prior * chance * (1 - chance))
    if precision is not None:
        gradient, information = gradient - precision @ (x - center), information + precision
    return gradient[free], information.tocsr()[free][:, free]


def draw_parameter(score: np.ndarray, games: Games) -> float:
    """The nu at which the model expects as many drawn games as there were, 0 if no game was drawn.

    One virtual game between equals, half drawn, keeps it finite.
    """
    drawn, num_games = games.counts[:, 1].sum(), games.total.sum()
    if not drawn:
        return 0.0

    def missing(nu: float) -> float:
        return games.total @ outcome_chances(score, nu)[:, 1] + nu / (2 + nu) - drawn - 0.5

    most = 4 * num_games + 2  # if all games were between equals and drawn
    root: Any = scipy.optimize.brentq(missing, 0, most) if missing(most) > 0 else most
    return float(root)


class Deviations(NamedTuple):
    """Points of the rows of games, or of each two players with both colors, beyond the expected ones; [M] each."""

    games: np.ndarray
    points: np.ndarray  # of the first
    missed: np.ndarray  # points, less the expected ones
    variance: np.ndarray  # of the points
    cumulant: np.ndarray  # their fourth
    slope: np.ndarray  # of the expected points, by log-odds
    growth: np.ndarray  # of the variance, by expected points

    @property
    def expected(self) -> np.ndarray:
        return self.points - self.missed


def find_deviations(games: Games, fit: Fit) -> Deviations:
    """What the fit does not explain, by row."""
    score = scipy.special.expit(fit.theta[games.first] - fit.theta[games.second] + fit.white * games.color)
    return deviations_from(games, score, fit.draw_parameter, fit.pair_correlation)


def deviations_from(games: Games, score: np.ndarray, nu: float, correlation: float) -> Deviations:
    """By row, from expected points a game `score` [P], Davidson's nu and the correlation of pairs of games."""
    variance = score_variance(score, nu)
    spread = points_covariance(games, games.total, variance, correlation).sum(axis=1)
    fourth = np.sum(outcome_chances(score, nu) * (POINTS - score[:, None]) ** 4, axis=1)
    nudge = np.maximum(1e-4 * score * (1 - score), 1e-16)
    growth = (score_variance(score + nudge, nu) - variance) / nudge
    missed, cumulant = games.points - games.total * score, games.total * (fourth - 3 * variance**2)
    slope = games.total * np.maximum(score * (1 - score), 1e-12)
    return Deviations(games.total, games.points, missed, spread, cumulant, slope, games.total * growth)


def deviations_of_pairs(games: Games, rows: Deviations) -> tuple[np.ndarray, Deviations]:
    """The pairs of players [2, M], the earlier first, and their deviations."""
    pairs, sums = by_players(games, rows)
    return pairs, Deviations(*sums)


def pearson(found: Deviations, freedom: float = 1.0) -> float:
    """Pearson's statistic over its degrees of freedom, corrected for small counts by Fletcher (2012)."""
    statistic = np.sum(found.missed**2 / found.variance) / freedom
    return float(statistic / max(small_count_correction(found), 0.1))


def small_count_correction(found: Deviations) -> float:
    """What Fletcher (2012) divides the statistic by: 1 on average, near 0 where nobody won what nobody expected."""
    return float(1 + np.mean(found.growth / found.variance * found.missed / found.games))


def estimate_dispersion(games: Games, fit: Fit, num_fitted: int | None = None) -> float | None:
    """The scatter of pairs of players over the model's variance; None where too few pairs tell.

    Pearson's statistic corrected as by Fletcher (2012), Biometrika 99, 230-237. The games of two players with either
    color are taken apart, unless they are pairs of an opening, whose scatter is that of their sums.

    Args:
        num_fitted: ratings that these games alone decide; None: all but one of each component.
    """
    found = find_deviations(games, fit)
    num_fitted = len(free_players(games)) if num_fitted is None else num_fitted
    if len(games.twins):
        _, found = deviations_of_pairs(games, found)
    else:
        num_fitted += bool(games.color.any())
    freedom = len(found.games) - num_fitted
    if freedom < MIN_DISPERSION_FREEDOM or small_count_correction(found) < MIN_CORRECTION:
        return None
    return pearson(found, freedom)
