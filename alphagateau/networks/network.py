"""What every network is: functions, from Positions to one logit an edge, one value and what else a loss wants."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
from flax.core import FrozenDict

from alphagateau.games.rules import Game
from alphagateau.games.state import Array

Variables = dict[str, Any]  # flax collections: {"params": ..., "batch_stats": ...}


class Evaluation(NamedTuple):
    """What a network says of a batch of positions.

    A search reads the first two. `extra` holds further outputs by name, each [B, ...], for losses that ask for them
    (win, draw and loss; bins of values; auxiliary heads); what a program does not read of it, jit does not compute.
    """

    prior_logits: Array  # float32 [B, E], one per edge, legal or not
    value: Array  # float32 [B] in [-1, 1], for the player to move
    extra: Mapping[str, Array] = FrozenDict()


class Network(NamedTuple):
    """A network for one game, as functions.

    `init(key) -> variables`, a flax tree whose "params" are learnt and whose other collections are statistics.
    `apply(variables, positions, train=False, axis_name=None) -> (Evaluation, statistics)`: B Positions (leading axis
    B) to prior logits [B, E], over legal and illegal edges alike, values [B] for the player to move, and extras; the
    statistics are those that follow this batch if `train`, else those given. Along `axis_name`, an axis of
    `shard_map`, each device has a part of the batch, and batch statistics are those of the whole.
    `num_chunks(batch)`: into how many equal chunks training may cut B positions of a device, one after the other with
    their gradients summed; one where statistics join the batch.
    `values_one_move`: a move's value costs a pass of its own, so `apply` takes `slots` int32 [B, 1] too, and says the
    action value of that move alone, [B, 1, K]; without them it says none in training.
    `move_from(variables, source) -> variables`: weights learnt on the board of another Game, as training here begins
    with them.
    """

    init: Callable[[jax.Array], Variables]
    apply: Callable[..., tuple[Evaluation, Variables]]
    num_chunks: Callable[[int], int] = lambda batch: 1
    values_one_move: bool = False
    move_from: Callable[[Variables, Game], Variables] = lambda variables, source: variables
