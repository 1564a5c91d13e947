"""Keeps the batch statistics of several boards apart, for one network on all of them."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.networks.network import Network, Variables, statistics_of


def with_board_statistics(network: Network, game: Game, boards: Sequence[str]) -> Network:
    """The network with statistics by board; on a board that is not among `boards`, those of the first.

    Activations of boards of different sizes have different means and variances, so each board is normalized by
    statistics of its own (domain-specific batch normalization, Chang et al. 2019).
    """

    def init(key: jax.Array) -> Variables:
        variables = network.init(key)
        by_board = {board: jax.tree.map(jnp.copy, statistics_of(variables)) for board in boards}  # one buffer each
        return {"params": variables["params"], "statistics": by_board}

    def apply(variables: Variables, *options: Any, **named: Any):
        evaluation, new = network.apply(on_board(variables, game, boards), *options, **named)
        return evaluation, {"statistics": {**variables["statistics"], statistics_board(game, boards): new}}

    def move_from(variables: Variables, source: Game) -> Variables:
        moved = network.move_from({"params": variables["params"]}, source)
        return {**variables, "params": moved["params"]}

    return network._replace(init=init, apply=apply, move_from=move_from)


def statistics_board(game: Game, boards: Sequence[str]) -> str:
    """The board whose statistics normalize a game."""
    return game.name if game.name in boards else boards[0]


def on_board(variables: Variables, game: Game, boards: Sequence[str]) -> Variables:
    """The variables of the network itself, with the statistics of a board."""
    return {"params": variables["params"], **variables["statistics"][statistics_board(game, boards)]}
