"""A checkpoint in, its network with its weights out; and one network whose moves are judged by another's policy."""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax

from alphagateau.config import ConfigError, NetworkConfig, SearchConfig, read_network
from alphagateau.config.searches import describe_search
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Evaluation, Network, Variables
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint, CheckpointError, NoCheckpointError
from alphagateau.runs.run_folder import newest

SPLITS = ("prior", "uniform")  # what a search's split may be that is no checkpoint


class Trained(NamedTuple):
    """A network and what it has learnt."""

    network: Network
    variables: Variables


def network_config(found: Checkpoint) -> NetworkConfig:
    """The network that a checkpoint's manifest names. Raises CheckpointError."""
    try:
        return read_network(found.manifest["network"])
    except ConfigError as error:
        raise CheckpointError(f"{found.path} names no network that this version knows: {error}") from None


def load_weights(found: Checkpoint, game_name: str) -> Any:
    """The weights of a checkpoint, for use on any board. Raises CheckpointError."""
    config, learnt = network_config(found), found.manifest["game"]
    if config.architecture.startswith("giraffe") and learnt != game_name:
        raise NoCheckpointError(
            f"{found.path} learnt {learnt}: Giraffe's inputs are those of one board, not {game_name}'s"
        )
    network = make_network(get_game(game_name), config)
    variables = checkpoint.load(found, WEIGHTS, jax.eval_shape(network.init, jax.random.key(0)))
    if checkpoint.weights_hash(variables) != found.manifest["weights_hash"]:
        raise CheckpointError(f"{found.path}: the weights are not those that its manifest names")
    return variables


def load_trained(source: Path, game: Game) -> Trained:
    """The network of a checkpoint, or of a run's newest one. Raises CheckpointError."""
    found = newest(source)
    return Trained(make_network(game, network_config(found)), jax.device_get(load_weights(found, game.name)))


def describe_players_search(config: SearchConfig) -> str:
    """`describe_search`, a split by the policy of a checkpoint named by its weights. Raises CheckpointError."""
    split = getattr(config, "split", SPLITS[0])
    if split not in SPLITS:
        config = dataclasses.replace(config, split=newest(Path(split)).manifest["weights_hash"])
    return describe_search(config)


def with_policy(network: Network, policy: Trained) -> Network:
    """The network with the prior logits of another one; all else is its own."""

    def apply(variables: Variables, positions: Position, *options: Any, **named: Any) -> tuple[Evaluation, Variables]:
        evaluation, statistics = network.apply(variables, positions, *options, **named)
        of_moves, _ = policy.network.apply(policy.variables, positions, False)
        return evaluation._replace(prior_logits=of_moves.prior_logits), statistics

    return network._replace(apply=apply)
