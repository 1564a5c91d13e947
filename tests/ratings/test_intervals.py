"""Shares and means with their intervals: by hand, and Wilson's against a solution of his equation."""

import math

import pytest

from alphagateau.ratings.intervals import NOTHING, mean, share


@pytest.mark.parametrize(("successes", "count"), [(0, 10), (3, 10), (10, 10), (612, 1000)])
def test_the_ends_of_a_share_are_two_standard_errors_away_from_it(successes, count):
    """Wilson: |p - end| = 2 sqrt(end (1 - end) / n), with the error of the end and not of the share."""
    found = share(successes, count)
    assert found.value == successes / count and found.lower <= found.value <= found.upper
    for end in (found.lower, found.upper):
        if 0 < end < 1:
            assert abs(found.value - end) == pytest.approx(2 * math.sqrt(end * (1 - end) / count))


def test_a_mean_leaves_out_what_was_not_measured():
    found = mean([1.0, 2.0, 3.0, float("nan")])
    assert found.value == 2 and found.count == 3 and found.upper - 2 == pytest.approx(2 * 1 / math.sqrt(3))
    assert math.isnan(mean([4.0]).lower) and mean([4.0]).value == 4


def test_of_nothing_nothing_is_known():
    assert share(0, 0) == mean([]) == mean([float("nan")]) == NOTHING and NOTHING.count == 0
