"""Training: a batch of Frames in, one optimizer step out. The loss of AlphaGateau's equation (10)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from alphagateau.games import Game, legal_edge_mask
from alphagateau.networks import Network
from alphagateau.sharding import mean_over, sum_over
from alphagateau.types import Array, Evaluation, Frame, Variables


class TrainState(NamedTuple):
    """What training changes."""

    variables: Variables
    opt_state: optax.OptState
    num_steps: Array  # int32, optimizer steps since the weights were drawn


def make_optimizer(learning_rate: float) -> optax.GradientTransformation:
    """Adam (Kingma and Ba 2015) without weight decay, as the paper."""
    return optax.adam(learning_rate)


def init_train_state(variables: Variables, optimizer: optax.GradientTransformation) -> TrainState:
    """Training from `variables`, at step 0."""
    return TrainState(variables, optimizer.init(variables["params"]), jnp.int32(0))


def policy_over_edges(game: Game, frames: Frame) -> tuple[Array, Array]:
    """(target [B, E], legal mask [B, E]) from the stored probabilities of the legal edges in rising order."""
    legal = legal_edge_mask(game, frames.position)
    slot = jnp.cumsum(legal, axis=-1) - 1
    stored = frames.policy_target.astype(jnp.float32)
    target = jnp.take_along_axis(stored, jnp.clip(slot, 0, stored.shape[-1] - 1), axis=-1)
    return jnp.where(legal, target, 0.0), legal


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
    target, legal = policy_over_edges(game, frames)
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


def make_train_step(
    game: Game, network: Network, optimizer: optax.GradientTransformation, axis_name: str | None = None
):
    """(TrainState, Frames [B]) -> (TrainState, figures by name): one optimizer step on the mean loss of the batch.

    Along `axis_name`, an axis of `shard_map`, each device has an equal part of the batch; batch statistics, gradients
    and figures are reduced over it, and nothing else moves.
    """

    def loss_fn(params, statistics, frames: Frame):
        evaluation, statistics = network.apply({"params": params, **statistics}, frames.position, True, axis_name)
        terms = loss_terms(game, evaluation, frames, axis_name)
        return terms["policy_loss"] + terms["value_loss"], (statistics, terms)

    def train_step(state: TrainState, frames: Frame) -> tuple[TrainState, dict[str, Array]]:
        params = state.variables["params"]
        statistics = {k: v for k, v in state.variables.items() if k != "params"}
        (loss, (statistics, terms)), gradient = jax.value_and_grad(loss_fn, has_aux=True)(params, statistics, frames)
        gradient = mean_over(gradient, axis_name)
        updates, opt_state = optimizer.update(gradient, state.opt_state, params)
        params = optax.apply_updates(params, updates)
        terms |= {
            "loss": loss,
            "gradient_norm": optax.tree.norm(gradient),
            "update_norm": optax.tree.norm(updates),
            "weight_norm": optax.tree.norm(params),
        }
        return TrainState({"params": params, **statistics}, opt_state, state.num_steps + 1), terms

    return train_step
