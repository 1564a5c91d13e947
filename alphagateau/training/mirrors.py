"""Mirrors half of a batch's frames."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.config import Experiment
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.games.symmetry import has_mirror, mirror_edges, mirror_positions, mirror_slots, select
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, Frame
from alphagateau.training.keys import MIRROR, fold_in_rows


def mirrored_batches(
    experiment: Experiment, batch_of: Callable[[Array], Frame], game: Game, key: Array, share_ids: Array
) -> Callable[[Array], Frame]:
    """Step -> its batch, half of it mirrored by an epoch's key if `training.mirror` is set."""
    if not experiment.training.mirror:
        return batch_of
    mirror_key, share_batch = jax.random.fold_in(key, MIRROR), experiment.training.batch_size // experiment.num_shares
    return lambda step: mirror_frames(game, batch_of(step), sample_mirrors(mirror_key, share_ids, step, share_batch))


def sample_mirrors(key: Array, share_ids: Array, step: Array, share_batch: int) -> Array:
    """Bool [R * share_batch]: a coin for each frame of a step's batch, by its share."""
    keys = fold_in_rows(jax.random.fold_in(key, step), share_ids)
    return jax.vmap(partial(jax.random.bernoulli, shape=(share_batch,)))(keys).reshape(-1)


def mirror_frames(game: Game, frames: Frame, is_sampled: Array) -> Frame:
    """Frames [B], those sampled (bool [B]) mirrored if their position has a mirror image.

    Targets in `extra` whose names end in `_edge` are edges (-1: none) and action values are by slot; others stay.
    """
    edges = jnp.asarray(mirror_edges(game))

    def mirror_target(name: str, target: Array) -> Array:
        if name.endswith("_edge"):
            return jnp.where(target < 0, target, edges[jnp.maximum(target, 0)].astype(target.dtype))
        if name == ACTION_SLOT:
            there = jax.nn.one_hot(target[:, 0], frames.policy_target.shape[-1])
            return mirror_slots(game, frames.position, there).argmax(axis=-1, keepdims=True).astype(target.dtype)
        if name in (ACTION_VALUE, ACTION_KNOWN) and ACTION_SLOT not in frames.extra:
            return mirror_slots(game, frames.position, target)
        return target

    mirrored = frames._replace(
        position=mirror_positions(game, frames.position),
        policy_target=mirror_slots(game, frames.position, frames.policy_target),
        extra={name: mirror_target(name, target) for name, target in frames.extra.items()},
    )
    return select(is_sampled & has_mirror(frames.position), mirrored, frames)
