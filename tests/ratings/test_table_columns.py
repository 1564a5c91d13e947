"""Columns of a table of ratings: draws, colors, and the difference to the next player."""

import math
from statistics import NormalDist

import pytest

from alphagateau.ratings.pairs import difference, table_columns
from alphagateau.ratings.rate import METHODS, rate
from alphagateau.ratings.results import Row, make_results


def test_draws_and_scores_by_color_by_hand():
    """Of 6 games of a one was drawn; of its 4 with white it has 3 1/2 points, of its 2 with black one."""
    results = make_results([Row("a", "b", 3, 1, 0, 1), Row("a", "b", 1, 0, 1, -1), Row("b", "c", 2, 2, 0)])
    found = table_columns(results, rate(results))
    assert found["draws"] == pytest.approx({"a": 1 / 6, "b": 3 / 10, "c": 2 / 4})
    assert found["white_score"] == pytest.approx({"a": 3.5 / 4, "b": 1 / 2})
    assert found["black_score"] == pytest.approx({"a": 1 / 2, "b": 0.5 / 4})


@pytest.mark.parametrize("method", METHODS)
def test_the_difference_to_the_next_player_has_an_error_of_its_own(method):
    """Two players far above an anchor, who met often: it is that of a pool in which the next one is the anchor."""
    rows = [Row("a", "b", 35, 10, 15), Row("a", "far", 39, 0, 1), Row("b", "far", 38, 1, 1)]
    results = make_results(rows)
    ratings = rate(results, method, "far")
    found, tied = table_columns(results, ratings), rate(results, method, "b")
    gap, error = found["to_next"]["a"], found["to_next_error"]["a"]
    assert (gap, error) == pytest.approx((tied.rating[0], tied.standard_error[0]))
    assert error < math.hypot(*ratings.standard_error[:2]) / 2  # what two errors above the anchor suggest
    assert found["superiority"]["a"] == pytest.approx(NormalDist().cdf(gap / error))
    assert found["to_next"]["b"] == pytest.approx(difference(ratings, "b", "far")[0])
    assert "far" not in found["to_next"]


def test_the_next_player_is_of_the_same_scale():
    results = make_results([Row("a", "b", 9, 0, 1), Row("b", "c", 5, 1, 4), Row("x", "y", 2, 0, 1)], ["idle"])
    found = table_columns(results, rate(results))
    assert found["to_next"].keys() == {"a", "b", "x"} and found["draws"].keys() == {*"abcxy"}
    assert all(math.isfinite(value) for column in found.values() for value in column.values())
