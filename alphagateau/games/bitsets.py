"""Bitsets: sets of small numbers as 32-bit words.

Bit b of word w stands for the number 32 w + b. A set is uint32 [W], K sets are [W, K]. No sum here has more than 32
terms: on a CPU, XLA splits a longer one, and writes all of its terms to memory first.
"""

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.state import Array

WORD = 32
Words = Array | np.ndarray  # uint32 [W] or [W, K]


def pack(mask: Array | np.ndarray) -> Array:
    """uint32 [..., ceil(K / 32)] of bool [..., K]."""
    *shape, size = mask.shape
    padded = jnp.pad(mask, [(0, 0)] * len(shape) + [(0, -size % WORD)])
    bits = jnp.asarray(np.uint32(1) << np.arange(WORD, dtype=np.uint32))
    return jnp.where(padded.reshape(*shape, -1, WORD), bits, jnp.uint32(0)).sum(axis=-1, dtype=jnp.uint32)


def is_empty(words: Words) -> Array:
    """Bool of a set [W]; of sets [W, K], bool [K]."""
    return (jnp.asarray(words) == 0).all(axis=0)


def count(words: Words) -> Array:
    """int32, how many a set [W] holds; of sets [W, K], int32 [K]."""
    return jax.lax.population_count(words).astype(jnp.int32).sum(axis=0)


def weighted_members(sets: Words, heavy: Words, weight: int, size: int) -> tuple[Array, Array, Array]:
    """The members of K sets [W, K], set after set and each in rising order; those also in `heavy` come `weight` times.

    Returns int32 [size] each: the set, K after the last member; the member; how often it came before. There must not
    be more than `size`.
    """
    sets, heavy = jnp.asarray(sets), jnp.asarray(heavy)
    ends = jnp.cumsum(count(sets) + (weight - 1) * count(heavy))
    rank = jnp.arange(size, dtype=jnp.int32)
    is_before = ends <= rank[:, None]  # [size, K]
    runs = (is_before[:, i : i + WORD].sum(axis=1, dtype=jnp.int32) for i in range(0, len(ends), WORD))
    found = sum(runs, jnp.zeros_like(rank))
    at = jnp.minimum(found, len(ends) - 1)
    n = rank - jnp.where(at > 0, ends[at - 1], 0)
    member, n = _find(sets[:, at], heavy[:, at], weight, n)
    return found, member, n


def _find(words: Array, heavy: Array, weight: int, n: Array) -> tuple[Array, Array]:
    """The member at place `n` [K] of each set [W, K], and how often it came before, by halving."""
    word, extra, member = words[0], heavy[0], jnp.zeros_like(n)
    for i in range(1, len(words)):
        below = _weigh(words[i - 1], heavy[i - 1], weight)
        is_above = (n >= below) & (member == WORD * (i - 1))
        n = jnp.where(is_above, n - below, n)
        word, extra = jnp.where(is_above, words[i], word), jnp.where(is_above, heavy[i], extra)
        member = jnp.where(is_above, WORD * i, member)
    for width in (16, 8, 4, 2, 1):
        low = jnp.uint32((1 << width) - 1)
        below = _weigh(word & low, extra & low, weight)
        is_above = n >= below
        n = jnp.where(is_above, n - below, n)
        word, extra = jnp.where(is_above, word >> width, word), jnp.where(is_above, extra >> width, extra)
        member += jnp.where(is_above, width, 0)
    return member, n


def _weigh(word: Array, heavy: Array, weight: int) -> Array:
    """int32, the members of a word, those also in `heavy` counted `weight` times; any shape."""
    counts = jax.lax.population_count(word) + (weight - 1) * jax.lax.population_count(heavy)
    return counts.astype(jnp.int32)


def lowest(words: Array) -> Array:
    """int32 [...], the lowest number in each set [..., W] (words last); -1 of an empty one."""
    bit = jax.lax.population_count((words & -words) - 1).astype(jnp.int32)  # of an empty word 32
    found = jnp.full(words.shape[:-1], -1, jnp.int32)
    for i in reversed(range(words.shape[-1])):
        found = jnp.where(words[..., i] == 0, found, WORD * i + bit[..., i])
    return found


def drop_lowest(words: Array) -> Array:
    """The sets [..., W] (words last) without their lowest numbers."""
    is_first = jnp.cumsum(words != 0, axis=-1) == 1
    return jnp.where(is_first, words & (words - 1), words)
