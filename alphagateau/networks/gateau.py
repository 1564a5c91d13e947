"""GATEAU: graph attention with edge features, on the static move graph of a board (AlphaGateau §4.3-4.4).

`reference.py` says the same as the paper prints it, and owns the parameters; a test holds the two equal. This one is
fast because the graph is known: what a layer needs of a node is computed per node, a sum over edges is a sum over
slots, the first layer's edges take two values each, and on a CPU a batch runs in chunks that fit the cache: in
inference through the whole network, in training through one layer, because batch statistics are of the whole batch.

Nodes and edges are rows, one position of the batch below the other: h [B * N, K] and g [B * E, K], as in jraph.
"""

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.distributed.collectives import mean_over
from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Array, Position
from alphagateau.networks.chunks import chunk_size, cut, each, equal_chunks, in_chunks
from alphagateau.networks.gateau_reference import make_reference
from alphagateau.networks.graph_features import PLANES, board_codes, position_scalars, static_features
from alphagateau.networks.network import Evaluation, Network, Variables
from alphagateau.networks.norms import make_norm
from alphagateau.networks.rows import Table, choose, group, lookup, make_table, repeat_for, take, weighted_sum

LEAKY_SLOPE = 0.2  # as in the graph attention network (Velickovic et al. 2018)

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

    def at(self, row: Array) -> "Edges":
        """Of the edges of an `EdgeStart`, those that `row` [B, E] says."""
        return Edges(*(choose(x, row) for x in self))


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
    tables = jnp.asarray(PLANES) @ of_planes.reshape(HISTORY, -1, K)
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
    share = jnp.concatenate([1 - legal_share, legal_share])[:, None] / len(static)
    moments = (either * share).sum(axis=0), (jnp.square(either) * share).sum(axis=0)
    y = jax.nn.relu(norm("block0_norm_g1", either, moments)(either))
    return EdgeStart(either, Edges(y, dot(y, w["W_e"]), y @ (w["W_e"] @ w["a"])))


def evaluate(
    params: Variables, norm, start: EdgeStart, inputs: Inputs, layout: Layout, message: str, dot: Dot
) -> Evaluation:
    """Figures 2 to 4 on C chunks of positions, [C, b, ...]: residual blocks, value and policy heads.

    Batch statistics are of all chunks, so each layer ends before the next begins.
    """
    _, b, num_edges = inputs.start_row.shape
    num_blocks = sum(name.endswith("_gateau1") for name in params)

    def bnr(name: str, x: Array) -> Callable[[Array], Array]:
        normalize = norm(name, x)
        return lambda x: jax.nn.relu(normalize(x))

    def dense(x: Array, name: str) -> Array:
        return dot(x, params[name]["kernel"]) + params[name]["bias"]

    def edges_of(g: Array, name: str) -> Edges:
        w = params[name]
        return Edges(g, dot(g, w["W_e"]), g @ (w["W_e"] @ w["a"]))

    def layer(name: str, h: Array, edges: Edges) -> tuple[Array, Array]:
        return gateau_layer(params[name], h, edges, layout, message, dot)

    def block(i: int, h: Array, g: Array) -> tuple[Array, Array]:
        first, second = f"block{i}_gateau1", f"block{i}_gateau2"
        of_h = bnr(f"block{i}_norm_h1", h)
        if i == 0:
            x, y = each(lambda h, row: layer(first, of_h(h), start.edges.at(row)), h, inputs.start_row)
        else:
            of_g = bnr(f"block{i}_norm_g1", g)
            x, y = each(lambda h, g: layer(first, of_h(h), edges_of(of_g(g), first)), h, g)
        of_x, of_y = bnr(f"block{i}_norm_h2", x), bnr(f"block{i}_norm_g2", y)

        def rest(x: Array, y: Array, h: Array, g: Array) -> tuple[Array, Array]:
            x, y = layer(second, of_x(x), edges_of(of_y(y), second))
            return h + x, g + y

        return each(rest, x, y, h, g)

    h = each(partial(embed_nodes, params["embed_nodes"]), inputs.codes, inputs.scalars)
    g = each(partial(choose, start.residual), inputs.start_row)
    for i in range(num_blocks):
        h, g = block(i, h, g)
    of_h, of_g = bnr("value_norm1", h), bnr("policy_norm1", g)
    v = each(lambda h: dense(of_h(h), "value_hidden"), h)
    p = each(lambda g: dense(of_g(g), "policy_hidden"), g)
    of_v, of_p = bnr("value_norm2", v), bnr("policy_norm2", p)

    def value(v: Array) -> Array:
        v = attention_pooling(params["value_pooling"]["a"], of_v(v).reshape(b, -1, v.shape[1]))
        v = jax.nn.relu(v) @ params["value_out"]["kernel"] + params["value_out"]["bias"]
        return jnp.tanh(v[:, 0])

    logits = each(lambda p: of_p(p) @ params["policy_logit"]["kernel"], p)
    return Evaluation(logits.reshape(-1, num_edges), each(value, v).reshape(-1))


def make_gateau(game: Game, config) -> Network:
    """GATEAU for `game`; `config` is an `alphagateau.config.Network`. No parameter depends on the board."""
    layout, dot = make_layout(game), make_dot(config.dtype)
    size = chunk_size(game.num_edges, config.hidden_size)
    static = static_features(game)

    def apply(
        variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None
    ) -> tuple[Evaluation, Variables]:
        params, updates = variables["params"], {}
        legal = legal_edge_mask(game, positions)
        start_row = jnp.arange(game.num_edges) + game.num_edges * legal
        inputs = Inputs(board_codes(positions), position_scalars(game, positions), start_row)
        norm = make_norm(config.normalization, config.batch_norm_momentum, variables, train, axis_name, updates)
        legal_share = mean_over(legal.mean(axis=0), axis_name)
        start = start_edges(params, norm, jnp.asarray(static), legal_share, dot)
        fn = partial(evaluate, params, norm, start, layout=layout, message=config.message, dot=dot)
        if train:
            evaluation = fn(cut(inputs, equal_chunks(len(legal), size)))
        else:
            evaluation = in_chunks(fn, inputs, -(-len(legal) // size))
        statistics = {k: v for k, v in variables.items() if k != "params"}
        return evaluation, statistics | ({"batch_stats": updates} if updates else {})

    return Network(make_reference(game, config).init, apply)
