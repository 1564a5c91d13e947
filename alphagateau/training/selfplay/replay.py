"""The frame window of Algorithm 1: all new Frames and a uniform sample of the old ones, or the newest, on the devices.

Each share of the window has its own games, Frames and randomness. A device holds whole shares, so samples depend on
the number of shares, never on the number of devices.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array
from alphagateau.training.keys import fold_in_rows


class Window(NamedTuple):
    """Frames of R shares (a device's own, or all of them), W / num_shares a share."""

    frames: Any  # [R, C, ...], records of arrays such as Frame, in no order that matters
    count: Array  # pyright: ignore[reportIncompatibleMethodOverride] # int32 [R], frames held; the first `count` of the C places


def init_window(frame: Any, num_shares: int, size: int) -> Window:
    """An empty window of `size` frames, of the shapes and types of `frame`, in `num_shares` shares."""
    shape = (num_shares, size // num_shares)
    frames = jax.tree.map(lambda x: jnp.zeros((*shape, *x.shape), x.dtype), frame)
    return Window(frames, jnp.zeros(num_shares, jnp.int32))


def _num_frames(frames: Any, axis: int = 0) -> int:
    return jax.tree.leaves(frames)[0].shape[axis]


def add_frames(
    window: Window, key: Array, shares: Array, frames: Any, is_new: Array | None = None, keeps_newest: bool = False
) -> Window:
    """The window with `frames` [R, n, ...] in it; `shares` int32 [R] are the shares' numbers.

    Frames where `is_new` bool [R, n] is False stay out (None: all enter). Empty places are filled first; then each new
    frame replaces an old one: one drawn without replacement, which leaves a uniform sample of the old, or the oldest if
    it `keeps_newest`, where frames lie by age and those of a call are equally old. Of more new frames than places, a
    uniform sample enters.
    """
    capacity = _num_frames(window.frames, 1)
    num_new = min(_num_frames(frames, 1), capacity)

    def add_share(held: Any, count: Array, key: Array, new: Any, is_new: Array | None) -> tuple[Any, Array]:
        key, sample_key = jax.random.split(key)
        num_entering = num_new
        if is_new is not None or _num_frames(new) > num_new:
            order = jax.random.permutation(sample_key, _num_frames(new))
            if is_new is not None:
                order = order[jnp.argsort(~is_new[order])]  # those that enter first
                num_entering = jnp.minimum(is_new.sum(dtype=jnp.int32), num_new)
            new = jax.tree.map(lambda x: x[order[:num_new]], new)
        if keeps_newest:
            num_dropped = jnp.maximum(count + num_entering - capacity, 0)
            held = jax.tree.map(lambda old: jnp.roll(old, -num_dropped, axis=0), held)
            places = count - num_dropped + jnp.arange(num_new)
        else:
            draw = jax.random.uniform(key, (capacity,))
            places = jnp.argsort(jnp.where(jnp.arange(capacity) < count, draw, -1.0))[:num_new]
        places = jnp.where(jnp.arange(num_new) < num_entering, places, capacity)  # the others are dropped
        held = jax.tree.map(lambda old, x: old.at[places].set(x.astype(old.dtype), mode="drop"), held, new)
        return held, jnp.minimum(count + num_entering, capacity)

    keys = fold_in_rows(key, shares)
    return Window(*jax.vmap(add_share)(window.frames, window.count, keys, frames, is_new))


def epoch_order(window: Window, key: Array, shares: Array) -> Array:
    """int32 [R, C]: each share's places shuffled, those of its `count` frames first."""

    def shuffle(key: Array, count: Array) -> Array:
        capacity = _num_frames(window.frames, 1)
        draw = jax.random.uniform(key, (capacity,))
        return jnp.argsort(jnp.where(jnp.arange(capacity) < count, draw, 2.0)).astype(jnp.int32)

    return jax.vmap(shuffle)(fold_in_rows(key, shares), window.count)


def take_batch(window: Window, order: Array, batch_index: Array, share_batch: int) -> Any:
    """Frames [R * share_batch, ...]: the `batch_index`-th batch of the epoch `order` [R, C]."""

    def take(frames: Any, order: Array) -> Any:
        chosen = jax.lax.dynamic_slice_in_dim(order, batch_index * share_batch, share_batch)
        return jax.tree.map(lambda x: x[chosen], frames)

    batch = jax.vmap(take)(window.frames, order)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
