"""Makes the network of a configuration record; the register of architectures."""

from collections.abc import Callable
from typing import Any

from alphagateau.games.rules import Game
from alphagateau.games.state import Position, without_past
from alphagateau.networks.alphazero.network import make_alphazero
from alphagateau.networks.board_statistics import with_board_statistics
from alphagateau.networks.chessformer.network import make_chessformer
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.giraffe.move_network import make_giraffe_moves
from alphagateau.networks.giraffe.network import make_giraffe
from alphagateau.networks.network import Network, Variables
from alphagateau.networks.tokens.network import make_token_transformer

# By `architecture`: (Game, configuration record) -> Network.
MAKERS: dict[str, Callable[[Game, Any], Network]] = {
    "gateau": make_gateau,
    "alphazero": make_alphazero,
    "token_transformer": make_token_transformer,
    "chessformer": make_chessformer,
    "giraffe": make_giraffe,
    "giraffe_moves": make_giraffe_moves,
}


def make_network(game: Game, config) -> Network:
    """The network of an architecture's configuration record, for `game`. Raises ValueError."""
    if config.architecture not in MAKERS:
        expected = " or ".join(map(repr, MAKERS))
        raise ValueError(f"unknown architecture {config.architecture!r}: expected {expected}")
    network = MAKERS[config.architecture](game, config)
    if boards := getattr(config, "statistics_boards", ()):
        network = with_board_statistics(network, game, boards)
    return network if getattr(config, "history", True) else without_history(network)  # not every record has the key


def without_history(network: Network) -> Network:
    """The network without the boards before a position, which labelled positions lack."""

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any):
        return network.apply(variables, without_past(positions), *options, **named)

    return network._replace(apply=apply)
