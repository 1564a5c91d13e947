"""The learner: one optimizer step from a batch of Frames, whatever produced them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from alphagateau.config.records import ConfigError
from alphagateau.distributed.mesh import mean_over
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.chunks import into_chunks
from alphagateau.networks.network import Evaluation, Network, Variables, statistics_of
from alphagateau.training.frames import ACTION_SLOT, Frame
from alphagateau.training.losses.policy_value import check_terms, reduce_terms
from alphagateau.training.losses.terms import LossFn

AVERAGE_WARMUP = 10  # steps, in which the average forgets the first weights


class TrainState(NamedTuple):
    """What an optimizer step changes."""

    variables: Variables
    opt_state: optax.OptState
    num_steps: Array  # int32, optimizer steps of this run
    average: Variables | None = None  # of the weights of all steps; None: the last weights play

    @property
    def playing(self) -> Variables:
        """The weights that play, are rated and are published."""
        return self.variables if self.average is None else self.average


class Learner(NamedTuple):
    """Weights, optimizer and loss as two functions."""

    init: Callable[[Variables], TrainState]  # at step 0
    step: Callable[[TrainState, Any], tuple[TrainState, dict[str, Array]]]  # of a batch, by a producer or Frames [B]


def make_learner(
    game: Game,
    network: Network,
    loss: LossFn,
    optimizer: optax.GradientTransformation,
    axis_name: str | None = None,
    num_parts: int = 1,
) -> Learner:
    """The learner that makes one optimizer step a batch.

    The loss is a mean over frames, so the gradient of a batch is the mean of its chunks' gradients, where the network
    may be trained chunk by chunk.

    Args:
        axis_name: an axis of `shard_map` along which each device has an equal part of the batch. Batch statistics,
            gradients and metrics are reduced over it, and nothing else moves.
        num_parts: equal parts of the batch whose gradients are summed one after the other; batch statistics are then
            of a part.
    """

    def loss_fn(params, statistics, frames: Frame, axis_name: str | None):
        is_of_moves = network.values_one_move and ACTION_SLOT in frames.extra
        options = {"slots": frames.extra[ACTION_SLOT]} if is_of_moves else {}
        variables = {"params": params, **statistics}
        evaluation, statistics = network.apply(variables, frames.position, True, axis_name, **options)
        try:
            terms = loss(game, evaluation, frames)
        except KeyError as error:
            raise ConfigError(f"the loss needs {error}, which neither the network nor the frames have") from error
        check_terms(terms, len(frames.position.color))
        total, metrics = reduce_terms(terms, axis_name)
        return total, (metrics, evaluation, statistics)

    value_and_gradient = jax.value_and_grad(loss_fn, has_aux=True)

    def gradient_fn(params, statistics, frames: Frame) -> tuple[Array, dict[str, Array], Variables, Variables]:
        """(loss, metrics, gradient, statistics after it) of a batch."""
        num_chunks = network.num_chunks(len(jax.tree.leaves(frames)[0]) // num_parts)
        frames = jax.tree.map(lambda x: by_part(x, num_parts), frames)
        if num_parts * num_chunks == 1:
            (total, (metrics, _, after)), gradient = value_and_gradient(params, statistics, frames, axis_name)
        else:
            chunk_axis = axis_name if num_chunks == 1 else None  # devices' parts are one batch of statistics
            of_chunk = partial(value_and_gradient, params, statistics, axis_name=chunk_axis)
            gradient, evaluation, after = mean_over_chunks(of_chunk, params, frames, num_parts * num_chunks)
            after = mean_over(after, axis_name)
            total, metrics = reduce_terms(loss(game, evaluation, frames), axis_name)
        return total, metrics, mean_over(gradient, axis_name), after

    def init(variables: Variables) -> TrainState:
        return TrainState(variables, optimizer.init(variables["params"]), jnp.int32(0))

    def step(state: TrainState, frames: Frame) -> tuple[TrainState, dict[str, Array]]:
        params = state.variables["params"]
        total, metrics, gradient, statistics = gradient_fn(params, statistics_of(state.variables), frames)
        updates, opt_state = optimizer.update(gradient, state.opt_state, params)
        params = optax.apply_updates(params, updates)
        metrics |= {
            "loss": total,
            "gradient_norm": optax.tree.norm(gradient),
            "update_norm": optax.tree.norm(updates),
            "weight_norm": optax.tree.norm(params),
        }
        return TrainState({"params": params, **statistics}, opt_state, state.num_steps + 1), metrics

    return Learner(init, step)


def mean_over_chunks(
    value_and_gradient: Callable, params: Variables, frames: Frame, num_chunks: int
) -> tuple[Variables, Evaluation, Variables]:
    """(mean gradient, Evaluation [B], mean statistics) of equal chunks; each ends before the next begins."""

    def add_chunk(total, chunk: Frame):
        (_, (_, *results)), gradient = value_and_gradient(chunk)
        return jax.tree.map(jnp.add, total, gradient), results

    zeros = jax.tree.map(jnp.zeros_like, params)
    total, (evaluation, statistics) = jax.lax.scan(add_chunk, zeros, into_chunks(frames, num_chunks))
    evaluation = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), evaluation)
    statistics = jax.tree.map(lambda x: x.mean(axis=0), statistics)
    return jax.tree.map(lambda x: x / num_chunks, total), evaluation, statistics


def by_part(x: Array, num_parts: int) -> Array:
    """The rows of x [B, ...], part after part; a part has as much of each share, so parts are alike on any mesh."""
    return x if num_parts == 1 else x.reshape(-1, num_parts, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)


def with_average(learner: Learner, decay: float) -> Learner:
    """The learner with an exponential average of the weights of all steps, whose decay rises from 1 / 11 to `decay`."""

    def init(variables: Variables) -> TrainState:
        return learner.init(variables)._replace(average=jax.tree.map(jnp.copy, variables))

    def step(state: TrainState, frames: Frame) -> tuple[TrainState, dict[str, Array]]:
        after, metrics = learner.step(state, frames)
        share = 1 - jnp.minimum(decay, (1 + state.num_steps) / (AVERAGE_WARMUP + 1 + state.num_steps))
        average = jax.tree.map(lambda a, x: a + share * (x - a), state.playing, after.variables)
        return after._replace(average=average), metrics

    return Learner(init, step)
