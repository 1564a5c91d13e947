"""What `[search]` may say: a record an algorithm, each key declared once."""

from typing import ClassVar, Literal

from alphagateau.config.records import choice, key, kinds_of, num, program_or_path, record

ALGORITHM = "Gumbel MuZero; minimax: probability, depth; no search: policy, action_value, state_value, random"
FINISHER = "UCI engine of matches that chooses among the best moves where all win (none: empty)"
MIRRORS = "evaluations averaged over a position and its mirror image"
TEMPERATURE = "moves are drawn from softmax(score / temperature); 0: the best is played"
TEMPERATURE_PLIES = "plies of a game up to which moves are drawn"
NUM_NODES = "positions of a search, at most; a third of them is kept for quiescence"
SPLIT = "a move's share of its position's probability: by the network's prior, uniform, or by a checkpoint's prior"
QUIESCENCE_PLIES = "plies of captures and promotions after the last position (0: none)"
MOST_SIMULATIONS = 65_536  # of one search; beyond it and MOST_NODES no memory holds its tree
MOST_NODES = 1_000_000
POLICY_TEMPERATURE = "of the search's policy, softmax(value / temperature) (0: the best move alone)"


@record
class GumbelConfig:
    """Gumbel MuZero search."""

    algorithm: Literal["gumbel"] = choice(ALGORITHM, default="gumbel")
    num_simulations: int = num("search simulations a ply", default=128, low=1, high=MOST_SIMULATIONS)
    max_num_considered_actions: int = num("moves considered at the root", default=16, low=1, high=4096)
    gumbel_scale: float = num("scale of the Gumbel noise at the root", default=1.0, high=1000)
    value_scale: float = num("weight of the search's values beside the prior's logits", default=0.1, high=1e6)
    maxvisit_init: float = num(
        "visits added to the most visited move's, which values are weighed by", default=50.0, high=1e6
    )
    rescale_values: bool = key("a position's values stretched to 0 to 1 before they are weighed", default=True)
    average_mirrors: bool = key(MIRRORS, default=False)


@record
class ProbabilityConfig:
    """Minimax over the moves that are likely enough (Giraffe)."""

    num_simulations: ClassVar[int] = 0
    algorithm: Literal["probability"] = choice(ALGORITHM, default="probability")
    num_nodes: int = num(NUM_NODES, default=256, low=2, high=MOST_NODES)
    threshold: float = num("lines less probable are not gone on with (0: as the nodes allow)", default=0.0, high=1)
    split: str = program_or_path(SPLIT, default="prior", words=["uniform"])
    quiescence_plies: int = num(QUIESCENCE_PLIES, default=6, high=8)
    temperature: float = num(POLICY_TEMPERATURE, default=0.0)
    average_mirrors: bool = key(MIRRORS, default=False)


@record
class DepthConfig:
    """Minimax to a depth."""

    num_simulations: ClassVar[int] = 0
    algorithm: Literal["depth"] = choice(ALGORITHM, default="depth")
    depth: int = num("plies that are searched in full", default=2, low=1, high=10)
    num_nodes: int = num(NUM_NODES, default=4096, low=2, high=MOST_NODES)
    quiescence_plies: int = num(QUIESCENCE_PLIES, default=6, high=8)
    temperature: float = num(POLICY_TEMPERATURE, default=0.0)
    average_mirrors: bool = key(MIRRORS, default=False)


@record
class PolicyConfig:
    """No search: the network's own policy."""

    num_simulations: ClassVar[int] = 0
    max_num_considered_actions: ClassVar[int] = 16  # of a match whose players search
    algorithm: Literal["policy"] = choice(ALGORITHM, default="policy")
    average_mirrors: bool = key(MIRRORS, default=False)
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class ActionValueConfig:
    """No search: the move that the network values highest."""

    num_simulations: ClassVar[int] = 0
    max_num_considered_actions: ClassVar[int] = 16  # of a match whose players search
    algorithm: Literal["action_value"] = choice(ALGORITHM, default="action_value")
    endings: Literal["exact", "repetition", "none"] = choice(
        "moves valued by rule: mates and draws, those that repeat a position a third time, or none", default="exact"
    )
    finisher: str = program_or_path(FINISHER, default="")
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class StateValueConfig:
    """No search beyond the position after each move: the one that the network values lowest for the opponent."""

    num_simulations: ClassVar[int] = 0
    max_num_considered_actions: ClassVar[int] = 16  # of a match whose players search
    algorithm: Literal["state_value"] = choice(ALGORITHM, default="state_value")
    finisher: str = program_or_path(FINISHER, default="")
    average_mirrors: bool = key(MIRRORS, default=False)
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class RandomConfig:
    """No search and no network: random moves."""

    num_simulations: ClassVar[int] = 0
    max_num_considered_actions: ClassVar[int] = 16  # of a match whose players search
    algorithm: Literal["random"] = choice(ALGORITHM, default="random")


SearchConfig = (
    GumbelConfig | ProbabilityConfig | DepthConfig | PolicyConfig | ActionValueConfig | StateValueConfig | RandomConfig
)
ALGORITHMS = kinds_of(SearchConfig, "algorithm")
