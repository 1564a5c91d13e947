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
    score = scipy.special.expit(equations.design @ x)
    nu = draw_parameter(score[:-1], games)
    variance = score_variance(score, nu)
    correlation = pair_correlation(games, variance[:-1])
    scatter = points_covariance(games, equations.total, variance, correlation)
    return Fit(x[:-1], float(x[-1]), nu, sandwich(equations, x, information, scatter), correlation)


def sandwich(equations: Equations, x: np.ndarray, information: Any, scatter: Any) -> np.ndarray:
    """Covariance [K + 1, K + 1] of x, 0 where it is held; scatter [P + 1, P + 1] of the points."""
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


def estimate_dispersion(games: Games, fit: Fit, num_fitted: int | None = None) -> float | None:
    """The scatter of pairs of players over the model's variance; None below MIN_DISPERSION_FREEDOM.

    Pearson's statistic corrected for small counts by Fletcher (2012), Biometrika 99, 230-237. The games of two players
    with either color are taken apart, unless they are pairs of an opening, whose scatter is that of their sums.

    Args:
        num_fitted: ratings that these games alone decide; None: all but one of each component.
    """
    delta = fit.theta[games.first] - fit.theta[games.second] + fit.white * games.color
    score = scipy.special.expit(delta)
    variance = score_variance(score, fit.draw_parameter)
    nudge = 1e-4 * score * (1 - score)
    slope = (score_variance(score + nudge, fit.draw_parameter) - variance) / nudge
    spread = points_covariance(games, games.total, variance, fit.pair_correlation).sum(axis=1)
    columns = np.stack([games.total, games.points - games.total * score, spread, games.total * slope])
    num_fitted = len(free_players(games)) if num_fitted is None else num_fitted
    if len(games.twins):
        columns = by_players(games, columns)[1]
    else:
        num_fitted += bool(games.color.any())
    total, *sums = columns
    error, variance, slope = sums / total
    freedom = len(total) - num_fitted
    if freedom < MIN_DISPERSION_FREEDOM:
        return None
    pearson = np.sum(total * error**2 / variance) / freedom
    return float(pearson / max(1 + np.mean(slope / variance * error), 0.1))
