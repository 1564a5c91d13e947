"""The loss of AlphaGateau's equation (10), and what else a log wants of a batch."""

import jax
import jax.numpy as jnp

from alphagateau.distributed.collectives import mean_over, sum_over
from alphagateau.games.actions import legal_edge_mask, over_edges
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame

CALIBRATION_BINS = 10  # of predicted values, over [-1, 1]


def calibration_sums(value: Array, frames: Frame) -> Array:
    """float32 [3, bins] of frames with a known result, by predicted value: count, sum of predictions, of results."""
    bin_of = jnp.clip(((value + 1) / 2 * CALIBRATION_BINS).astype(jnp.int32), 0, CALIBRATION_BINS - 1)
    in_bin = jax.nn.one_hot(bin_of, CALIBRATION_BINS) * frames.value_mask[:, None]
    return jnp.stack([in_bin.sum(0), value @ in_bin, frames.value_target @ in_bin])


def loss_terms(game: Game, evaluation: Evaluation, frames: Frame, axis_name: str | None = None) -> dict[str, Array]:
    """Equation (10)'s two terms and what else a log wants of a batch; means, in nats where a logarithm is meant.

    The policy term is a mean over all frames. The value term is a mean over all frames too, a frame without a
    known result counting 0: a batch with few results pulls the value less. The batch is that of all devices along
    `axis_name`, each of which has an equal part.
    """
    target, legal = _policy_target(game, frames)
    log_policy = jax.nn.log_softmax(jnp.where(legal, evaluation.prior_logits, -1e9), axis=-1)
    error = jnp.where(frames.value_mask, evaluation.value - frames.value_target, 0.0)
    decisive = frames.value_mask & (frames.value_target != 0)
    right = decisive & (jnp.sign(evaluation.value) == jnp.sign(frames.value_target))
    log_target = jnp.log(jnp.maximum(target, 1e-30))
    terms = {
        "policy_loss": -jnp.sum(target * jnp.where(legal, log_policy, 0.0), axis=-1),
        "value_loss": jnp.square(error),
        "policy_entropy": -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1),
        "target_entropy": -jnp.sum(target * log_target, axis=-1),
        "value_accuracy": right,
        "value_error": jnp.abs(error),
        "value_known": frames.value_mask,
        "value_decisive": decisive,
    }
    means = mean_over({name: term.mean() for name, term in terms.items()}, axis_name)
    means["value_accuracy"] /= jnp.maximum(means.pop("value_decisive"), 1e-9)  # of the decisive frames
    means["value_error"] /= jnp.maximum(means["value_known"], 1e-9)  # of the frames with a result
    return {**means, "calibration": sum_over(calibration_sums(evaluation.value, frames), axis_name)}


def _policy_target(game: Game, frames: Frame) -> tuple[Array, Array]:
    """(target [B, E], legal mask [B, E])."""
    legal = legal_edge_mask(game, frames.position)
    return over_edges(legal, frames.policy_target.astype(jnp.float32)), legal


LOSSES = {"policy_value": loss_terms}  # by the name that an experiment gives
