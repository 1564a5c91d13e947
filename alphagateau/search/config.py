"""Keys of players without search in an experiment."""

from typing import Literal

from alphagateau.config.records import choice, entry, key, num, program_or_path, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod, deferred

MIRRORS = "evaluations averaged over a position and its mirror image"
FINISHER = "UCI engine of matches that chooses among the best moves where all win (none: empty)"
TEMPERATURE = "moves are drawn from softmax(score / temperature); 0: the best is played"
TEMPERATURE_PLIES = "plies of a game up to which moves are drawn"


@record
class PolicyConfig(SearchConfig):
    """No search: the network's own policy."""

    grows_in_play = True  # of runs trained by it; `?search=policy` plays without the tree
    algorithm: Literal["policy"] = entry("kind of search", SEARCHES, default="policy")
    average_mirrors: bool = key(MIRRORS, default=False)
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class ActionValueConfig(SearchConfig):
    """No search: the move that the network values highest."""

    needs_action_values = True
    algorithm: Literal["action_value"] = entry("kind of search", SEARCHES, default="action_value")
    endings: Literal["exact", "repetition", "none"] = choice(
        "moves valued by rule: mates and draws, those that repeat a position a third time, or none", default="exact"
    )
    finisher: str = program_or_path(FINISHER, default="")
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class StateValueConfig(SearchConfig):
    """No search beyond the position after each move: the one that the network values lowest for the opponent."""

    algorithm: Literal["state_value"] = entry("kind of search", SEARCHES, default="state_value")
    finisher: str = program_or_path(FINISHER, default="")
    average_mirrors: bool = key(MIRRORS, default=False)
    temperature: float = num(TEMPERATURE, default=0.0)
    temperature_plies: int = num(TEMPERATURE_PLIES, default=10)


@record
class RandomConfig(SearchConfig):
    """No search and no network: random moves."""

    grows_in_play = True
    algorithm: Literal["random"] = entry("kind of search", SEARCHES, default="random")


BASELINES, MOVE_VALUES = "alphagateau.search.baselines", "alphagateau.search.move_values"
POLICY = SearchMethod("policy", PolicyConfig, deferred(f"{BASELINES}:make_policy_search"))
ACTION_VALUE = SearchMethod("action_value", ActionValueConfig, deferred(f"{MOVE_VALUES}:make_action_value_search"))
STATE_VALUE = SearchMethod("state_value", StateValueConfig, deferred(f"{MOVE_VALUES}:make_state_value_search"))
RANDOM = SearchMethod("random", RandomConfig, deferred(f"{BASELINES}:make_random_search"))
