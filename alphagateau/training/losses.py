"""Losses: what a network said of a batch and its Frames in, terms to minimize and to log out.

A loss is chosen by its name in LOSSES; add one there.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.distributed.collectives import mean_over, sum_over
from alphagateau.games.actions import legal_edge_mask, over_edges
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame

CALIBRATION_BINS = 10  # of predicted values, over [-1, 1]


class LossTerms(NamedTuple):
    """What a loss says of a batch of B frames, by name."""

    minimized: Mapping[str, Array]  # float32 [B]; the loss is the sum of their means
    logged: Mapping[str, Array]  # [B], their means are logged
    logged_among: Mapping[str, tuple[Array, Array]]  # values and mask [B]: means over the frames in the mask
    sums: Mapping[str, Array]  # of any shape, already summed over the batch


Loss = Callable[[Game, Evaluation, Frame], LossTerms]  # of a batch [B]


def policy_value_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    """AlphaGateau's equation (10): cross-entropy to the search's policy + squared error of the value; nats.

    Both are means over all frames, a frame without a known result (or whose policy is not to be learnt) counting 0:
    a batch with few results pulls the value less.
    """
    legal = legal_edge_mask(game, frames.position)
    target = over_edges(legal, frames.policy_target.astype(jnp.float32))
    log_policy = jax.nn.log_softmax(jnp.where(legal, evaluation.prior_logits, -1e9), axis=-1)
    cross_entropy = -jnp.sum(target * jnp.where(legal, log_policy, 0.0), axis=-1)
    if frames.policy_mask is not None:
        cross_entropy = jnp.where(frames.policy_mask, cross_entropy, 0.0)
    error = jnp.where(frames.value_mask, evaluation.value - frames.value_target, 0.0)
    decisive = frames.value_mask & (frames.value_target != 0)
    right = decisive & (jnp.sign(evaluation.value) == jnp.sign(frames.value_target))
    log_target = jnp.log(jnp.maximum(target, 1e-30))
    return LossTerms(
        minimized={"policy_loss": cross_entropy, "value_loss": jnp.square(error)},
        logged={
            "policy_entropy": -jnp.sum(jnp.where(legal, jnp.exp(log_policy) * log_policy, 0.0), axis=-1),
            "target_entropy": -jnp.sum(target * log_target, axis=-1),
            "value_known": frames.value_mask,
        },
        logged_among={
            "value_accuracy": (right, decisive),
            "value_error": (jnp.abs(error), frames.value_mask),
        },
        sums={"calibration": calibration_sums(evaluation.value, frames)},
    )


def calibration_sums(value: Array, frames: Frame) -> Array:
    """float32 [3, bins] of frames with a known result, by predicted value: count, sum of predictions, of results."""
    bin_of = jnp.clip(((value + 1) / 2 * CALIBRATION_BINS).astype(jnp.int32), 0, CALIBRATION_BINS - 1)
    in_bin = jax.nn.one_hot(bin_of, CALIBRATION_BINS) * frames.value_mask[:, None]
    return jnp.stack([in_bin.sum(0), value @ in_bin, frames.value_target @ in_bin])


def reduce_terms(terms: LossTerms, axis_name: str | None = None) -> tuple[Array, dict[str, Array]]:
    """(loss, metrics by name) of the whole batch, of which each device along `axis_name` has an equal part."""
    values = {**terms.minimized, **terms.logged, **{name: value for name, (value, _) in terms.logged_among.items()}}
    shares = {name: mask.mean() for name, (_, mask) in terms.logged_among.items()}
    means, shares = mean_over(({name: x.mean() for name, x in values.items()}, shares), axis_name)
    for name, share in shares.items():
        means[name] /= jnp.maximum(share, 1e-9)
    first, *others = (means[name] for name in terms.minimized)
    return sum(others, start=first), {**means, **sum_over(dict(terms.sums), axis_name)}


LOSSES: dict[str, Loss] = {"policy_value": policy_value_loss}
