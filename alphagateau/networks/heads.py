"""What a trunk says of nodes and edges in, a network's outputs out: policy, value, and what else its heads are."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax.core import FrozenDict

from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation, Variables

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)


class Heads(NamedTuple):
    """Which outputs a network has beside its prior logits."""

    value: str = "scalar"  # what the value is read from: "scalar" or "wdl"

    @property
    def value_layer(self) -> tuple[str, int]:
        """(name, outputs) of the last layer of the value."""
        return {"scalar": ("value_out", 1), "wdl": ("value_wdl", 3)}[self.value]


def make_heads(config) -> Heads:
    """The Heads that the configuration record of an architecture names."""
    return Heads(value=config.value_head)


def make_evaluation(outputs: dict[str, Array]) -> Evaluation:
    """The Evaluation that holds outputs by name; what a search does not read is its `extra`."""
    extra = {name: x for name, x in outputs.items() if name not in ("prior_logits", "value")}
    return Evaluation(outputs["prior_logits"], outputs["value"], FrozenDict(extra))


def read_value(heads: Heads, logits: Array) -> dict[str, Array]:
    """By name: the value [B] in [-1, 1] that the value's last layer [B, outputs] says, and the logits it comes from.

    "wdl_logits" [B, 3] are of a win, a draw and a loss for the player to move; the value is P(win) - P(loss).
    """
    if heads.value == "scalar":
        return {"value": jnp.tanh(logits[:, 0])}
    win, _, loss = jnp.moveaxis(jax.nn.softmax(logits), -1, 0)
    return {"value": win - loss, "wdl_logits": logits}


def attention_pooling(a: Array, h: Array) -> Array:
    """Equation (7): h [B, N, K] -> [B, K]."""
    alpha = jax.nn.softmax(jax.nn.leaky_relu(h @ a, LEAKY_SLOPE), axis=1)
    return (alpha * h).sum(axis=1)


def node_heads(heads: Heads, params: Variables, h: Array) -> dict[str, Array]:
    """Figure 3's end, of hidden nodes h [B, N, K]: outputs [B, ...] by name."""
    pooled = jax.nn.relu(attention_pooling(params["value_pooling"]["a"], h))
    layer = params[heads.value_layer[0]]
    return read_value(heads, pooled @ layer["kernel"] + layer["bias"])
