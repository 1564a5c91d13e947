"""Checkpoints of untrained networks, small enough to compile in seconds."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import jax

from alphagateau.config import NetworkConfig
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint

SMALL = {"hidden_size": 8, "num_blocks": 1}


def save_tiny(folder: Path, game_name: str, kind: Callable[..., NetworkConfig], sizes: Mapping = SMALL) -> Checkpoint:
    """A checkpoint of iteration 0 in `folder`, by default of a network of one block, 8 features wide."""
    config = kind(**sizes)
    variables = make_network(get_game(game_name), config).init(jax.random.key(0))
    manifest = {
        "iteration": 0,
        "parameters": 0,
        "optimizer_steps": 0,
        "game": game_name,
        "weights_hash": checkpoint.weights_hash(variables),
        "progress": {},
        "network": dataclasses.asdict(config),
        "search": {"algorithm": "gumbel", "num_simulations": 4},
        "order": [0, 0, 0],
        "symptoms": [],
    }
    return checkpoint.save(folder, "0", {WEIGHTS: variables}, manifest)
