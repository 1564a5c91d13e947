"""The searches by name: a game, a network and a search's configuration in, a Search out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import mctx

from alphagateau.games.rules import Game
from alphagateau.networks.mirrors import average_mirrors
from alphagateau.networks.network import Network
from alphagateau.search.baselines import make_policy_search, make_random_search
from alphagateau.search.gumbel import make_gumbel_search
from alphagateau.search.minimax import make_minimax_search
from alphagateau.search.search import Search


def make_search(game: Game, network: Network, config: Any) -> Search:
    """The search that `config.algorithm` names; the rest of `config` is that algorithm's own."""
    if config.algorithm not in ALGORITHMS:
        raise ValueError(f"unknown search algorithm {config.algorithm!r}: expected one of {', '.join(ALGORITHMS)}")
    if getattr(config, "average_mirrors", False):
        network = average_mirrors(game, network)
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
    return make_minimax_search(
        game,
        network,
        num_nodes=config.num_nodes,
        threshold=config.threshold,
        split=config.split,
        quiescence_plies=config.quiescence_plies,
        temperature=config.temperature,
    )


def _depth(game: Game, network: Network, config: Any) -> Search:
    return make_minimax_search(
        game,
        network,
        num_nodes=config.num_nodes,
        depth=config.depth,
        quiescence_plies=config.quiescence_plies,
        temperature=config.temperature,
    )


def _policy(game: Game, network: Network, config: Any) -> Search:
    del config
    return make_policy_search(game, network)


def _random(game: Game, network: Network, config: Any) -> Search:
    del game, network, config
    return make_random_search()


ALGORITHMS: dict[str, Callable[[Game, Network, Any], Search]] = {
    "gumbel": _gumbel,
    "probability": _probability,
    "depth": _depth,
    "policy": _policy,
    "random": _random,
}
