"""The encoder layer: a Post-LN transformer with DeepNorm's constants.

    x <- RMSNorm(x + attention(x) / alpha);  x <- RMSNorm(x + FFN(x) / alpha);  FFN(x) = W2 Mish(W1 x + b1) + b2

alpha = (2 L)^(1/4) and beta = (8 L)^(-1/4) are those of an encoder without decoder (Wang et al. 2022); W_V, W_O, W1 and
W2 are initialized with beta times the variance of Glorot's normal distribution, as in the code of Chessformer.
"""

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chessformer.relative_attention import attend, make_places, place_weights
from alphagateau.networks.layers import GLOROT, ONES, ZEROS, Weight, dot, glorot, standardize

EPSILON = 1e-5
MISH_IS_LINEAR = 20.0  # above it Mish(x) is x in float32, and exp(x)^2 still finite

Params = dict[str, Array]


class Encoder(NamedTuple):
    """The static arguments of all layers."""

    size: int  # squares a side
    config: ChessformerConfig

    @property
    def alpha(self) -> float:
        """The divisor of a sub-layer's output."""
        return (2 * self.config.num_blocks) ** 0.25

    @property
    def beta(self) -> float:
        """The gain of initial weights."""
        return (8 * self.config.num_blocks) ** -0.25


def layer_weights(net: Encoder) -> dict[str, Weight]:
    """The weights of one layer."""
    d, f = net.config.hidden_size, net.config.ffn_size
    small = glorot(net.beta)
    return {
        "W_Q": Weight((d, d), GLOROT),
        "W_K": Weight((d, d), GLOROT),
        "W_V": Weight((d, d), small),
        "W_O": Weight((d, d), small),
        "b_O": Weight((d,), ZEROS),
        "W1": Weight((d, f), small),
        "b1": Weight((f,), ZEROS),
        "W2": Weight((f, d), small),
        "b2": Weight((d,), ZEROS),
        "g1": Weight((d,), ONES),
        "g2": Weight((d,), ONES),
        **place_weights(net.config.position, net.size**2, net.config.num_heads, d // net.config.num_heads),
    }


def split_heads(net: Encoder, w: Params, x: Array) -> tuple[Array, Array, Array]:
    """q, k and v [B, H, N, d / H] of tokens x [B, N, d]."""
    x = x + w["c"] if net.config.position == "absolute" else x
    split = (*x.shape[:2], net.config.num_heads, -1)
    rows = (dot(net.config.dtype, x, w[name]) for name in ("W_Q", "W_K", "W_V"))
    q, k, v = (x.reshape(split).swapaxes(1, 2) for x in rows)
    return q, k, v


def layer(net: Encoder, w: Params, x: Array) -> Array:
    """An encoder layer on tokens x [B, N, d]."""
    dtype, places = net.config.dtype, make_places(net.config.position, w, net.size)
    z: Array = attend(*split_heads(net, w, x), places, dtype)  # pyright: ignore[reportAssignmentType]
    z = z.swapaxes(1, 2).reshape(x.shape)
    x = rms_norm(w["g1"], x + (dot(dtype, z, w["W_O"]) + w["b_O"]) / net.alpha)
    y = mish(dot(dtype, x, w["W1"]) + w["b1"])
    return rms_norm(w["g2"], x + (dot(dtype, y, w["W2"]) + w["b2"]) / net.alpha)


@jax.custom_vjp
def mish(x: Array) -> Array:
    """Mish, x tanh(ln(1 + e^x)) (Misra 2019), with one exponential: x n / (n + 2), n = e^x (e^x + 2)."""
    e = jnp.exp(jnp.minimum(x, MISH_IS_LINEAR))
    n = e * (e + 2)
    return x * (n / (n + 2))


def _mish_backward(x: Array, dy: Array) -> tuple[Array]:
    """With t = n / (n + 2), t' = 4 e (e + 1) / (n + 2)^2."""
    e = jnp.exp(jnp.minimum(x, MISH_IS_LINEAR))
    n = e * (e + 2)
    share = 1 / (n + 2)
    slope = jnp.where(x < MISH_IS_LINEAR, 4 * e * (e + 1) * share * share, 0)
    return (dy * (n * share + x * slope),)


mish.defvjp(lambda x: (mish(x), x), _mish_backward)


def rms_norm(g: Array, y: Array) -> Array:
    """Rows g y / sqrt(mean(y^2) + 1e-5) of rows y [..., d] (Zhang and Sennrich 2019)."""
    return (standardize("rms", EPSILON, y.reshape(-1, y.shape[-1])) * g).reshape(y.shape)
