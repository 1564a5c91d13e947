"""Splits a batch into chunks that fit a CPU's cache, and applies functions chunk by chunk."""

import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array

CHUNK_BYTES = 2**19  # of a CPU core's activations at a time: half of a common L2 cache


def map_chunks(fn: Callable, *chunks: Array) -> Any:
    """Applies fn to each of the C chunks [C, ...], one after the other; results [C, ...].

    A chunk's intermediates stay in the cache: the backward pass computes them again.
    """
    if len(chunks[0]) == 1:
        return jax.tree.map(lambda x: x[None], fn(*(x[0] for x in chunks)))
    return jax.lax.map(lambda chunk: jax.checkpoint(fn, prevent_cse=False)(*chunk), chunks)


def into_chunks(inputs: Any, num_chunks: int) -> Any:
    """Arrays [B, ...] in equal chunks [num_chunks, b, ...], the last padded with zeros."""
    batch = len(jax.tree.leaves(inputs)[0])
    size = -(-batch // num_chunks)

    def split(x: Array) -> Array:
        x = jnp.pad(x, [(0, num_chunks * size - batch)] + [(0, 0)] * (x.ndim - 1))
        return x.reshape(num_chunks, size, *x.shape[1:])

    return jax.tree.map(split, inputs)


def apply_in_chunks(fn: Callable, inputs: Any, num_chunks: int) -> Any:
    """Applies fn, of a chunk [1, b, ...], to `inputs` [B, ...] chunk by chunk; results [B, ...]."""
    batch = len(jax.tree.leaves(inputs)[0])
    out = jax.lax.map(lambda chunk: fn(jax.tree.map(lambda x: x[None], chunk)), into_chunks(inputs, num_chunks))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:batch], out)


def chunk_size(num_edges: int, hidden_size: int) -> int:
    """Positions of a chunk on a CPU; elsewhere there is no limit."""
    if jax.default_backend() != "cpu":
        return 2**31
    return max(1, num_cores() * CHUNK_BYTES // (4 * num_edges * hidden_size))


def num_cores() -> int:
    """CPU cores that this process may use, or all of the machine's on a system without affinities (macOS, Windows)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def equal_chunks(batch: int, size: int) -> int:
    """The smallest number of equal chunks of at most `size` positions."""
    return next(n for n in range(-(-batch // size), batch + 1) if batch % n == 0)
