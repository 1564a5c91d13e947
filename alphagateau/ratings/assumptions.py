"""Checks the assumptions under ratings: strength is one number, draws go with scores, players and games are distinct.

By hand because scipy and statsmodels have no tests of paired comparisons.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.special

from alphagateau.ratings.bradley_terry import Deviations, Fit, deviations_of_pairs, find_deviations, pearson
from alphagateau.ratings.model import Games, by_players, expected_score, free_players, outcome_chances
from alphagateau.ratings.results import Alike, listed

LEVEL = 0.05  # chance of a false alarm in a pool, of each check
LEAST_EXPECTED = 0.5  # points of a pair's weaker side; such a pair tells of no cycle, and ruins the gamma's fit
GRID = expected_score(np.linspace(-2400, 2400, 481))  # scores of a pair of players


class Note(NamedTuple):
    """A caveat on ratings: a sentence, and the flag of its players; without players it concerns the pool."""

    text: str
    flag: str = ""
    players: tuple[str, ...] = ()


class Cycles(NamedTuple):
    """How far results are from any ratings."""

    statistic: float
    freedom: int  # independent cycles in the graph of who met whom
    p_value: float  # 1 without cycles
    worst: tuple[int, ...]  # players: each better against the next than their ratings, the last against the first


def find_cycles(games: Games, fit: Fit) -> Cycles:
    """Pearson's statistic of the points of each two players against their ratings.

    What no ratings explain lies in the space of cycles, a over b over c over a (Jiang, Lim, Yao and Ye 2011, Math.
    Program. 127, 203-244), whose dimension is the degrees of freedom. The statistic is compared with a gamma
    distribution of its mean and variance, as chi-squared fails where few points are expected; with F, if pairs of games
    gave the variance. Pairs of which one side expects next to nothing are left out.
    """
    pairs, found = deviations_of_pairs(games, find_deviations(games, fit))
    told = np.minimum(found.expected, found.games - found.expected) >= LEAST_EXPECTED
    pairs, found = pairs[:, told], Deviations(*(column[told] for column in found))
    freedom = len(found.games) - len(free_players(games))
    if freedom <= 0:
        return Cycles(0.0, 0, 1.0, ())
    statistic = pearson(found)
    scale = 1 + np.mean(found.cumulant / found.variance**2) / 2  # of the variance of a square, 2 if it is normal
    if scale < 1e-6:  # one game of equals each: every result is as far from even
        return Cycles(statistic, freedom, 1.0, ())
    p_value = float(scipy.special.chdtrc(freedom / scale, statistic / scale))
    if fit.pair_correlation:
        spare = np.sum(np.maximum(games.pentanomials.sum(axis=1) - 1, 0))
        p_value = float(scipy.special.fdtrc(freedom / scale, spare, statistic / freedom))
    above, variance = found.missed / found.slope, found.variance / found.slope**2
    return Cycles(statistic, freedom, p_value, _worst_cycle(games.num_players, pairs, above, variance))


def _worst_cycle(num_players: int, pairs: np.ndarray, above: np.ndarray, variance: np.ndarray) -> tuple[int, ...]:
    """The pair farthest from its ratings, with the third player that makes the largest cycle, if one met both."""
    worst = int(np.argmax(np.abs(above) / np.sqrt(variance)))
    i, j = pairs[:, worst] if above[worst] > 0 else pairs[::-1, worst]
    better, spread = np.full((2, num_players, num_players), np.nan)  # of each player above each other
    for (a, b), sign in ((pairs, 1), (pairs[::-1], -1)):
        better[a, b], spread[a, b] = sign * above, variance
    size = (better[j] + better[:, i] + abs(above[worst])) / np.sqrt(spread[j] + spread[:, i] + variance[worst])
    return (int(i), int(j), *([int(np.nanargmax(size))] if np.isfinite(size).any() else []))


def cycle_notes(players: Sequence[str], games: Games, fit: Fit) -> tuple[Note, ...]:
    """A note if results contradict any ratings."""
    found = find_cycles(games, fit) if len(games.first) else Cycles(0.0, 0, 1.0, ())
    if found.p_value >= LEVEL:
        return ()
    names = tuple(players[k] for k in found.worst)
    steps = [f"{a} against {b}" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    text = (
        f"results go round in cycles more than chance explains (statistic {found.statistic:.1f} of {found.freedom} "
        f"independent cycles, p = {found.p_value:.2g}), most where each does better than its rating: "
    )
    return (Note(text + ", ".join(steps if len(steps) > 2 else steps[:1]), "cycle", names),)


def draw_notes(players: Sequence[str], games: Games, nu: float) -> tuple[Note, ...]:
    """A note on pairs drawn more often than any difference explains at Davidson's `nu`, with a winner of the rest.

    Then draws draw two players together whom the decided games set apart, as where one cannot but stalemate the other.
    Likelihood ratio of the pair's own nu to that of the pool (Bonferroni), and a sign test of its decided games.
    """
    if not nu:
        return ()
    (first, second), (wins, draws, losses, total) = by_players(games, [*games.counts.T, games.total])
    fewer, decided = np.minimum(wins, losses), wins + losses
    one_sided = scipy.special.betainc(np.maximum(decided - fewer, 1), fewer + 1, 0.5)  # as few of so many, or fewer
    rows = np.flatnonzero((draws**2 > nu**2 * wins * losses) & (decided > 0) & (one_sided < LEVEL))
    counts = np.stack([wins, draws, losses])[:, rows]
    best = np.max(counts.T @ np.log(np.maximum(outcome_chances(GRID, nu), 1e-12)).T, axis=1)
    ratio = 2 * (np.sum(scipy.special.xlogy(counts, counts / total[rows]), axis=0) - best)
    p_value = scipy.special.chdtrc(1, np.maximum(ratio, 0)) / 2
    is_named = p_value * len(total) < LEVEL
    rows = rows[is_named][np.argsort(p_value[is_named])]
    if not len(rows):
        return ()
    named = [
        f"{players[first[k]]} and {players[second[k]]} ({draws[k]:.0f} of {total[k]:.0f} drawn, "
        f"{wins[k]:.0f} won and {losses[k]:.0f} lost)"
        for k in rows
    ]
    text = "draws contradict the decided games, and pull together the ratings of"
    members = tuple(dict.fromkeys(players[int(k)] for k in np.concatenate([first[rows], second[rows]])))
    return (Note(f"{text} {listed(named, separator='; ')}", "draws", members),)


def misfit_notes(players: Sequence[str], games: Games, fit: Fit) -> tuple[Note, ...]:
    """A note on pairs whose points are farther from the expected ones than chance explains (Bonferroni).

    By binomial tails in units of games, so many that their points have the variance of those played.
    """
    if not len(games.first):
        return ()
    pairs, found = deviations_of_pairs(games, find_deviations(games, fit))
    is_more, share = found.missed > 0, np.clip(found.expected / found.games, 1e-9, 1 - 1e-9)
    size = found.games * share * (1 - share) / found.variance
    points = np.where(is_more, found.points, found.games - found.points) * size
    rest = np.maximum(found.games * size - points, 0)
    p_value = 2 * scipy.special.betainc(np.maximum(points, 1e-9), rest + 1, np.where(is_more, share, 1 - share))
    rows = np.flatnonzero(p_value * len(p_value) < LEVEL)
    if not len(rows):
        return ()
    rows = rows[np.argsort(p_value[rows])]
    first, second = ([players[int(k)] for k in side[rows]] for side in pairs)
    numbers = zip(first, second, found.points[rows], found.games[rows], found.expected[rows], strict=True)
    named = [f"{a} against {b} ({x:g} of {n:.0f} points, {e:.1f} expected)" for a, b, x, n, e in numbers]
    text = f"farther from their ratings than chance explains: {listed(named, separator='; ')}"
    return (Note(text, "misfit", tuple(dict.fromkeys(first + second))),)


def alike_notes(alike: Sequence[Alike]) -> tuple[Note, ...]:
    """A note on each two players who seem to be one."""
    return tuple(Note(f"{a} and {b} are rated as two players: {why}", "alike", (a, b)) for a, b, why in alike)
