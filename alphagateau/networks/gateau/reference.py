"""GATEAU as printed in its paper: jraph segment operations over a batch of board graphs.

The plain reference of `network.py`, which has its initial weights of here, under the same names; beside that it is for
tests and benchmarks. It does not use that the graph of a board is static.
"""

# jraph types nodes and edges as any tree or None; they are arrays.
# pyright: reportOperatorIssue=false, reportArgumentType=false, reportOptionalMemberAccess=false

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import jraph

from alphagateau.games.actions import edges_by_slot, legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.graph import graphs_tuple
from alphagateau.networks.heads import make_evaluation, read_moves_left, read_value, value_layer
from alphagateau.networks.network import Network, Outputs, Variables, statistics_of

INIT = nn.initializers.lecun_normal()


class ReferenceLayer(nn.Module):
    """Equations (4) to (6) on a graph with K features a node and an edge."""

    features: int
    message: str

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        K = self.features
        names = ("W_u", "W_v", "W_e", "W_0", "W_h", "W_g")
        W_u, W_v, W_e, W_0, W_h, W_g = (self.param(name, INIT, (K, K)) for name in names)
        a = self.param("a", INIT, (K, 1))
        h, g, i, j = graph.nodes, graph.edges, graph.receivers, graph.senders
        g_new = (h @ W_u)[i] + g @ W_e + (h @ W_v)[j]
        alpha = jraph.segment_softmax(nn.leaky_relu(g_new @ a, 0.2), i, len(h))
        mixed = g if self.message == "edge" else g_new
        h_new = h @ W_0 + jraph.segment_sum(alpha * ((h @ W_h)[j] + mixed @ W_g), i, len(h))
        return graph._replace(nodes=h_new, edges=g_new)


class ReferencePooling(nn.Module):
    """Equation (7): the nodes [B * N, K] of B graphs -> [B, K]."""

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple) -> Array:
        h, batch = jnp.asarray(graph.nodes), graph.n_node.shape[0]
        graph_of = jnp.repeat(jnp.arange(batch), graph.n_node, total_repeat_length=len(h))
        a = self.param("a", INIT, (h.shape[-1], 1))
        alpha = jraph.segment_softmax(nn.leaky_relu(h @ a, 0.2), graph_of, batch)
        return jraph.segment_sum(alpha * h, graph_of, batch)


class ReferenceNetwork(nn.Module):
    """Figures 2 to 4 on a batch of B graphs: outputs [B, ...] by name."""

    config: GateauConfig

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple, train: bool, axis_name: str | None = None) -> dict[str, Array]:
        config, momentum = self.config, self.config.batch_norm_momentum
        norm = {
            "batch": partial(nn.BatchNorm, not train, momentum=momentum, axis_name=axis_name),
            "ghost": partial(nn.BatchNorm, not train, momentum=momentum),
            "layer": nn.LayerNorm,
            "rms": nn.RMSNorm,
        }[config.normalization]
        dense = partial(nn.Dense, config.hidden_size, kernel_init=INIT)

        def bnr(x: Array, name: str) -> Array:
            return nn.relu(norm(name=name)(x))

        def gateau(x: jraph.GraphsTuple, block: int, half: int) -> jraph.GraphsTuple:
            x = x._replace(
                nodes=bnr(x.nodes, f"block{block}_norm_h{half}"), edges=bnr(x.edges, f"block{block}_norm_g{half}")
            )
            layer = ReferenceLayer(config.hidden_size, config.message, name=f"block{block}_gateau{half}")
            return layer(x)

        kernel = self.param("embed_edges", INIT, (jnp.shape(graph.edges)[-1], config.hidden_size))
        x = graph._replace(nodes=dense(name="embed_nodes")(graph.nodes), edges=graph.edges @ kernel)
        for block in range(config.num_blocks):
            y = gateau(gateau(x, block, 1), block, 2)
            x = x._replace(nodes=x.nodes + y.nodes, edges=x.edges + y.edges)
        v = bnr(dense(name="value_hidden")(bnr(x.nodes, "value_norm1")), "value_norm2")
        v = nn.relu(ReferencePooling(name="value_pooling")(x._replace(nodes=v)))
        p = bnr(dense(name="policy_hidden")(bnr(x.edges, "policy_norm1")), "policy_norm2")
        logits = nn.Dense(1, use_bias=False, name="policy_logit")(p)[:, 0]
        layer, num_outputs = value_layer(config)
        value = read_value(config.value_head, nn.Dense(num_outputs, name=layer)(v))
        outputs = {"prior_logits": logits.reshape(len(v), -1), **value}
        if config.reply_head:
            outputs["reply_logits"] = nn.Dense(1, use_bias=False, name="reply_logit")(p).reshape(len(v), -1)
        if config.moves_left_head:
            outputs["moves_left"] = read_moves_left(nn.Dense(1, name="moves_left")(v))
        if config.action_values:
            by_edge = nn.Dense(config.num_bins, kernel_init=INIT, name="action_values")(p)
            outputs["action_value_logits"] = by_edge.reshape(len(v), -1, config.num_bins)
        return outputs


def make_reference(game: Game, config) -> Network:
    """Makes the plain GATEAU of a GateauConfig, for `game`, in float32."""
    module = ReferenceNetwork(config)

    @jax.jit
    def init(key: jax.Array) -> Variables:
        position = jax.tree.map(lambda x: x[None], game.position(game.init()))
        return module.init(key, graphs_tuple(game, position), train=False)  # pyright: ignore[reportReturnType]

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        statistics = statistics_of(variables)
        mutable = list(statistics) if train else []
        graph = graphs_tuple(game, positions)
        if config.neighbors == "outgoing":
            graph = graph._replace(senders=graph.receivers, receivers=graph.senders)
        outputs, new = module.apply(variables, graph, train, axis_name, mutable=mutable)  # pyright: ignore[reportGeneralTypeIssues]
        if config.action_values:
            edges = edges_by_slot(legal_edge_mask(game, positions), game.max_legal_moves)[..., None]
            by_edge = outputs["action_value_logits"]
            outputs["action_value_logits"] = jnp.take_along_axis(by_edge, edges, axis=1, mode="clip")
        return make_evaluation(outputs), {**statistics, **new}

    return Network(init, apply)
