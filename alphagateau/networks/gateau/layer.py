"""The GATEAU layer (AlphaGateau §4.3, equations 4 to 6) on rows of nodes and edges.

Sums over edges are sums over D slots a node: its incoming edges, in a table of the board.
"""

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportOperatorIssue=false, reportArgumentType=false

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.graph_gather import Table, group, make_table, repeat_for, take, weighted_sum
from alphagateau.networks.heads import LEAKY_SLOPE
from alphagateau.networks.layers import Norm, dot
from alphagateau.networks.network import Variables

Rows = tuple[Array, Array]  # (h, g)


class Layout(NamedTuple):
    """The static graph as tables, with D slots for the incoming edges of a node."""

    senders: Table  # nodes -> edges [E]
    receivers: Table  # nodes -> edges [E]
    incoming: Table  # edges -> slots [N * D]
    incoming_senders: Table  # nodes -> slots [N * D]
    is_edge: np.ndarray  # bool [N, D], False of an empty slot


class Edges(NamedTuple):
    """Edge features of a layer, with products that need no node."""

    g: Array  # [B * E, K]
    g_e: Array  # g @ W_e, [B * E, K]
    g_a: Array  # g @ W_e @ a, [B * E, 1]


class Gateau(NamedTuple):
    """The static arguments of the network's functions."""

    layout: Layout
    static: np.ndarray  # float32 [E, 14], edge features that do not depend on the position
    num_slots: int  # S
    config: GateauConfig  # `dtype` is of the edge features between layers too, the largest arrays
    norm: Norm

    def dot(self, x: Array, w: Array, out: Any = None) -> Array:
        """The product x @ w of operands rounded to the network's `dtype`."""
        return dot(self.config.dtype, x, w, out)


def make_layout(game: Game, neighbors: str) -> Layout:
    """The Layout of a Game's move graph, reversed where nodes attend to their "outgoing" edges."""
    senders, receivers = game.senders, game.receivers
    if neighbors == "outgoing":
        senders, receivers = receivers, senders
    edges, is_edge = group(receivers, game.num_squares)
    return Layout(
        senders=make_table(senders, game.num_squares),
        receivers=make_table(receivers, game.num_squares),
        incoming=make_table(edges, game.num_edges, is_edge),
        incoming_senders=make_table(senders[edges], game.num_squares, is_edge),
        is_edge=is_edge,
    )


def edges_of(net: Gateau, w: Variables, g: Array) -> Edges:
    """The Edges of g [R, K] for the layer with weights `w`."""
    g = g.astype(net.config.dtype)
    return Edges(g, net.dot(g, w["W_e"], net.config.dtype), net.dot(g, w["W_e"] @ w["a"]))


def edge_attention(net: Gateau, w: Variables, h: Array, edges: Edges) -> Array:
    """Equation (5): the weights [B * N, D] of each node's slots, which sum to 1; 0 on empty slots."""
    layout = net.layout
    batch = len(h) // len(layout.is_edge)
    # a.g' at each slot, from its three parts: scalars are moved, not rows.
    logits = take(layout.incoming, edges.g_a, batch)
    logits += take(layout.incoming_senders, h @ (w["W_v"] @ w["a"]), batch)
    logits = logits.reshape(len(h), -1) + h @ (w["W_u"] @ w["a"])
    logits = jax.nn.leaky_relu(logits, LEAKY_SLOPE)
    return jax.nn.softmax(jnp.where(repeat_for(batch, layout.is_edge), logits, -jnp.inf))


def gateau_layer(net: Gateau, w: Variables, h: Array, edges: Edges) -> Rows:
    """Equations (4) to (6): (h', g') of h [B * N, K] and the Edges; receivers are i, senders are j."""
    layout, dot = net.layout, net.dot
    batch = len(h) // len(layout.is_edge)
    u, v = dot(h, w["W_u"]), dot(h, w["W_v"])
    alpha = edge_attention(net, w, h, edges)

    # The sum over edges commutes with W_g; if g' is mixed, so do its three parts.
    to_self, to_receivers, mixed = dot(h, w["W_0"]), dot(h, w["W_h"]), edges.g
    if net.config.message == "updated_edge":
        to_self, to_receivers = to_self + dot(u, w["W_g"]), to_receivers + dot(v, w["W_g"])
        mixed = edges.g_e
    edge_sum = weighted_sum(layout.incoming, alpha, mixed, batch)
    node_sum = weighted_sum(layout.incoming_senders, alpha, to_receivers, batch)
    h_new = to_self + node_sum + dot(edge_sum, w["W_g"])
    g_new = edges.g_e + take(layout.receivers, u, batch) + take(layout.senders, v, batch)
    return h_new, g_new.astype(net.config.dtype)
