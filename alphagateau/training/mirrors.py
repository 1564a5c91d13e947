"""Frames and draws in, the frames with those drawn mirrored out."""

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.games.symmetry import has_mirror, mirror_positions, mirror_slots, reflection, select
from alphagateau.training.frames import Frame


def draw_mirrors(key: Array, share_ids: Array, step: Array, share_batch: int) -> Array:
    """bool [R * share_batch]: for each frame of a step's batch, heads or tails; of a share whatever device has it."""

    def draw(share: Array) -> Array:
        return jax.random.bernoulli(jax.random.fold_in(jax.random.fold_in(key, step), share), shape=(share_batch,))

    return jax.vmap(draw)(share_ids).reshape(-1)


def mirror_frames(game: Game, frames: Frame, is_drawn: Array) -> Frame:
    """Frames [B], those drawn (bool [B]) in the mirror if their position has an image there.

    Of the further targets, those whose name ends in `_edge` are edges (-1: none); the others stay as they are.
    """
    edges = jnp.asarray(reflection(game).edges)

    def mirror_target(name: str, target: Array) -> Array:
        if not name.endswith("_edge"):
            return target
        return jnp.where(target < 0, target, edges[jnp.maximum(target, 0)].astype(target.dtype))

    mirrored = frames._replace(
        position=mirror_positions(game, frames.position),
        policy_target=mirror_slots(game, frames.position, frames.policy_target),
        extra={name: mirror_target(name, target) for name, target in frames.extra.items()},
    )
    return select(is_drawn & has_mirror(frames.position), mirrored, frames)
