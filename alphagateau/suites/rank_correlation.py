"""Kendall's tau-b between true and predicted values of a position's moves, and the published variant.

The published "Kendall's tau" is no rank correlation: the code of Ruoss et al. (2024) hands the two orders (argsort) to
it in the place of the two sequences of ranks, so a good ranking scores 0.3. It depends on how moves are numbered.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats


def tau_b(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Kendall's tau-b of two [n]; 1 of a single move, 0 of a prediction that is all ties, NaN of such a truth."""
    if len(truth) == 1:
        return 1.0
    if (truth == truth[0]).all():
        return float("nan")
    if (prediction == prediction[0]).all():
        return 0.0
    return _tau(truth, prediction)


def tau_published(truth: np.ndarray, prediction: np.ndarray, numbers: Sequence[int]) -> float:
    """What the published code calls Kendall's tau, of moves by their `action_names` number, which orders ties."""
    if len(truth) == 1:
        return 1.0
    order = np.argsort(numbers)
    orders = (np.argsort(np.asarray(x)[order], kind="stable") for x in (truth, prediction))
    return _tau(*orders)


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    found: Any = scipy.stats.kendalltau(x, y, variant="b")
    return float(found.statistic)
