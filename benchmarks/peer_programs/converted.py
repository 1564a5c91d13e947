"""GATEAU's forward pass in torch, with our weights, as OpenVINO converts and compiles it.

JAX has no way to OpenVINO that does not go through TensorFlow, so the network is written again, in inference and with
batch normalization, from equations (4) to (7): node maps per node, sums over edges as sums over a receiver's slots, as
in ours. Its logits and values must be ours before it is timed. Graphs are made before the time is taken.
"""

# Neither package is one of ours.
# pyright: reportMissingImports=false

from typing import Any

import jax
import numpy as np
import openvino
import torch
from torch import nn
from torch.nn.functional import leaky_relu

from alphagateau.networks.gateau.graph import graphs_tuple
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.graph_gather import group
from alphagateau.networks.heads import LEAKY_SLOPE
from peer_programs.boards import BATCH, Board, Call, Peer

EPSILON = 1e-5  # of batch normalization
TOLERANCE = 1e-3  # of logits and values, in float32
OPTIONS = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}


class Gateau(nn.Module):
    """Logits of the edges [B, E] and values [B], of nodes [B, N, ...] and edges [B, E, ...]."""

    def __init__(self, board: Board, variables: Any) -> None:
        super().__init__()
        game = board.game
        slots, is_slot = group(np.asarray(game.receivers), game.num_squares)  # [N, S]: the edges into each square
        self.num_blocks = board.config.num_blocks
        self.weights = jax.tree.map(lambda x: torch.from_numpy(np.array(x)), variables["params"])
        self.statistics = jax.tree.map(lambda x: torch.from_numpy(np.array(x)), variables["batch_stats"])
        self.senders, self.receivers = (torch.from_numpy(np.array(x)).long() for x in (game.senders, game.receivers))
        self.slots, self.is_slot = torch.from_numpy(slots).long(), torch.from_numpy(is_slot)[..., None]

    def normalized(self, x: Any, name: str) -> Any:
        w, statistics = self.weights[name], self.statistics[name]
        scale = w["scale"] / (statistics["var"] + EPSILON).sqrt()
        return (x * scale + (w["bias"] - statistics["mean"] * scale)).relu()

    def dense(self, x: Any, name: str) -> Any:
        w = self.weights[name]
        return x @ w["kernel"] + w["bias"] if "bias" in w else x @ w["kernel"]

    def layer(self, h: Any, g: Any, name: str) -> tuple[Any, Any]:
        """Equations (4) to (6)."""
        w = self.weights[name]
        new = (h @ w["W_u"])[:, self.receivers] + g @ w["W_e"] + (h @ w["W_v"])[:, self.senders]
        scores = leaky_relu(new @ w["a"], LEAKY_SLOPE)[:, self.slots]
        alpha = scores.masked_fill(~self.is_slot, -1e9).softmax(dim=2)
        nodes = (alpha * (h @ w["W_h"])[:, self.senders[self.slots]]).sum(dim=2)
        edges = (alpha * g[:, self.slots]).sum(dim=2)
        return h @ w["W_0"] + nodes + edges @ w["W_g"], new

    def forward(self, nodes: Any, edges: Any) -> tuple[Any, Any]:
        h, g = self.dense(nodes, "embed_nodes"), edges @ self.weights["embed_edges"]
        for i in range(self.num_blocks):
            x, y = h, g
            for half in (1, 2):
                names = (f"block{i}_norm_h{half}", f"block{i}_norm_g{half}", f"block{i}_gateau{half}")
                x, y = self.layer(self.normalized(x, names[0]), self.normalized(y, names[1]), names[2])
            h, g = h + x, g + y
        p = self.normalized(self.dense(self.normalized(g, "policy_norm1"), "policy_hidden"), "policy_norm2")
        v = self.normalized(self.dense(self.normalized(h, "value_norm1"), "value_hidden"), "value_norm2")
        alpha = leaky_relu(v @ self.weights["value_pooling"]["a"], LEAKY_SLOPE).softmax(dim=1)
        pooled = (alpha * v).sum(dim=1).relu()
        return self.dense(p, "policy_logit")[..., 0], self.dense(pooled, "value_out").tanh()[..., 0]


def make_forward(board: Board) -> Call:
    """A forward pass in OpenVINO.

    Raises:
        ValueError: its outputs are not ours.
    """
    network, positions = make_gateau(board.game, board.config), board.positions
    variables = network.init(jax.random.key(0))
    graph = graphs_tuple(board.game, positions)
    rows = [np.array(x) for x in (graph.nodes, graph.edges)]
    arrays = [x.reshape(BATCH, -1, x.shape[-1]) for x in rows]
    example, shapes = tuple(map(torch.from_numpy, arrays)), [list(array.shape) for array in arrays]
    with torch.no_grad():
        model = openvino.convert_model(Gateau(board, variables).eval(), example_input=example, input=shapes)
    compiled = openvino.Core().compile_model(model, "CPU", OPTIONS)
    ours = jax.jit(lambda v, p: network.apply(v, p, False)[0])(variables, positions)
    results = compiled(arrays)
    for i, expected in enumerate((ours.prior_logits, ours.value)):
        error = float(np.abs(results[i] - np.asarray(expected)).max())
        if not error < TOLERANCE:
            raise ValueError(f"its outputs differ from ours by {error:.2g}, more than {TOLERANCE}")
    return lambda: compiled(arrays)


def make_peer() -> Peer:
    """The Peer, on one thread."""
    torch.set_num_threads(1)
    return Peer(make_forward)
