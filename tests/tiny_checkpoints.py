"""Checkpoints of untrained networks, small enough to compile in seconds."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from alphagateau.config import NetworkConfig, fields_of
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import WEIGHTS, Checkpoint

SMALL = {"hidden_size": 8, "num_blocks": 1}


def save_tiny(
    folder: Path,
    game_name: str,
    kind: type[NetworkConfig],
    name: str = "0",
    seed: int = 0,
    boards: Sequence[str] = (),
    **changes: Any,
) -> Checkpoint:
    """A checkpoint in `folder`, its iteration its name, of one block, 8 features wide, its configuration changed so."""
    sizes = {name: size for name, size in SMALL.items() if name in fields_of(kind)}
    config = kind(**sizes, **changes)
    variables = make_network(get_game(game_name), config).init(jax.random.key(seed))
    manifest = {
        "iteration": int(name),
        "parameters": 0,
        "optimizer_steps": 0,
        "game": game_name,
        **({"boards": list(boards)} if boards else {}),
        "weights_hash": checkpoint.weights_hash(variables),
        "progress": {},
        "network": dataclasses.asdict(config),
        "search": {"algorithm": "gumbel", "num_simulations": 4},
        "order": [int(name), 0, 0],
        "symptoms": [],
    }
    return checkpoint.save(folder, name, {WEIGHTS: variables}, manifest)
