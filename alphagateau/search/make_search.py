"""Makes the Search of a configuration record; the register of search methods."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import mctx

from alphagateau.games.rules import Game
from alphagateau.networks.mirror_average import average_mirrors
from alphagateau.networks.network import Network
from alphagateau.networks.trained import SPLITS, load_trained, with_policy
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.gumbel.gumbel import make_gumbel_search
from alphagateau.search.minimax.minimax import make_minimax_search
from alphagateau.search.move_values import TieBreak, make_action_value_search, make_state_value_search
from alphagateau.search.search import Search


def make_search(game: Game, network: Network, config: Any, tie_break: TieBreak | None = None) -> Search:
    """The search of `config.algorithm`, whose options are the rest of `config`.

    Args:
        tie_break: of a player of values, chooses among winning moves.

    Raises:
        CheckpointError: `config.split` is not the path of a checkpoint.
    """
    if config.algorithm not in ALGORITHMS:
        raise ValueError(f"unknown search algorithm {config.algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
    if getattr(config, "average_mirrors", False):
        network = average_mirrors(game, network)
    if tie_break:
        make_fn = _action_value if config.algorithm == "action_value" else _state_value
        return make_fn(game, network, config, tie_break)
    return ALGORITHMS[config.algorithm](game, network, config)


def _gumbel(game: Game, network: Network, config: Any) -> Search:
    qtransform = partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale,
        maxvisit_init=config.maxvisit_init,
        rescale_values=config.rescale_values,
    )
    return make_gumbel_search(
        game,
        network,
        num_simulations=config.num_simulations,
        max_num_considered_actions=config.max_num_considered_actions,
        gumbel_scale=config.gumbel_scale,
        qtransform=qtransform,
    )


def _probability(game: Game, network: Network, config: Any) -> Search:
    split = config.split
    if split not in SPLITS:
        network, split = with_policy(network, load_trained(Path(split), game)), "prior"
    return _minimax(game, network, config, threshold=config.threshold, split=split)


def _depth(game: Game, network: Network, config: Any) -> Search:
    return _minimax(game, network, config, depth=config.depth)


def _minimax(game: Game, network: Network, config: Any, **growth: Any) -> Search:
    names = ("num_nodes", "quiescence_plies", "temperature")
    return make_minimax_search(game, network, **{name: getattr(config, name) for name in names}, **growth)


def _policy(game: Game, network: Network, config: Any) -> Search:
    return make_policy_search(game, network, **_sampling(config))


def _action_value(game: Game, network: Network, config: Any, tie_break: TieBreak | None = None) -> Search:
    return make_action_value_search(game, network, endings=config.endings, tie_break=tie_break, **_sampling(config))


def _state_value(game: Game, network: Network, config: Any, tie_break: TieBreak | None = None) -> Search:
    return make_state_value_search(game, network, tie_break=tie_break, **_sampling(config))


def _sampling(config: Any) -> dict[str, Any]:
    """The options by which moves are sampled."""
    return {"temperature": config.temperature, "temperature_plies": config.temperature_plies}


def _random(game: Game, network: Network, config: Any) -> Search:
    del game, network, config
    return make_random_search()


ALGORITHMS: dict[str, Callable[[Game, Network, Any], Search]] = {
    "gumbel": _gumbel,
    "probability": _probability,
    "depth": _depth,
    "policy": _policy,
    "action_value": _action_value,
    "state_value": _state_value,
    "random": _random,
}
