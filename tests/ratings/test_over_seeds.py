"""Means and differences over seeds: worked by hand, beside other programs, and how often intervals hold the truth."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api
from statsmodels.stats.power import TTestPower

from alphagateau.ratings.over_seeds import compare_over_seeds, dunnett_quantile, main_effects
from alphagateau.studies.plan import two_level_design

T2 = 4.302653  # Student's t of 2 degrees of freedom, 97.5 %
Z = 1.959964


def table(**variants: list[float]) -> dict[tuple[str, int], float]:
    """Values by variant and seed; None: no such run."""
    return {(v, s): x for v, values in variants.items() for s, x in enumerate(values) if x is not None}


def test_one_variant_by_hand():
    """M = 100; errors of 3 each and 1 in common: E[M] holds 3 of them, a' C a = 2, so 1 of the mean's is known."""
    found, difference = compare_over_seeds(table(a=[10, 20, 30]), np.full((3, 3), 1.0) + 3 * np.eye(3))["a"]
    assert (found.mean, found.num_seeds, difference) == (pytest.approx(20), 3, None)
    assert found.spread == pytest.approx(10)
    assert found.standard_error == pytest.approx(math.sqrt(100 / 3 + 1))
    assert found.measured == pytest.approx(math.sqrt(2))
    assert found.half_width == pytest.approx(math.sqrt(T2**2 * 100 / 3 + Z**2), rel=1e-6)


def test_a_difference_by_hand():
    """50 and 60 apart, their variance 50, each run's error 100: that of the games alone is (100 + 100) / 2."""
    _, found = compare_over_seeds(table(b=[50, 60], a=[100, 120]), 100.0 * np.eye(4), "b")["a"]
    assert found is not None and found.mean == pytest.approx(55)
    assert found.standard_error == found.measured == pytest.approx(10)
    assert found.half_width == pytest.approx(12.706205 * 5, rel=1e-6)


@pytest.mark.parametrize("num_seeds", [2, 3, 4, 6])
def test_values_that_are_alike_differ_by_nothing(num_seeds):
    """Rounding left a variance below 0, or a difference of 1e-17 without an error."""
    rng = np.random.default_rng(num_seeds)
    for errors in (np.zeros(2 * num_seeds), rng.uniform(20, 40, 2 * num_seeds) ** 2):
        for x in (4096.0, *rng.normal(500, 200, 20)):
            equal = compare_over_seeds(table(a=[x] * num_seeds, b=[x] * num_seeds), np.diag(errors), "a")
            assert equal["a"][0].mean == pytest.approx(x) and equal["b"][1].mean == 0
            y = rng.normal(x, 50, num_seeds).tolist()
            assert compare_over_seeds(table(a=y, b=y), np.diag(errors), "a")["b"][1].mean == 0
            apart = compare_over_seeds(table(a=[x] * num_seeds, b=[x + 10] * num_seeds), np.diag(errors), "a")
            assert apart["b"][1].mean == pytest.approx(10) and math.isfinite(apart["b"][1].spread)


def test_two_variants_are_the_paired_t_test():
    ours, theirs = [13.0, 17.5, 12.0, 20.0], [11.0, 18.0, 9.5, 14.0]
    _, found = compare_over_seeds(table(a=theirs, b=ours), 0.0, "a")["b"]
    low, high = scipy.stats.ttest_rel(ours, theirs).confidence_interval()
    assert found is not None
    assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high))
    assert found.at_once == pytest.approx(found.half_width)
    effect = TTestPower().solve_power(nobs=4, alpha=0.05, power=0.8)
    assert found.detectable == pytest.approx(effect * np.std(np.subtract(ours, theirs), ddof=1), rel=1e-3)


def test_variants_and_seeds_are_the_two_way_analysis_of_variance():
    """Beside statsmodels, every run there; and with one missing, the variance alone."""
    values = table(a=[3.0, 8.0, 1.0], b=[7.0, 9.5, 6.0], c=[2.0, 12.0, 4.0], d=[1.0, 7.0, 2.5])
    for missing in (None, ("d", 1)):
        kept = {place: x for place, x in values.items() if place != missing}
        design = [[1.0, *(v == name for name in "bcd"), s == 1, s == 2] for v, s in kept]
        fit = statsmodels.api.OLS([*kept.values()], design).fit()
        _, found = compare_over_seeds(kept, 0.0, "a")["c"]
        assert found is not None and found.spread == pytest.approx(math.sqrt(2 * fit.scale))
        low, high = fit.conf_int()[2]
        if not missing:
            assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high))


def test_a_difference_is_of_the_seeds_that_both_have():
    found = compare_over_seeds(table(a=[1, 2, None], b=[5, 9, 70], c=[None, None, 3]), 0.0, "a")
    assert found["b"][0].mean == pytest.approx(28) and found["b"][0].num_seeds == 3
    assert found["b"][1] is not None and found["b"][1].mean == pytest.approx(5.5) and found["b"][1].num_seeds == 2
    assert found["c"][1] is None and found["a"][1] is None


def test_one_seed_has_the_error_of_its_games_alone():
    mean, difference = compare_over_seeds(table(a=[7], b=[9]), 9 * np.eye(2), "a")["b"]
    assert mean.half_width == pytest.approx(Z * 3) and math.isnan(mean.spread)
    assert difference is not None and difference.half_width == pytest.approx(Z * math.sqrt(18))
    assert math.isnan(difference.detectable)
    assert math.isnan(compare_over_seeds(table(a=[7]))["a"][0].half_width)


def test_one_seed_without_errors_of_games_has_no_interval():
    """Rounding made one of 5e-8 of it, by which two losses differed."""
    _, difference = compare_over_seeds(table(a=[2.2732], b=[2.27656]), 0.0, "a")["b"]
    assert difference is not None and math.isnan(difference.half_width) and math.isnan(difference.spread)


def test_errors_that_all_runs_share_cancel_in_differences():
    """Such as the anchor's."""
    values = table(a=[50, 60], b=[100, 120], c=[90, 115])
    apart, together = (compare_over_seeds(values, 100 * np.eye(6) + shared, "a")["c"][1] for shared in (0, 1e6))
    assert together == pytest.approx(apart, abs=1e-4)


def test_an_error_that_all_seeds_share_is_known_as_well_as_its_games():
    """Two seeds that scatter by 1 with an error of 100 in common: 1.96 standard errors, not 12.7."""
    found, _ = compare_over_seeds(table(a=[0, math.sqrt(2)]), np.full((2, 2), 1e4))["a"]
    assert found.half_width == pytest.approx(1.96 * found.standard_error, rel=0.01)


@pytest.mark.parametrize(
    ("count", "freedom", "bound"),
    [(2, 5, 3.03), (3, 10, 2.76), (4, 10, 2.89), (2, 20, 2.38), (9, math.inf, 2.69), (1, 2, 4.30), (4, math.inf, 2.44)],
)
def test_dunnetts_bound_is_that_of_his_table(count, freedom, bound):
    """C. W. Dunnett (1964), New tables for multiple comparisons with a control, Biometrics 20, table II, 5 %."""
    assert dunnett_quantile(count, freedom) == pytest.approx(bound, abs=0.006)


@pytest.mark.parametrize(("num_variants", "num_seeds"), [(4, 2), (4, 3), (2, 5)])
@pytest.mark.parametrize(("own", "block"), [(0.0, 0.0), (15.0, 0.0), (60.0, 40.0)])
def test_intervals_hold_the_truth_as_often_as_they_say(num_variants, num_seeds, own, block):
    """1000 studies whose runs scatter by `own`, seeds by `block`, and games by 15 to 17, of which 10 in common.

    What games have in common makes the means of two seeds hold a little more often.
    """
    rng = np.random.default_rng(0)
    places = list(itertools.product(map(str, range(num_variants)), range(num_seeds)))
    same_seed = np.equal.outer(*[[s for _, s in places]] * 2)
    games = 100.0 + np.diag([125.0 + 60.0 * (s == 0) for _, s in places])
    covariance = games + own**2 * np.eye(len(places)) + block**2 * same_seed
    held, together = [], []
    for x in rng.multivariate_normal(np.zeros(len(places)), covariance, size=1000, method="cholesky"):
        found = compare_over_seeds(dict(zip(places, x, strict=True)), games, "0").values()
        differences = [d for _, d in found if d is not None]
        held.append([abs(e.mean) <= e.half_width for e in [mean for mean, _ in found] + differences])
        together.append(all(abs(d.mean) <= d.at_once for d in differences))
    means, gaps = np.split(np.mean(held, axis=0), [num_variants])
    assert 0.93 <= means.mean() <= (0.98 if num_seeds == 2 else 0.97)
    assert 0.93 <= gaps.mean() <= 0.97
    assert 0.93 <= np.mean(together) <= 0.97


def test_intervals_hold_where_one_variant_is_far_less_sure():
    """As of one that wins nearly all its games; with the residuals' own degrees of freedom 0.89 for the others."""
    places = list(itertools.product("abcd", range(3)))
    games, rng = np.diag([60.0**2 if name == "b" else 20.0**2 for name, _ in places]), np.random.default_rng(0)
    held = []
    for x in rng.multivariate_normal(np.zeros(12), games + 15.0**2 * np.eye(12), size=1000, method="cholesky"):
        found = compare_over_seeds(dict(zip(places, x, strict=True)), games, "a").values()
        held.append([abs(d.mean) <= d.half_width for _, d in found if d is not None])
    assert (np.mean(held, axis=0) >= 0.93).all() and np.mean(held) <= 0.97


FOUR = {"a": (-1, -1), "b": (1, -1), "c": (-1, 1), "d": (1, 1)}  # a design of two factors


def test_main_effects_by_hand():
    """Effects 20 and 6; an interaction of 2 is left: each residual 1, M = 4, so Var = 4 / 4 M, t of one degree."""
    first, second = main_effects(table(a=[0], b=[18], c=[4], d=[26]), 0.0, FOUR)
    assert (first.mean, second.mean, first.num_seeds) == (pytest.approx(20), pytest.approx(6), 2)
    assert first.standard_error == pytest.approx(2) and first.half_width == pytest.approx(12.706205 * 2, rel=1e-6)
    assert first.at_once == pytest.approx(2 * scipy.stats.t.ppf((1 + math.sqrt(0.95)) / 2, 1))
    assert main_effects(table(a=[0], b=[18]), 0.0, FOUR) == []


def test_main_effects_are_those_of_least_squares():
    """Beside statsmodels, one run missing, so that factors are no longer orthogonal."""
    rng = np.random.default_rng(0)
    levels = {str(k): tuple(row) for k, row in enumerate(two_level_design(3))}
    values = {(name, 0): float(x) for name, x in zip(levels, rng.normal(size=8), strict=True) if name != "5"}
    fit = statsmodels.api.OLS([*values.values()], [[1, *levels[name]] for name, _ in values]).fit()
    for effect, slope, (low, high) in zip(
        main_effects(values, 0.0, levels), fit.params[1:], fit.conf_int()[1:], strict=True
    ):
        assert effect.mean == pytest.approx(2 * slope)
        assert (effect.mean - effect.half_width, effect.mean + effect.half_width) == pytest.approx((2 * low, 2 * high))


@pytest.mark.parametrize("own", [0.0, 40.0])
def test_intervals_of_effects_hold_the_truth_as_often_as_they_say(own):
    """1000 designs of four factors in 8 runs, which scatter by `own`, their games by 15 or 25 and 10 in common."""
    rng, levels = np.random.default_rng(1), {str(k): tuple(row) for k, row in enumerate(two_level_design(4))}
    games = 100.0 + np.diag([225.0, 625.0] * 4)
    held, together = [], []
    for x in rng.multivariate_normal(np.zeros(8), games + own**2 * np.eye(8), size=1000, method="cholesky"):
        found = main_effects({(name, 0): float(y) for name, y in zip(levels, x, strict=True)}, games, levels)
        held.append([abs(e.mean) <= e.half_width for e in found])
        together.append(all(abs(e.mean) <= e.at_once for e in found))
    assert 0.93 <= np.mean(held) <= 0.97 and 0.93 <= np.mean(together) <= 0.97
