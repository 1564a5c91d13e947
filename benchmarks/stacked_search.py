"""Measures whether players of one architecture are better searched in one call, their weights stacked, than one by one.

    python benchmarks/stacked_search.py [--game gardner_chess] [--simulations 16] [--players 2 4] [--rows 8]

Prints the CPU time of one call a player over that of one call for all, as many rows in all, in one process: above 1 the
stacked call is the faster. The quickstart's network, untrained; the moves found are compared, too.
"""

import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau import config
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.search.gumbel.config import GumbelConfig
from alphagateau.search.make_search import make_search


def best_of(call, repeats: int = 5) -> float:
    """CPU seconds of the fastest of some calls."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        jax.block_until_ready(call())
        found.append(time.process_time() - begun)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--game", default="gardner_chess")
    parser.add_argument("--simulations", type=int, default=16)
    parser.add_argument("--players", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rows", type=int, default=8, help="of each player")
    options = parser.parse_args()
    game, rows = get_game(options.game), options.rows
    network = make_network(game, config.load(config.find_file("quickstart", "experiment")).network)
    search = make_search(game, network, GumbelConfig(num_simulations=options.simulations, gumbel_scale=0.0))
    state = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], rows, axis=0), game.init())
    keys = jax.random.split(jax.random.key(0), rows)
    one = jax.jit(lambda variables: search(variables, keys, state).edge)
    print("| players | rows of each | one by one / stacked |\n|---|---|---|")
    for num_players in options.players:
        players = [network.init(jax.random.key(k)) for k in range(num_players)]
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *players)
        all_at_once = jax.jit(jax.vmap(lambda variables: search(variables, keys, state).edge))
        apart = np.stack([one(variables) for variables in players])
        assert (apart == np.asarray(all_at_once(stacked))).mean() > 0.9
        alone = sum(best_of(partial(one, variables)) for variables in players)
        together = best_of(partial(all_at_once, stacked))
        print(f"| {num_players} | {rows} | {alone / together:.2f} |", flush=True)


if __name__ == "__main__":
    main()
