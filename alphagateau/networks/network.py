"""The Network: functions from Positions to a logit an edge, a value, and further outputs for losses."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
from flax.core import FrozenDict
from jaxtyping import Float32

from alphagateau.games.state import Array

Variables = dict[str, Any]  # flax collections: {"params": ..., "batch_stats": ...}


class Evaluation(NamedTuple):
    """The outputs of a network for a batch of positions.

    A search needs the first two. `extra` has further outputs [B, ...] by name, for losses (win, draw and loss; bins of
    values; auxiliary heads); jit leaves out those that a program does not use.
    """

    prior_logits: Float32[Array, "*B E"]  # of legal and illegal edges
    value: Float32[Array, "*B"]  # in [-1, 1], for the player to move
    extra: Mapping[str, Array] = FrozenDict()


Outputs = tuple[Evaluation, Variables]  # and the statistics after the batch


class Network(NamedTuple):
    """A network for one game, as functions.

    init: `key -> variables`, flax collections: the learnt "params", and statistics.
    apply: `(variables, positions [B], train=False, axis_name=None) -> (Evaluation, statistics)`; with `train` the
        statistics are updated by this batch. `axis_name` is an axis of `shard_map` along which devices share the batch,
        whose statistics are then of all devices.
    num_chunks: `batch -> number` of equal chunks into which training may split a device's batch, to sum their
        gradients; 1 for batch statistics.
    values_one_move: a move's value costs a forward pass of its own. `apply` then takes `slots` int32 [B, 1] too, for
        the action value [B, 1, K] of that move; in training there is none without them.
    """

    init: Callable[[jax.Array], Variables]
    apply: Callable[..., Outputs]
    num_chunks: Callable[[int], int] = lambda batch: 1
    values_one_move: bool = False


def statistics_of(variables: Variables) -> Variables:
    """All collections but the weights."""
    return {name: collection for name, collection in variables.items() if name != "params"}
