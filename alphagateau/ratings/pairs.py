"""Compares pairs of rated players: their difference, what a table shows of it, and how well ratings fit the games."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import scipy.special

from alphagateau.ratings.bradley_terry import deviations_from, deviations_of_pairs
from alphagateau.ratings.model import ELO_PER_NAT, by_players, difference_variance, expected_score, game_arrays
from alphagateau.ratings.rate import Ratings, ranked
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


def table_columns(results: Results, ratings: Ratings) -> dict[str, dict[str, float]]:
    """Columns of a table of ratings beside those of `Ratings`, each by player, without those for whom it is unknown.

    `draws` is the share of a player's games; `white_score` and `black_score` are points a game of those with that
    color, if the results have colors. `to_next` is Elo above the next player of the component in the order of ratings,
    `to_next_error` the standard error of that, which is no sum of two players' errors: both rest on the same anchor or
    mean. `superiority` is the likelihood that the player is the stronger of the two.
    """
    index = {name: k for k, name in enumerate(ratings.players)}
    points, games = np.zeros((2, 3, len(index)))  # of draws; of games with white; with black
    for player, opponent, wins, draws, losses, color in results.rows:
        for name, won, side in ((player, wins, color), (opponent, losses, -color)):
            k, num_games = index[name], wins + draws + losses
            points[0, k] += draws
            games[0, k] += num_games
            if side:
                points[side, k] += won + draws / 2
                games[side, k] += num_games
    found: dict[str, dict[str, float]] = {
        column: {name: float(points[row, k] / games[row, k]) for name, k in index.items() if games[row, k]}
        for column, row in (("draws", 0), ("white_score", 1), ("black_score", -1))
    }
    pairs = [(ratings.players[i], ratings.players[j]) for i, j in itertools.pairwise(ranked(ratings))]
    gaps = {one: (*difference(ratings, one, other), superiority(ratings, one, other)) for one, other in pairs}
    gaps = {name: values for name, values in gaps.items() if math.isfinite(values[0])}
    names = ("to_next", "to_next_error", "superiority")
    return found | {key: {name: values[k] for name, values in gaps.items()} for k, key in enumerate(names)}


def residuals(results: Results, ratings: Ratings) -> tuple[Residual, ...]:
    """Points against expected points of every pair, the largest misfit first.

    z is the Pearson residual standardised by leverage (McCullagh and Nelder 1989, 12.5), without the dispersion; 0 for
    a pair that alone joins two parts of the pool, which any result fits.
    """
    games = game_arrays(results, True)
    gap = ratings.rating[games.first] - ratings.rating[games.second]
    mean = expected_score(gap + ratings.white_advantage * games.color)
    rows = deviations_from(games, mean, ratings.draw_parameter, ratings.pair_correlation)
    (i, j), found = deviations_of_pairs(games, rows)
    _, (weight,) = by_players(games, [rows.slope**2 / rows.variance])  # in a fit by points as if binary
    leverage = weight * difference_variance(ratings.covariance / ratings.dispersion, i, j) / ELO_PER_NAT**2
    spare = np.where(leverage < 1 - 1e-6, found.variance * (1 - leverage), math.inf)
    z = found.missed / np.sqrt(spare)
    numbers = zip(i, j, found.games, found.points, found.expected, z, strict=True)
    residuals = [
        Residual(ratings.players[a], ratings.players[b], int(n), float(s), float(e), float(x))
        for a, b, n, s, e, x in numbers
        if math.isfinite(x)  # both have ratings
    ]
    return tuple(sorted(residuals, key=lambda r: -abs(r.z)))
