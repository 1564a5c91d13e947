"""Matrix products of rounded operands, summed in float32; in float64 where a test asks for it."""

from typing import Any

import jax.numpy as jnp

from alphagateau.games.state import Array


def dot(dtype: str, x: Array, w: Array, out: Any = None) -> Array:
    """x @ w of operands rounded to `dtype`; the result is as `out` says, or as it is summed, in float32 at least."""
    return jnp.dot(x.astype(dtype), w.astype(dtype), preferred_element_type=out or summed_in(dtype))


def summed_in(dtype: Any) -> Any:
    """The type that values of `dtype` are summed in: float32, or itself where it is wider."""
    return jnp.promote_types(dtype, jnp.float32)
