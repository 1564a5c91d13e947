"""Keys of minimax search in an experiment."""

from typing import Literal

from alphagateau.config.records import entry, key, num, program_or_path, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod, deferred
from alphagateau.search.config import MIRRORS

NUM_NODES = "positions of a search, at most; a third of them is kept for quiescence"
SPLIT = "a move's share of its position's probability: by the network's prior, uniform, or by a checkpoint's prior"
QUIESCENCE_PLIES = "plies of captures and promotions after the last position (0: none)"
MOST_NODES = 1_000_000
LEAST_PROBABILITY = 1e-30  # of lines that are expanded; a policy may give a move none
FAR = 2**20  # plies: no limit
POLICY_TEMPERATURE = "of the search's policy, softmax(value / temperature) (0: the best move alone)"


class MinimaxConfig(SearchConfig):
    """The keys of both minimax searches."""

    has_line = True
    num_nodes: int
    quiescence_plies: int
    split = "uniform"
    depth = FAR  # plies of the main tree
    least_probability = 0.0  # of its lines; 0: no threshold

    @property
    def num_evaluations(self) -> int:
        """Positions evaluated below the root, at most."""
        return self.num_nodes - 1


@record
class ProbabilityConfig(MinimaxConfig):
    """Minimax over the moves that are likely enough (Giraffe)."""

    algorithm: Literal["probability"] = entry("kind of search", SEARCHES, default="probability")
    num_nodes: int = num(NUM_NODES, default=256, low=2, high=MOST_NODES)
    threshold: float = num("lines less probable are not gone on with (0: as the nodes allow)", default=0.0, high=1)
    split: str = program_or_path(SPLIT, default="prior", words=["uniform"])
    quiescence_plies: int = num(QUIESCENCE_PLIES, default=6, high=8)
    temperature: float = num(POLICY_TEMPERATURE, default=0.0)
    average_mirrors: bool = key(MIRRORS, default=False)

    @property
    def least_probability(self) -> float:
        """The probability from which lines are gone on with."""
        return max(self.threshold, LEAST_PROBABILITY)


@record
class DepthConfig(MinimaxConfig):
    """Minimax to a depth."""

    algorithm: Literal["depth"] = entry("kind of search", SEARCHES, default="depth")
    depth: int = num("plies that are searched in full", default=2, low=1, high=10)
    num_nodes: int = num(NUM_NODES, default=4096, low=2, high=MOST_NODES)
    quiescence_plies: int = num(QUIESCENCE_PLIES, default=6, high=8)
    temperature: float = num(POLICY_TEMPERATURE, default=0.0)
    average_mirrors: bool = key(MIRRORS, default=False)


MAKE = deferred("alphagateau.search.minimax.minimax:make_minimax_search")
PROBABILITY = SearchMethod("probability", ProbabilityConfig, MAKE)
DEPTH = SearchMethod("depth", DepthConfig, MAKE)
