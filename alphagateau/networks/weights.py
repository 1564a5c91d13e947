"""Initial weights of a network: trees of shapes and initializers, each sampled by a key of its name."""

import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array

Initializer = Callable[..., Array]  # (key, shape) -> values
ZEROS, ONES = jax.nn.initializers.zeros, jax.nn.initializers.ones


@lru_cache
def glorot(gain: float = 1.0) -> Initializer:
    """Glorot's normal distribution, truncated, `gain` times the variance; equal gains are one function."""
    return jax.nn.initializers.variance_scaling(gain, "fan_avg", "truncated_normal")


GLOROT = glorot()


class Weight(NamedTuple):
    """An array that is learnt."""

    shape: tuple[int, ...]
    initializer: Initializer


def dense(inputs: int, outputs: int) -> dict[str, Weight]:
    """The weights of a layer x @ kernel + bias."""
    return {"kernel": Weight((inputs, outputs), GLOROT), "bias": Weight((outputs,), ZEROS)}


def draw(key: jax.Array, tree: Any) -> Any:
    """Float32 arrays for a tree of Weights. Each draws from a key of its name, so that heads may come and go."""

    def one(path, weight: Weight) -> Array:
        return _draw(weight, jax.random.fold_in(key, zlib.crc32(jax.tree_util.keystr(path).encode())))

    return jax.tree_util.tree_map_with_path(one, tree, is_leaf=lambda x: isinstance(x, Weight))


@partial(jax.jit, static_argnums=0)  # of equal shapes compiled once, where a program of all would take long
def _draw(weight: Weight, key: jax.Array) -> Array:
    return weight.initializer(key, weight.shape, jnp.float32)
