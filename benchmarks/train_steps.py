"""One optimizer step of several networks: ratios to the plain reference, to the products of a step alone, and memory.

    python benchmarks/train_steps.py gardner_chess batch ghost rms layer
    python benchmarks/train_steps.py chess batch rms --rounds 9

All take turns in one process. "products" does nothing but a step's matrix products, of the same shapes, chunk by chunk
and with no data to fetch: what a step of this network cannot go below while these kernels do its products. Ratios are
of wall time and of CPU time, medians over the rounds; MB is what a compiled step needs beside its arguments.
"""

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from throughput.ratios import PAPER, QUICKSTART, frames_of

from alphagateau.games.actions import random_positions
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.networks.chunks import chunk_size, equal_chunks
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import make_reference
from alphagateau.networks.network import Network
from alphagateau.training.flops import forward_flops
from alphagateau.training.frames import Frame
from alphagateau.training.learner import make_learner
from alphagateau.training.losses.policy_value import policy_value_loss
from alphagateau.training.optimizer import make_optimizer

SIZES = {"chess": PAPER, "gardner_chess": QUICKSTART}
Call = tuple[Callable[[], Any], float]  # (what is timed, bytes of temporaries)


def compiled(fn: Callable, *args: Any) -> Call:
    program = jax.jit(fn).lower(*args).compile()
    return lambda: program(*args), getattr(program.memory_analysis(), "temp_size_in_bytes", 0)


def step_of(game: Game, network: Network, frames: Frame) -> Call:
    """One optimizer step on B frames."""
    learner = make_learner(game, network, policy_value_loss, make_optimizer(1e-3))
    return compiled(learner.step, learner.init(network.init(jax.random.key(0))), frames)


def products_of(game: Game, config: GateauConfig, batch: int) -> Call:
    """A step's products: for each layer forward, gradient of rows, gradient of weights; 5 of nodes for one of edges.

    A head and a first layer that has none of its own make 2 L of edges in all.
    """
    size = batch // equal_chunks(batch, chunk_size(game.num_edges, config.hidden_size))
    weights = jax.random.normal(jax.random.key(0), (config.hidden_size, config.hidden_size))
    weights /= config.hidden_size**0.5

    def layer(carry, _):
        edges, nodes, total = carry
        for rows in (edges, nodes):
            total += rows.T @ (rows @ weights)
        return (edges @ weights @ weights.T, nodes @ weights @ weights.T, total), None

    def chunk(total, i):
        edges = jnp.ones((size * game.num_edges, config.hidden_size)) * i
        nodes = jnp.ones((5 * size * game.num_squares, config.hidden_size)) * i
        (edges, nodes, total), _ = jax.lax.scan(layer, (edges, nodes, total), None, length=2 * config.num_blocks)
        return total + edges[0, 0] + nodes[0, 0], None

    return compiled(lambda: jax.lax.scan(chunk, weights, jnp.arange(batch // size))[0])


def make_calls(game: Game, kinds: list[str], batch: int) -> dict[str, Call]:
    """What takes turns: the reference, the products, and for each KIND[:bfloat16] a step of the fast network."""
    config = SIZES[game.name]
    frames = frames_of(game, random_positions(game, batch))
    calls = {"plain": step_of(game, make_reference(game, config), frames), "products": products_of(game, config, batch)}
    for kind in kinds:
        normalization, _, dtype = kind.partition(":")
        changed = dataclasses.replace(config, normalization=normalization, dtype=dtype or "float32")
        calls[kind] = step_of(game, make_gateau(game, changed), frames)
    return calls


def in_turns(calls: dict[str, Call], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """(wall, CPU) seconds of each call in each round, after one to warm up."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for i in range(rounds + 1):
        for name, (call, _) in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(call())
            if i:
                seconds[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return seconds


def ratio(a: list[tuple[float, float]], b: list[tuple[float, float]], which: int) -> float:
    return statistics.median(x[which] / y[which] for x, y in zip(a, b, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=sorted(SIZES))
    parser.add_argument("kinds", nargs="*", default=["batch"], help="normalizations, :bfloat16 behind one that rounds")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    game = get_game(args.game)
    calls = make_calls(game, args.kinds, args.batch)
    seconds = in_turns(calls, args.rounds)
    flops = 3 * args.batch * forward_flops(game, make_gateau(game, SIZES[args.game]))
    print(
        f"{args.game}, batch {args.batch}, {flops / 1e9:.2f} GFLOP of products a step; medians of {args.rounds} rounds"
    )
    print(f"{'':24}{'plain / it':>20}{'products / it':>20}{'MB':>10}")
    for name, (_, temporary) in calls.items():
        columns = [
            f"{ratio(seconds[base], seconds[name], 0):8.2f} ({ratio(seconds[base], seconds[name], 1):5.2f} CPU)"
            for base in ("plain", "products")
        ]
        print(f"{name:24}{columns[0]:>20}{columns[1]:>20}{temporary / 1e6:10.0f}")


if __name__ == "__main__":
    main()
