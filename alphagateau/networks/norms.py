"""What precedes each ReLU: batch, layer or RMS normalization of rows, equal to flax's modules of that name."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.state import Array
from alphagateau.networks.network import Variables

EPSILON = {"batch": 1e-5, "layer": 1e-6, "rms": 1e-6}  # flax's defaults


def make_norm(kind: str, momentum: float, variables: Variables, train: bool, axis_name: str | None, updates: dict):
    """norm(name, x [C, rows, K]) -> a function of rows, as flax's module `name` of this kind would be on x.

    Batch statistics, if `train`, are those of x on all devices along `axis_name`, or of `moments` (mean, mean of
    squares) where these are known; the new running statistics are put into `updates`.
    """
    params, running = variables["params"], variables.get("batch_stats", {})

    def batch_norm(name: str, x: Array, moments: tuple[Array, Array] | None = None) -> Callable[[Array], Array]:
        mean, var = running[name]["mean"], running[name]["var"]
        if train:
            mean, square = moments or moments_over(x, axis_name)
            var = jnp.maximum(square - jnp.square(mean), 0.0)
            new = {"mean": mean, "var": var}
            updates[name] = {k: momentum * running[name][k] + (1 - momentum) * v for k, v in new.items()}
        scale = params[name]["scale"] * jax.lax.rsqrt(var + EPSILON[kind])
        shift = params[name]["bias"] - mean * scale
        return lambda x: x * scale + shift

    def row_norm(name: str, x: Array, moments: tuple[Array, Array] | None = None) -> Callable[[Array], Array]:
        del x, moments
        return partial(normalize_rows, kind, params[name])

    return batch_norm if kind == "batch" else row_norm


def moments_over(x: Array, axis_name: str | None) -> tuple[Array, Array]:
    """Mean and mean of squares, [K] each, of the rows of chunks [C, rows, K] on all devices along `axis_name`."""
    mean, square = x.mean(axis=1), jnp.square(x).mean(axis=1)
    return mean_over((mean.mean(axis=0), square.mean(axis=0)), axis_name)


def normalize_rows(kind: str, params: Variables, x: Array) -> Array:
    """Layer or RMS normalization of rows x [R, K]."""
    mean = x.mean(axis=1, keepdims=True) if kind == "layer" else 0.0
    var = jnp.maximum(jnp.square(x).mean(axis=1, keepdims=True) - jnp.square(mean), 0.0)
    x = (x - mean) * jax.lax.rsqrt(var + EPSILON[kind]) * params["scale"]
    return x + params["bias"] if kind == "layer" else x
