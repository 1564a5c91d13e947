"""True and predicted worths of a position's moves in, how alike they rank them out: tau-b, and what was published.

The published "Kendall's tau" is no rank correlation: the code of Ruoss et al. (2024) hands the two orders (argsort) to
it in the place of the two sequences of ranks, so a good ranking scores 0.3. It depends on how moves are numbered.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats

PROMOTIONS = "qrbn"


def tau_b(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Kendall's tau-b of two [n]; 1 of a single move, 0 of a prediction that is all ties, NaN of such a truth."""
    if len(truth) == 1:
        return 1.0
    if (truth == truth[0]).all():
        return float("nan")
    if (prediction == prediction[0]).all():
        return 0.0
    return _tau(truth, prediction)


def tau_published(truth: np.ndarray, prediction: np.ndarray, moves: Sequence[str]) -> float:
    """What the published code calls Kendall's tau, of moves in UCI; ties are ordered as the moves are."""
    if len(truth) == 1:
        return 1.0
    order = sorted(range(len(moves)), key=lambda i: _number(moves[i]))
    orders = (np.argsort(np.asarray(x)[order], kind="stable") for x in (truth, prediction))
    return _tau(*orders)


def _tau(x: np.ndarray, y: np.ndarray) -> float:
    found: Any = scipy.stats.kendalltau(x, y, variant="b")
    return float(found.statistic)


def _number(uci: str) -> tuple[int, ...]:
    """What sorts UCI moves as the published code numbers them.

    From a1, b1 to the last square; a square's queen moves, then its knight's, by the square that they reach; then
    promotions, black's first, by file: straight, to the left, to the right, each q r b n.
    """
    start, end = ((int(square[1]), ord(square[0])) for square in (uci[:2], uci[2:4]))
    if len(uci) == 5:
        straight_first = (0, -1, 1).index(end[1] - start[1])
        return 1, int(end[0] > start[0]), start[1], straight_first, PROMOTIONS.index(uci[4])
    steps = sorted((abs(end[0] - start[0]), abs(end[1] - start[1])))
    return 0, *start, int(steps == [1, 2]), *end
