"""Batch, ghost, layer and RMS normalization of rows, each followed by ReLU; equal to flax's modules.

Ghost normalization is batch normalization by the statistics of one chunk on one device, which the learner makes of a
small fixed size (Hoffer et al. 2017).
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.state import Array
from alphagateau.networks.matmul import summed_in
from alphagateau.networks.network import Variables

EPSILON = {"batch": 1e-5, "ghost": 1e-5, "layer": 1e-6, "rms": 1e-6}  # flax's defaults

Norm = Callable[..., tuple[Callable[[Array], Array], Variables]]


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
        scale = params["scale"] * jax.lax.rsqrt(var + EPSILON[kind])
        shift = params["bias"] - mean * scale
        return lambda x: jax.nn.relu(x.astype(summed_in(x.dtype)) * scale + shift), {name: running}

    def row_norm(variables: Variables, name: str, x: Array, moments: tuple[Array, Array] | None = None):
        del x, moments
        normalize = partial(normalize_rows, kind, variables["params"][name])
        return lambda x: normalize(x.astype(summed_in(x.dtype))), {}

    return batch_norm if kind in ("batch", "ghost") else row_norm


def moments_over(x: Array, axis_name: str | None) -> tuple[Array, Array]:
    """Mean and mean of squares, [K] each, of the rows of chunks [C, rows, K] on all devices along `axis_name`."""
    x = x.astype(summed_in(x.dtype))
    mean, square = x.mean(axis=1), jnp.square(x).mean(axis=1)
    return mean_over((mean.mean(axis=0), square.mean(axis=0)), axis_name)


def row_means(x: Array) -> Array:
    """The mean [R, 1] of each row of x [R, K], as a matrix product: on a CPU faster than a sum."""
    return x @ jnp.full((x.shape[1], 1), 1 / x.shape[1])


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def normalize_rows(kind: str, params: Variables, x: Array) -> Array:
    """Layer or RMS normalization of rows x [R, K], and ReLU."""
    return _normalize_rows_forward(kind, params, x)[0]


def _normalize_rows_forward(kind: str, params: Variables, x: Array) -> tuple[Array, tuple]:
    mean = row_means(x) if kind == "layer" else jnp.zeros((), x.dtype)
    inverse = jax.lax.rsqrt(jnp.maximum(row_means(jnp.square(x)) - jnp.square(mean), 0.0) + EPSILON[kind])
    y = (x - mean) * inverse * params["scale"]
    return jax.nn.relu(y + params["bias"] if kind == "layer" else y), (params, x, mean, inverse)


def _normalize_rows_backward(kind: str, saved: tuple, dy: Array) -> tuple[Variables, Array]:
    params, x, mean, inverse = saved
    scaled = (x - mean) * inverse
    y = scaled * params["scale"]
    dy = jnp.where((y + params["bias"] if kind == "layer" else y) > 0, dy, 0)
    d_scaled = dy * params["scale"]
    d_x = d_scaled - scaled * row_means(d_scaled * scaled)
    d_params = {"scale": (dy * scaled).sum(axis=0)}
    if kind == "layer":
        return d_params | {"bias": dy.sum(axis=0)}, inverse * (d_x - row_means(d_scaled))
    return d_params, inverse * d_x


normalize_rows.defvjp(_normalize_rows_forward, _normalize_rows_backward)
