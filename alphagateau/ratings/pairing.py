"""Pairings of a pool: the matches to play next."""

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.special

from alphagateau.ratings.bradley_terry import Fit, fit_bradley_terry
from alphagateau.ratings.curves import Curves, make_steps
from alphagateau.ratings.history import fit_history
from alphagateau.ratings.model import centered, difference_variance, game_arrays, score_variance
from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, restrict


class Pairing(NamedTuple):
    """A match to play."""

    player: str
    opponent: str
    games: int


def paper_pairings(
    players: Sequence[str], results: Results, num_games: int = 60, num_initial: int = 10, num_rounds: int = 5
) -> tuple[Pairing, ...]:
    """Algorithm 2 of the AlphaGateau paper: the next matches given the games so far, none at its end.

    First every pair of the first `num_initial` players, all at once. Then each other player in turn meets
    `num_rounds` opponents, one after the other, each time the one of nearest rating by `wls`, refitted before,
    among those rated and not yet met by it; unrated, it counts as 1000. A match cut short is finished.
    """
    pairs = game_arrays(restrict(results, players), use_colors=False)
    games = np.zeros((len(players), len(players)))
    games[pairs.first, pairs.second] = games[pairs.second, pairs.first] = pairs.total
    num_initial = min(num_initial, len(players))
    pairs = itertools.combinations(range(num_initial), 2)
    left = [Pairing(players[i], players[j], int(num_games - games[i, j])) for i, j in pairs if games[i, j] < num_games]
    if left:
        return tuple(left)
    for i in range(num_initial, len(players)):
        if games[i].sum() >= min(num_rounds, i) * num_games:
            continue
        begun = np.flatnonzero((games[i] > 0) & (games[i] < num_games))
        if len(begun):
            j = int(begun[0])
            return (Pairing(players[i], players[j], int(num_games - games[i, j])),)
        fitted = rate(results, "wls")
        known = dict(zip(fitted.players, fitted.rating, strict=True))
        rating = np.array([known.get(name, math.nan) for name in players])
        distance = np.abs(rating - np.nan_to_num(rating[i], nan=1000.0))
        distance[(games[i] > 0) | np.isnan(rating)] = math.inf
        distance[i] = math.inf
        return (Pairing(players[i], players[int(np.argmin(distance))], num_games),)
    return ()


class PairingRules(NamedTuple):
    """Constraints on `informative_pairings`."""

    curves: Curves | None = None  # for ratings by `history`; None: by `bradley-terry`
    closed: Collection[frozenset[str]] = ()  # pairs that may not meet
    planned: Sequence[Pairing] = ()  # matches whose results are still to come


ANYBODY = PairingRules()


def informative_pairings(
    players: Sequence[str],
    results: Results,
    num_pairings: int = 1,
    num_games: int = 20,
    anchor: str | None = None,
    rules: PairingRules = ANYBODY,
) -> tuple[Pairing, ...]:
    """The matches that lower the ratings' summed variance most: A-optimal design, one at a time.

    Variances are relative to the pool's mean, or to `anchor`, from the fit with one virtual draw a player (so they have
    a value before any game). A match of n games between i and j of information V a game adds n V a a' to the inverse of
    the covariance C, a = e_i - e_j, which lowers its trace by n V |C a|^2 / (1 + n V a' C a) (Sherman and Morrison
    1950; A-optimality: Pukelsheim 1993, Optimal Design of Experiments, ch. 6).
    """
    fit = _fit(replace(restrict(results, players), pairs=()), rules.curves)
    covariance = fit.covariance[:-1, :-1]
    place = np.array([players.index(anchor)]) if anchor is not None else None
    pool = np.zeros(len(players), dtype=int)
    is_open = np.triu(np.ones((len(players),) * 2, dtype=bool), 1)
    for i, j in (map(players.index, pair) for pair in rules.closed if pair <= set(players)):
        is_open[min(i, j), max(i, j)] = False
    for p in (p for p in rules.planned if {p.player, p.opponent} <= set(players)):
        covariance = _with_match(covariance, fit, (players.index(p.player), players.index(p.opponent)), p.games)
    found = []
    for _ in range(num_pairings if is_open.any() else 0):
        spread = _pair_variances(covariance)
        weight = num_games * _expected_information(fit, spread, fit.theta[:, None] - fit.theta[None, :])
        contrast, _ = centered(covariance, covariance, pool, place)
        gain = weight * _pair_variances(contrast.T @ contrast) / (1 + weight * spread)
        i, j = divmod(int(np.argmax(np.where(is_open, gain, -1.0))), len(players))
        found.append(Pairing(players[i], players[j], num_games))
        covariance = _with_match(covariance, fit, (i, j), num_games)
    return tuple(found)


def _with_match(covariance: np.ndarray, fit: Fit, pair: tuple[int, int], num_games: int) -> np.ndarray:
    """The covariance [K, K] after a match of this pair."""
    i, j = pair
    column = covariance[:, i] - covariance[:, j]
    spread = column[i] - column[j]
    weight = num_games * _expected_information(fit, spread, fit.theta[i] - fit.theta[j])
    return covariance - weight / (1 + weight * spread) * np.outer(column, column)


def _fit(results: Results, curves: Curves | None) -> Fit:
    """The fit with one virtual draw a player."""
    games, prior = game_arrays(results, use_colors=True), np.ones(len(results.players))
    plain = fit_bradley_terry(games, prior)
    if curves is None:
        return plain
    steps = make_steps(results.players, curves)
    return fit_history(games._replace(links=steps.links), prior, steps, plain, 1.0)[0]


def _pair_variances(covariance: np.ndarray) -> np.ndarray:
    """[K, K] variance of each difference."""
    places = np.arange(len(covariance))
    return difference_variance(covariance, places[:, None], places)


def _expected_information(fit: Fit, spread: np.ndarray, difference: np.ndarray) -> np.ndarray:
    """Expected information of a game on a difference of log-odds whose own variance is `spread`.

    That of points s is (ds / dtheta)^2 / variance. The mean of the logistic curve over a normal of variance v is about
    the curve of k theta, k = 1 / sqrt(1 + pi v / 8) (MacKay 1992, Neural Computation 4, 720-736).
    """
    k = 1 / np.sqrt(1 + math.pi * spread / 8)
    score = scipy.special.expit(k * difference)
    return k * (score * (1 - score)) ** 2 / score_variance(score, fit.draw_parameter)
