"""Loads the network and weights of a checkpoint, and joins the policy of one network to the values of another."""

import dataclasses
from pathlib import Path
from typing import Any

import jax

from alphagateau.config import NETWORKS, ConfigError, NetworkConfig, SearchConfig
from alphagateau.config.searches import describe_search
from alphagateau.distributed.processes import everywhere
from alphagateau.games.entries import GAMES, have_equal_moves
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import average_mirrors, make_network
from alphagateau.networks.network import Network, Outputs, Variables
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint, CheckpointError, NoCheckpointError
from alphagateau.runs.newest import newest_checkpoint

SPLITS = ("prior", "uniform")  # values of a search's `split` that are not a checkpoint


def network_config(found: Checkpoint) -> NetworkConfig:
    """The configuration of a checkpoint's network, by its manifest. Raises CheckpointError."""
    try:
        return NETWORKS.read(found.manifest["network"])
    except ConfigError as error:
        raise CheckpointError(f"{found.path} has a network that this version cannot read: {error}") from None


def check_board(found: Checkpoint, config: NetworkConfig, game_name: str) -> None:
    """Raises NoCheckpointError if the weights of a checkpoint have the size of another board."""
    learnt = found.manifest["game"]
    if not have_equal_moves(learnt, game_name) and not config.plays_every_board:
        own = f"{learnt} (UCI_Variant {GAMES[learnt].uci_variant})"
        misfit = f"the weights of its {config.architecture} have the size of {own}"
        raise everywhere(NoCheckpointError(f"{found.path} does not play {game_name}: {misfit}"))


def load_weights(found: Checkpoint, game_name: str) -> Any:
    """The variables of a checkpoint for the network on a board. Raises CheckpointError."""
    config = network_config(found)
    check_board(found, config, game_name)
    network = make_network(get_game(game_name), config)
    return checkpoint.load(found, WEIGHTS, jax.eval_shape(network.init, jax.random.key(0)))


def load_policy(source: Path, game: Game, is_mirrored: bool) -> tuple[Network, Variables]:
    """A checkpoint's network, or that of a run's newest one, and its weights. Raises CheckpointError."""
    found = newest_checkpoint(source)
    network = make_network(get_game(game.name), network_config(found))  # by whose limit of plies it learnt
    return average_mirrors(game, network) if is_mirrored else network, load_weights(found, game.name)


def player_search_name(config: SearchConfig) -> str:
    """The name of a player's search; a checkpoint in `split` is named by its weights. Raises CheckpointError."""
    split = config.split
    if split not in SPLITS:
        config = dataclasses.replace(config, split=newest_checkpoint(Path(split)).manifest["weights_hash"])
    return describe_search(config)


def with_policy(network: Network, policy: Network, weights: Variables) -> Network:
    """The network with the prior logits of `policy` in place of its own."""
    weights = jax.device_get(weights)

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any) -> Outputs:
        evaluation, statistics = network.apply(variables, positions, *options, **named)
        policy_evaluation, _ = policy.apply(weights, positions, False)
        return evaluation._replace(prior_logits=policy_evaluation.prior_logits), statistics

    return network._replace(apply=apply)
