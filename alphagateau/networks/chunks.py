"""A batch in chunks that fit a CPU's cache: how many, and functions of one chunk after the other."""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array

CHUNK_BYTES = 2**19  # of edge features a CPU core works on at a time: half of a common L2 cache


def each(fn: Callable, *chunks: Array) -> Any:
    """fn on each of the C chunks [C, ...], one after the other; its results [C, ...].

    A chunk's intermediates never leave the cache: what the backward pass needs of them is computed again.
    """
    if len(chunks[0]) == 1:
        return jax.tree.map(lambda x: x[None], fn(*(x[0] for x in chunks)))
    return jax.lax.map(lambda chunk: jax.checkpoint(fn, prevent_cse=False)(*chunk), chunks)


def cut(inputs: Any, num_chunks: int) -> Any:
    """A tree of arrays [B, ...] in equal chunks [num_chunks, b, ...]; zeros fill the last."""
    batch = len(jax.tree.leaves(inputs)[0])
    size = -(-batch // num_chunks)

    def cut_one(x: Array) -> Array:
        x = jnp.pad(x, [(0, num_chunks * size - batch)] + [(0, 0)] * (x.ndim - 1))
        return x.reshape(num_chunks, size, *x.shape[1:])

    return jax.tree.map(cut_one, inputs)


def in_chunks(fn: Callable, inputs: Any, num_chunks: int) -> Any:
    """fn, of chunks [1, b, ...], on one chunk of `inputs` [B, ...] after the other; its results [B, ...]."""
    batch = len(jax.tree.leaves(inputs)[0])
    out = jax.lax.map(lambda chunk: fn(jax.tree.map(lambda x: x[None], chunk)), cut(inputs, num_chunks))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:batch], out)


def chunk_size(num_edges: int, hidden_size: int) -> int:
    """Positions evaluated at a time on a CPU; elsewhere there is no limit."""
    if jax.default_backend() != "cpu":
        return 2**31
    return max(1, num_cores() * CHUNK_BYTES // (4 * num_edges * hidden_size))


def num_cores() -> int:
    """CPU cores that this process may use; all of the machine's where the system cannot say (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def equal_chunks(batch: int, size: int) -> int:
    """The least number of equal chunks of at most `size` positions."""
    return next(n for n in range(-(-batch // size), batch + 1) if batch % n == 0)
