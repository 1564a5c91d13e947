"""GAT on the move graph of a board (Velickovic et al., Graph Attention Networks, ICLR 2018)."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.rules import Game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.networks.planes import NUM_PLANES, square_planes


class GatLayer(nn.Module):
    """Equations (1) to (5): squares [B, N, K] attend to their neighbours [N, N]."""

    num_heads: int

    @nn.compact
    def __call__(self, h, is_neighbor):
        shape = self.num_heads, h.shape[-1] // self.num_heads
        heads = nn.DenseGeneral(shape, use_bias=False)(h)  # W h, [B, N, H, K / H]
        a = self.param("a", nn.initializers.glorot_uniform(), (2, *heads.shape[2:]))
        receiving, sending = jnp.einsum("bihk,chk->cbih", heads, a)
        scores = nn.leaky_relu(receiving[:, :, None] + sending[:, None], 0.2)  # a [W h_i || W h_j], [B, N, N, H]
        weights = nn.softmax(jnp.where(is_neighbor[..., None], scores, -jnp.inf), axis=2)
        return nn.elu(jnp.einsum("bijh,bjhk->bihk", weights, heads).reshape(h.shape))


class Gat(nn.Module):
    """Planes [B, N, 119] to an Evaluation."""

    hidden_size: int
    num_blocks: int
    num_heads: int
    material_head: bool
    edges: tuple[np.ndarray, np.ndarray, np.ndarray]  # senders, receivers, promotions, [E] each
    is_neighbor: np.ndarray  # bool [N, N], a move leads from the second square to the first, or they are the same

    @nn.compact
    def __call__(self, planes):
        h = nn.Dense(self.hidden_size)(planes)
        for _ in range(self.num_blocks):
            h = h + GatLayer(self.num_heads)(nn.LayerNorm()(h), self.is_neighbor)
        senders, receivers, promotions = self.edges
        kinds = jnp.broadcast_to(jax.nn.one_hot(promotions, 6), (len(h), len(senders), 6))
        moves = jnp.concatenate([h[:, senders], h[:, receivers], kinds], axis=-1)
        logits = nn.Dense(1)(nn.relu(nn.Dense(self.hidden_size)(moves)))[..., 0]
        pooled = nn.relu(nn.Dense(self.hidden_size)(h.mean(axis=1)))
        extra = {"material": nn.Dense(1, name="material")(pooled)[:, 0]} if self.material_head else {}
        return Evaluation(logits, jnp.tanh(nn.Dense(1)(pooled)[:, 0]), extra)


def make_gat(game: Game, config) -> Network:
    """Makes the network of a GatConfig for `game`."""
    is_neighbor = np.eye(game.num_squares, dtype=bool)
    is_neighbor[game.receivers, game.senders] = True
    edges = game.senders, game.receivers, game.promotions
    sizes = config.hidden_size, config.num_blocks, config.num_heads
    module = Gat(*sizes, config.material_head, edges, is_neighbor)

    def init(key):
        return module.init(key, jnp.zeros((1, game.num_squares, NUM_PLANES)))

    def apply(variables, positions, train=False, axis_name=None):
        return module.apply(variables, square_planes(game, positions)), {}  # no statistics

    return Network(init, apply)
