"""Fits ratings to results of which some players are checkpoints of one run: Bradley-Terry with a Brownian prior.

Coulom's whole-history rating (2008, Computers and Games, LNCS 5131, 113-124) with a run's iterations for time: the
strength of neighbours s iterations apart differs by a normal of variance w s, and w is fitted for each run.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.special

from alphagateau.ratings.bradley_terry import Equations, Fit, draw_parameter, make_equations, maximise, sandwich
from alphagateau.ratings.curves import Steps, step_design
from alphagateau.ratings.model import ELO_PER_NAT, Games, inverse, score_variance

LEAST_RATE, LARGEST_RATE = (0.05 / ELO_PER_NAT) ** 2, (2000 / ELO_PER_NAT) ** 2  # of a variance, an iteration
MAX_ROUNDS = 60  # of fitting the rates
MAX_CHANGE = 0.02  # of a rate's logarithm, when they have settled


class HistoryFit(NamedTuple):
    """A fit, its covariance with the dispersion in it; rates [curves]: variance an iteration, in log-odds."""

    fit: Fit
    rates: np.ndarray


TAIL = float(__import__("os").environ.get("TAIL", "2"))
REFIT = int(__import__("os").environ.get("REFIT", "2"))


def fit_history(games: Games, prior_draws: np.ndarray, steps: Steps, plain: Fit, dispersion: float) -> HistoryFit:
    unweighted = make_equations(games, prior_draws)
    x, nu = np.append(plain.theta, plain.white), plain.draw_parameter
    for _ in range(REFIT):
        weight = _weight(unweighted, x, nu, dispersion)
        equations = unweighted._replace(total=weight * unweighted.total, points=weight * unweighted.points)
        rates, scales, x = _fit_rates(equations, steps, x)
        score = scipy.special.expit(equations.design @ x)
        nu = draw_parameter(score[:-1], games)
    equations = equations._replace(precision=_precision(steps, rates[steps.curve] * scales, games.num_players))
    x, information = maximise(equations, x)
    score = scipy.special.expit(equations.design @ x)
    variance = weight * dispersion * score_variance(score, nu)
    covariance = sandwich(equations, x, information, variance)
    return HistoryFit(Fit(x[:-1], float(x[-1]), nu, covariance), rates)


def _weight(equations: Equations, x, nu, dispersion: float) -> float:
    score = scipy.special.expit(equations.design @ x)
    binary = equations.total @ (score * (1 - score))
    spread = equations.total @ score_variance(score, nu)
    return float(binary / (dispersion * spread)) if spread > 0 else 1.0


def _precision(steps: Steps, variances: np.ndarray, num_players: int) -> scipy.sparse.csr_array:
    design = step_design(steps, num_players + 1)
    weights = 1 / (variances * steps.length)
    return (design.T @ scipy.sparse.diags_array(weights) @ design).tocsr()


def _fit_rates(equations: Equations, steps: Steps, start: np.ndarray):
    num_steps = np.bincount(steps.curve, minlength=len(steps.names))
    low, high = LEAST_RATE, LARGEST_RATE
    gaps = start[steps.after] - start[steps.before]
    squares = gaps**2 / steps.length
    rates = np.clip(np.bincount(steps.curve, squares, len(num_steps)) / num_steps, low, high)
    scales, x = np.ones(len(squares)), start
    for k in range(200):
        x, sq = _expected_squares(equations, steps, rates[steps.curve] * scales, x)
        squares = sq / steps.length
        new_scales = (TAIL + squares / rates[steps.curve]) / (TAIL + 1) if TAIL else scales
        sums = np.bincount(steps.curve, squares / new_scales, len(num_steps))
        new = np.clip(sums / np.maximum(num_steps - 1, 1e-9), low, high)
        change = np.abs(np.log(new / rates)).max()
        rates, scales = np.clip(rates * (new / rates) ** 1.8, low, high), new_scales
        if change < 0.01:
            break
    return rates, scales, x


def _expected_squares(equations, steps, variances, start):
    num_players = len(start) - 1
    equations = equations._replace(precision=_precision(steps, variances, num_players))
    x, information = maximise(equations, start)
    covariance = np.zeros((len(x), len(x)))
    covariance[np.ix_(equations.free, equations.free)] = inverse(information.toarray())
    i, j = steps.after, steps.before
    variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
    return x, (x[i] - x[j]) ** 2 + variance
