"""Makes the network of a record of keys."""

from typing import Any

from alphagateau.config.registers import NETWORKS, NetworkConfig
from alphagateau.games.rules import Game
from alphagateau.games.state import Position, without_past
from alphagateau.networks.board_statistics import with_board_statistics
from alphagateau.networks.network import Network, Variables


def make_network(game: Game, config: NetworkConfig) -> Network:
    """The network of an architecture's record of keys, for `game`. Raises ValueError."""
    network = NETWORKS.entry(config.architecture).make(game, config)
    if config.statistics_boards:
        network = with_board_statistics(network, game, config.statistics_boards)
    return network if config.history else without_history(network)


def without_history(network: Network) -> Network:
    """The network without the boards before a position, which labelled positions lack."""

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any):
        return network.apply(variables, without_past(positions), *options, **named)

    return network._replace(apply=apply)
