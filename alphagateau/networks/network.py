"""What every network is: two functions, from Positions to one logit an edge and one value."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from alphagateau.games.state import Array

Variables = dict[str, Any]  # flax collections: {"params": ..., "batch_stats": ...}


class Evaluation(NamedTuple):
    """What a network says of a batch of positions."""

    prior_logits: Array  # float32 [B, E], one per edge, legal or not
    value: Array  # float32 [B] in [-1, 1], for the player to move


class Network(NamedTuple):
    """A network for one game, as two functions.

    `init(key) -> variables`, a flax tree whose "params" are learnt and whose other collections are statistics.
    `apply(variables, positions, train=False, axis_name=None) -> (Evaluation, statistics)`: B Positions (leading axis
    B) to prior logits [B, E], over legal and illegal edges alike, and values [B] for the player to move; the
    statistics are those that follow this batch if `train`, else those given. Along `axis_name`, an axis of
    `shard_map`, each device has a part of the batch, and batch statistics are those of the whole.
    """

    init: Callable[[jax.Array], Variables]
    apply: Callable[..., tuple[Evaluation, Variables]]
