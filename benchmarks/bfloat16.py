"""A network's forward pass in bfloat16 against the same weights in float32: pace, and what the policy loses.

    python benchmarks/bfloat16.py paper checkpoints/chess_labelled

"paper" is GATEAU of the paper's size, weights as drawn. Pace is of CPU time on one thread, in turns, medians over the
rounds; KL divergence, in nats, and best moves are of legal moves in positions after 20 random moves.
"""

import argparse
import dataclasses
import os
import statistics
import time
from functools import partial
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false " + os.environ.get("XLA_FLAGS", "")

import jax
import jax.numpy as jnp
from throughput.ratios import PAPER, in_turns

from alphagateau.config import NetworkConfig
from alphagateau.games.actions import legal_edge_mask, random_positions
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Variables
from alphagateau.networks.trained import load_weights, network_config
from alphagateau.runs.newest import newest_checkpoint

DTYPES = ("float32", "bfloat16")


def network_of(name: str, game: Game) -> tuple[NetworkConfig, Variables]:
    """The keys and variables of "paper", or of a run's newest checkpoint."""
    if name == "paper":
        return PAPER, make_network(game, PAPER).init(jax.random.key(0))
    found = newest_checkpoint(Path(name))
    return network_config(found), load_weights(found, game.name)


def batches_of(positions: Position, batch: int) -> list[Position]:
    """Positions [B] in batches of `batch`; the rest is left out."""
    starts = range(0, len(positions.color) - batch + 1, batch)
    return [jax.tree.map(lambda x, i=i: x[i : i + batch], positions) for i in starts]


def kl_and_agreement(game: Game, positions: Position, exact: Array, rounded: Array) -> tuple[Array, Array]:
    """KL divergence [B] of legal moves by logits [B, E], in nats, and whether the best move is the same."""
    legal = legal_edge_mask(game, positions)
    p, q = (jax.nn.log_softmax(jnp.where(legal, x, -1e9)) for x in (exact, rounded))
    return (jnp.exp(p) * (p - q)).sum(axis=-1), p.argmax(axis=-1) == q.argmax(axis=-1)


def compare(game: Game, name: str, batches: list[Position], rounds: int) -> str:
    """The line that is printed of a network."""
    config, variables = network_of(name, game)
    networks = {dtype: make_network(game, dataclasses.replace(config, dtype=dtype)) for dtype in DTYPES}
    forward = {
        dtype: jax.jit(lambda v, x, apply=network.apply: apply(v, x)[0].prior_logits)
        for dtype, network in networks.items()
    }
    calls = {dtype: partial(fn, variables, batches[0]) for dtype, fn in forward.items()}
    seconds = in_turns(calls, rounds, time.process_time)
    pace = statistics.median(a / b for a, b in zip(*(seconds[dtype] for dtype in DTYPES), strict=True))
    found = [kl_and_agreement(game, x, *(forward[dtype](variables, x) for dtype in DTYPES)) for x in batches]
    kl, same = (jnp.concatenate(x) for x in zip(*found, strict=True))
    return (
        f"{name}: {pace:.2f} times the pace of float32; {len(kl)} positions: KL mean {kl.mean():.1e}, "
        f"greatest {kl.max():.1e} nats; the same best move in {100 * same.mean():.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help='"paper", or runs')
    parser.add_argument("--game", default="chess")
    parser.add_argument("--batch", type=int, default=40)
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=11)
    args = parser.parse_args()
    game = get_game(args.game)
    batches = batches_of(random_positions(game, args.positions), args.batch)
    for name in args.networks:
        print(compare(game, name, batches, args.rounds), flush=True)


if __name__ == "__main__":
    main()
