"""Fits Bradley-Terry ratings with a prior along each training run.

Coulom's whole-history rating (2008, Computers and Games, LNCS 5131, 113-124) with a run's iterations for time: strength
is a Brownian motion whose rate is fitted for each run, with steps of heavy tails, for runs also jump and collapse.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.special

from alphagateau.ratings.bradley_terry import (
    Equations,
    Fit,
    derivatives,
    draw_parameter,
    make_equations,
    maximise,
    sandwich,
)
from alphagateau.ratings.curves import Steps
from alphagateau.ratings.model import (
    ELO_PER_NAT,
    Games,
    difference_design,
    difference_variance,
    embed,
    inverse,
    points_covariance,
    score_variance,
)

TAIL = 1.0  # degrees of freedom of a step's Student distribution; infinite: Brownian motion proper
LEAST_RATE, LARGEST_RATE = (0.05 / ELO_PER_NAT) ** 2, (2000 / ELO_PER_NAT) ** 2  # of a variance, an iteration
MOST_WEIGHT = 100.0  # of a game; those that are nearly all drawn would weigh without bound
NUM_REFITS = 2  # of the weight of the games, which depends on the ratings a little
MAX_ROUNDS, MAX_CHANGE = 200, 0.01  # of fitting the rates; the change of a rate's logarithm below which it has settled
RELAXATION = 1.8  # of a step of expectation-maximisation, in logarithms


class Walk(NamedTuple):
    """The random walks of the curves."""

    rates: np.ndarray  # [curves], variance of log-odds a step of one iteration
    factors: np.ndarray  # [M], of a step's variance over that of its curve
    x: np.ndarray  # [K + 1], theta and white


def fit_history(games: Games, prior_draws: np.ndarray, steps: Steps, plain: Fit, dispersion: float) -> tuple[Fit, Walk]:
    """The most likely ratings given games and steps, with the rates that make the games most likely.

    The covariance of the Fit includes the dispersion.

    `games` has the steps as links; `plain` is the fit without them. A step of s iterations has variance w s f: w the
    rate of its curve, f its own factor, which makes a step Student's t of TAIL degrees of freedom.

    Beside a prior the games must weigh as much as they inform: their log-likelihood counts c times, c the information
    at the points' true scatter, with draws and dispersion, over that at wins and losses. The covariance is the
    sandwich H^-1 (c^2 B + Q) H^-1, with H = c A + Q, A and B as in `fit_bradley_terry` and Q of the steps; without
    steps it is that of the plain fit. In Q a step counts for no more than the information of Student's t, 1 / (w s)
    times (TAIL + 1) / (TAIL + 3): its factor was fitted to the same games, and would make short steps too sure.
    """
    equations = unweighted = make_equations(games, prior_draws)
    weight, nu, walk = 1.0, plain.draw_parameter, _first_walk(steps, np.append(plain.theta, plain.white))
    for _ in range(NUM_REFITS):
        equations, weight = weigh(games, unweighted, walk.x, plain._replace(draw_parameter=nu), dispersion)
        walk = _fit_walk(equations, steps, walk)
        nu = draw_parameter(scipy.special.expit(unweighted.design @ walk.x)[:-1], games)
    x, _ = maximise(equations._replace(precision=_precision(steps, walk)), walk.x)
    wide = walk._replace(factors=np.maximum(walk.factors, (TAIL + 3) / (TAIL + 1)))
    equations = equations._replace(precision=_precision(steps, wide))
    fit = plain._replace(theta=x[:-1], white=float(x[-1]), draw_parameter=nu)
    covariance = sandwich(equations, x, derivatives(x, equations)[1], games, fit, weight**2 * dispersion)
    return fit._replace(covariance=covariance), walk


def weigh(games: Games, equations: Equations, x: np.ndarray, fit: Fit, dispersion: float) -> tuple[Equations, float]:
    """The equations whose games weigh beside a prior what they inform at x, and that weight.

    fit: the draws and the correlation of pairs.
    """
    score = scipy.special.expit(equations.design @ x)
    variance = score_variance(score, fit.draw_parameter)
    spread = dispersion * points_covariance(games, equations.total, variance, fit.pair_correlation).sum()
    weight = float(min(equations.total @ (score * (1 - score)) / spread, MOST_WEIGHT)) if spread > 0 else 1.0
    return equations._replace(total=weight * equations.total, points=weight * equations.points), weight


def _precision(steps: Steps, walk: Walk) -> scipy.sparse.csr_array:
    """Q [K + 1, K + 1]."""
    design = difference_design(steps.after, steps.before, len(walk.x))
    weights = 1 / (walk.rates[steps.curve] * walk.factors * steps.length)
    return (design.T @ scipy.sparse.diags_array(weights) @ design).tocsr()


def _first_walk(steps: Steps, x: np.ndarray) -> Walk:
    """The walks of ratings without a prior, which scatter more."""
    squares = (x[steps.after] - x[steps.before]) ** 2 / steps.length
    rates = np.bincount(steps.curve, squares, len(steps.names)) / np.bincount(steps.curve, minlength=len(steps.names))
    return Walk(np.clip(rates, LEAST_RATE, LARGEST_RATE), np.ones(len(squares)), x)


def _fit_walk(equations: Equations, steps: Steps, walk: Walk) -> Walk:
    """The rates of largest marginal likelihood, by Laplace's approximation and expectation-maximisation.

    With E[d^2] of each step (Dempster, Laird and Rubin 1977; for Student's t Lange, Little and Taylor 1989, J. Amer.
    Statist. Assoc. 84, 881-896)

        f = (TAIL + E[d^2] / (w s)) / (TAIL + 1),    w = sum of E[d^2] / (s f) over (steps - 1)

    The -1 is the penalty log sqrt(w) of Chung et al. (2013, Psychometrika 78, 685-709), which keeps w from 0 where a
    few games cannot tell it from 0; a curve of one step is left to its games alone.
    """
    num_steps = np.bincount(steps.curve, minlength=len(steps.names))
    for _ in range(MAX_ROUNDS if len(num_steps) else 0):
        x, information = maximise(equations._replace(precision=_precision(steps, walk)), walk.x)
        covariance = embed(equations.free, inverse(information.toarray()), len(x))
        variance = difference_variance(covariance, steps.after, steps.before)
        squares = ((x[steps.after] - x[steps.before]) ** 2 + variance) / steps.length  # E[d^2] / s
        factors = (TAIL + squares / walk.rates[steps.curve]) / (TAIL + 1)
        sums = np.bincount(steps.curve, squares / factors, len(num_steps))
        rates = np.clip(sums / np.maximum(num_steps - 1, 1e-9), LEAST_RATE, LARGEST_RATE)
        change = np.log(rates / walk.rates)
        rates = np.clip(walk.rates * np.exp(RELAXATION * change), LEAST_RATE, LARGEST_RATE)
        walk = Walk(rates, factors, x)
        if np.abs(change).max() < MAX_CHANGE:
            break
    return walk
