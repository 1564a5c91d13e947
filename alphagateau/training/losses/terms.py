"""Terms of a loss by name, those that several losses share, and probabilities of winning as distributions over bins.

Bin i of K equal ones of [0, 1] reaches from i / K to (i + 1) / K and stands for its middle (Ruoss et al. 2024, appendix
A); `networks.heads.mean_of_bins` is the way back.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from alphagateau.config.records import ConfigError, show
from alphagateau.games.actions import legal_edge_mask, slots_to_edges
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.heads import SIGMA_BINS
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame

AMONG = "among/"  # and a metric's name: the share of the frames that it is a mean of
CALIBRATION_BINS = 10  # of predicted values, over [-1, 1]


class LossTerms(NamedTuple):
    """The terms of a loss on B frames, by name."""

    minimized: Mapping[str, Array]  # float32 [B]; the loss is the sum of their means
    logged: Mapping[str, Array] = {}  # [B], their means are logged
    logged_among: Mapping[str, tuple[Array, Array]] = {}  # values and mask [B] or [B, S], whose masked means are logged
    sums: Mapping[str, Array] = {}  # of any shape, already summed over the batch


LossFn = Callable[[Game, Evaluation, Frame], LossTerms]  # of a batch [B]


def join_terms(*parts: LossTerms) -> LossTerms:
    """The terms of all parts. Raises ConfigError if two have one of a name, or one of them is no LossTerms."""
    joined: list[dict[str, Any]] = [{} for _ in LossTerms._fields]
    for part in parts:
        if not isinstance(part, LossTerms):
            raise ConfigError(f"the terms of a loss or a head must be LossTerms, got {type(part).__name__}")
        for field, terms in zip(joined, part, strict=True):
            if twice := field.keys() & terms:
                raise ConfigError(f"the loss's term {show(min(twice))} is given twice")
            field |= terms
    return LossTerms(*joined)


def policy_terms(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """Cross-entropy of the policy over the legal moves to the policy target, nats, and the entropies of both.

    A frame whose policy is masked counts 0, in the entropy of the targets too.
    """
    legal = legal_edge_mask(game, frames.position)
    target = slots_to_edges(legal, frames.policy_target.astype(jnp.float32))
    log_policy = jax.nn.log_softmax(jnp.where(legal, evaluation.prior_logits, -1e9), axis=-1)
    cross_entropy = -jnp.sum(target * jnp.where(legal, log_policy, 0.0), axis=-1)
    is_learnt = True if frames.policy_mask is None else frames.policy_mask
    cross_entropy = jnp.where(is_learnt, cross_entropy, 0.0)
    target_entropy = -jnp.sum(target * jnp.log(jnp.maximum(target, 1e-30)), axis=-1)
    logged = {
        "policy_entropy": -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1),
        "target_entropy": jnp.where(is_learnt, target_entropy, 0.0),
    }
    return LossTerms({"policy_loss": cross_entropy}, logged)


def value_terms(evaluation: Evaluation, frames: Frame, value_loss: Array) -> LossTerms:
    """`value_loss` [B], 0 where the value is not known, and the metrics of a network's value."""
    error = evaluation.value - frames.value_target
    decisive = frames.value_mask & (frames.value_target != 0)
    right = jnp.sign(evaluation.value) == jnp.sign(frames.value_target)
    in_bin = jax.nn.one_hot(bin_of(evaluation.value, CALIBRATION_BINS), CALIBRATION_BINS) * frames.value_mask[:, None]
    return LossTerms(
        minimized={"value_loss": jnp.where(frames.value_mask, value_loss, 0.0)},
        logged={"value_known": frames.value_mask},
        logged_among={"value_accuracy": (right, decisive), "value_error": (jnp.abs(error), frames.value_mask)},
        # [3, bins] of known results, by predicted value: their number, the sums of predictions and of results
        sums={"calibration": jnp.stack([in_bin.sum(0), evaluation.value @ in_bin, frames.value_target @ in_bin])},
    )


def bin_of(value: Array, num_bins: int) -> Array:
    """The bin of [-1, 1] that holds a value; between two bins, the upper."""
    return jnp.clip(jnp.floor((value + 1) / 2 * num_bins).astype(jnp.int32), 0, num_bins - 1)


def one_hot(q: Array, num_bins: int) -> Array:
    """float32 [..., K]: all on the bin of q [...]; a q between two bins falls into the lower."""
    place = jnp.clip(jnp.ceil(q * num_bins).astype(jnp.int32) - 1, 0, num_bins - 1)
    return jax.nn.one_hot(place, num_bins)


def hl_gauss(q: Array, num_bins: int) -> Array:
    """float32 [..., K]: a normal distribution around q [...], cut off at 0 and 1 (Imani and White 2018)."""
    edges = jnp.arange(num_bins + 1) / num_bins
    below = norm.cdf((edges - q[..., None]) * num_bins / SIGMA_BINS)
    return jnp.diff(below, axis=-1) / (below[..., -1:] - below[..., :1])
