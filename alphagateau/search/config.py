"""Keys of players without search in an experiment."""

from typing import Any, Literal

from alphagateau.config.records import choice, entry, key, num, program_or_path, record
from alphagateau.config.registers import SEARCHES, SearchConfig, SearchMethod

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


def _make_policy(game: Any, network: Any, config: PolicyConfig, tie_break: None = None) -> Any:
    from alphagateau.search.baselines import make_policy_search

    return make_policy_search(game, network, **_sampling(config))


def _make_action_value(game: Any, network: Any, config: ActionValueConfig, tie_break: Any = None) -> Any:
    from alphagateau.search.move_values import make_action_value_search

    return make_action_value_search(game, network, endings=config.endings, tie_break=tie_break, **_sampling(config))


def _make_state_value(game: Any, network: Any, config: StateValueConfig, tie_break: Any = None) -> Any:
    from alphagateau.search.move_values import make_state_value_search

    return make_state_value_search(game, network, tie_break=tie_break, **_sampling(config))


def _make_random(game: Any, network: Any, config: RandomConfig, tie_break: None = None) -> Any:
    from alphagateau.search.baselines import make_random_search

    return make_random_search()


def _sampling(config: Any) -> dict[str, Any]:
    """The options by which moves are sampled."""
    return {"temperature": config.temperature, "temperature_plies": config.temperature_plies}


POLICY = SearchMethod("policy", PolicyConfig, _make_policy)
ACTION_VALUE = SearchMethod("action_value", ActionValueConfig, _make_action_value)
STATE_VALUE = SearchMethod("state_value", StateValueConfig, _make_state_value)
RANDOM = SearchMethod("random", RandomConfig, _make_random)
