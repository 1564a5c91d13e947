"""Plans of runs: an experiment resolved once into the game and the network of each of its boards."""

from typing import NamedTuple

from alphagateau.config import Experiment, board_experiments
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Network


class BoardPlan(NamedTuple):
    """One board of a run."""

    experiment: Experiment  # of this board alone: its seed, its games, its part of the window
    game: Game
    network: Network


class Plan(NamedTuple):
    """A run, resolved."""

    experiment: Experiment  # of all boards
    boards: tuple[BoardPlan, ...]
    game: Game  # that `game` names
    network: Network  # on `game`; its `move_from` fits weights to the largest board, and so to all

    @property
    def names(self) -> list[str]:
        """The names of the boards."""
        return [board.experiment.game for board in self.boards]


def make_plan(experiment: Experiment) -> Plan:
    """The plan of an experiment. Raises ValueError for an unknown game."""
    boards = tuple(map(plan_board, board_experiments(experiment)))
    main = next(board for board in boards if board.experiment.game == experiment.game)
    largest = max(boards, key=lambda board: board.game.size)
    return Plan(experiment, boards, main.game, main.network._replace(move_from=largest.network.move_from))


def plan_board(experiment: Experiment) -> BoardPlan:
    """The plan of an experiment of one board."""
    game = get_game(experiment.game)
    return BoardPlan(experiment, game, make_network(game, experiment.network))
