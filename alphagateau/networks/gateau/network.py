"""GATEAU: graph attention with edge features, on the static move graph of a board (AlphaGateau §4.3-4.4).

`reference.py` is the network as printed in the paper, and initializes the parameters; a test holds the two equal. This
one is fast because the graph is static: products of nodes are made per node, a sum over edges is a sum over slots, and
the first layer's edges take two values each. On a CPU a batch runs in chunks that fit the cache, in training a layer at
a time, as batch statistics are of the whole batch. All blocks but the first are one scan, which compiles quickly. Nodes
and edges are rows, position after position: h [B * N, K] and g [B * E, K], as in jraph.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.distributed.mesh import mean_over
from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import HISTORY, Array, Position
from alphagateau.networks import heads
from alphagateau.networks.chunks import apply_in_chunks, chunk_size, equal_chunks, into_chunks, map_chunks
from alphagateau.networks.gateau.graph import static_features
from alphagateau.networks.gateau.layer import Edges, Gateau, Rows, edges_of, gateau_layer, make_layout
from alphagateau.networks.gateau.reference import make_reference
from alphagateau.networks.graph_gather import choose_rows, lookup
from alphagateau.networks.layers import linear, make_norm
from alphagateau.networks.network import Network, Outputs, Variables, statistics_of
from alphagateau.networks.planes import CODE_PLANES, board_codes, position_scalars


class Inputs(NamedTuple):
    """Inputs of B positions."""

    codes: Array  # int32 [B, HISTORY, N]
    scalars: Array  # float32 [B, 7]
    start_row: Array  # int32 [B, E], row in `EdgeStart`: e of an illegal edge e, E + e of a legal one


def inputs_of(game: Game, positions: Position) -> tuple[Inputs, Array]:
    """The Inputs of positions, and which edges are legal, bool [B, E]."""
    legal = legal_edge_mask(game, positions)
    start_row = jnp.arange(game.num_edges) + game.num_edges * legal
    return Inputs(board_codes(positions), position_scalars(game, positions), start_row), legal


def embed_nodes(params: Variables, codes: Array, scalars: Array) -> Array:
    """Planes of the squares times their kernel, [B * N, K]; of one-hot planes the product is a sum of rows."""
    kernel, K = params["kernel"], len(params["bias"])
    plane_kernel, scalar_kernel = jnp.split(kernel, [HISTORY * CODE_PLANES.shape[1]])
    tables = jnp.asarray(CODE_PLANES) @ plane_kernel.reshape(HISTORY, -1, K)
    everywhere = scalars @ scalar_kernel + params["bias"]
    rows = lookup(tables, codes.transpose(1, 0, 2).reshape(HISTORY, -1))
    return rows + jnp.repeat(everywhere, codes.shape[-1], axis=0)


class EdgeStart(NamedTuple):
    """The edges of the first layer, [2 * E, K]: first all as illegal moves, then all as legal ones.

    Before it mixes with nodes, an edge takes one of two values, the same in every position.
    """

    residual: Array
    edges: Edges


def start_edges(net: Gateau, variables: Variables, legal_share: Array) -> tuple[EdgeStart, Variables]:
    """(the first layer's edges, statistics); `legal_share` [E] is the share of the batch in which each is legal."""
    kernel, w = variables["params"]["embed_edges"], variables["params"]["block0_gateau1"]
    illegal = jnp.asarray(net.static) @ kernel[1:]
    either = jnp.concatenate([illegal, illegal + kernel[0]])
    share = jnp.concatenate([1 - legal_share, legal_share])[:, None].astype(either.dtype) / len(legal_share)
    moments = (either * share).sum(axis=0), (jnp.square(either) * share).sum(axis=0)
    norm, statistics = net.norm(variables, "block0_norm_g1", either, moments)
    return EdgeStart(either.astype(net.config.dtype), edges_of(net, w, norm(either))), statistics


def normalized_layer(
    net: Gateau, variables: Variables, half: int, h: Array, g: Array
) -> tuple[Callable[[Array, Array], Rows], Variables]:
    """(layer `half` of a block with its norms, as a function of one chunk; statistics), for chunks h and g."""
    norm_h, h_statistics = net.norm(variables, f"norm_h{half}", h)
    norm_g, g_statistics = net.norm(variables, f"norm_g{half}", g)
    w = variables["params"][f"gateau{half}"]

    def layer(h: Array, g: Array) -> Rows:
        return gateau_layer(net, w, norm_h(h), edges_of(net, w, norm_g(g)))

    return layer, h_statistics | g_statistics


def second_half(net: Gateau, variables: Variables, xy: Rows, hg: Rows) -> tuple[Rows, Variables]:
    """(a block's output, statistics) of its first layer's output xy and its input hg, in chunks."""
    layer, statistics = normalized_layer(net, variables, 2, *xy)

    def layer_and_sum(x: Array, y: Array, h: Array, g: Array) -> Rows:
        x, y = layer(x, y)
        return h + x, g + y

    return map_chunks(layer_and_sum, *xy, *hg), statistics


def block(net: Gateau, variables: Variables, hg: Rows) -> tuple[Rows, Variables]:
    """A residual block of two layers on chunks: ((h, g), statistics)."""
    layer, first = normalized_layer(net, variables, 1, *hg)
    hg, second = second_half(net, variables, map_chunks(layer, *hg), hg)
    return hg, first | second


def start_block(net: Gateau, variables: Variables, start: EdgeStart, h: Array, row: Array) -> tuple[Rows, Variables]:
    """Block 0, whose edges are rows of `start`."""
    norm_h, first = net.norm(variables, "norm_h1", h)

    def layer(h: Array, row: Array) -> Rows:
        edges = Edges(*(choose_rows(x, row) for x in start.edges))
        return gateau_layer(net, variables["params"]["gateau1"], norm_h(h), edges)

    xy = map_chunks(layer, h, row)
    hg, second = second_half(net, variables, xy, (h, map_chunks(partial(choose_rows, start.residual), row)))
    return hg, first | second


def equal_blocks(net: Gateau, variables: Variables, hg: Rows) -> tuple[Rows, Variables]:
    """Blocks 1 to the last, as a scan over their weights, which compiles one block for all."""
    numbers = range(1, net.config.num_blocks)
    if not numbers:
        return hg, {}
    weights = jax.tree.map(lambda *x: jnp.stack(x), *(block_variables(variables, i) for i in numbers))
    hg, stacked = jax.lax.scan(lambda hg, variables: rematerialized(net, block)(variables, hg), hg, weights)
    statistics = {}
    for i in numbers:
        statistics |= named_in_block(i, jax.tree.map(lambda x, i=i: x[i - 1], stacked))
    return hg, statistics


def rematerialized(net: Gateau, part: Callable) -> Callable:
    """A part of the network as a function without `net`; if configured, the backward pass computes it again."""
    return jax.checkpoint(partial(part, net)) if net.config.rematerialize else partial(part, net)


def block_variables(variables: Variables, i: int) -> Variables:
    """The variables of block `i`, by their names in it: `norm_h1` for `block0_norm_h1`."""
    prefix = f"block{i}_"
    return {
        collection: {name.removeprefix(prefix): x for name, x in tree.items() if name.startswith(prefix)}
        for collection, tree in variables.items()
    }


def named_in_block(i: int, statistics: Variables) -> Variables:
    """The inverse of `block_variables`, for statistics."""
    return {f"block{i}_{name}": x for name, x in statistics.items()}


def head_hidden(
    net: Gateau, variables: Variables, name: str, x: Array
) -> tuple[Array, Callable[[Array], Array], Variables]:
    """The first layers of either head: (hidden rows in chunks, their norm, statistics)."""
    norm, first = net.norm(variables, f"{name}_norm1", x)
    dense = variables["params"][f"{name}_hidden"]
    x = map_chunks(lambda x: net.dot(norm(x), dense["kernel"]) + dense["bias"], x)
    norm, second = net.norm(variables, f"{name}_norm2", x)
    return x, norm, first | second


def value_heads(net: Gateau, variables: Variables, h: Array) -> tuple[dict[str, Array], Variables]:
    """Figure 3 on chunks of nodes: (outputs [B, ...] by name, statistics)."""
    v, norm, statistics = head_hidden(net, variables, "value", h)
    params, config = variables["params"], net.config

    def outputs(v: Array) -> dict[str, Array]:
        h = norm(v).reshape(-1, len(net.layout.is_edge), v.shape[1])
        pooled = jax.nn.relu(heads.attention_pooling(params["value_pooling"]["a"], h))
        found = heads.read_value(config.value_head, linear(params[heads.value_layer(config)[0]], pooled))
        if config.moves_left_head:
            found["moves_left"] = heads.read_moves_left(linear(params["moves_left"], pooled))
        return found

    return {name: x.reshape(-1, *x.shape[2:]) for name, x in map_chunks(outputs, v).items()}, statistics


def policy_heads(net: Gateau, variables: Variables, g: Array, row: Array) -> tuple[dict[str, Array], Variables]:
    """Figure 4 on chunks of edges, legal by `row`: (outputs [B, ...] by name, statistics).

    "reply_logits" [B, E] are of the opponent's next move, on the squares of the player to move;
    "action_value_logits" [B, S, bins] are of the legal edges in rising order, arbitrary on empty slots.
    """
    p, norm, statistics = head_hidden(net, variables, "policy", g)
    params = variables["params"]

    def outputs(p: Array, row: Array) -> dict[str, Array]:
        g, is_legal = norm(p), row >= len(net.static)
        found = {"prior_logits": (g @ params["policy_logit"]["kernel"]).reshape(row.shape)}
        if net.config.reply_head:
            found["reply_logits"] = (g @ params["reply_logit"]["kernel"]).reshape(row.shape)
        if net.config.action_values:
            by_slot: Any = heads.edges_to_slots(g.reshape(*row.shape, -1), is_legal, net.num_slots)
            found["action_value_logits"] = linear(params["action_values"], by_slot)
        return found

    return {name: x.reshape(-1, *x.shape[2:]) for name, x in map_chunks(outputs, p, row).items()}, statistics


def evaluate(net: Gateau, variables: Variables, start: EdgeStart, inputs: Inputs) -> Outputs:
    """Figures 2 to 4 on C chunks of positions, [C, b, ...]: (Evaluation of B = C * b positions, statistics).

    Batch statistics are of all chunks, so each layer ends before the next begins.
    """
    h = map_chunks(partial(embed_nodes, variables["params"]["embed_nodes"]), inputs.codes, inputs.scalars)
    hg, first = rematerialized(net, start_block)(block_variables(variables, 0), start, h, inputs.start_row)
    (h, g), rest = equal_blocks(net, variables, hg)
    node_outputs, value_statistics = rematerialized(net, value_heads)(variables, h)
    edge_outputs, policy_statistics = rematerialized(net, policy_heads)(variables, g, inputs.start_row)
    statistics = named_in_block(0, first) | rest | value_statistics | policy_statistics
    return heads.make_evaluation(node_outputs | edge_outputs), statistics


def inference_net(game: Game, config) -> Gateau:
    """The Gateau of a GateauConfig on a board, normalized by running statistics."""
    norm = make_norm(config.normalization, config.batch_norm_momentum, False, None)
    return Gateau(make_layout(game, config.neighbors), static_features(game), game.max_legal_moves, config, norm)


def make_gateau(game: Game, config) -> Network:
    """Makes GATEAU of a GateauConfig, for `game`, with XLA's kernels. No parameter depends on the board."""
    model = partial(Gateau, make_layout(game, config.neighbors), static_features(game), game.max_legal_moves, config)
    size = chunk_size(game.num_edges, config.hidden_size)

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        net = model(make_norm(config.normalization, config.batch_norm_momentum, train, axis_name))
        inputs, legal = inputs_of(game, positions)
        moments_axis = None if config.normalization == "ghost" else axis_name  # as for all other moments
        start, start_statistics = start_edges(net, variables, mean_over(legal.mean(axis=0), moments_axis))
        statistics = statistics_of(variables)
        if not train:
            num_chunks = -(-len(legal) // size)
            evaluation = apply_in_chunks(lambda x: evaluate(net, variables, start, x)[0], inputs, num_chunks)
            return evaluation, statistics
        evaluation, new = evaluate(net, variables, start, into_chunks(inputs, equal_chunks(len(legal), size)))
        new |= start_statistics
        return evaluation, {"batch_stats": new} if new else statistics

    def num_chunks(batch: int) -> int:
        if config.normalization == "ghost":
            if batch % config.ghost_size:
                raise ValueError(f"ghost_size ({config.ghost_size}) must divide a device's batch of {batch} positions")
            return batch // config.ghost_size
        return 1 if config.normalization == "batch" else equal_chunks(batch, size)

    return Network(make_reference(game, config).init, apply, num_chunks)
