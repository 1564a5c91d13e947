"""Random keys of a run, from its seed and the purpose and place of each."""

import functools

import jax

from alphagateau.games.state import Array

PLAY, WINDOW, TRAIN, PROBE = range(4)  # what an iteration's keys are for
# In the place of a ply, below PLAY: which are searched in full, how games begin, openings, who may not resign, starts.
FULL, BEGIN, OPENING, RESIGN, START = (2**31 - n for n in range(1, 6))
BOARD = 2**30  # in the place of a share, below an epoch's key: each board's own, then their order; from here on
MIRROR = 2**31 - 1  # in the place of a share, below an epoch's key: which frames are mirrored
WEIGHTS, MATERIAL = 2**31 - 1, 2**31 - 2  # in the place of an iteration: the first weights, their first lesson


def key_of(seed: int, *path: int | Array) -> Array:
    """The key of a purpose: an iteration, what for, and so on; a function of the seed and these alone."""
    return functools.reduce(jax.random.fold_in, path, jax.random.key(seed))
