"""Simulates a ladder: its own pairings, results by the Bradley-Terry model without draws, its ratings."""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from alphagateau.config import LadderConfig
from alphagateau.matches.ladder.pairings import Standing, next_pairings
from alphagateau.ratings.model import expected_score
from alphagateau.ratings.pool import UNFITTED, Pool, rate_by_pool
from alphagateau.ratings.rate import Ratings, rate
from alphagateau.ratings.results import Row, make_results

SPREAD = 100.0  # Elo, standard deviation of players of whom nothing is known
NUM_SIMULATED = 5  # ladders, whose means differ by some percent


class LadderForecast(NamedTuple):
    """Games of a ladder, of one run's last checkpoints, and the error that they leave the run's rating, Elo.

    The error is infinite where games are too few to link all players.
    """

    num_games: int
    games_a_run: float
    game_sd: float


def forecast_ladder(
    ladder: LadderConfig, num_runs: int, num_checkpoints: int, last: int, pool: Pool | None = None
) -> LadderForecast:
    """The forecast for runs of `num_checkpoints` rated each, a run's rating being the mean of its `last` ones.

    Means of simulated ladders of players SPREAD Elo apart. The error is that of a difference of two runs, over sqrt(2).
    """
    runs = [f"run {run}, checkpoint {k}" for run, k in itertools.product(range(num_runs), range(num_checkpoints))]
    rng, found = np.random.default_rng(0), []
    for _ in range(NUM_SIMULATED):
        names = [*runs, *(name for name in ladder.players if not (pool and name in UNFITTED))]
        strengths = rng.normal(pool.rating.mean() if pool else 0, SPREAD, len(names)).tolist()
        rated = simulate_ladder(ladder, dict(zip(names, strengths, strict=True)), rng, pool)
        num_rated = len(runs)  # the first of all
        covariance, games = rated.covariance[:num_rated, :num_rated], rated.games[:num_rated]
        means = np.repeat(np.eye(num_runs), num_checkpoints, axis=1) * (np.arange(num_rated) % num_checkpoints < last)
        covariance = means @ covariance @ means.T / last**2
        variance = (np.trace(covariance) - covariance.mean() * num_runs) / max(num_runs - 1, 1)
        is_linked = not rated.component[:num_rated].any()
        found.append((rated.games.sum() / 2, (means @ games).mean(), variance if is_linked else np.inf))
    num_games, games_a_run, variance = np.mean(found, axis=0).tolist()
    return LadderForecast(round(num_games), games_a_run, variance**0.5)


def simulate_ladder(
    ladder: LadderConfig, strengths: Mapping[str, float], rng: np.random.Generator, pool: Pool | None = None
) -> Ratings:
    """The ratings of players of these strengths, Elo, and of a pool's members, once the ladder has come to its end."""
    strengths = {**strengths, **(dict(zip(pool.players, pool.rating.tolist(), strict=True)) if pool else {})}
    names, rows = [*strengths], []
    while pairings := next_pairings(ladder, Standing(names, make_results(rows, names), pool=pool)):
        for player, opponent, games in pairings:
            wins = int(rng.binomial(games, expected_score(strengths[player] - strengths[opponent])))
            rows.append(Row(player, opponent, wins, 0, games - wins))
    if pool:
        return rate_by_pool(make_results(rows, names), pool)
    anchor = ladder.anchor if ladder.anchor in names else None
    return rate(make_results(rows, names), ladder.method, anchor, anchor_rating=ladder.anchor_rating)
