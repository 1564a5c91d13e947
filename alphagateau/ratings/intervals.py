"""Shares and means over positions, with intervals of 2 standard errors.

Positions count as independent of one another; boards of one game are not quite, and make the interval a little narrow.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SIGMAS = 2.0


class Estimate(NamedTuple):
    """A measure and where it may lie; NaN where nothing was measured."""

    value: float
    lower: float
    upper: float
    count: int  # of positions  # pyright: ignore[reportIncompatibleMethodOverride]

    @property
    def successes(self) -> int:
        """Of a share."""
        return round(self.value * self.count) if self.count else 0


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def share(successes: float, count: int) -> Estimate:
    """A share by Wilson's interval (1927), which stays within [0, 1] and is no point at its ends."""
    if not count:
        return NOTHING
    p, z2 = successes / count, SIGMAS**2
    middle = (p + z2 / (2 * count)) / (1 + z2 / count)
    half = SIGMAS / (1 + z2 / count) * math.sqrt(p * (1 - p) / count + z2 / (4 * count**2))
    return Estimate(p, max(middle - half, 0.0), min(middle + half, 1.0), count)


def mean(values: Sequence[float] | np.ndarray) -> Estimate:
    """The mean of those that are finite; of a single one the interval is not known."""
    found = np.asarray(values, np.float64)
    found = found[np.isfinite(found)]
    if not len(found):
        return NOTHING
    average = float(found.mean())
    half = SIGMAS * float(found.std(ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return Estimate(average, average - half, average + half, len(found))
