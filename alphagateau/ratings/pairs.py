"""Compares pairs of rated players: their difference, and how well the ratings fit their games."""

import math
from typing import NamedTuple

import numpy as np
import scipy.special

from alphagateau.ratings.model import (
    ELO_PER_NAT,
    by_players,
    difference_variance,
    expected_score,
    game_arrays,
    points_covariance,
    score_variance,
)
from alphagateau.ratings.rate import Ratings
from alphagateau.ratings.results import Results


class Residual(NamedTuple):
    """A pair's points against the expected ones, from `player`'s side."""

    player: str
    opponent: str
    games: int
    score: float  # points
    expected: float  # points
    z: float  # |z| > 3 marks a misfit


def difference(ratings: Ratings, player: str, opponent: str) -> tuple[float, float]:
    """Elo of `player` above `opponent` and its standard error; NaN across components."""
    i, j = ratings.players.index(player), ratings.players.index(opponent)
    if ratings.component[i] != ratings.component[j]:
        return math.nan, math.nan
    variance = difference_variance(ratings.covariance, i, j)
    return float(ratings.rating[i] - ratings.rating[j]), math.sqrt(max(variance, 0.0))


def superiority(ratings: Ratings, player: str, opponent: str) -> float:
    """Likelihood that `player` is the stronger, by normal approximation; NaN across components."""
    gap, error = difference(ratings, player, opponent)
    return float(scipy.special.ndtr(gap / error)) if error else 0.5


def residuals(results: Results, ratings: Ratings) -> tuple[Residual, ...]:
    """Points against expected points of every pair, the largest misfit first.

    z is the Pearson residual standardised by leverage (McCullagh and Nelder 1989, 12.5), without the dispersion; 0 for
    a pair that alone joins two parts of the pool, which any result fits.
    """
    games = game_arrays(results, True)
    gap = ratings.rating[games.first] - ratings.rating[games.second]
    mean = expected_score(gap + ratings.white_advantage * games.color)
    variance = score_variance(mean, ratings.draw_parameter)
    spread = points_covariance(games, games.total, variance, ratings.pair_correlation).sum(axis=1)
    binary = (games.total * mean * (1 - mean)) ** 2 / spread  # for leverages of a fit by points as if binary
    columns = np.stack([games.points, games.total, games.total * mean, spread, binary])
    (i, j), (points, total, expected, spread, weight) = by_players(games, columns)
    leverage = weight * difference_variance(ratings.covariance / ratings.dispersion, i, j) / ELO_PER_NAT**2
    spare = np.where(leverage < 1 - 1e-6, spread * (1 - leverage), math.inf)
    z = (points - expected) / np.sqrt(spare)
    found = [
        Residual(ratings.players[a], ratings.players[b], int(n), float(s), float(e), float(x))
        for a, b, n, s, e, x in zip(i, j, total, points, expected, z, strict=True)
    ]
    return tuple(sorted(found, key=lambda r: -abs(r.z)))
