"""GATEAU on a GPU, in inference, where one kernel computes the edges of a layer.

Edges stay in the order of the kernels' tiles, padded, from the first layer to the policy head, which is one kernel too.
`network.py` is the same network, a gather at a time.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from alphagateau.games.state import Array
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.fused_layer import affine_norm, fused_layer, normalize, of_program, run_kernel, whole
from alphagateau.networks.gateau.groups import BLOCK, Groups
from alphagateau.networks.gateau.layer import Gateau
from alphagateau.networks.gateau.network import Inputs, block_variables, embed_nodes, policy_heads, value_heads
from alphagateau.networks.graph_gather import choose_rows, make_table, take
from alphagateau.networks.heads import make_evaluation
from alphagateau.networks.network import Evaluation, Variables

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportAttributeAccessIssue=false, reportIndexIssue=false

HEAD_WARPS = 8  # of a program of the policy head, which has more edges than a layer's


def head_kernel(kind: str, width: int, refs: tuple, out: Any) -> None:
    """The policy head of a block's edges g [1, tiles * T, K], a tile at a time: its outputs [1, heads, tiles * T]."""
    g, (kernel, bias), last, norms = refs
    for number in range(g.shape[1] // width):
        rows = pl.ds(number * width, width)
        x = normalize(kind, norms[0], g[0, rows]).astype(g.dtype)
        x = normalize(kind, norms[1], triton.dot(x, kernel[...].astype(g.dtype)) + bias[...][None])
        for head in range(last.shape[0]):
            out[0, head, rows] = jnp.sum(x * last[head][None], axis=1)


def fused_policy_head(
    groups: Groups, config: GateauConfig, variables: Variables, names: tuple[str, ...], g: Array
) -> dict[str, Array]:
    """The logits [B, E] of the edges g [B, E', K] by each of the last layers `names`."""
    params = variables["params"]
    batch, num_rows, features = g.shape
    width, blocks = groups.senders.shape[1], len(groups.nodes) // BLOCK
    edges_of_block = num_rows // blocks
    last = jnp.stack([params[name]["kernel"][:, 0] for name in names])
    hidden = params["policy_hidden"]["kernel"], params["policy_hidden"]["bias"]
    norms = [affine_norm(config, variables, name) for name in ("policy_norm1", "policy_norm2")]
    inputs = hidden, last, norms
    specs = of_program(edges_of_block, features), *jax.tree.map(lambda x: whole(*x.shape), inputs)
    out_spec = pl.BlockSpec((1, len(names), edges_of_block), lambda b, block: (b, 0, block))
    shape = jax.ShapeDtypeStruct((batch, len(names), num_rows), jnp.float32)
    kernel = partial(head_kernel, config.normalization, width)
    logits = run_kernel(kernel, (batch, blocks), HEAD_WARPS, (g, *inputs), specs, shape, out_spec)
    return dict(zip(names, jnp.moveaxis(logits[..., groups.edge_places], 1, 0), strict=True))


def evaluate_fused(net: Gateau, groups: Groups, variables: Variables, residual: Array, inputs: Inputs) -> Evaluation:
    """The Evaluation of B positions, as `network.evaluate` makes it, whose first edges are rows of `residual`."""
    config, batch = net.config, len(inputs.codes)
    num_nodes = len(groups.node_places)
    h = embed_nodes(variables["params"]["embed_nodes"], inputs.codes, inputs.scalars)
    h = take(make_table(groups.nodes, num_nodes, groups.nodes >= 0), h, batch).reshape(batch, -1, h.shape[1])
    edges, num_edges = np.maximum(groups.edges, 0), len(net.static)
    to_edges = make_table(groups.edges, num_edges, groups.edges >= 0)
    either = take(to_edges, residual, 2)  # all as illegal moves, then all as legal ones
    row = jnp.arange(len(edges)) + len(edges) * (inputs.start_row[:, edges] >= num_edges)
    hg = h, choose_rows(either, row).reshape(batch, len(edges), -1)
    for i in range(config.num_blocks):
        of_block = block_variables(variables, i)
        hg = fused_layer(groups, config, of_block, 2, fused_layer(groups, config, of_block, 1, hg), hg)
    h, g = hg

    def in_order(rows: Array, places: Any) -> Array:
        return take(make_table(places, rows.shape[1]), rows.reshape(-1, rows.shape[2]), batch)[None]

    outputs, _ = value_heads(net, variables, in_order(h, groups.node_places))
    if config.action_values:
        g = in_order(g, groups.edge_places)
        outputs |= policy_heads(net, variables, g, inputs.start_row[None])[0]
    else:
        layers = {"policy_logit": "prior_logits"} | ({"reply_logit": "reply_logits"} if config.reply_head else {})
        found = fused_policy_head(groups, config, variables, tuple(layers), g)
        outputs |= {layers[name]: logits for name, logits in found.items()}
    return make_evaluation(outputs)
