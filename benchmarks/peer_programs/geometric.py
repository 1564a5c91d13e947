"""A network of GATv2 layers with edge features (Brody et al. 2022), of PyTorch Geometric as installed.

It has as many layers and blocks as GATEAU, the same width and the same graphs, and comparable heads. A GATv2 layer
reads edge features but does not change them: it does less than GATEAU. Graphs are made before the time is taken; ours
are made within it.
"""

# Neither package is one of ours.
# pyright: reportMissingImports=false

from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import GATv2Conv

from alphagateau.games.actions import legal_edge_mask
from alphagateau.networks.gateau.graph import graphs_tuple
from peer_programs.boards import BATCH, Board, Call, Peer


class Network(nn.Module):
    """Logits of the edges [B, E] and values [B], of B graphs of the same size."""

    def __init__(self, num_planes: int, num_features: int, board: Board, norm: Any) -> None:
        super().__init__()
        K, num_layers = board.config.hidden_size, 2 * board.config.num_blocks
        self.embed_nodes, self.embed_edges = nn.Linear(num_planes, K), nn.Linear(num_features, K)
        options: Any = {"edge_dim": K, "add_self_loops": False, "residual": True}
        self.layers = nn.ModuleList(GATv2Conv(K, K, **options) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.Sequential(norm(K), nn.ReLU()) for _ in range(num_layers))
        self.policy_ends = nn.Linear(K, 2 * K)
        self.policy_edge = nn.Linear(K, K)
        self.policy = nn.Sequential(norm(K), nn.ReLU(), nn.Linear(K, 1))
        self.value = nn.Sequential(norm(K), nn.ReLU(), nn.Linear(K, K), norm(K), nn.ReLU())
        self.attention, self.value_out = nn.Linear(K, 1), nn.Linear(K, 1)

    def forward(self, nodes: Any, edges: Any, ends: Any) -> tuple[Any, Any]:
        h, e = self.embed_nodes(nodes), self.embed_edges(edges)
        for i in range(0, len(self.layers), 2):
            x = self.layers[i](self.norms[i](h), ends, e)
            h = h + self.layers[i + 1](self.norms[i + 1](x), ends, e)
        of_sender, of_receiver = self.policy_ends(h).chunk(2, dim=-1)
        logits = self.policy(of_sender[ends[0]] + of_receiver[ends[1]] + self.policy_edge(e))
        v = self.value(h).view(BATCH, -1, h.shape[-1])
        pooled = (self.attention(v).softmax(dim=1) * v).sum(dim=1)
        return logits.view(BATCH, -1), self.value_out(pooled).tanh()[:, 0]


def inputs_of(board: Board) -> tuple[Any, Any, Any]:
    """(nodes, edges, [senders, receivers]) of the positions."""
    graph = graphs_tuple(board.game, board.positions)
    nodes, edges, senders, receivers = (
        torch.from_numpy(np.array(x)) for x in (graph.nodes, graph.edges, graph.senders, graph.receivers)
    )
    return nodes, edges, torch.stack([senders, receivers]).long()


def make_forward(board: Board) -> Call:
    """A forward pass, with batch normalization."""
    inputs = inputs_of(board)
    network = Network(inputs[0].shape[-1], inputs[1].shape[-1], board, nn.BatchNorm1d).eval()

    def forward() -> Any:
        with torch.inference_mode():
            return network(*inputs)

    return forward


def make_step(board: Board) -> Call:
    """A step of Adam, with RMS normalization; a uniform policy and value 0 are the targets."""
    inputs = inputs_of(board)
    network = Network(inputs[0].shape[-1], inputs[1].shape[-1], board, nn.RMSNorm)
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    legal = torch.from_numpy(np.array(legal_edge_mask(board.game, board.positions)))
    policy = legal / legal.sum(dim=-1, keepdim=True)

    def step() -> float:
        optimizer.zero_grad()
        logits, value = network(*inputs)
        logits = logits.masked_fill(~legal, torch.finfo(logits.dtype).min)
        loss = nn.functional.cross_entropy(logits, policy) + value.square().mean()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def make_peer() -> Peer:
    """The Peer, on one thread."""
    torch.set_num_threads(1)
    return Peer(make_forward, make_step, step_kind="rms")
