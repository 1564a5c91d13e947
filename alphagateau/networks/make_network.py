"""The network that an experiment names."""

from alphagateau.games.rules import Game
from alphagateau.networks.network import Network


def make_network(game: Game, config) -> Network:
    """The network that `config` (`alphagateau.config.NetworkConfig`) names, for `game`."""
    if config.architecture == "gateau":
        from alphagateau.networks.gateau import make_gateau

        return make_gateau(game, config)
    if config.architecture == "alphazero":
        from alphagateau.networks.alphazero import make_alphazero

        return make_alphazero(game, config)
    raise ValueError(f"unknown architecture {config.architecture!r}: expected 'gateau' or 'alphazero'")
