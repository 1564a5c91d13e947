"""What precedes a layer: batch, layer or RMS normalization of rows, equal to flax's modules of that name, and ReLU."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.state import Array
from alphagateau.networks.network import Variables

EPSILON = {"batch": 1e-5, "layer": 1e-6, "rms": 1e-6}  # flax's defaults

Norm = Callable[..., tuple[Callable[[Array], Array], Variables]]


def make_norm(kind: str, momentum: float, train: bool, axis_name: str | None) -> Norm:
    """norm(variables, name, x [C, rows, K]) -> (a function of rows, statistics by name).

    The function is what flax's module `name` of this kind would be on x, and ReLU. Batch statistics, if `train`, are
    those of x on all devices along `axis_name`, or of `moments` (mean, mean of squares) where these are known. The
    statistics are those that follow x; rows have none.
    """

    def batch_norm(variables: Variables, name: str, x: Array, moments: tuple[Array, Array] | None = None):
        params, running = variables["params"][name], variables["batch_stats"][name]
        mean, var = running["mean"], running["var"]
        if train:
            mean, square = moments or moments_over(x, axis_name)
            var = jnp.maximum(square - jnp.square(mean), 0.0)
            new = {"mean": mean, "var": var}
            running = {k: momentum * running[k] + (1 - momentum) * v for k, v in new.items()}
        scale = params["scale"] * jax.lax.rsqrt(var + EPSILON[kind])
        shift = params["bias"] - mean * scale
        return lambda x: jax.nn.relu(x * scale + shift), {name: running}

    def row_norm(variables: Variables, name: str, x: Array, moments: tuple[Array, Array] | None = None):
        del x, moments
        return partial(normalize_rows, kind, variables["params"][name]), {}

    return batch_norm if kind == "batch" else row_norm


def moments_over(x: Array, axis_name: str | None) -> tuple[Array, Array]:
    """Mean and mean of squares, [K] each, of the rows of chunks [C, rows, K] on all devices along `axis_name`."""
    mean, square = x.mean(axis=1), jnp.square(x).mean(axis=1)
    return mean_over((mean.mean(axis=0), square.mean(axis=0)), axis_name)


def normalize_rows(kind: str, params: Variables, x: Array) -> Array:
    """Layer or RMS normalization of rows x [R, K], and ReLU."""
    mean = x.mean(axis=1, keepdims=True) if kind == "layer" else 0.0
    var = jnp.maximum(jnp.square(x).mean(axis=1, keepdims=True) - jnp.square(mean), 0.0)
    x = (x - mean) * jax.lax.rsqrt(var + EPSILON[kind]) * params["scale"]
    return jax.nn.relu(x + params["bias"] if kind == "layer" else x)
