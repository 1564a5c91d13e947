"""A GATEAU layer, of whose edges one kernel of a GPU takes care: it reads each edge feature once and writes it once.

A program of the kernel (Pallas, compiled by Triton) has one tile of a position's edges, with all edges into its
receivers, so that no sum leaves it. Rows of senders are products with one-hot rows, which the GPU's matrix units make
of what a program holds already. XLA makes the products of nodes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from alphagateau.games.state import Array
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.groups import BLOCK, Groups
from alphagateau.networks.heads import LEAKY_SLOPE
from alphagateau.networks.layers import EPSILON, ROW_NORMS, dot, einsum, fold_statistics
from alphagateau.networks.network import Variables

NUM_WARPS = 4  # of a program: 0.40 ms a layer of the paper's size on an H200, with 8 of them 0.64

Rows = tuple[Array, Array]  # (h [B, P, K], g [B, E', K]) at the places of Groups, E' of edges


class AffineNorm(NamedTuple):
    """The weights [K] of a normalization with ReLU."""

    scale: Any
    shift: Any


def affine_norm(config: GateauConfig, variables: Variables, name: str) -> AffineNorm:
    """Normalization `name`; by running statistics it is a product and a sum."""
    params = variables["params"][name]
    if config.normalization not in ROW_NORMS:
        running = variables["batch_stats"][name]
        return AffineNorm(*fold_statistics(config.normalization, params, running["mean"], running["var"]))
    return AffineNorm(params["scale"], params.get("bias", jnp.zeros_like(params["scale"])))


def normalize(kind: str, norm: AffineNorm, x: Array) -> Array:
    """Rows x [R, K] normalized, and ReLU, in float32."""
    x = x.astype(jnp.float32)
    x = x - x.mean(axis=1, keepdims=True) if kind == "layer" else x
    if kind in ROW_NORMS:
        x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=1, keepdims=True) + EPSILON[kind])
    return jax.nn.relu(x * norm.scale[...][None] + norm.shift[...][None])


def attention(logits: Array, into: Array) -> Array:
    """Equation (5): the weights [T] of a tile's edges, 0 of padding, by logits a.g' [T].

    into: bool [T, R], the receiver of an edge among those of its tile.
    """
    logits = jnp.where(logits > 0, logits, LEAKY_SLOPE * logits)[:, None]
    greatest = jnp.max(jnp.where(into, logits, -1e30), axis=0)
    powers = jnp.where(into, jnp.exp(logits - greatest[None]), 0.0)
    return jnp.sum(powers / jnp.maximum(jnp.sum(powers, axis=0), 1e-30)[None], axis=1)


class LayerRefs(NamedTuple):
    """What the kernel of a layer reads of one position, and of the tile of a program."""

    v: Any  # [1, P, K], h W_v of all nodes
    u: Any  # [1, 16, K], h W_u of the block that has the tile's receivers
    g: Any  # [1, T, K], the tile's edges
    senders: Any  # int32 [1, T], as in Groups
    receivers: Any
    norm: AffineNorm
    w_e: Any
    a: Any  # [K]
    residual: Any  # [1, T, K] or None, added to the result


def layer_kernel(
    config: GateauConfig, tile_receivers: int, refs: LayerRefs, g_new: Any, edge_sum: Any, pair_weights: Any
) -> None:
    """Equation (4), written as g', and of equation (6) what it needs of edges, for the receivers of the tile.

    edge_sum [1, 16, K] is the weighted sum that W_g multiplies, pair_weights [1, 16, P] the weight of each sender. The
    programs of a block share both, and each writes the rows of its own receivers.
    """
    dtype, sender, receiver = refs.g.dtype, refs.senders[0], refs.receivers[0]
    in_block = jnp.arange(BLOCK)
    of_sender = (sender[:, None] == jnp.arange(refs.v.shape[1])[None]).astype(dtype)
    of_receiver = receiver[:, None] == in_block[None]
    x = normalize(config.normalization, refs.norm, refs.g[0])
    x = jnp.where((receiver >= 0)[:, None], x, 0.0).astype(dtype)  # nothing of padding reaches a sum
    y = (
        triton.dot(x, refs.w_e[...])
        + triton.dot(of_sender, refs.v[0])
        + triton.dot(of_receiver.astype(dtype), refs.u[0])
    )
    skipped = 0.0 if refs.residual is None else refs.residual[0].astype(jnp.float32)
    g_new[0] = (skipped + y).astype(dtype)

    tile = pl.program_id(1) % (BLOCK // tile_receivers)  # of the block
    into = receiver[:, None] == tile * tile_receivers + jnp.arange(tile_receivers)[None]
    weights = attention(jnp.sum(y * refs.a[...][None], axis=1), into)
    alpha = jnp.where(of_receiver, weights[:, None], 0.0).astype(dtype)
    mixed = y.astype(dtype) if config.message == "updated_edge" else x
    own = (in_block // tile_receivers == tile)[None, :, None]
    for sums, rows in ((edge_sum, mixed), (pair_weights, of_sender)):
        total = triton.dot(alpha, rows, trans_a=True).astype(dtype)[None]
        triton.store(sums, total, mask=jnp.broadcast_to(own, total.shape))


def run_kernel(
    kernel: Callable[..., None], grid: tuple[int, int], num_warps: int, inputs: Any, specs: Any, shapes: Any, outs: Any
) -> Any:
    """`kernel(inputs, *results)` for all programs of all positions; on a CPU it is interpreted, to be tested."""
    on_cpu = jax.default_backend() == "cpu"
    options: Any = {} if on_cpu else {"compiler_params": triton.CompilerParams(num_warps=num_warps, num_stages=1)}
    call = pl.pallas_call(kernel, shapes, grid=grid, in_specs=[specs], out_specs=outs, interpret=on_cpu, **options)
    return call(inputs)


def whole(*shape: int) -> pl.BlockSpec:
    """An array of which each program reads all."""
    return pl.BlockSpec(shape, lambda b, program: (0,) * len(shape))


def of_program(*shape: int) -> pl.BlockSpec:
    """A position's array whose second axis is cut by program."""
    return pl.BlockSpec((1, *shape), lambda b, program: (b, program, 0))


def fused_layer(
    groups: Groups, config: GateauConfig, variables: Variables, half: int, hg: Rows, residual: Rows | None = None
) -> Rows:
    """(h', g') of (h, g) by a block's layer 1 or 2, its norms first; `residual` is added to the two."""
    (h, g), dtype, w = hg, config.dtype, variables["params"][f"gateau{half}"]
    norm_h, norm_g = (affine_norm(config, variables, f"norm_{x}{half}") for x in "hg")
    batch, num_places, features = h.shape
    tiles, width = groups.senders.shape
    tile_receivers = num_places // tiles
    tiles_of_block = BLOCK // tile_receivers
    nodes = normalize(config.normalization, norm_h, h.reshape(-1, features))

    def product(x: Array, name: str, out: Any = None) -> Array:
        return dot(dtype, x.reshape(-1, features), w[name], out).reshape(h.shape)

    def of_block(size: int) -> pl.BlockSpec:
        return pl.BlockSpec((1, BLOCK, size), lambda b, tile: (b, tile // tiles_of_block, 0))

    edges, row = of_program(width, features), whole(features)
    ends = pl.BlockSpec((1, width), lambda b, tile: (tile, 0))
    specs = LayerRefs(
        v=pl.BlockSpec((1, num_places, features), lambda b, tile: (b, 0, 0)),
        u=of_block(features),
        g=edges,
        senders=ends,
        receivers=ends,
        norm=AffineNorm(row, row),
        w_e=whole(features, features),
        a=row,
        residual=None if residual is None else edges,
    )
    inputs = LayerRefs(
        v=product(nodes, "W_v", dtype),
        u=product(nodes, "W_u", dtype),
        g=g,
        senders=jnp.asarray(groups.senders),
        receivers=jnp.asarray(groups.receivers),
        norm=norm_g,
        w_e=w["W_e"].astype(dtype),
        a=w["a"][:, 0],
        residual=None if residual is None else residual[1],
    )
    shapes = tuple(jax.ShapeDtypeStruct(s, dtype) for s in (g.shape, h.shape, (batch, num_places, num_places)))
    kernel = partial(layer_kernel, config, tile_receivers)
    outs = edges, of_block(features), of_block(num_places)
    g, edge_sum, pair_weights = run_kernel(kernel, (batch, tiles), NUM_WARPS, inputs, specs, shapes, outs)
    sent = einsum("brs,bsk->brk", pair_weights.astype(jnp.float32), product(nodes, "W_h"), dtype)
    h_new = product(nodes, "W_0") + sent + product(edge_sum, "W_g")
    return (h_new if residual is None else h_new + residual[0]), g
