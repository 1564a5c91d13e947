"""What a trunk says of nodes and edges in, a network's outputs out: policy, value, and what else its heads are."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax.core import FrozenDict

from alphagateau.games.actions import edges_by_slot
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation, Variables

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)
SIGMA_BINS = 0.75  # width of HL-Gauss's normal distribution, in bins (Farebrother et al. 2024)
PLIES_SCALE = 20.0  # plies left are learnt in this unit, as in Leela Chess Zero


class Heads(NamedTuple):
    """Which outputs a network has beside its prior logits."""

    value: str = "scalar"  # what the value is read from: "scalar", "wdl" or "bins"
    num_bins: int = 1  # K of values and action values
    num_slots: int = 0  # S of action values; 0: there are none
    reply: bool = False
    moves_left: bool = False

    @property
    def value_layer(self) -> tuple[str, int]:
        """(name, outputs) of the last layer of the value."""
        return {"scalar": ("value_out", 1), "wdl": ("value_wdl", 3), "bins": ("value_bins", self.num_bins)}[self.value]


def make_heads(game: Game, config) -> Heads:
    """The Heads that the configuration record of an architecture names, for `game`."""
    return Heads(
        value=config.value_head,
        num_bins=config.num_bins,
        num_slots=game.max_legal_moves if config.action_values else 0,
        reply=config.reply_head,
        moves_left=config.moves_left_head,
    )


def make_evaluation(outputs: dict[str, Array]) -> Evaluation:
    """The Evaluation that holds outputs by name; what a search does not read is its `extra`."""
    extra = {name: x for name, x in outputs.items() if name not in ("prior_logits", "value")}
    return Evaluation(outputs["prior_logits"], outputs["value"], FrozenDict(extra))


def read_value(heads: Heads, logits: Array) -> dict[str, Array]:
    """By name: the value [B] in [-1, 1] that the value's last layer [B, outputs] says, and the logits it comes from.

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
    """Plies to the end of the game [B], 0 or more, of a last layer [B, 1]."""
    return PLIES_SCALE * jax.nn.softplus(x[:, 0])


def mean_of_bins(logits: Array) -> Array:
    """The probability of winning [...] that logits [..., K] of K equal bins of [0, 1] say; one bin says it itself."""
    num_bins = logits.shape[-1]
    if num_bins == 1:
        return logits[..., 0]
    return jax.nn.softmax(logits) @ ((jnp.arange(num_bins) + 0.5) / num_bins)


def attention_pooling(a: Array, h: Array) -> Array:
    """Equation (7): h [B, N, K] -> [B, K]."""
    alpha = jax.nn.softmax(jax.nn.leaky_relu(h @ a, LEAKY_SLOPE), axis=1)
    return (alpha * h).sum(axis=1)


def node_heads(heads: Heads, params: Variables, h: Array) -> dict[str, Array]:
    """Figure 3's end, of hidden nodes h [B, N, K]: outputs [B, ...] by name."""
    pooled = jax.nn.relu(attention_pooling(params["value_pooling"]["a"], h))
    layer = params[heads.value_layer[0]]
    outputs = read_value(heads, pooled @ layer["kernel"] + layer["bias"])
    if heads.moves_left:
        layer = params["moves_left"]
        outputs["moves_left"] = read_moves_left(pooled @ layer["kernel"] + layer["bias"])
    return outputs


def edge_heads(heads: Heads, params: Variables, g: Array, is_legal: Array) -> dict[str, Array]:
    """Figure 4's end, of hidden edges g [B * E, K] and their legality [B, E]: outputs [B, ...] by name.

    "reply_logits" [B, E] are of the opponent's next move, between squares as the player to move sees them;
    "action_value_logits" [B, S, bins] are of the legal edges in rising order; on empty slots they mean nothing.
    """
    outputs = {"prior_logits": (g @ params["policy_logit"]["kernel"]).reshape(is_legal.shape)}
    if heads.reply:
        outputs["reply_logits"] = (g @ params["reply_logit"]["kernel"]).reshape(is_legal.shape)
    if heads.num_slots:
        layer, by_edge = params["action_values"], g.reshape(*is_legal.shape, -1)
        at_slots = rows_at_slots(by_edge, is_legal, heads.num_slots)
        outputs["action_value_logits"] = at_slots @ layer["kernel"] + layer["bias"]
    return outputs


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def rows_at_slots(by_edge: Array, is_legal: Array, num_slots: int) -> Array:
    """[B, S, K] of [B, E, K]: the rows of the legal edges in rising order; any row on empty slots.

    Its transpose is a gather too, as in `rows.py`.
    """
    edges = jnp.minimum(edges_by_slot(is_legal, num_slots), is_legal.shape[-1] - 1)
    return jnp.take_along_axis(by_edge, edges[..., None], axis=1)


def _rows_at_slots_forward(by_edge: Array, is_legal: Array, num_slots: int) -> tuple[Array, Array]:
    return rows_at_slots(by_edge, is_legal, num_slots), is_legal


def _rows_at_slots_backward(num_slots: int, is_legal: Array, dy: Array) -> tuple[Array, None]:
    slots = jnp.clip(jnp.cumsum(is_legal, axis=-1) - 1, 0, num_slots - 1)[..., None]
    return jnp.where(is_legal[..., None], jnp.take_along_axis(dy, slots, axis=1), 0), None


rows_at_slots.defvjp(_rows_at_slots_forward, _rows_at_slots_backward)
