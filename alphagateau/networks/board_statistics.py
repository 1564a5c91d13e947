"""A network whose batch statistics are those of its board in, one that keeps those of several boards apart out."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.networks.network import Network, Variables


def with_board_statistics(network: Network, game: Game, boards: Sequence[str]) -> Network:
    """The same weights on all `boards`, each collection of statistics by board; on another board, the first one's.

    Positions of boards of different sizes have other means and variances within a network: statistics of a board
    alone are those that it is played with (domain-specific batch normalization, Chang et al. 2019).
    """

    def init(key: jax.Array) -> Variables:
        variables = network.init(key)
        kept = {board: jax.tree.map(jnp.copy, statistics_of(variables)) for board in boards}  # one buffer each
        return {"params": variables["params"], "statistics": kept}

    def apply(variables: Variables, *options: Any, **named: Any):
        evaluation, found = network.apply(on_board(variables, game, boards), *options, **named)
        return evaluation, {"statistics": {**variables["statistics"], board_of(game, boards): found}}

    def move_from(variables: Variables, source: Game) -> Variables:
        moved = network.move_from({"params": variables["params"]}, source)
        return {**variables, "params": moved["params"]}

    return network._replace(init=init, apply=apply, move_from=move_from)


def board_of(game: Game, boards: Sequence[str]) -> str:
    """Whose statistics a game is played with."""
    return game.name if game.name in boards else boards[0]


def on_board(variables: Variables, game: Game, boards: Sequence[str]) -> Variables:
    """The variables as the network itself has them, with the statistics of a board."""
    return {"params": variables["params"], **variables["statistics"][board_of(game, boards)]}


def statistics_of(variables: Variables) -> Variables:
    """All collections but the weights."""
    return {name: collection for name, collection in variables.items() if name != "params"}
