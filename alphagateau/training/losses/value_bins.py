"""Probabilities of winning as distributions over K equal bins of [0, 1] (Ruoss et al. 2024, appendix A).

Bin i reaches from i / K to (i + 1) / K and stands for its middle; `networks.heads.mean_of_bins` is the way back.
"""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from alphagateau.games.state import Array
from alphagateau.networks.heads import SIGMA_BINS


def one_hot(q: Array, num_bins: int) -> Array:
    """float32 [..., K]: all on the bin of q [...]; a q between two bins falls into the lower."""
    place = jnp.clip(jnp.ceil(q * num_bins).astype(jnp.int32) - 1, 0, num_bins - 1)
    return jax.nn.one_hot(place, num_bins)


def hl_gauss(q: Array, num_bins: int) -> Array:
    """float32 [..., K]: a normal distribution around q [...], cut off at 0 and 1 (Imani and White 2018)."""
    edges = jnp.arange(num_bins + 1) / num_bins
    below = norm.cdf((edges - q[..., None]) * num_bins / SIGMA_BINS)
    return jnp.diff(below, axis=-1) / (below[..., -1:] - below[..., :1])


def cross_entropy(target: Array, logits: Array) -> Array:
    """[...] of two distributions [..., K], nats."""
    return -jnp.sum(target * jax.nn.log_softmax(logits, axis=-1), axis=-1)
