"""What layers of networks share: initial weights, matrix products of rounded operands, normalization of rows.

Normalizations are each followed by ReLU, and equal to flax's modules. Ghost normalization is batch normalization by the
statistics of one chunk on one device, which the learner makes of a small fixed size (Hoffer et al. 2017).
"""

import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.distributed.mesh import mean_over
from alphagateau.games.state import Array
from alphagateau.networks.network import Variables

Initializer = Callable[..., Array]  # (key, shape) -> values
ZEROS, ONES = jax.nn.initializers.zeros, jax.nn.initializers.ones
ROW_NORMS = ("layer", "rms")  # of each row by itself, with no statistics
EPSILON = {"batch": 1e-5, "ghost": 1e-5, "layer": 1e-6, "rms": 1e-6}  # flax's defaults

Norm = Callable[..., tuple[Callable[[Array], Array], Variables]]


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


def dot(dtype: str, x: Array, w: Array, out: Any = None) -> Array:
    """The product x @ w of operands rounded to `dtype`; the result has dtype `out`, or that of the sum."""
    return jnp.dot(x.astype(dtype), w.astype(dtype), preferred_element_type=out or summed_in(dtype))


def summed_in(dtype: Any) -> Any:
    """The dtype of sums of values of `dtype`: float32, or itself where it is wider."""
    return jnp.promote_types(dtype, jnp.float32)


def einsum(subscripts: str, x: Array, y: Array, dtype: str) -> Array:
    """The einsum of float32 arrays rounded to `dtype`, summed in float32.

    CPUs, also one beside a GPU, lack some such products of bfloat16, so there operands are rounded and stay float32.
    """

    def rounded(x: Array, y: Array) -> Array:
        return jnp.einsum(subscripts, *(jax.lax.reduce_precision(a, exponent_bits=8, mantissa_bits=7) for a in (x, y)))

    def native(x: Array, y: Array) -> Array:
        return jnp.einsum(subscripts, x.astype(dtype), y.astype(dtype), preferred_element_type=jnp.float32)

    if dtype != "bfloat16":
        return native(x, y)
    if jax.default_backend() == "cpu":
        return rounded(x, y)
    return jax.lax.platform_dependent(x, y, cpu=rounded, default=native)


def linear(params: Any, x: Array) -> Array:
    """A dense layer of rows x [..., K]: x @ kernel + bias."""
    return x @ params["kernel"] + params["bias"]


def make_norm(kind: str, momentum: float, train: bool, axis_name: str | None) -> Norm:
    """Makes norm(variables, name, x [C, rows, K], moments=None) -> (function of rows, statistics by name).

    The function is flax's module `name` of this kind, then ReLU. With `train`, batch statistics are those of x on all
    devices along `axis_name` (ghost: on this one), or `moments` (mean, mean of squares) if given; the statistics
    returned are the running ones, updated. Layer and RMS normalization have none.
    """
    moments_axis = None if kind == "ghost" else axis_name

    def batch_norm(variables: Variables, name: str, x: Array, moments: tuple[Array, Array] | None = None):
        params, running = variables["params"][name], variables["batch_stats"][name]
        mean, var = running["mean"], running["var"]
        if train:
            mean, square = moments or moments_over(x, moments_axis)
            var = jnp.maximum(square - jnp.square(mean), 0.0)
            new = {"mean": mean, "var": var}
            new = mean_over(new, axis_name) if kind == "ghost" else new
            running = {k: momentum * running[k] + (1 - momentum) * v for k, v in new.items()}
        scale, shift = fold_statistics(kind, params, mean, var)
        return lambda x: jax.nn.relu(x.astype(summed_in(x.dtype)) * scale + shift), {name: running}

    def row_norm(variables: Variables, name: str, x: Array, moments: tuple[Array, Array] | None = None):
        del x, moments
        normalize = partial(normalize_rows, kind, variables["params"][name])
        return lambda x: normalize(x.astype(summed_in(x.dtype))), {}

    return row_norm if kind in ROW_NORMS else batch_norm


def fold_statistics(kind: str, params: Variables, mean: Array, var: Array) -> tuple[Array, Array]:
    """(scale, shift) [K] of a batch normalization of rows by these statistics."""
    scale = params["scale"] * jax.lax.rsqrt(var + EPSILON[kind])
    return scale, params["bias"] - mean * scale


def moments_over(x: Array, axis_name: str | None) -> tuple[Array, Array]:
    """Mean and mean of squares, [K] each, of the rows of chunks [C, rows, K] on all devices along `axis_name`."""
    x = x.astype(summed_in(x.dtype))
    mean, square = x.mean(axis=1), jnp.square(x).mean(axis=1)
    return mean_over((mean.mean(axis=0), square.mean(axis=0)), axis_name)


def row_means(x: Array) -> Array:
    """The mean [..., 1] of each row of x [..., K]; on a CPU as a matrix product, which is faster than a sum."""
    if jax.default_backend() == "cpu":
        return x @ jnp.full((x.shape[-1], 1), 1 / x.shape[-1])
    return x.mean(axis=-1, keepdims=True)


def normalize_rows(kind: str, params: Variables, x: Array) -> Array:
    """Layer or RMS normalization of rows x [R, K], and ReLU."""
    y = standardize(kind, EPSILON[kind], x) * params["scale"]
    return jax.nn.relu(y + params["bias"] if kind == "layer" else y)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def standardize(kind: str, epsilon: float, x: Array) -> Array:
    """Rows x [R, K] over their root mean square ("rms"), or less their mean over their deviation ("layer")."""
    return _standardize_forward(kind, epsilon, x)[0]


def _standardize_forward(kind: str, epsilon: float, x: Array) -> tuple[Array, tuple[Array, Array]]:
    mean = row_means(x) if kind == "layer" else jnp.zeros((), x.dtype)
    inverse = jax.lax.rsqrt(jnp.maximum(row_means(jnp.square(x)) - jnp.square(mean), 0.0) + epsilon)
    y = (x - mean) * inverse
    return y, (y, inverse)


def _standardize_backward(kind: str, epsilon: float, saved: tuple[Array, Array], dy: Array) -> tuple[Array]:
    y, inverse = saved
    d_x = dy - y * row_means(dy * y)
    return (inverse * (d_x - row_means(dy) if kind == "layer" else d_x),)


standardize.defvjp(_standardize_forward, _standardize_backward)
