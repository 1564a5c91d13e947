"""Times Chessformer's forward pass and gradient against their own matrix products, in CPU time.

The products are taken from the traced program and run alone on contiguous operands: a lower bound of the network's time
with these kernels.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax.extend.core import jaxprs_in_params

from alphagateau.games.actions import random_positions
from alphagateau.games.state import Array, Position
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chunks import into_chunks
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Network
from throughput.ratios import Row, compare, in_turns

BATCH = 64
SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "5x5, d 48": ("gardner_chess", {"hidden_size": 48, "num_blocks": 4, "num_heads": 3, "ffn_size": 48}),
    "8x8, d 128": ("chess", {"hidden_size": 128, "num_blocks": 5, "num_heads": 4, "ffn_size": 128}),
}
TARGETS: dict[Literal["bias", "shaw"], float] = {"bias": -1.3, "shaw": -2.0}  # multiples of the products, at most

Shape = tuple[int, int, int, int]  # (b, m, k, n): a batch of b products [m, k] x [k, n]


def chessformer_rows(rounds: int) -> Iterator[Row]:
    """Rows of forward pass and gradient as multiples of their products."""
    for name, (game_name, size) in SIZES.items():
        game = get_game(game_name)
        positions = random_positions(game, BATCH)
        for position, target in TARGETS.items():
            network = make_network(game, ChessformerConfig(position=position, **size))
            params = network.init(jax.random.key(0))["params"]
            for what, fn in (("forward", partial(forward, network)), ("gradient", gradient_fn(network))):
                shapes = count_products(jax.make_jaxpr(fn)(params, positions).jaxpr)
                calls = {"fast": partial(jax.jit(fn), params, positions), "plain": products_alone(shapes)}
                label = f"Chessformer {what}, {position}, {name}, batch {BATCH}, CPU time over its products'"
                yield compare(label, in_turns(calls, rounds, time.process_time), target)


def forward(network: Network, params: Any, positions: Position) -> tuple[Array, Array]:
    """(prior logits, values)."""
    return network.apply({"params": params}, positions)[0][:2]


def gradient_fn(network: Network) -> Callable:
    """(params, positions) -> the gradient of a loss on all logits and values, in chunks as in the learner."""

    def loss(params: Any, positions: Any):
        evaluation, _ = network.apply({"params": params}, positions, True)
        return jnp.square(evaluation.prior_logits).mean() + jnp.square(evaluation.value).mean()

    def gradient(params: Any, positions: Any) -> Any:
        def add_chunk(total: Any, chunk: Any) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, chunk)), None

        num_chunks = network.num_chunks(len(positions.color))
        if num_chunks == 1:
            return jax.grad(loss)(params, positions)
        return jax.lax.scan(add_chunk, jax.tree.map(jnp.zeros_like, params), into_chunks(positions, num_chunks))[0]

    return gradient


def count_products(jaxpr: Any) -> Counter[Shape]:
    """The number of matrix products of each shape in a traced program."""
    counts: Counter[Shape] = Counter()
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        if name == "dot_general":
            (contracted, _), (batch, _) = params["dimension_numbers"]
            x, y = (operand.aval.shape for operand in equation.invars)
            b, k = (math.prod(x[axis] for axis in axes) for axes in (batch, contracted))
            counts[b, math.prod(x) // (b * k), k, math.prod(y) // (b * k)] += 1
        for inner in jaxprs_in_params(params):
            times = params["length"] if name == "scan" else 1
            for shape, count in count_products(inner).items():
                counts[shape] += times * count
    return counts


def products_alone(shapes: Counter[Shape]) -> Callable[[], Any]:
    """Makes a call of these products alone, each with operands of its own and results in the same memory."""

    def operands(b: int, m: int, k: int, n: int, count: int) -> tuple[jax.Array, jax.Array]:
        batch = (b,) if b > 1 else ()  # without a batch axis another kernel runs
        return jnp.ones((count, *batch, m, k)), jnp.ones((count, *batch, k, n)) / k

    def repeat(x: jax.Array, y: jax.Array) -> jax.Array:
        start = jnp.zeros((*x.shape[1:-1], y.shape[-1]))
        return jax.lax.scan(lambda _, pair: (jnp.matmul(*pair), None), start, (x, y))[0]

    pairs = [operands(*shape, count) for shape, count in shapes.items()]
    multiply = jax.jit(lambda pairs: [repeat(*pair) for pair in pairs])
    return lambda: multiply(pairs)
