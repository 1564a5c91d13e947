"""Makes the Search of a record of keys."""

from alphagateau.config.registers import SEARCHES, SearchConfig
from alphagateau.games.rules import Game
from alphagateau.networks.make_network import average_mirrors
from alphagateau.networks.network import Network
from alphagateau.search.move_values import TieBreak
from alphagateau.search.search import Search


def make_search(game: Game, network: Network, config: SearchConfig, tie_break: TieBreak | None = None) -> Search:
    """The search of a record of keys; the `tie_break` of a player of values chooses among winning moves.

    Raises ConfigError if the search is not registered, CheckpointError if `config.split` is no path of a checkpoint.
    """
    if config.average_mirrors:
        network = average_mirrors(game, network)
    return SEARCHES.entry(config.algorithm).make(game, network, config, tie_break)
