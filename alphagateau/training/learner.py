"""Training: a batch of Frames in, one optimizer step out. The loss of AlphaGateau's equation (10)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Network, Variables
from alphagateau.training.frames import Frame
from alphagateau.training.losses import loss_terms


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
