"""Matrix products of operands rounded to a dtype, summed in float32 (float64 of float64 operands)."""

from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array


def dot(dtype: str, x: Array, w: Array, out: Any = None) -> Array:
    """The product x @ w of operands rounded to `dtype`; the result has dtype `out`, or that of the sum."""
    return jnp.dot(x.astype(dtype), w.astype(dtype), preferred_element_type=out or summed_in(dtype))


def summed_in(dtype: Any) -> Any:
    """The dtype of sums of values of `dtype`: float32, or itself where it is wider."""
    return jnp.promote_types(dtype, jnp.float32)


def einsum(subscripts: str, x: Array, y: Array, dtype: str) -> Array:
    """The einsum of float32 arrays rounded to `dtype`, summed in float32.

    CPUs lack some such products of bfloat16, so there operands are rounded and stay float32.
    """
    if dtype == "bfloat16" and jax.default_backend() == "cpu":
        return jnp.einsum(subscripts, *(jax.lax.reduce_precision(a, exponent_bits=8, mantissa_bits=7) for a in (x, y)))
    return jnp.einsum(subscripts, x.astype(dtype), y.astype(dtype), preferred_element_type=jnp.float32)


def linear(params: Any, x: Array) -> Array:
    """A dense layer of rows x [..., K]: x @ kernel + bias."""
    return x @ params["kernel"] + params["bias"]
