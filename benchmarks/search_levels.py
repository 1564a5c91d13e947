"""Compares Gumbel search by levels with one leaf of a game a call: python benchmarks/search_levels.py

For published networks of each board, at 16, 64 and 128 simulations without noise: the share of positions of play by the
network's policy (--positions, 1000) in which both choose the same move.
"""

import argparse

import jax
import numpy as np
from throughput.search import selfplay_states

import alphagateau
from alphagateau.games.state import State
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search

CHECKPOINTS = "checkpoints/gardner_selfplay", "checkpoints/los_alamos_selfplay", "checkpoints/chess_selfplay"
BATCH = 50


def moves(model: alphagateau.Model, states: State, config: GumbelConfig) -> np.ndarray:
    """Edges [B] of the moves chosen."""
    search = jax.jit(make_search(model.game, model.network, config))
    keys, found = jax.random.split(jax.random.key(0), BATCH), []
    for first in range(0, len(states.ply), BATCH):
        part = jax.tree.map(lambda x, first=first: x[first : first + BATCH], states)
        found.append(search(model.variables, keys, part).edge)
    return np.concatenate(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("checkpoints", nargs="*", default=CHECKPOINTS)
    options = parser.parse_args()
    for path in options.checkpoints:
        model = alphagateau.load(path)
        states = selfplay_states(model.game, model.network, model.variables, options.positions)
        for num_simulations in (16, 64, 128):
            chosen = [
                moves(model, states, GumbelConfig(num_simulations=num_simulations, gumbel_scale=0.0, batch_by=batch_by))
                for batch_by in ("level", "leaf")
            ]
            same = (chosen[0] == chosen[1]).mean()
            print(
                f"{path}, {num_simulations} simulations: the same move in {same:.1%} of {len(states.ply)}", flush=True
            )


if __name__ == "__main__":
    main()
