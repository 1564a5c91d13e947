"""Means over seeds, with intervals that cover other seeds too."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

from alphagateau.ratings.rate import Ratings

LEVEL = 0.95  # of an interval
NORMAL = float(scipy.stats.norm.ppf((1 + LEVEL) / 2))


class Estimate(NamedTuple):
    """A mean over seeds."""

    mean: float
    standard_error: float  # NaN where it is unknown
    half_width: float  # of the 95 % interval
    measured: float  # the part of the standard error that games alone explain
    spread: float  # standard deviation over seeds
    num_seeds: int


def mean_over_seeds(values: Any, covariance: Any = 0.0) -> Estimate:
    """The mean of values x_s [S], measured with error covariance C [S, S], as an estimate for all seeds.

    Model: x_s = mu + seed_s + error_s, seeds independent, errors as C says. With s^2 the sample variance of the x_s, v
    the mean of C's diagonal and c that off it, s^2 is expected to be Var(seed) + v - c, so that

        Var(mean) = Var(seed) / S + sum(C) / S^2 = s^2 / S + c

    (the moment estimate of random effects: DerSimonian and Laird 1986, Controlled Clinical Trials 7, 177-188, with
    equal weights and correlated errors). s^2 is not taken for less than v - c, what the errors alone scatter. Half of
    the interval is sqrt(t^2 s^2 / S + 1.96^2 c), t Student's of S - 1 degrees of freedom, for c, what all seeds share
    such as the anchor's error, is known: Banerjee (1960, Sankhya 22, 357-358) shows that such a sum covers at least
    as often as its parts. Where little is shared, two seeds make an interval of 12.7 standard errors each way, three
    4.3, five 2.8. One seed: measurement alone, 1.96.
    """
    x = np.asarray(values, dtype=np.float64)
    size = len(x)
    errors = np.broadcast_to(np.asarray(covariance, dtype=np.float64), (size, size))
    measured = math.sqrt(max(errors.sum(), 0.0)) / size
    if size == 1:
        error = measured or math.nan  # of an exact value nothing is known but itself
        return Estimate(float(x[0]), error, NORMAL * error, measured, math.nan, 1)
    diagonal = errors.trace() / size
    beside = (errors.sum() - errors.trace()) / (size * (size - 1))
    spread = float(x.var(ddof=1))
    own = max(spread, diagonal - beside) / size
    error = math.sqrt(max(own + beside, measured**2))
    student = float(scipy.stats.t.ppf((1 + LEVEL) / 2, size - 1))
    width = math.sqrt(student**2 * own + NORMAL**2 * beside) if beside > 0 else student * error
    return Estimate(float(x.mean()), error, width, measured, math.sqrt(spread), size)


def mean_rating(ratings: Ratings, players: Sequence[str]) -> Estimate:
    """Mean Elo of players that differ in their seed."""
    chosen = [ratings.players.index(name) for name in players]
    return mean_over_seeds(ratings.rating[chosen], ratings.covariance[np.ix_(chosen, chosen)])


def paired_difference(ratings: Ratings, players: Sequence[str], opponents: Sequence[str]) -> Estimate:
    """Elo of `players` above `opponents` of the same seeds: the mean of r_s - q_s, with the covariance of their errors.

    NaN if a pair is in two pools that never met.
    """
    i, j = (np.array([ratings.players.index(name) for name in names]) for names in (players, opponents))
    if (ratings.component[i] != ratings.component[j]).any():
        return Estimate(*[math.nan] * 5, num_seeds=len(players))
    errors = ratings.covariance[i] - ratings.covariance[j]
    return mean_over_seeds(ratings.rating[i] - ratings.rating[j], errors[:, i] - errors[:, j])
