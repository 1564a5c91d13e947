"""The heads that networks share: policy, value (scalar, win-draw-loss or bins), action values, reply, moves left."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax.core import FrozenDict

from alphagateau.config import NetworkConfig
from alphagateau.games.actions import edges_by_slot
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.matmul import linear
from alphagateau.networks.network import Evaluation, Variables

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)
SIGMA_BINS = 0.75  # width of HL-Gauss's normal distribution, in bins (Farebrother et al. 2024)
PLIES_SCALE = 20.0  # unit of plies left, as in Leela Chess Zero


class Heads(NamedTuple):
    """The outputs of a network beside its prior logits."""

    value: str = "scalar"  # or "wdl", "bins", "none"
    num_bins: int = 1  # K of values and action values
    num_slots: int = 0  # S of action values; 0: none
    reply: bool = False
    moves_left: bool = False

    @property
    def value_layer(self) -> tuple[str, int]:
        """(name, outputs) of the last layer of the value."""
        return {"scalar": ("value_out", 1), "wdl": ("value_wdl", 3), "bins": ("value_bins", self.num_bins)}[self.value]


def make_heads(game: Game, config: NetworkConfig, reply: bool = False, moves_left: bool = False) -> Heads:
    """The Heads of an architecture's configuration record, for `game`, with the auxiliary ones that it has."""
    return Heads(
        value=config.value_head,
        num_bins=config.num_bins,
        num_slots=game.max_legal_moves if config.action_values else 0,
        reply=reply,
        moves_left=moves_left,
    )


def make_evaluation(outputs: dict[str, Array]) -> Evaluation:
    """An Evaluation of outputs by name; those beside prior and value are its `extra`."""
    extra = {name: x for name, x in outputs.items() if name not in ("prior_logits", "value")}
    return Evaluation(outputs["prior_logits"], outputs["value"], FrozenDict(extra))


def read_value(heads: Heads, logits: Array) -> dict[str, Array]:
    """The value [B] in [-1, 1] and its logits by name, from the value's last layer [B, outputs].

    "wdl_logits" [B, 3] are of a win, a draw and a loss for the player to move; the value is P(win) - P(loss).
    "value_logits" [B, K] are of bins of the probability q of winning; the value is 2 q - 1.
    """
    if heads.value == "bins":
        return {"value": jnp.clip(2 * mean_of_bins(logits) - 1, -1, 1), "value_logits": logits}
    if heads.value == "scalar":
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


def node_heads(heads: Heads, params: Variables, h: Array) -> dict[str, Array]:
    """Outputs [B, ...] by name, of hidden nodes h [B, N, K] (end of Figure 3)."""
    pooled = jax.nn.relu(attention_pooling(params["value_pooling"]["a"], h))
    outputs = read_value(heads, linear(params[heads.value_layer[0]], pooled))
    if heads.moves_left:
        outputs["moves_left"] = read_moves_left(linear(params["moves_left"], pooled))
    return outputs


def edge_heads(heads: Heads, params: Variables, g: Array, is_legal: Array) -> dict[str, Array]:
    """Outputs [B, ...] by name, of hidden edges g [B * E, K] and their legality [B, E] (end of Figure 4).

    "reply_logits" [B, E] are of the opponent's next move, on the squares of the player to move;
    "action_value_logits" [B, S, bins] are of the legal edges in rising order, arbitrary on empty slots.
    """
    outputs = {"prior_logits": (g @ params["policy_logit"]["kernel"]).reshape(is_legal.shape)}
    if heads.reply:
        outputs["reply_logits"] = (g @ params["reply_logit"]["kernel"]).reshape(is_legal.shape)
    if heads.num_slots:
        by_slot: Any = edges_to_slots(g.reshape(*is_legal.shape, -1), is_legal, heads.num_slots)
        outputs["action_value_logits"] = linear(params["action_values"], by_slot)
    return outputs


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def edges_to_slots(by_edge: Array, is_legal: Array, num_slots: int) -> Array:
    """[B, S, K] of [B, E, K]: the rows of the legal edges in rising order, arbitrary on empty slots.

    The gradient is a gather too, as in `graph_gather.py`.
    """
    edges = jnp.minimum(edges_by_slot(is_legal, num_slots), is_legal.shape[-1] - 1)
    return jnp.take_along_axis(by_edge, edges[..., None], axis=1)


def _edges_to_slots_forward(by_edge: Array, is_legal: Array, num_slots: int) -> tuple[Array, Array]:
    return edges_to_slots(by_edge, is_legal, num_slots), is_legal


def _edges_to_slots_backward(num_slots: int, is_legal: Array, dy: Array) -> tuple[Array, None]:
    slots = jnp.clip(jnp.cumsum(is_legal, axis=-1) - 1, 0, num_slots - 1)[..., None]
    return jnp.where(is_legal[..., None], jnp.take_along_axis(dy, slots, axis=1), 0), None


edges_to_slots.defvjp(_edges_to_slots_forward, _edges_to_slots_backward)
