"""The learner: one optimizer step from a batch of Frames, whatever produced them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.chunks import into_chunks
from alphagateau.networks.network import Network, Variables
from alphagateau.training.frames import ACTION_SLOT, Frame
from alphagateau.training.losses.policy_value import reduce_terms
from alphagateau.training.losses.terms import LossFn
from alphagateau.training.optimizer import make_average


class TrainState(NamedTuple):
    """What training changes."""

    variables: Variables
    opt_state: optax.OptState
    num_steps: Array  # int32, optimizer steps since the weights were drawn
    average: Variables | None = None  # of the weights of all steps; None: the last ones play

    @property
    def playing(self) -> Variables:
        """The weights that play, are rated and are published."""
        return self.variables if self.average is None else self.average


class Learner(NamedTuple):
    """Weights, optimizer and loss, as two functions.

    `init(variables) -> TrainState` at step 0; `step(TrainState, Frames [B]) -> (TrainState, metrics by name)`. What it
    takes as Frames is what its producer's batches are.
    """

    init: Callable[[Variables], TrainState]
    step: Callable[[TrainState, Any], tuple[TrainState, dict[str, Array]]]


def make_learner(
    game: Game,
    network: Network,
    loss: LossFn,
    optimizer: optax.GradientTransformation,
    axis_name: str | None = None,
    num_parts: int = 1,
) -> Learner:
    """Learning by one optimizer step on the loss of each batch.

    Along `axis_name`, an axis of `shard_map`, each device has an equal part of the batch; batch statistics, gradients
    and metrics are reduced over it, and nothing else moves. The loss is a mean over frames, so a network that may be
    trained chunk by chunk has the gradient of the batch as the mean of its chunks' gradients. Any network is trained in
    `num_parts` equal parts of the batch if that is asked for; batch statistics are then of a part.
    """

    def init(variables: Variables) -> TrainState:
        return TrainState(variables, optimizer.init(variables["params"]), jnp.int32(0))

    def loss_fn(params, statistics, frames: Frame, axis_name: str | None = axis_name):
        is_of_moves = network.values_one_move and ACTION_SLOT in frames.extra
        asked = {"slots": frames.extra[ACTION_SLOT]} if is_of_moves else {}
        variables = {"params": params, **statistics}
        evaluation, statistics = network.apply(variables, frames.position, True, axis_name, **asked)
        total, metrics = reduce_terms(loss(game, evaluation, frames), axis_name)
        return total, (metrics, evaluation, statistics)

    gradient_fn = jax.value_and_grad(loss_fn, has_aux=True)

    def gradient_in_chunks(num_chunks: int, chunk_axis: str | None, params, statistics, frames: Frame):
        """As `gradient_fn`, but forward and backward of one chunk of frames end before the next begins."""

        def add_chunk(total, chunk: Frame):
            (_, (_, *results)), gradient = gradient_fn(params, statistics, chunk, chunk_axis)
            return jax.tree.map(jnp.add, total, gradient), results

        zeros = jax.tree.map(jnp.zeros_like, params)
        total, (evaluation, statistics) = jax.lax.scan(add_chunk, zeros, into_chunks(frames, num_chunks))
        evaluation = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), evaluation)
        statistics = mean_over(jax.tree.map(lambda x: x.mean(axis=0), statistics), axis_name)
        value, metrics = reduce_terms(loss(game, evaluation, frames), axis_name)
        return (value, (metrics, evaluation, statistics)), jax.tree.map(lambda x: x / num_chunks, total)

    def step(state: TrainState, frames: Frame) -> tuple[TrainState, dict[str, Array]]:
        params = state.variables["params"]
        statistics = {k: v for k, v in state.variables.items() if k != "params"}
        num_chunks = network.num_chunks(len(jax.tree.leaves(frames)[0]) // num_parts)
        chunk_axis = axis_name if num_chunks == 1 else None  # a part of each device is one batch of statistics
        in_chunks = partial(gradient_in_chunks, num_parts * num_chunks, chunk_axis)
        value_and_gradient = gradient_fn if num_parts * num_chunks == 1 else in_chunks
        frames = jax.tree.map(lambda x: by_part(x, num_parts), frames)
        (total, (metrics, _, statistics)), gradient = value_and_gradient(params, statistics, frames)
        gradient = mean_over(gradient, axis_name)
        updates, opt_state = optimizer.update(gradient, state.opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics |= {
            "loss": total,
            "gradient_norm": optax.tree.norm(gradient),
            "update_norm": optax.tree.norm(updates),
            "weight_norm": optax.tree.norm(params),
        }
        variables = {"params": params, **statistics}
        return TrainState(variables, opt_state, state.num_steps + 1), metrics

    return Learner(init, step)


def by_part(x: Array, num_parts: int) -> Array:
    """X [B, ...], part after part; each has as much of every share of the batch, so parts are alike on any mesh."""
    return x if num_parts == 1 else x.reshape(-1, num_parts, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)


def with_average(learner: Learner, decay: float) -> Learner:
    """The Learner, which also keeps an average of the weights of all steps, as `make_average` says."""
    average = make_average(decay)

    def init(variables: Variables) -> TrainState:
        return learner.init(variables)._replace(average=jax.tree.map(jnp.copy, variables))

    def step(state: TrainState, frames: Frame) -> tuple[TrainState, dict[str, Array]]:
        after, metrics = learner.step(state, frames)
        return after._replace(average=average(state.playing, after.variables, state.num_steps)), metrics

    return Learner(init, step)
