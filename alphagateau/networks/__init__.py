"""Networks: Positions in, one logit per edge and one value out. One file per architecture.

Add one: write a file with a function that returns a `Network`, and name it in `make_network`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax

from alphagateau.games import Game
from alphagateau.types import Evaluation, Variables


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


def make_network(game: Game, config) -> Network:
    """The network that `config` (`alphagateau.config.NetworkConfig`) names, for `game`."""
    if config.architecture == "gateau":
        from alphagateau.networks.gateau import make_gateau

        return make_gateau(game, config)
    if config.architecture == "alphazero":
        from alphagateau.networks.alphazero import make_alphazero

        return make_alphazero(game, config)
    raise ValueError(f"unknown architecture {config.architecture!r}: expected 'gateau' or 'alphazero'")
