"""Factorial designs: the levels of factors in each run."""

import numpy as np


def two_level_design(num_factors: int) -> list[list[int]]:
    """A design [rows, factors] of resolution IV: no interaction of two factors biases a main effect.

    A Hadamard matrix and its mirror image (Box and Wilson 1951, J. R. Stat. Soc. B 13, 1-45); each level is in half of
    the rows. With m the power of 2 that is at least the number of factors there are 2 m rows, four at least.

    Returns:
        -1 and 1, for the low and the high level.
    """
    import scipy.linalg  # commands that plan no study do without

    half = scipy.linalg.hadamard(max(2, 1 << (num_factors - 1).bit_length()))[:, :num_factors]
    return np.vstack([half, -half]).tolist()
