"""Matrix products of rounded operands, summed in float32."""

from typing import Any

import jax.numpy as jnp

from alphagateau.games.state import Array


def dot(dtype: str, x: Array, w: Array, out: Any = jnp.float32) -> Array:
    """x @ w of operands rounded to `dtype`, summed in float32; the result is as `out` says."""
    return jnp.dot(x.astype(dtype), w.astype(dtype), preferred_element_type=out)
