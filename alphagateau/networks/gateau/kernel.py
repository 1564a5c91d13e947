"""GATEAU by the programs that `network.kernel` asks for.

In inference one kernel computes the edges of a layer (`fused.py`), or XLA's do as in training (`network.py`).
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import jax
import jax.numpy as jnp

from alphagateau.games.actions import random_positions
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.groups import make_groups
from alphagateau.networks.gateau.network import inference_net, inputs_of, make_gateau, start_edges
from alphagateau.networks.network import Evaluation, Network, Outputs, Variables, statistics_of
from alphagateau.runs.logging.progress import warn

POSITIONS = 64  # which the two are compared on
WORSE = 2.0  # rounding errors, times those of the plain network
FLOOR = 1e-3  # of an output's size, an error that is no fault where the plain network has none


def make_gateau_by_kernel(game: Game, config: GateauConfig) -> Network:
    """Makes GATEAU for `game`; with "auto" the kernels are chosen when it is first traced, on the device at hand."""
    plain = make_gateau(game, config)

    def fused(variables: Variables, positions: Position) -> Evaluation:
        from alphagateau.networks.gateau.fused import evaluate_fused  # with Pallas and Triton, which others do without

        net = inference_net(game, config)
        inputs, legal = inputs_of(game, positions)
        start, _ = start_edges(net, variables, legal.mean(axis=0))
        return evaluate_fused(net, make_groups(game, config.neighbors), variables, start.residual, inputs)

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        if train or not uses_fused(game, config):
            return plain.apply(variables, positions, train, axis_name)
        if config.kernel == "fused":
            return fused(variables, positions), statistics_of(variables)
        evaluation = jax.lax.platform_dependent(  # as a CPU beside the GPU may be the one that runs it
            variables, positions, cuda=fused, default=lambda *inputs: plain.apply(*inputs)[0]
        )
        return evaluation, statistics_of(variables)

    return plain._replace(apply=apply)


def uses_fused(game: Game, config: GateauConfig) -> bool:
    """Whether `network.kernel` asks for the fused kernels, or "auto" finds them right on the GPU of this one process.

    "auto" takes them in bfloat16, where they were measured. Several processes run one program, which none of them may
    choose by itself.
    """
    if config.kernel == "auto":
        is_alone = jax.default_backend() == "gpu" and jax.process_count() == 1
        one_block = dataclasses.replace(config, num_blocks=1)  # which has all the kernels, and compiles sooner
        return is_alone and config.can_fuse and config.dtype == "bfloat16" and is_right_here(game.name, one_block)
    return config.kernel == "fused"


@lru_cache
def is_right_here(board: str, config: GateauConfig) -> bool:
    """Whether the fused network errs at most `WORSE` times as much here as the plain one; else says why it is left."""
    try:
        with ThreadPoolExecutor(1) as another:  # as in this one a program that has the network is being traced
            ratio = another.submit(error_of_fused, board, config).result()
    except Exception as error:  # what Triton raises, or its absence, has no common type
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        warn(f"GATEAU uses XLA's kernels, as the fused ones do not run here ({reason})")
        return False
    if ratio <= WORSE:
        return True
    warn(f"GATEAU uses XLA's kernels, as the fused ones err {ratio:.3g} times as much here, expected at most {WORSE:g}")
    return False


def error_of_fused(board: str, config: GateauConfig) -> float:
    """The greatest error of an output by the fused kernels over the plain network's own, to a floor; nan if one is.

    Errors are root mean squares of differences from the plain network in float32, with weights that leave no term out.
    """
    game = get_game(board)
    fused = make_gateau_by_kernel(game, dataclasses.replace(config, kernel="fused"))
    plain, exact = (make_gateau(game, dataclasses.replace(config, dtype=dtype)) for dtype in (config.dtype, "float32"))
    positions = random_positions(game, POSITIONS)
    leaves, tree = jax.tree.flatten_with_path(plain.init(jax.random.key(0)))
    keys = jax.random.split(jax.random.key(1), len(leaves))
    moved = [
        x + jax.random.uniform(k, x.shape, minval=-0.1, maxval=0.1) for (_, x), k in zip(leaves, keys, strict=True)
    ]
    attends = [path[-1] == jax.tree_util.DictKey("a") for path, _ in leaves]  # as drawn, nearly to all alike
    variables = jax.tree.unflatten(tree, [8 * x if a else x for x, a in zip(moved, attends, strict=True)])

    def outputs(network: Network) -> Evaluation:
        return jax.jit(network.apply)(variables, positions)[0]

    with jax.default_matmul_precision("highest"):
        expected = outputs(exact)
    found, rounded = outputs(fused), outputs(plain)

    def ratio(found: Array, rounded: Array, expected: Array) -> Array:
        error, own, size = (jnp.sqrt(jnp.square(x).mean()) for x in (found - expected, rounded - expected, expected))
        return error / jnp.maximum(own, FLOOR * size)

    return float(jnp.stack(jax.tree.leaves(jax.tree.map(ratio, found, rounded, expected))).max())
