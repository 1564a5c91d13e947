"""Kendall's tau-b and the published number that is none: worked examples."""

import math

import numpy as np
import pytest

from alphagateau.suites.labelled_moves import tau_b, tau_published

TRUTH, PREDICTION = np.array([0.2, 0.4, 0.1, 0.3, 0.5]), np.array([0.1, 0.4, 0.2, 0.3, 0.5])
NUMBERS = [0, 1, 2, 3, 4]


def test_one_exchanged_pair_of_ten_is_a_tau_of_eight_tenths_and_published_as_four():
    assert tau_b(TRUTH, PREDICTION) == pytest.approx(0.8)
    assert tau_published(TRUTH, PREDICTION, NUMBERS) == pytest.approx(0.4)
    assert tau_published(TRUTH[::-1], PREDICTION[::-1], NUMBERS[::-1]) == pytest.approx(0.4)


def test_ties():
    """Of three pairs one agrees, and each side ties one other: 1 / sqrt(2 * 2)."""
    assert tau_b(np.array([1, 1, 2]), np.array([1, 2, 2])) == pytest.approx(0.5)
    assert math.isnan(tau_b(np.ones(3), np.arange(3))) and tau_b(np.arange(3), np.ones(3)) == 0
    assert tau_published(np.ones(3), np.ones(3), NUMBERS[:3]) == pytest.approx(1)


def test_of_a_single_move_the_order_is_right():
    assert tau_b(np.ones(1), np.ones(1)) == tau_published(np.ones(1), np.ones(1), [7]) == 1
