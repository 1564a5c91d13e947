"""A step of each game against pgx's, in turns in one process: python benchmarks/game_steps.py

Both step the same positions, `--batch` games after random moves. Prints a line a game: microseconds a position, and the
median of the rounds' ratios. pgx has no 6x6 game.
"""

import argparse
import statistics
from typing import cast

import jax
import jax.numpy as jnp
import pgx

from alphagateau.commands.throughput import in_turns
from alphagateau.games.entries import GAMES
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.games.variants import get_game


def random_edges(key: Array, legal_edges: Array) -> Array:
    """One legal edge [B] of each position, of legal edges [B, S]."""
    count = (legal_edges >= 0).sum(axis=1)
    slot = (jax.random.uniform(key, count.shape) * count).astype(jnp.int32)
    return jnp.take_along_axis(legal_edges, slot[:, None], axis=1)[:, 0]


def calls(game: Game, batch: int, num_plies: int) -> dict:
    """A step of ours, and of pgx where it has the game, after `num_plies` random moves."""
    labels = jnp.asarray(game.labels)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), game.init())
    step = jax.jit(jax.vmap(game.step))
    played = [random_edges(jax.random.key(0), states.legal_edges)]
    for ply in range(num_plies):
        states = step(states, played[-1])
        played.append(random_edges(jax.random.key(ply + 1), states.legal_edges))
    found = {"ours": lambda: step(states, played[-1])}
    if game.name in pgx.available_envs():
        env = pgx.make(cast(pgx.EnvId, game.name))
        theirs = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch))
        their_step = jax.jit(jax.vmap(env.step))
        for edges in played[:-1]:
            theirs = their_step(theirs, labels[edges])
        found["pgx"] = lambda: their_step(theirs, labels[played[-1]])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--plies", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=40)
    args = parser.parse_args()
    for name in GAMES:
        seconds = in_turns(calls(get_game(name), args.batch, args.plies), args.rounds)
        micro = {who: 1e6 * statistics.median(times) / args.batch for who, times in seconds.items()}
        line = ", ".join(f"{who} {value:.1f}" for who, value in micro.items())
        if "pgx" in seconds:
            ratios = [b / a for a, b in zip(seconds["ours"], seconds["pgx"], strict=True)]
            line += f"; {statistics.median(ratios):.1f} times, {min(ratios):.1f} to {max(ratios):.1f}"
        print(f"{name}: {line}")


if __name__ == "__main__":
    main()
