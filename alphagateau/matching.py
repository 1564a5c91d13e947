"""Chooses who plays whom next and when to stop: pairings for a pool, and an SPRT for two players."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.special

from alphagateau import elo
from alphagateau.elo import Results
from alphagateau.rate import Ratings, rate

PAIR_SCORES = np.linspace(0, 1, 5)  # points a game of a pair of games, the same opening both ways
MIN_COUNT = 1e-3  # stands for a kind of pair that was not seen, as in fishtest


class Pairing(NamedTuple):
    """A match to play: `games` games between two players."""

    player: str
    opponent: str
    games: int


class Sprt(NamedTuple):
    """Where a sequential test stands; elo, elo_lower, elo_upper: estimate and 2 sigma, Elo.

    decision is `H0` (no stronger than elo0), `H1` (at least elo1) or `continue`.
    """

    decision: str
    llr: float
    lower: float
    upper: float
    elo: float
    elo_lower: float
    elo_upper: float
    num_pairs: int


def paper_pairing(
    players: Sequence[str],
    results: Results,
    num_games: int = 60,
    num_initial: int = 10,
    num_rounds: int = 5,
) -> Pairing | None:
    """Algorithm 2 of the AlphaGateau paper: the next match given the games so far, or None at its end.

    First every pair of the first `num_initial` players. Then each other player in turn meets
    `num_rounds` opponents, each time the one of nearest rating by `wls`, refitted before, among
    those rated and not yet met by it; unrated, it counts as 1000. A match cut short is finished.
    """
    games = _game_counts(players, results)
    initial = range(min(num_initial, len(players)))
    for i in initial:
        for j in initial[i + 1 :]:
            if games[i, j] < num_games:
                return Pairing(players[i], players[j], int(num_games - games[i, j]))
    for i in range(len(initial), len(players)):
        if games[i].sum() >= min(num_rounds, i) * num_games:
            continue
        begun = np.flatnonzero((games[i] > 0) & (games[i] < num_games))
        if len(begun):
            j = int(begun[0])
            return Pairing(players[i], players[j], int(num_games - games[i, j]))
        fitted = rate(results, "wls")
        known = dict(zip(fitted.players, fitted.rating, strict=True))
        rating = np.array([known.get(name, math.nan) for name in players])
        distance = np.abs(rating - np.nan_to_num(rating[i], nan=1000.0))
        distance[(games[i] > 0) | np.isnan(rating)] = math.inf
        distance[i] = math.inf
        return Pairing(players[i], players[int(np.argmin(distance))], num_games)
    return None


def _game_counts(players: Sequence[str], results: Results) -> np.ndarray:
    """[K, K] games played between each two of `players`."""
    index = {name: i for i, name in enumerate(players)}
    games = np.zeros((len(players), len(players)))
    for row in results.rows:
        if row.player in index and row.opponent in index:
            games[index[row.player], index[row.opponent]] += sum(row[2:5])
    return games + games.T


def informative_pairings(
    players: Sequence[str],
    results: Results,
    num_pairings: int = 1,
    num_games: int = 20,
    anchor: str | None = None,
) -> tuple[Pairing, ...]:
    """The matches that lower the ratings' summed variance most: A-optimal design, one at a time.

    Variances are relative to the pool's mean, or to `anchor`, from the Bradley-Terry fit with one
    virtual draw a player (so they have a value before any game). A match of n games between i and j
    of information V a game adds n V a a' to the inverse of the covariance C, a = e_i - e_j, which
    lowers its trace by n V |C a|^2 / (1 + n V a' C a) (Sherman and Morrison 1950; A-optimality:
    Pukelsheim 1993, Optimal Design of Experiments, ch. 6).
    """
    table = Results(tuple(players), _rows_among(players, results))
    games = elo.game_arrays(table, use_colors=True)
    fit = elo.fit_bradley_terry(games, np.ones(len(players)))
    covariance = fit.covariance[:-1, :-1]
    place = players.index(anchor) if anchor is not None else None
    pool = np.zeros(len(players), dtype=int)
    found = []
    for _ in range(num_pairings if len(players) > 1 else 0):
        spread = _pair_variances(covariance)
        weight = num_games * _expected_information(fit, spread)
        contrast, _ = elo.tie(covariance, covariance, pool, place)
        gain = weight * _pair_variances(contrast.T @ contrast) / (1 + weight * spread)
        i, j = divmod(int(np.argmax(np.triu(gain, 1))), len(players))
        found.append(Pairing(players[i], players[j], num_games))
        column = covariance[:, i] - covariance[:, j]
        factor = weight[i, j] / (1 + weight[i, j] * spread[i, j])
        covariance = covariance - factor * np.outer(column, column)
    return tuple(found)


def _rows_among(players: Sequence[str], results: Results) -> tuple[elo.Row, ...]:
    names = set(players)
    return tuple(row for row in results.rows if row.player in names and row.opponent in names)


def _pair_variances(covariance: np.ndarray) -> np.ndarray:
    """[K, K] variance of each difference."""
    own = covariance.diagonal()
    return own[:, None] + own[None, :] - 2 * covariance


def _expected_information(fit: elo.Fit, spread: np.ndarray) -> np.ndarray:
    """[K, K] information of a game on theta_i - theta_j, averaged over what is not known of it.

    That of points s is (ds / dtheta)^2 / variance. The mean of the logistic curve over a normal of
    variance v is about the curve of k theta, k = 1 / sqrt(1 + pi v / 8) (MacKay 1992, Neural
    Computation 4, 720-736).
    """
    k = 1 / np.sqrt(1 + math.pi * spread / 8)
    score = scipy.special.expit(k * (fit.theta[:, None] - fit.theta[None, :]))
    return k * (score * (1 - score)) ** 2 / elo.score_variance(score, fit.draw_parameter)


def stop_reason(ratings: Ratings, max_games: int | None = None, target_error: float | None = None) -> str | None:
    """Why to play no more, or None: games played, or every standard error at most `target_error`."""
    num_games = int(ratings.games.sum()) // 2
    if max_games is not None and num_games >= max_games:
        return f"{num_games} games played, {max_games} asked for"
    errors = ratings.standard_error
    is_linked = len(errors) > 0 and bool(np.all(ratings.component == 0))
    if target_error is not None and is_linked and errors.max() <= target_error:
        return f"every standard error is at most {errors.max():.1f} Elo, {target_error:g} asked for"
    return None


def sprt(
    pairs: Sequence[int],
    elo0: float = 0.0,
    elo1: float = 10.0,
    alpha: float = 0.05,
    beta: float = 0.05,
) -> Sprt:
    """Generalised sequential probability ratio test of elo1 against elo0 on pairs of games.

    pairs [5]: how many pairs of games (one opening, colors swapped) brought the player 0, 1/2, 1,
    3/2 and 2 points. alpha, beta: chances to accept H1 at elo0 and H0 at elo1. The log-likelihood
    ratio is of the multinomials nearest to the counts with either expected score (Van den Bergh,
    cantate.be/Fishtest/support_MLE_multinomial.pdf, as fishtest does), the bounds are Wald's (1945).
    The estimate ignores that a test was stopped by its own results, which favours the side it took.
    Raises ValueError for other counts or hypotheses.
    """
    counts = np.array(pairs, dtype=np.float64)
    if counts.shape != (5,) or np.any(counts < 0) or not np.all(np.isfinite(counts)):
        raise ValueError(f"pairs is {list(pairs)}, expected 5 counts of at least 0")
    if not elo0 < elo1:
        raise ValueError(f"elo0 is {elo0} and elo1 {elo1}, expected elo0 < elo1")
    if not (0 < alpha < 1 and 0 < beta < 1 and alpha + beta < 1):
        raise ValueError(f"alpha {alpha} and beta {beta}, expected chances of sum below 1")
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    if not counts.any():
        return Sprt("continue", 0.0, lower, upper, 0.0, -math.inf, math.inf, 0)
    interval = _elo_interval(counts)
    counts[counts == 0] = MIN_COUNT
    score0, score1 = elo.expected_score(np.array([elo0, elo1]))
    llr = _log_likelihood(counts, score1) - _log_likelihood(counts, score0)
    decision = "H1" if llr >= upper else "H0" if llr <= lower else "continue"
    return Sprt(decision, llr, lower, upper, *interval, int(sum(pairs)))


def _log_likelihood(counts: np.ndarray, score: float) -> float:
    """Largest log-likelihood of the counts with expected points `score`, but for a constant.

    Its chances are p_k = q_k / (1 + x (a_k - score)) of the observed shares q_k of points a_k, with x
    such that sum_k q_k (a_k - score) / (1 + x (a_k - score)) = 0.
    """
    away = PAIR_SCORES - score
    ends = (-1 / away[-1], -1 / away[0])
    margin = 1e-9 * (ends[1] - ends[0])
    ends = (ends[0] + margin, ends[1] - margin)
    root: Any = scipy.optimize.brentq(lambda x: counts @ (away / (1 + x * away)), *ends, xtol=1e-14)
    return float(-counts @ np.log1p(root * away))


def _elo_interval(counts: np.ndarray) -> tuple[float, float, float]:
    """Elo of the mean score (infinite if all was won or lost), 2 standard errors below and above.

    If all pairs went alike, the interval counts another half pair won and half pair lost.
    """
    score = counts @ PAIR_SCORES / counts.sum()
    if np.count_nonzero(counts) == 1:
        counts = np.add(counts, [0.5, 0, 0, 0, 0.5])
    mean = counts @ PAIR_SCORES / counts.sum()
    error = math.sqrt(counts @ (PAIR_SCORES - mean) ** 2) / counts.sum()
    scores = np.clip([score, mean - 2 * error, mean + 2 * error], 0, 1)
    value, low, high = elo.ELO_PER_NAT * scipy.special.logit(scores)
    return float(value), float(low), float(high)


def pair_counts(points: Sequence[float]) -> tuple[int, int, int, int, int]:
    """Counts for `sprt` from the points (0, 1/2, 1, 3/2, 2) of each pair of games."""
    doubled = [2 * x for x in points]
    if any(x not in (0, 1, 2, 3, 4) for x in doubled):
        raise ValueError(f"pair points {list(points)}, expected 0, 0.5, 1, 1.5 or 2 each")
    zero, one, two, three, four = (doubled.count(k) for k in range(5))
    return zero, one, two, three, four
