"""Pentanomial results, by pairs of games of one opening: Elo of a player above another, and a sequential test of it.

By hand because no library has it: fishtest's is part of a server, and scipy has no sequential tests.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.special

from alphagateau.ratings.model import ELO_PER_NAT, expected_score

PAIR_SCORES = np.linspace(0, 1, 5)  # points a game of a pair of games, the same opening both ways
MIN_COUNT = 1e-3  # in place of 0 pairs of a kind, as in fishtest
NORMALIZED_ELO = 800 / math.log(10)  # of one standard deviation of a game's points
MAX_NORMALIZED = 200.0  # of a bound in normalized Elo; from some 320 on the fixed point may be out of reach
MAX_ROUNDS = 200  # of a fixed point
DECISIONS = {"H0": "accepts H0, the lower,", "H1": "accepts H1, the higher,", "continue": "is undecided"}


class Strength(NamedTuple):
    """Elo of a player above its opponent, with bounds 2 standard errors away."""

    elo: float
    lower: float
    upper: float
    superiority: float  # likelihood that it is the stronger
    num_pairs: int

    def __str__(self) -> str:
        """Such as "Elo +35 +- 12 (+23 to +47), likelihood of superiority 99.8 %, by 64 pairs of games"."""
        span = f" +- {(self.upper - self.lower) / 2:.0f}" if math.isfinite(self.upper - self.lower) else ""
        return (
            f"Elo {_signed(self.elo)}{span} ({_signed(self.lower)} to {_signed(self.upper)}), "
            f"likelihood of superiority {100 * self.superiority:.1f} %, by {_pairs(self.num_pairs)}"
        )


def _signed(elo: float) -> str:
    return f"{round(elo):+d}" if math.isfinite(elo) else f"{elo:+}"


def _pairs(count: int) -> str:
    return f"{count} pair{'s' * (count != 1)} of games"


class Sprt(NamedTuple):
    """The state of a sequential test."""

    decision: str  # H0: no stronger than elo0; H1: at least elo1; or continue
    llr: float  # log-likelihood ratio, between lower and upper while it continues
    lower: float
    upper: float
    strength: Strength
    misfit: float = 0.0  # log-likelihood of the shares observed above that of the better hypothesis

    @property
    def is_misfit(self) -> bool:
        """Whether both hypotheses have lost: beside the shares observed neither would be accepted."""
        return self.misfit > self.upper

    def __str__(self) -> str:
        """Such as "is undecided after 64 pairs of games: log-likelihood ratio 1.31, of -2.94 to 2.94"."""
        state = f"{DECISIONS[self.decision]} after {_pairs(self.strength.num_pairs)}"
        lost = f"; both hypotheses have lost, by {self.misfit:.2f}, against the score seen" if self.is_misfit else ""
        return f"{state}: log-likelihood ratio {self.llr:.2f}, of {self.lower:.2f} to {self.upper:.2f}{lost}"


def sprt(
    pairs: Sequence[int],
    elo0: float = 0.0,
    elo1: float = 10.0,
    alpha: float = 0.05,
    beta: float = 0.05,
    *,
    is_normalized: bool = False,
) -> Sprt:
    """Generalised sequential probability ratio test of elo1 against elo0 on pairs of games.

    The log-likelihood ratio is of the multinomials nearest to the counts with either expected score (Van den Bergh,
    cantate.be/Fishtest/support_MLE_multinomial.pdf, as fishtest does), the bounds are Wald's (1945). In normalized Elo
    it is of those with either expected score above one half in standard deviations.

    Args:
        pairs: [5], how many pairs of games (one opening, colors swapped) brought the player 0, 1/2, 1, 3/2, 2 points.
        alpha: chance to accept H1 at elo0.
        beta: chance to accept H0 at elo1.
        is_normalized: elo0 and elo1 are normalized Elo, 800 / ln(10) for one standard deviation of a game's points.

    Raises:
        ValueError: other counts or hypotheses.
    """
    counts = _counts(pairs)
    given = f"elo0 is {elo0} and elo1 {elo1}"
    if not elo0 < elo1:
        raise ValueError(f"{given}, expected elo0 < elo1")
    if not (0 < alpha < 1 and 0 < beta < 1 and alpha + beta < 1):
        raise ValueError(f"alpha {alpha} and beta {beta}, expected chances of sum below 1")
    score0, score1 = expected_score(np.array([elo0, elo1]))
    if is_normalized and max(-elo0, elo1) > MAX_NORMALIZED:
        raise ValueError(f"{given}, expected at most {MAX_NORMALIZED:g} normalized Elo either way")
    if not is_normalized and not 0 < score0 < score1 < 1:
        raise ValueError(f"{given}, expected Elo differences whose scores are not 0 or 1")
    lower, upper = math.log(beta / (1 - alpha)), math.log((1 - beta) / alpha)
    if not counts.any():
        return Sprt("continue", 0.0, lower, upper, strength(pairs))
    counts[counts == 0] = MIN_COUNT
    log_likelihood = _log_likelihood_normalized if is_normalized else _log_likelihood
    low, high = log_likelihood(counts, elo0), log_likelihood(counts, elo1)
    llr = high - low
    decision = "H1" if llr >= upper else "H0" if llr <= lower else "continue"
    return Sprt(decision, llr, lower, upper, strength(pairs), -max(low, high))


def _log_likelihood(counts: np.ndarray, elo: float) -> float:
    """Largest log-likelihood of the counts with the expected points of `elo`, less that of the shares observed."""
    return float(-counts @ np.log(_likelihood_ratios(counts, PAIR_SCORES - expected_score(elo))))


def _log_likelihood_normalized(counts: np.ndarray, elo: float) -> float:
    """The same with normalized Elo `elo`.

    Of points a_k of a pair with chances p_k, mean m and standard deviation s, m - 1/2 = t s with t = sqrt(2) elo ln(10)
    / 800: s is that of the mean of two games, 1 / sqrt(2) of a game's. The derivative of m - 1/2 - t s with respect to
    p_k is, but for a constant that makes its mean 0,

        g_k = a_k - 1/2 - t s (1 + ((a_k - m) / s)^2) / 2

    so the likeliest chances are q_k / (1 + x g_k), of the observed shares q_k, at a fixed point of m and s (Van den
    Bergh, cantate.be/Fishtest/normalized_elo_practical.pdf, section 4.1).
    """
    t, chances, ratios = math.sqrt(2) * elo / NORMALIZED_ELO, np.full(5, 0.2), np.ones(5)
    for _ in range(MAX_ROUNDS):
        mean = chances @ PAIR_SCORES
        deviation = math.sqrt(chances @ (PAIR_SCORES - mean) ** 2)
        away = PAIR_SCORES - 0.5 - t * deviation * (1 + ((PAIR_SCORES - mean) / deviation) ** 2) / 2
        ratios = _likelihood_ratios(counts, away)
        before, chances = chances, counts / counts.sum() / ratios
        if np.abs(chances - before).max() < 1e-12:
            break
    return float(-counts @ np.log(ratios))


def _likelihood_ratios(counts: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Observed shares q_k [5] over the likeliest chances p_k with sum_k p_k away_k = 0.

    They are 1 + x away_k, with x such that sum_k q_k away_k / (1 + x away_k) = 0.
    """
    ends = (-1 / away.max(), -1 / away.min())
    margin = 1e-9 * (ends[1] - ends[0])
    ends = (ends[0] + margin, ends[1] - margin)
    root: Any = scipy.optimize.brentq(lambda x: counts @ (away / (1 + x * away)), *ends, xtol=1e-14)
    return 1 + root * away


def strength(pairs: Sequence[int]) -> Strength:
    """Elo of the mean score (infinite if all was won or lost), by pairs [5] as in `sprt`.

    The error is that of a pair's mean, as games of one opening go together; interval and likelihood count another half
    pair won and half pair lost, as few pairs, by chance alike, would be too sure. A sequential test that stopped the
    match favours the side that it took. Raises ValueError for other counts.
    """
    counts = _counts(pairs)
    if not counts.any():
        return Strength(0.0, -math.inf, math.inf, 0.5, 0)
    score = counts @ PAIR_SCORES / counts.sum()
    counts = np.add(counts, [0.5, 0, 0, 0, 0.5])
    mean = counts @ PAIR_SCORES / counts.sum()
    error = math.sqrt(counts @ (PAIR_SCORES - mean) ** 2 / counts.sum() / (counts.sum() - 1))
    scores = np.clip([score, mean - 2 * error, mean + 2 * error], 0, 1)
    elo, low, high = (ELO_PER_NAT * scipy.special.logit(scores)).tolist()
    return Strength(elo, low, high, float(scipy.special.ndtr((mean - 0.5) / error)), int(sum(pairs)))


def _counts(pairs: Sequence[int]) -> np.ndarray:
    """Raises ValueError unless they are counts [5] of pairs."""
    counts = np.array(pairs, dtype=np.float64)
    if counts.shape != (5,) or np.any(counts < 0) or not np.all(np.isfinite(counts)):
        raise ValueError(f"pairs is {list(pairs)}, expected 5 counts of at least 0")
    return counts


def pentanomial(points: Iterable[float]) -> tuple[int, ...]:
    """Counts [5] for `sprt` from the points (0, 1/2, 1, 3/2 or 2) of each pair of games."""
    doubled = [2 * x for x in points]
    if wrong := set(doubled) - {0, 1, 2, 3, 4}:
        raise ValueError(f"{min(wrong) / 2} points of a pair of games, expected 0, 0.5, 1, 1.5 or 2")
    return tuple(map(doubled.count, range(5)))
