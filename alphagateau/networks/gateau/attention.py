"""Attention of GATEAU's edges by layer: the weight of each among the edges of its square."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, without_past
from alphagateau.networks.gateau.layer import Gateau, Rows, edge_attention, edges_of, gateau_layer
from alphagateau.networks.gateau.network import block_variables, embed_nodes, inference_net
from alphagateau.networks.make_network import on_board
from alphagateau.networks.network import Variables
from alphagateau.networks.planes import board_codes, position_scalars

# (variables, positions [B]) -> float32 [B, L, E], L layers; those of a square's edges (`neighbors`) sum to 1.
Attention = Callable[[Variables, Position], Array]


def make_attention(game: Game, config) -> Attention | None:
    """The Attention of a configuration record's network; None if it is not GATEAU."""
    if config.architecture != "gateau":
        return None
    net = inference_net(game, config)

    def attention(variables: Variables, positions: Position) -> Array:
        positions = positions if config.history else without_past(positions)
        if config.statistics_boards:
            variables = on_board(variables, game, config.statistics_boards)
        params, batch = variables["params"], len(positions.color)
        h = embed_nodes(params["embed_nodes"], board_codes(positions), position_scalars(game, positions))
        kernel = params["embed_edges"]
        g = jnp.asarray(net.static) @ kernel[1:] + legal_edge_mask(game, positions)[..., None] * kernel[0]
        weights = jax.tree.map(
            lambda *x: jnp.stack(x), *(block_variables(variables, i) for i in range(config.num_blocks))
        )
        _, alpha = jax.lax.scan(
            lambda hg, variables: attending_block(net, variables, hg), (h, g.reshape(-1, g.shape[-1])), weights
        )
        by_slot = alpha.reshape(2 * config.num_blocks, batch, -1).swapaxes(0, 1)
        return by_slot[..., net.layout.incoming.places[:, 0]]

    return attention


def attending_block(net: Gateau, variables: Variables, hg: Rows) -> tuple[Rows, Array]:
    """A residual block on rows: ((h, g), the weights [2, B * N, D] of its two layers)."""
    (x, y), weights = hg, []
    for half in (1, 2):
        norm_h, _ = net.norm(variables, f"norm_h{half}", x)
        norm_g, _ = net.norm(variables, f"norm_g{half}", y)
        w = variables["params"][f"gateau{half}"]
        x, edges = norm_h(x), edges_of(net, w, norm_g(y))
        weights.append(edge_attention(net, w, x, edges))
        x, y = gateau_layer(net, w, x, edges)
    return (hg[0] + x, hg[1] + y), jnp.stack(weights)
