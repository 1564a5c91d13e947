"""The heads that networks share: policy, value (scalar, win-draw-loss or bins), action values, moves left."""

from functools import partial

import jax
import jax.numpy as jnp
from flax.core import FrozenDict

from alphagateau.config import NetworkConfig
from alphagateau.games.actions import edges_by_slot
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)
SIGMA_BINS = 0.75  # width of HL-Gauss's normal distribution, in bins (Farebrother et al. 2024)
PLIES_SCALE = 20.0  # unit of plies left, as in Leela Chess Zero


def value_layer(config: NetworkConfig) -> tuple[str, int]:
    """(name, outputs) of the last layer of the value."""
    layers = {"scalar": ("value_out", 1), "wdl": ("value_wdl", 3), "bins": ("value_bins", config.num_bins)}
    return layers[config.value_head]


def make_evaluation(outputs: dict[str, Array]) -> Evaluation:
    """An Evaluation of outputs by name; those beside prior and value are its `extra`."""
    extra = {name: x for name, x in outputs.items() if name not in ("prior_logits", "value")}
    return Evaluation(outputs["prior_logits"], outputs["value"], FrozenDict(extra))


def read_value(kind: str, logits: Array) -> dict[str, Array]:
    """The value [B] in [-1, 1] and its logits by name, from the last layer [B, outputs] of a `value_head`.

    "wdl_logits" [B, 3] are of a win, a draw and a loss for the player to move; the value is P(win) - P(loss).
    "value_logits" [B, K] are of bins of the probability q of winning; the value is 2 q - 1.
    """
    if kind == "bins":
        return {"value": jnp.clip(2 * mean_of_bins(logits) - 1, -1, 1), "value_logits": logits}
    if kind == "scalar":
        return {"value": jnp.tanh(logits[:, 0])}
    win, _, loss = jnp.moveaxis(jax.nn.softmax(logits), -1, 0)
    return {"value": win - loss, "wdl_logits": logits}


def read_moves_left(x: Array) -> Array:
    """Plies to the end of the game [B], 0 or more, from a last layer [B, 1]."""
    return PLIES_SCALE * jax.nn.softplus(x[:, 0])


def mean_of_bins(logits: Array) -> Array:
    """The mean [...] of logits [..., K] over K equal bins of [0, 1], a probability; a single logit is one itself."""
    num_bins = logits.shape[-1]
    if num_bins == 1:
        return logits[..., 0]
    return jax.nn.softmax(logits) @ ((jnp.arange(num_bins) + 0.5) / num_bins)


def attention_pooling(a: Array, h: Array) -> Array:
    """Equation (7): h [B, N, K] -> [B, K]."""
    alpha = jax.nn.softmax(jax.nn.leaky_relu(h @ a, LEAKY_SLOPE), axis=1)
    return (alpha * h).sum(axis=1)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def edges_to_slots(by_edge: Array, is_legal: Array, num_slots: int) -> Array:
    """[B, S, K] of [B, E, K]: the rows of the legal edges in rising order, arbitrary on empty slots.

    The gradient is a gather too, as in `graph_gather.py`.
    """
    edges = jnp.minimum(edges_by_slot(is_legal, num_slots), is_legal.shape[-1] - 1)
    return jnp.take_along_axis(by_edge, edges[..., None], axis=1)


def _edges_to_slots_backward(num_slots: int, is_legal: Array, dy: Array) -> tuple[Array, None]:
    slots = jnp.clip(jnp.cumsum(is_legal, axis=-1) - 1, 0, num_slots - 1)[..., None]
    return jnp.where(is_legal[..., None], jnp.take_along_axis(dy, slots, axis=1), 0), None


edges_to_slots.defvjp(
    lambda by_edge, is_legal, num_slots: (edges_to_slots(by_edge, is_legal, num_slots), is_legal),
    _edges_to_slots_backward,
)
