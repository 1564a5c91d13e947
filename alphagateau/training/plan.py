"""Resolves an experiment once into the game and the network of each of its boards."""

from typing import NamedTuple

from alphagateau.config import Experiment, board_experiments
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Network


class BoardPlan(NamedTuple):
    """One board of a run."""

    experiment: Experiment  # of this board: its seed, its games, its part of the window
    game: Game
    network: Network


class Plan(NamedTuple):
    """A run, resolved."""

    experiment: Experiment  # of all boards
    boards: tuple[BoardPlan, ...]
    game: Game  # of the key `game`
    network: Network  # on `game`


def make_plan(experiment: Experiment) -> Plan:
    """The plan of an experiment. Raises ValueError for an unknown game."""
    boards = tuple(
        BoardPlan(part, game := get_game(part.game), make_network(game, part.network))
        for part in board_experiments(experiment)
    )
    main = next(board for board in boards if board.experiment.game == experiment.game)
    return Plan(experiment, boards, main.game, main.network)
