"""Means and differences of variants over seeds, with intervals that cover other seeds too."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats

LEVEL = 0.95  # of an interval
POWER = 0.8  # with which a detectable difference is found
NODES = 100  # of a quadrature; with more a quantile changes by less than 1e-4 of itself


class Estimate(NamedTuple):
    """A mean over seeds, or the mean difference of two variants on equal seeds."""

    mean: float
    standard_error: float  # NaN where it is unknown
    half_width: float  # of the 95 % interval
    measured: float  # the part of the standard error that games alone explain
    spread: float  # standard deviation over seeds, pooled over the variants; NaN where it is unknown
    num_seeds: int
    at_once: float = math.nan  # of a difference: half of the interval that holds with all others at once
    detectable: float = math.nan  # the true difference that such an interval tells from 0 with chance POWER


class Scatter(NamedTuple):
    """Mean square of residuals, of which `errors` is expected of games, and its degrees of freedom; 0 without any."""

    mean_square: float
    errors: float
    freedom: float


def compare_over_seeds(
    values: Mapping[tuple[str, int], float], covariance: Any = 0.0, reference: str = ""
) -> dict[str, tuple[Estimate, Estimate | None]]:
    """Each variant's mean over its seeds, and its difference to the reference on the seeds of both, None without any.

    Two-way model with the seed as block: x_vs = mu_v + b_s + e_vs + g_vs. The seeds' b and e are normal and of one
    variance each for all variants, the games' g has covariance C. Of the residuals P x, with n degrees of freedom,

        M = x' P x / n,    E[M] = Var(e) + tr(P C) / n

    (Scheffe 1959, The Analysis of Variance, 4.2 and 8.1), so an estimate a' x of a difference has variance

        a' a M + k,    k = a' C a - a' a tr(P C) / n

    where k is known: 0 if all runs' errors are alike. Half of its interval is sqrt(t^2 a' a M + 1.96^2 k), t Student's,
    the squares of the two half-widths added (Zou and Donner 2008, Stat. Med. 27, 1693-1702), and no less than one
    standard error of the games. For a mean P leaves the seeds in, whose b counts too. The degrees of freedom of both
    are Satterthwaite's (1946, Biometrics Bull. 2, 110-114). Without residuals the games alone count.

    Args:
        values: by (variant, seed).
        covariance: C of the games' errors, in the order of the values; a number for all.
    """
    if not values:
        return {}
    x, errors = np.array([*values.values()], dtype=np.float64), np.broadcast_to(covariance, (len(values),) * 2)
    names, seeds = list(dict.fromkeys(v for v, _ in values)), list(dict.fromkeys(seed for _, seed in values))
    by_variant = np.array([[name == v for v in names] for name, _ in values], dtype=np.float64)
    by_seed = np.array([[seed == s for s in seeds] for _, seed in values], dtype=np.float64)
    of_means, of_differences = _scatters(x, errors, by_variant, by_seed)
    mean = dict(zip(names, (by_variant / by_variant.sum(axis=0)).T, strict=True))
    contrasts = {}
    for name in names:
        common = [seed for v, seed in values if v == name != reference and (reference, seed) in values]
        signs = [(v == name) - (v == reference) if seed in common else 0 for v, seed in values]
        if common:
            contrasts[name] = np.array(signs) / len(common)
    found = {name: _estimate(mean[name], x, errors, of_means) for name in names}
    joint = functools.partial(dunnett_quantile, len(contrasts))
    differences = {name: _estimate(a, x, errors, of_differences, joint) for name, a in contrasts.items()}
    return {name: (found[name], differences.get(name)) for name in names}


def main_effects(
    values: Mapping[tuple[str, int], float], covariance: Any, levels: Mapping[str, Sequence[int]]
) -> list[Estimate]:
    """The mean at the high level of each factor less that at the low one, by least squares; none if runs lack for it.

    The model is a mean and the factors' main effects; what is left, interactions too, scatters. Intervals are those of
    `compare_over_seeds`, but that those at once are Sidak's (1967, J. Amer. Statist. Assoc. 62, 626-633).

    Args:
        values: by (variant, seed), each of a run whose seed no other has.
        covariance: as in `compare_over_seeds`.
        levels: of each variant, -1 or 1 for each factor.
    """
    x, errors = np.array([*values.values()], dtype=np.float64), np.broadcast_to(covariance, (len(values),) * 2)
    design = np.array([[1.0, *levels[variant]] for variant, _ in values])
    if not values or np.linalg.matrix_rank(design) < design.shape[1]:
        return []
    inverse = np.linalg.pinv(design)
    scatter = _scatter(x, errors, np.eye(len(x)) - design @ inverse)
    joint = functools.partial(sidak_quantile, len(inverse) - 1)
    return [_estimate(2 * a, x, errors, scatter, joint) for a in inverse[1:]]


def _scatters(
    x: np.ndarray, errors: np.ndarray, by_variant: np.ndarray, by_seed: np.ndarray
) -> tuple[Scatter, Scatter]:
    """Around the means of variants, and around variants and seeds."""
    size, designs = len(x), (by_variant, np.hstack([by_variant, by_seed]))
    makers = [np.eye(size) - design @ np.linalg.pinv(design) for design in designs]
    of_means, of_differences = (_scatter(x, errors, maker) for maker in makers)
    total, own = (max(found.mean_square - found.errors, 0.0) for found in (of_means, of_differences))
    covariance = own * np.eye(size) + max(total - own, 0.0) * by_seed @ by_seed.T + errors
    return _effective(of_means, makers[0] @ covariance), _effective(of_differences, makers[1] @ covariance)


def _effective(found: Scatter, form: np.ndarray) -> Scatter:
    """With Satterthwaite's degrees of freedom, which are 1 or more; `form`: P times the covariance of x."""
    if not found.freedom or (spread := float(np.sum(form * form.T))) <= 0:
        return found
    return found._replace(freedom=max(float(np.trace(form)) ** 2 / spread, 1.0))


def _scatter(x: np.ndarray, errors: np.ndarray, maker: np.ndarray) -> Scatter:
    """Of the residuals that the projection `maker` leaves of x."""
    if not (freedom := round(np.trace(maker))):
        return Scatter(0.0, 0.0, 0)  # what is left of x is rounding
    return Scatter(max(float(x @ maker @ x), 0.0) / freedom, float(np.sum(maker * errors)) / freedom, freedom)


def _estimate(
    a: np.ndarray, x: np.ndarray, errors: np.ndarray, scatter: Scatter, joint: Callable[[float], float] | None = None
) -> Estimate:
    """The estimate a' x; of a difference with the bound, by degrees of freedom, that all of them keep at once."""
    num_seeds, games = int(np.sum(a > 0)), max(float(a @ errors @ a), 0.0)
    own, freedom = float(a @ a) * scatter.mean_square, scatter.freedom or math.inf
    known = games - float(a @ a) * scatter.errors

    def half(quantile: Callable[[float], float]) -> float:
        ours = quantile(freedom) ** 2 * own + quantile(math.inf) ** 2 * known
        return math.sqrt(max(ours, games)) or (0.0 if scatter.freedom else math.nan)

    error = math.sqrt(max(own + known, games)) or (0.0 if scatter.freedom else math.nan)
    spread = math.sqrt(own * num_seeds) if scatter.freedom else math.nan
    student = functools.partial(dunnett_quantile, 1)
    mean = float(num_seeds * a @ x) / num_seeds
    mean = mean if abs(mean) > 1e-12 * float(abs(a) @ abs(x)) else 0.0  # of equal values rounding alone is left
    found = Estimate(mean, error, half(student), math.sqrt(games), spread, num_seeds)
    if joint is None:
        return found
    at_once, bound = half(joint), joint(freedom)
    detectable = at_once * detectable_errors(freedom, bound) / bound if scatter.freedom else math.nan
    return found._replace(at_once=at_once, detectable=detectable)


def detectable_errors(freedom: float, bound: float, power: float = POWER) -> float:
    """The true difference, in standard errors, that exceeds the bound of a t-test with chance `power`."""
    return float(scipy.special.nctdtrinc(freedom, 1 - power, bound))


def sidak_quantile(count: int, freedom: float) -> float:
    """The bound that `count` independent estimates of one estimated variance all keep within, with chance LEVEL."""
    return float(scipy.special.stdtrit(freedom, (1 + LEVEL ** (1 / count)) / 2))


@functools.lru_cache(maxsize=256)
def dunnett_quantile(count: int, freedom: float) -> float:
    """The bound that `count` differences to one reference of equal means all keep within, with chance LEVEL.

    Of |t_i| = |z_i - z_0| / (sqrt(2) s), s^2 one variance of `freedom` degrees (Dunnett 1955, J. Amer. Statist. Assoc.
    50, 1096-1121); Student's t for one. By hand because scipy's is hidden behind a test of raw samples, and its
    multivariate t is random in the third digit.
    """
    if count == 1:
        return float(scipy.special.stdtrit(freedom, (1 + LEVEL) / 2))
    u, weights = np.polynomial.legendre.leggauss(NODES)
    u, weights = (u + 1) / 2, weights / 2
    own = scipy.stats.norm.ppf(u)
    freedom = min(freedom, 1e6)  # of a variance that is known
    scale = np.sqrt(scipy.stats.chi2.ppf(u, freedom) / freedom)

    def missing(bound: float) -> float:
        away = math.sqrt(2) * bound * scale[:, None]
        within = scipy.special.ndtr(own + away) - scipy.special.ndtr(own - away)
        return float(weights @ within**count @ weights) - LEVEL

    root: Any = scipy.optimize.brentq(missing, 1.0, 1e4)
    return float(root)
