"""Derives a run's random keys from its seed, and from the purpose and place of each."""

import functools

import jax

from alphagateau.games.state import Array

PLAY, WINDOW, TRAIN, PROBE = range(4)  # the purposes of an iteration's keys
# In the place of a ply, below PLAY: full searches, how games begin, openings, who may not resign, starts.
FULL, BEGIN, OPENING, RESIGN, START = (2**31 - n for n in range(1, 6))
BOARD = 2**30  # in the place of a share, below an epoch's key, from here on: each board's, then their order
MIRROR = 2**31 - 1  # in the place of a share, below an epoch's key: which frames are mirrored
WEIGHTS, MATERIAL = 2**31 - 1, 2**31 - 2  # in the place of an iteration: the first weights, material lessons


def key_of(seed: int | Array, *path: int | Array) -> Array:
    """The key of a path such as (iteration, purpose, epoch). Programs take the seed, so that seeds share them."""
    return functools.reduce(jax.random.fold_in, path, jax.random.key(seed))


def fold_in_rows(key: Array, rows: Array) -> Array:
    """A key for each of the rows [B]."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, rows)
