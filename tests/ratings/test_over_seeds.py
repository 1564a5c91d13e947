"""Means and paired differences over seeds: worked by hand, and how often their intervals hold the truth."""

import dataclasses
import math

import numpy as np
import pytest

from alphagateau.ratings.over_seeds import mean_over_seeds, mean_rating, paired_difference
from alphagateau.ratings.pairs import difference
from alphagateau.ratings.rate import Ratings, rate
from alphagateau.ratings.results import Row, make_results

T2 = 4.302653  # Student's t of 2 degrees of freedom, 97.5 %
T1 = 12.706205


def test_mean_of_three_seeds_by_hand():
    """s^2 = 100, v = 4, c = 1: Var = 100 / 3 + 1; of the games alone (3 * 4 + 6 * 1) / 9."""
    found = mean_over_seeds([10, 20, 30], np.full((3, 3), 1.0) + 3 * np.eye(3))
    assert (found.mean, found.num_seeds) == (20, 3)
    assert found.spread == pytest.approx(10)
    assert found.standard_error == pytest.approx(math.sqrt(100 / 3 + 1))
    assert found.measured == pytest.approx(math.sqrt(2))
    assert found.half_width == pytest.approx(math.sqrt(T2**2 * 100 / 3 + 1.959964**2 * 1), rel=1e-6)
    assert mean_over_seeds([10, 20, 30]).half_width == pytest.approx(T2 * math.sqrt(100 / 3), rel=1e-6)


def test_seeds_that_agree_by_chance_are_as_uncertain_as_their_games():
    found = mean_over_seeds([5, 5, 5], np.full((3, 3), 1.0) + 3 * np.eye(3))
    assert found.standard_error == pytest.approx(math.sqrt(2)) and found.spread == 0


def test_one_seed_has_the_error_of_its_games_alone():
    found = mean_over_seeds([7], [[9]])
    assert found.half_width == pytest.approx(1.959964 * 3) and math.isnan(found.spread)
    assert math.isnan(mean_over_seeds([7]).half_width)


def test_values_without_error_have_students_interval():
    """1, 3: mean 2, s = sqrt 2, standard error 1."""
    assert mean_over_seeds([1, 3]).half_width == pytest.approx(T1, rel=1e-6)


def four_players(rating: list[float], covariance: np.ndarray, component: tuple[int, ...] = (0, 0, 0, 0)) -> Ratings:
    """a0, b0, a1, b1."""
    table = [Row("a0", "b0", 1, 0, 1), Row("a1", "b1", 1, 0, 1), Row("a0", "a1", 1, 0, 1)]
    made = rate(make_results(table, ["a0", "b0", "a1", "b1"]))
    parts = {"rating": np.array(rating), "covariance": covariance, "component": np.array(component)}
    return dataclasses.replace(made, **parts)


def test_paired_difference_by_hand():
    """Differences 50 and 60, s^2 = 50; errors of 100 each player: v = 200, c = 0, so Var = 200 / 2."""
    ratings = four_players([100, 50, 120, 60], 100 * np.eye(4))
    found = paired_difference(ratings, ["a0", "a1"], ["b0", "b1"])
    assert found.mean == 55 and found.standard_error == pytest.approx(10)
    assert found.spread == pytest.approx(math.sqrt(50))
    assert mean_rating(ratings, ["a0", "a1"]).mean == 110


def test_errors_that_two_seeds_share_are_not_averaged_away():
    """One opponent for both: errors of the differences covary by its 100, so Var >= (100 + 100) / 2 - ... + 100."""
    found = paired_difference(four_players([100, 50, 120, 60], 100 * np.eye(4)), ["a0", "a1"], ["b0", "b0"])
    assert found.measured == pytest.approx(math.sqrt((200 + 200 + 2 * 100) / 4))
    assert found.standard_error == pytest.approx(math.sqrt(200 / 2 + 100))  # s^2 = 200 of 50 and 70


def test_players_who_moved_together_differ_by_less():
    """Errors common to a pair, such as those of the anchor, cancel."""
    together = 100 * np.eye(4) + 1e6
    apart = paired_difference(four_players([100, 50, 120, 60], 100 * np.eye(4)), ["a0", "a1"], ["b0", "b1"])
    assert paired_difference(four_players([100, 50, 120, 60], together), ["a0", "a1"], ["b0", "b1"]) == pytest.approx(
        apart, abs=1e-4
    )


def test_one_pair_is_the_difference_of_the_ratings():
    ratings = rate(make_results([Row("a", "b", 14, 2, 4), Row("b", "c", 9, 3, 8), Row("a", "c", 12, 1, 7)]))
    found = paired_difference(ratings, ["a"], ["c"])
    assert (found.mean, found.standard_error) == pytest.approx(difference(ratings, "a", "c"))


def test_pairs_of_pools_that_never_met_have_no_difference():
    ratings = four_players([1, 2, 3, 4], np.eye(4), (0, 0, 0, 1))
    assert math.isnan(paired_difference(ratings, ["a0", "a1"], ["b0", "b1"]).mean)


def test_an_error_that_all_seeds_share_is_known_as_well_as_its_games():
    """Two seeds that scatter by 1 with an error of 100 in common: 1.96 standard errors, not 12.7."""
    found = mean_over_seeds([0, math.sqrt(2)], np.full((2, 2), 1e4))
    assert found.half_width == pytest.approx(1.96 * found.standard_error, rel=0.01)


@pytest.mark.parametrize(("num_seeds", "spread"), [(2, 0.0), (3, 0.0), (3, 30.0), (5, 10.0), (2, 10.0)])
def test_intervals_hold_the_truth_at_least_as_often_as_they_say(num_seeds, spread):
    """2 000 studies whose seeds scatter by `spread` and whose games by 15, of which 10 in common."""
    rng = np.random.default_rng(0)
    covariance = 100.0 + 125.0 * np.eye(num_seeds)
    errors = rng.multivariate_normal(np.zeros(num_seeds), covariance + spread**2 * np.eye(num_seeds), size=2000)
    found = [mean_over_seeds(40 + row, covariance) for row in errors]
    assert np.mean([abs(f.mean - 40) <= f.half_width for f in found]) >= 0.945
