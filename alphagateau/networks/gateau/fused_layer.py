"""A GATEAU layer as one kernel of a GPU: edge features are read once and written once.

A program of the kernel (Pallas, compiled by Triton) has 16 receivers of one position and all edges into them, a tile at
a time, so that no sum leaves it. Rows of senders are products with one-hot rows, which the GPU's matrix units make of
what a program holds already.
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
from alphagateau.networks.gateau.groups import PROGRAM_RECEIVERS, Groups
from alphagateau.networks.heads import LEAKY_SLOPE
from alphagateau.networks.layers import EPSILON, ROW_NORMS, fold_statistics
from alphagateau.networks.network import Variables

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


def scaled_rows(kind: str, x: Array) -> tuple[Array, Array]:
    """(rows x [R, K] by their own mean and size, the inverse of that size [R, 1]), in float32."""
    x = x.astype(jnp.float32)
    x = x - x.mean(axis=1, keepdims=True) if kind == "layer" else x
    inverse = jax.lax.rsqrt(jnp.square(x).mean(axis=1, keepdims=True) + EPSILON[kind])
    return x * inverse, inverse


def normalize(kind: str, norm: AffineNorm, x: Array) -> Array:
    """Rows x [R, K] normalized, and ReLU, in float32."""
    x = scaled_rows(kind, x)[0] if kind in ROW_NORMS else x.astype(jnp.float32)
    return jax.nn.relu(x * norm.scale[...][None] + norm.shift[...][None])


def ends(refs: Any, number: Array, num_places: int) -> tuple[Array, Array, Array]:
    """Of the edges of tile `number`: is it one [T, 1], is this its sender [T, P], its receiver [T, 16]; bool."""
    sender, receiver = refs.senders[0, number][:, None], refs.receivers[0, number][:, None]
    return receiver >= 0, sender == jnp.arange(num_places)[None], receiver == jnp.arange(PROGRAM_RECEIVERS)[None]


def attention(logits: Array, is_receiver: Array) -> Array:
    """Equation (5) for the edges of a tile: their weights [T, 16] by receiver, 0 elsewhere, of logits a.g' [T]."""
    logits = jnp.where(logits > 0, logits, LEAKY_SLOPE * logits)
    by_receiver = jnp.where(is_receiver, logits[:, None], -1e30)
    powers = jnp.where(is_receiver, jnp.exp(by_receiver - jnp.max(by_receiver, axis=0)[None]), 0.0)
    return powers / jnp.maximum(jnp.sum(powers, axis=0), 1e-30)[None]


class LayerRefs(NamedTuple):
    """What the kernel of a layer reads of one position and of one program."""

    h: Any  # [1, P, K], all nodes
    own: Any  # [1, 16, K], the program's receivers among them
    g: Any  # [1, tiles * T, K], its edges
    senders: Any  # int32 [1, tiles, T], as in Groups
    receivers: Any
    norm_h: AffineNorm
    norm_g: AffineNorm
    w: dict[str, Any]  # weights by name
    residual: tuple[Any, Any] | None  # of `own` and `g`, added to the results


def layer_kernel(config: GateauConfig, refs: LayerRefs, h_new: Any, g_new: Any) -> None:
    """Equations (4) to (6), written as h' and g'."""
    kind, dtype, w = config.normalization, refs.g.dtype, refs.w
    _, num_tiles, width = refs.senders.shape
    h = normalize(kind, refs.norm_h, refs.h[0]).astype(dtype)
    own = normalize(kind, refs.norm_h, refs.own[0]).astype(dtype)

    def product(x: Array, name: str) -> Array:
        return triton.dot(x, w[name][...].astype(dtype))

    v, to_receivers = (product(h, name).astype(dtype) for name in ("W_v", "W_h"))
    u, to_self = product(own, "W_u").astype(dtype), product(own, "W_0")

    def tile(number: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        rows = pl.ds(number * width, width)
        is_edge, is_sender, is_receiver = ends(refs, number, h.shape[0])
        of_sender, of_receiver = is_sender.astype(dtype), is_receiver.astype(dtype)
        x = normalize(kind, refs.norm_g, refs.g[0, rows])
        x = jnp.where(is_edge, x, 0.0).astype(dtype)  # nothing of padding reaches a sum
        y = product(x, "W_e") + triton.dot(of_sender, v) + triton.dot(of_receiver, u)
        skipped = 0.0 if refs.residual is None else refs.residual[1][0, rows].astype(jnp.float32)
        g_new[0, rows] = (skipped + y).astype(dtype)

        alpha = attention(jnp.sum(y * w["a"][...][None], axis=1), is_receiver).astype(dtype)
        mixed = y.astype(dtype) if config.message == "updated_edge" else x
        from_sender = triton.dot(of_sender, to_receivers).astype(dtype)
        return sums[0] + triton.dot(alpha, mixed, trans_a=True), sums[1] + triton.dot(alpha, from_sender, trans_a=True)

    nothing = jnp.zeros((PROGRAM_RECEIVERS, h.shape[1]), jnp.float32)
    edge_sum, node_sum = jax.lax.fori_loop(0, num_tiles, tile, (nothing, nothing))
    result = to_self + node_sum + product(edge_sum.astype(dtype), "W_g")
    h_new[0] = result if refs.residual is None else result + refs.residual[0][0]


def run_kernel(
    kernel: Callable[..., None], grid: tuple[int, int], inputs: Any, specs: Any, shapes: Any, out_specs: Any
) -> Any:
    """`kernel(inputs, *results)` for all programs of all positions; on a CPU it is interpreted, to be tested."""
    on_cpu = jax.default_backend() == "cpu"
    options: Any = {} if on_cpu else {"compiler_params": triton.CompilerParams(num_warps=8, num_stages=1)}
    call = pl.pallas_call(kernel, shapes, grid=grid, in_specs=[specs], out_specs=out_specs, interpret=on_cpu, **options)
    return call(inputs)


def of_position(*shape: int) -> pl.BlockSpec:
    """An array [B, ...] of which the programs of a position read all that is its."""
    return pl.BlockSpec((1, *shape), lambda b, program: (b,) + (0,) * len(shape))


def of_tiles(groups: Groups) -> pl.BlockSpec:
    """An array of the board such as `groups.senders`, which has a row a program."""
    return pl.BlockSpec((1, *groups.senders.shape[1:]), lambda b, program: (program, 0, 0))


def whole(*shape: int) -> pl.BlockSpec:
    """An array of which each program reads all."""
    return pl.BlockSpec(shape, lambda b, program: (0,) * len(shape))


def of_program(*shape: int) -> pl.BlockSpec:
    """A position's array whose second axis is cut by program."""
    return pl.BlockSpec((1, *shape), lambda b, program: (b, program, 0))


def fused_layer(
    groups: Groups,
    config: GateauConfig,
    w: Variables,
    norms: tuple[AffineNorm, AffineNorm],
    hg: Rows,
    residual: Rows | None,
) -> Rows:
    """(h', g') of (h, g) before their norms; `residual` is added to the two."""
    h, g = hg
    batch, num_places, features = h.shape
    num_programs, tiles, width = groups.senders.shape
    own, edges = of_program(PROGRAM_RECEIVERS, features), of_program(tiles * width, features)
    norm = AffineNorm(whole(features), whole(features))
    weights = {**w, "a": w["a"][:, 0]}
    specs = LayerRefs(
        h=of_position(num_places, features),
        own=own,
        g=edges,
        senders=of_tiles(groups),
        receivers=of_tiles(groups),
        norm_h=norm,
        norm_g=norm,
        w={name: whole(*x.shape) for name, x in weights.items()},
        residual=None if residual is None else (own, edges),
    )
    senders, receivers = jnp.asarray(groups.senders), jnp.asarray(groups.receivers)
    inputs = LayerRefs(h, h, g, senders, receivers, *norms, weights, residual)
    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in hg)
    return run_kernel(partial(layer_kernel, config), (batch, num_programs), inputs, specs, shapes, (own, edges))
