"""GATEAU on a GPU with one kernel a layer, forward and backward.

Edges stay in the order of the kernels' tiles, padded, from the first layer to the policy head, which is one kernel too,
except in training. `network.py` is the same network, a gather at a time.
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
from alphagateau.networks.gateau.fused_gradient import layer_gradient
from alphagateau.networks.gateau.fused_layer import (
    Rows,
    affine_norm,
    fused_layer,
    normalize,
    of_program,
    run_kernel,
    whole,
)
from alphagateau.networks.gateau.groups import Groups
from alphagateau.networks.gateau.layer import Gateau
from alphagateau.networks.gateau.network import (
    Inputs,
    block_variables,
    embed_nodes,
    policy_heads,
    rematerialized,
    value_heads,
)
from alphagateau.networks.graph_gather import choose_rows, make_table, take
from alphagateau.networks.heads import make_evaluation
from alphagateau.networks.layers import ROW_NORMS
from alphagateau.networks.network import Evaluation, Variables

# jax's custom_vjp hides the types of what it wraps.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportIndexIssue=false


def half_block(
    groups: Groups, config: GateauConfig, variables: Variables, half: int, hg: Rows, residual: Rows | None = None
) -> Rows:
    """A block's layer 1 or 2; variables: of the block."""
    norms = affine_norm(config, variables, f"norm_h{half}"), affine_norm(config, variables, f"norm_g{half}")
    return fused_layer(groups, config, variables["params"][f"gateau{half}"], norms, hg, residual)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def fused_block(groups: Groups, config: GateauConfig, variables: Variables, hg: Rows) -> Rows:
    """A residual block of two layers on (h, g)."""
    return half_block(groups, config, variables, 2, half_block(groups, config, variables, 1, hg), hg)


def _block_forward(groups: Groups, config: GateauConfig, variables: Variables, hg: Rows):
    if config.normalization not in ROW_NORMS:
        raise ValueError(f"the fused kernels have no gradient of {config.normalization} normalization")
    xy = half_block(groups, config, variables, 1, hg)
    saved = variables, hg, None if config.rematerialize else xy
    return half_block(groups, config, variables, 2, xy, hg), saved


def _block_backward(groups: Groups, config: GateauConfig, saved: tuple, d_hg: Rows) -> tuple[Variables, Rows]:
    variables, hg, xy = saved
    xy = half_block(groups, config, variables, 1, hg) if xy is None else xy
    second, d_xy = layer_gradient(groups, config, variables, 2, xy, d_hg)
    first, d_input = layer_gradient(groups, config, variables, 1, hg, d_xy, also=d_hg)
    return jax.tree.map(jnp.zeros_like, variables) | {"params": first | second}, d_input


fused_block.defvjp(_block_forward, _block_backward)


def head_kernel(kind: str, width: int, refs: tuple, out: Any) -> None:
    """The policy head of a program's edges g [1, tiles * T, K]: its outputs [1, heads, tiles * T]."""
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
    num_programs, tiles, width = groups.senders.shape
    last = jnp.stack([params[name]["kernel"][:, 0] for name in names])
    hidden = params["policy_hidden"]["kernel"], params["policy_hidden"]["bias"]
    norms = [affine_norm(config, variables, name) for name in ("policy_norm1", "policy_norm2")]
    inputs = hidden, last, norms
    specs = of_program(tiles * width, features), *jax.tree.map(lambda x: whole(*x.shape), inputs)
    out_spec = pl.BlockSpec((1, len(names), tiles * width), lambda b, program: (b, 0, program))
    shape = jax.ShapeDtypeStruct((batch, len(names), num_rows), jnp.float32)
    kernel = partial(head_kernel, config.normalization, width)
    logits = run_kernel(kernel, (batch, num_programs), (g, *inputs), specs, shape, out_spec)
    return dict(zip(names, jnp.moveaxis(logits[..., groups.edge_places], 1, 0), strict=True))


def evaluate_fused(
    net: Gateau, groups: Groups, variables: Variables, residual: Array, inputs: Inputs, train: bool
) -> Evaluation:
    """The Evaluation of B positions, as `network.evaluate` makes it, whose first edges are rows of `residual`.

    train: every operation has a gradient.
    """
    config, batch = net.config, len(inputs.codes)
    num_nodes = len(groups.node_places)
    h = embed_nodes(variables["params"]["embed_nodes"], inputs.codes, inputs.scalars)
    h = take(make_table(groups.nodes, num_nodes, groups.nodes >= 0), h, batch).reshape(batch, -1, h.shape[1])
    edges, num_edges = np.maximum(groups.edges, 0), len(net.static)
    to_edges = make_table(groups.edges, num_edges, groups.edges >= 0)
    either = take(to_edges, residual, 2)  # all as illegal moves, then all as legal ones
    row = jnp.arange(len(edges)) + len(edges) * (inputs.start_row[:, edges] >= num_edges)
    hg: Any = h, choose_rows(either, row).reshape(batch, len(edges), -1)
    for i in range(config.num_blocks):
        hg = fused_block(groups, config, block_variables(variables, i), hg)
    h, g = hg

    def in_order(rows: Array, places: Any) -> Array:
        return take(make_table(places, rows.shape[1]), rows.reshape(-1, rows.shape[2]), batch)[None]

    outputs, _ = rematerialized(net, value_heads)(variables, in_order(h, groups.node_places))
    if config.action_values or train:
        g = in_order(g, groups.edge_places)
        outputs |= rematerialized(net, policy_heads)(variables, g, inputs.start_row[None])[0]
    else:
        layers = {"policy_logit": "prior_logits"} | ({"reply_logit": "reply_logits"} if config.reply_head else {})
        found = fused_policy_head(groups, config, variables, tuple(layers), g)
        outputs |= {layers[name]: logits for name, logits in found.items()}
    return make_evaluation(outputs)
