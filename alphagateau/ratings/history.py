"""Fits ratings to results of which some players are checkpoints of one run: Bradley-Terry with a prior along each run.

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
    draw_parameter,
    information_at,
    make_equations,
    maximise,
    sandwich,
)
from alphagateau.ratings.curves import Steps, step_design
from alphagateau.ratings.model import ELO_PER_NAT, Games, inverse, score_variance

TAIL = 1.0  # degrees of freedom of a step's Student distribution; infinite: Brownian motion proper
LEAST_RATE, LARGEST_RATE = (0.05 / ELO_PER_NAT) ** 2, (2000 / ELO_PER_NAT) ** 2  # of a variance, an iteration
NUM_REFITS = 2  # of the weight of the games, which depends on the ratings a little
MAX_ROUNDS, MAX_CHANGE = 200, 0.01  # of fitting the rates: at most, and of a rate's logarithm when they have settled
RELAXATION = 1.8  # how much farther than expectation-maximisation says to go, in logarithms


class HistoryFit(NamedTuple):
    """A fit, the dispersion within its covariance, and what went along the curves."""

    fit: Fit
    walk: "Walk"


class Walk(NamedTuple):
    """rates [curves]: variance a step of one iteration has, in log-odds; factors [M]: how many times its own one has.

    x [K + 1]: theta and white.
    """

    rates: np.ndarray
    factors: np.ndarray
    x: np.ndarray


def fit_history(games: Games, prior_draws: np.ndarray, steps: Steps, plain: Fit, dispersion: float) -> HistoryFit:
    """The most likely ratings given games and steps, with the rates that make the games most likely.

    `games` has the steps as links; `plain` is the fit without them. A step of s iterations has variance w s f: w the
    rate of its curve, f its own factor, which makes a step Student's t of TAIL degrees of freedom.

    Beside a prior the games must weigh what they tell: their log-likelihood is taken c times, c the information of
    the points' true scatter, draws and dispersion counted, over that of wins and losses. The covariance is the
    sandwich H^-1 (c^2 B + Q) H^-1, with H = c A + Q, A and B as in `fit_bradley_terry` and Q of the steps; without
    steps it is that of the plain fit. In Q a step counts for no more than the information of Student's t, 1 / (w s)
    times (TAIL + 1) / (TAIL + 3): its factor was fitted to the same games, and would make short steps too sure.
    """
    unweighted = make_equations(games, prior_draws)
    weight, nu, walk = 1.0, plain.draw_parameter, _first_walk(steps, np.append(plain.theta, plain.white))
    for _ in range(NUM_REFITS):
        score = scipy.special.expit(unweighted.design @ walk.x)
        spread = dispersion * unweighted.total @ score_variance(score, nu)
        weight = float(unweighted.total @ (score * (1 - score)) / spread) if spread > 0 else 1.0
        equations = unweighted._replace(total=weight * unweighted.total, points=weight * unweighted.points)
        walk = _fit_walk(equations, steps, walk)
        nu = draw_parameter(scipy.special.expit(unweighted.design @ walk.x)[:-1], games)
    x, _ = maximise(equations._replace(precision=_precision(steps, walk)), walk.x)
    wide = walk._replace(factors=np.maximum(walk.factors, (TAIL + 3) / (TAIL + 1)))
    equations = equations._replace(precision=_precision(steps, wide))
    variance = weight * dispersion * score_variance(scipy.special.expit(equations.design @ x), nu)
    covariance = sandwich(equations, x, information_at(x, equations), variance)
    return HistoryFit(Fit(x[:-1], float(x[-1]), nu, covariance), walk)


def _precision(steps: Steps, walk: Walk) -> scipy.sparse.csr_array:
    """Q [K + 1, K + 1]."""
    design = step_design(steps, len(walk.x))
    weights = 1 / (walk.rates[steps.curve] * walk.factors * steps.length)
    return (design.T @ scipy.sparse.diags_array(weights) @ design).tocsr()


def _first_walk(steps: Steps, x: np.ndarray) -> Walk:
    """By the ratings without a prior, which scatter more."""
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
        x, squares = _expected_squares(equations, steps, walk)
        factors = (TAIL + squares / walk.rates[steps.curve]) / (TAIL + 1)
        sums = np.bincount(steps.curve, squares / factors, len(num_steps))
        rates = np.clip(sums / np.maximum(num_steps - 1, 1e-9), LEAST_RATE, LARGEST_RATE)
        change = np.log(rates / walk.rates)
        rates = np.clip(walk.rates * np.exp(RELAXATION * change), LEAST_RATE, LARGEST_RATE)
        walk = Walk(rates, factors, x)
        if np.abs(change).max() < MAX_CHANGE:
            break
    return walk


def _expected_squares(equations: Equations, steps: Steps, walk: Walk) -> tuple[np.ndarray, np.ndarray]:
    """The ratings [K + 1] with this prior, and E[d^2] / s of each step [M]."""
    equations = equations._replace(precision=_precision(steps, walk))
    x, information = maximise(equations, walk.x)
    covariance = np.zeros((len(x), len(x)))
    covariance[np.ix_(equations.free, equations.free)] = inverse(information.toarray())
    i, j = steps.after, steps.before
    variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
    return x, ((x[i] - x[j]) ** 2 + variance) / steps.length
