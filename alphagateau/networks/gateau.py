"""GATEAU: graph attention with edge features, on the static move graph of a board (AlphaGateau §4.3-4.4).

`reference.py` says the same as the paper prints it, and owns the parameters; a test holds the two equal. This one is
fast because the graph is known: what a layer needs of a node is computed per node, a sum over edges is a sum over
slots, the first layer's edges take two values each, and on a CPU a batch runs in chunks that fit the cache.

Nodes and edges are rows, one position of the batch below the other: h [B * N, K] and g [B * E, K], as in jraph.
"""

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportOperatorIssue=false, reportArgumentType=false

import os
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games import Game
from alphagateau.graphs import PLANES, board_codes, legal_edge_mask, position_scalars, static_features
from alphagateau.networks import Network
from alphagateau.networks.reference import make_reference
from alphagateau.networks.rows import Table, choose, group, lookup, make_table, repeat_for, take, weighted_sum
from alphagateau.types import HISTORY, Array, Evaluation, Position, Variables

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)
EPSILON = {"batch": 1e-5, "layer": 1e-6, "rms": 1e-6}  # flax's defaults
CHUNK_BYTES = 2**19  # of edge features a CPU core works on at a time: half of a common L2 cache

Dot = Callable[[Array, Array], Array]


class Layout(NamedTuple):
    """The static graph as tables: D slots a node hold its incoming edges."""

    senders: Table  # nodes -> edges [E]
    receivers: Table  # nodes -> edges [E]
    incoming: Table  # edges -> slots [N * D]
    incoming_senders: Table  # nodes -> slots [N * D]
    is_edge: np.ndarray  # bool [N, D], which slots are taken


class Inputs(NamedTuple):
    """What the network sees of B positions."""

    codes: Array  # int32 [B, HISTORY, N]
    scalars: Array  # float32 [B, 7]
    start_row: Array  # int32 [B, E], row of `EdgeStart`: e if edge e is illegal, E + e if it is legal


class Edges(NamedTuple):
    """What a layer needs of its edges."""

    g: Array  # [B * E, K]
    g_e: Array  # g @ W_e, [B * E, K]
    g_a: Array  # g @ W_e @ a, [B * E, 1]


def make_layout(game: Game) -> Layout:
    """The Layout of a Game's move graph."""
    edges, is_edge = group(game.receivers, game.num_squares)
    return Layout(
        senders=make_table(game.senders, game.num_squares),
        receivers=make_table(game.receivers, game.num_squares),
        incoming=make_table(edges, game.num_edges, is_edge),
        incoming_senders=make_table(game.senders[edges], game.num_squares, is_edge),
        is_edge=is_edge,
    )


def make_dot(dtype: str) -> Dot:
    """The matrix product of float32 arrays, of operands rounded to `dtype`, summed in float32."""

    def dot(x: Array, w: Array) -> Array:
        return jnp.dot(x.astype(dtype), w.astype(dtype), preferred_element_type=jnp.float32)

    return dot


def make_norm(kind: str, momentum: float, variables: Variables, train: bool, updates: dict):
    """norm(x [rows, K], name, count=None), as flax's module `name` of this kind would.

    Row i stands for `count[i]` equal rows. If `train`, batch statistics are x's, and the new running statistics are
    put into `updates`.
    """
    params, running = variables["params"], variables.get("batch_stats", {})

    def moments(x: Array, count: Array | None) -> tuple[Array, Array]:
        if count is None:
            return x.mean(axis=0), jnp.square(x).mean(axis=0)
        share = count[:, None] / count.sum()
        return (x * share).sum(axis=0), (jnp.square(x) * share).sum(axis=0)

    def batch_norm(x: Array, name: str, count: Array | None = None) -> Array:
        mean, var = running[name]["mean"], running[name]["var"]
        if train:
            mean, square = moments(x, count)
            var = jnp.maximum(square - jnp.square(mean), 0.0)
            new = {"mean": mean, "var": var}
            updates[name] = {k: momentum * running[name][k] + (1 - momentum) * v for k, v in new.items()}
        scale = params[name]["scale"] * jax.lax.rsqrt(var + EPSILON[kind])
        return x * scale + (params[name]["bias"] - mean * scale)

    def row_norm(x: Array, name: str, count: Array | None = None) -> Array:
        mean = x.mean(axis=1, keepdims=True) if kind == "layer" else 0.0
        var = jnp.maximum(jnp.square(x).mean(axis=1, keepdims=True) - jnp.square(mean), 0.0)
        x = (x - mean) * jax.lax.rsqrt(var + EPSILON[kind]) * params[name]["scale"]
        return x + params[name]["bias"] if kind == "layer" else x

    return batch_norm if kind == "batch" else row_norm


def gateau_layer(
    w: dict[str, Array], h: Array, edges: Edges, layout: Layout, message: str, dot: Dot
) -> tuple[Array, Array]:
    """Equations (4) to (6): (h', g') of h [B * N, K] and the Edges; receivers are i, senders are j."""
    num_nodes = len(layout.is_edge)
    batch = len(h) // num_nodes
    u, v = dot(h, w["W_u"]), dot(h, w["W_v"])

    # a.g' at each slot, from its three parts: numbers are moved, not rows.
    logits = take(layout.incoming, edges.g_a, batch)
    logits += take(layout.incoming_senders, h @ (w["W_v"] @ w["a"]), batch)
    logits = logits.reshape(len(h), -1) + h @ (w["W_u"] @ w["a"])
    logits = jax.nn.leaky_relu(logits, LEAKY_SLOPE)
    alpha = jax.nn.softmax(jnp.where(repeat_for(batch, layout.is_edge), logits, -jnp.inf))

    # The sum over edges commutes with W_g; if g' is what is mixed, so do its three parts.
    to_self, to_receivers, mixed = dot(h, w["W_0"]), dot(h, w["W_h"]), edges.g
    if message == "updated_edge":
        to_self, to_receivers = to_self + dot(u, w["W_g"]), to_receivers + dot(v, w["W_g"])
        mixed = edges.g_e
    edge_sum = weighted_sum(layout.incoming, alpha, mixed, batch)
    node_sum = weighted_sum(layout.incoming_senders, alpha, to_receivers, batch)
    h_new = to_self + node_sum + dot(edge_sum, w["W_g"])
    return h_new, edges.g_e + take(layout.receivers, u, batch) + take(layout.senders, v, batch)


def attention_pooling(a: Array, h: Array) -> Array:
    """Equation (7): h [B, N, K] -> [B, K]."""
    alpha = jax.nn.softmax(jax.nn.leaky_relu(h @ a, LEAKY_SLOPE), axis=1)
    return (alpha * h).sum(axis=1)


def embed_nodes(params: Variables, codes: Array, scalars: Array) -> Array:
    """The node features times their kernel, [B * N, K]: planes are one-hot, so their product is a sum of rows."""
    kernel, K = params["kernel"], len(params["bias"])
    of_planes, of_scalars = jnp.split(kernel, [HISTORY * PLANES.shape[1]])
    tables = (jnp.asarray(PLANES) @ of_planes.reshape(HISTORY, -1, K)).reshape(-1, K)
    codes = codes + len(PLANES) * jnp.arange(HISTORY)[:, None]
    everywhere = scalars @ of_scalars + params["bias"]
    rows = lookup(tables, codes.transpose(1, 0, 2).reshape(HISTORY, -1))
    return rows + jnp.repeat(everywhere, codes.shape[-1], axis=0)


class EdgeStart(NamedTuple):
    """The edges that enter the first layer, [2 * E, K]: first as illegal moves, then as legal ones.

    Until nodes reach it, an edge takes one of two values, the same in every position of the batch.
    """

    residual: Array
    edges: Edges


def start_edges(params: Variables, norm, static: Array, legal_share: Array, dot: Dot) -> EdgeStart:
    """The first layer's edges; `legal_share` [E] is how often each is legal in the batch."""
    kernel, w = params["embed_edges"], params["block0_gateau1"]
    illegal = static @ kernel[1:]
    either = jnp.concatenate([illegal, illegal + kernel[0]])
    count = jnp.concatenate([1 - legal_share, legal_share])
    y = jax.nn.relu(norm(either, "block0_norm_g1", count))
    return EdgeStart(either, Edges(y, dot(y, w["W_e"]), y @ (w["W_e"] @ w["a"])))


def evaluate(
    params: Variables, norm, start: EdgeStart, inputs: Inputs, layout: Layout, message: str, dot: Dot
) -> Evaluation:
    """Figures 2 to 4: residual blocks, value and policy heads."""
    batch, num_edges = inputs.start_row.shape
    num_blocks = sum(name.endswith("_gateau1") for name in params)

    def bnr(x: Array, name: str) -> Array:
        return jax.nn.relu(norm(x, name))

    def dense(x: Array, name: str) -> Array:
        return dot(x, params[name]["kernel"]) + params[name]["bias"]

    def edges_of(g: Array, name: str) -> Edges:
        w = params[name]
        return Edges(g, dot(g, w["W_e"]), g @ (w["W_e"] @ w["a"]))

    layer = partial(gateau_layer, layout=layout, message=message, dot=dot)
    h = embed_nodes(params["embed_nodes"], inputs.codes, inputs.scalars)
    g, edges = jax.tree.map(lambda x: choose(x, inputs.start_row), start)
    for i in range(num_blocks):
        first, second = f"block{i}_gateau1", f"block{i}_gateau2"
        if i > 0:
            edges = edges_of(bnr(g, f"block{i}_norm_g1"), first)
        x, y = layer(params[first], bnr(h, f"block{i}_norm_h1"), edges)
        edges = edges_of(bnr(y, f"block{i}_norm_g2"), second)
        x, y = layer(params[second], bnr(x, f"block{i}_norm_h2"), edges)
        h, g = h + x, g + y
    v = bnr(dense(bnr(h, "value_norm1"), "value_hidden"), "value_norm2")
    v = attention_pooling(params["value_pooling"]["a"], v.reshape(batch, -1, v.shape[1]))
    v = jax.nn.relu(v) @ params["value_out"]["kernel"] + params["value_out"]["bias"]
    p = bnr(dense(bnr(g, "policy_norm1"), "policy_hidden"), "policy_norm2")
    p = p @ params["policy_logit"]["kernel"]
    return Evaluation(p.reshape(batch, num_edges), jnp.tanh(v[:, 0]))


def in_chunks(fn: Callable[[Inputs], Evaluation], inputs: Inputs, size: int) -> Evaluation:
    """fn(inputs) in equal chunks of at most `size` positions, one after the other."""
    batch = len(inputs.start_row)
    num_chunks = -(-batch // size)
    if num_chunks == 1:
        return fn(inputs)
    size = -(-batch // num_chunks)

    def cut(x: Array) -> Array:
        x = jnp.pad(x, [(0, num_chunks * size - batch)] + [(0, 0)] * (x.ndim - 1))
        return x.reshape(num_chunks, size, *x.shape[1:])

    out = jax.lax.map(fn, jax.tree.map(cut, inputs))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:batch], out)


def chunk_size(num_edges: int, hidden_size: int) -> int:
    """Positions evaluated at a time on a CPU; elsewhere there is no limit."""
    if jax.default_backend() != "cpu":
        return 2**31
    cores = len(os.sched_getaffinity(0))
    return cores * max(1, CHUNK_BYTES // (4 * num_edges * hidden_size))


def make_gateau(game: Game, config) -> Network:
    """GATEAU for `game`; `config` is an `alphagateau.config.Network`. No parameter depends on the board."""
    layout, dot = make_layout(game), make_dot(config.dtype)
    size = chunk_size(game.num_edges, config.hidden_size)
    static = static_features(game)

    def apply(variables: Variables, positions: Position, train: bool = False) -> tuple[Evaluation, Variables]:
        params, updates = variables["params"], {}
        legal = legal_edge_mask(game, positions)
        start_row = jnp.arange(game.num_edges) + game.num_edges * legal
        inputs = Inputs(board_codes(positions), position_scalars(game, positions), start_row)
        momentum = config.batch_norm_momentum
        norm = make_norm(config.normalization, momentum, variables, train, updates)
        start = start_edges(params, norm, jnp.asarray(static), legal.mean(axis=0), dot)
        fn = partial(evaluate, params, norm, start, layout=layout, message=config.message, dot=dot)
        evaluation = fn(inputs) if train else in_chunks(fn, inputs, size)
        statistics = {k: v for k, v in variables.items() if k != "params"}
        return evaluation, statistics | ({"batch_stats": updates} if updates else {})

    return Network(make_reference(game, config).init, apply)
