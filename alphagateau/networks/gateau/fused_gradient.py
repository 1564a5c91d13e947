"""The gradient of GATEAU's fused layer, for normalizations of a row by itself.

The programs of its kernel are those of `fused_layer.py`. It reads an edge feature g and the loss's gradient by g' of
equation (4), makes the rest again, and writes three arrays of that size: the gradient by g, and the two factors of the
gradient by W_e. XLA makes the gradients of nodes and weights of these and of sums. Everywhere d_x is the gradient by x.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from alphagateau.games.state import Array
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.fused_layer import (
    AffineNorm,
    Rows,
    affine_norm,
    attention,
    ends,
    normalize,
    of_position,
    of_program,
    of_tiles,
    run_kernel,
    scaled_rows,
    whole,
)
from alphagateau.networks.gateau.groups import PROGRAM_RECEIVERS, Groups
from alphagateau.networks.heads import LEAKY_SLOPE
from alphagateau.networks.layers import dot
from alphagateau.networks.network import Variables


class GradientRefs(NamedTuple):
    """What the kernel reads of one position and of one program."""

    v: Any  # [1, P, K], h W_v of all nodes
    to_receivers: Any  # [1, P, K], h W_h of all nodes
    u: Any  # [1, 16, K], h W_u of the program's receivers
    d_h: Any  # [1, 16, K]
    d_edge_sum: Any  # [1, 16, K], by the weighted sum of edges that W_g multiplies
    g: Any  # [1, tiles * T, K], the program's edges
    d_g: Any  # [1, tiles * T, K], by g'
    also: Any  # [1, tiles * T, K] or None, added to the gradient by g
    senders: Any  # int32 [1, tiles, T], as in Groups
    receivers: Any
    norm: AffineNorm
    w_e: Any
    a: Any  # [K]


class Sums(NamedTuple):
    """What a program's edges sum to, in float32."""

    v: Any  # [P, K], gradient by what nodes send
    to_receivers: Any  # [P, K]; in the loop over tiles the weights [P, 16] that its rows have
    u: Any  # [16, K], gradient by what the program's receivers add
    edges: Any  # [16, K], the weighted sum of edges, as in the forward pass
    scale: Any  # [K], gradients by weights
    shift: Any
    a: Any


class Results(NamedTuple):
    """What the kernel writes."""

    g: Any  # [1, tiles * T, K], gradient by g
    x: Any  # [1, tiles * T, K], what W_e multiplies
    g_new: Any  # [1, tiles * T, K], the whole gradient by g'
    sums: Sums


def gradient_kernel(config: GateauConfig, refs: GradientRefs, *written: Any) -> None:
    """The gradients of equations (4) to (6) at a program's edges."""
    results, kind, dtype = Results(*written), config.normalization, refs.g.dtype
    (_, num_tiles, width), num_places = refs.senders.shape, refs.v.shape[1]
    v, u, d_h, d_edge_sum = (x[0].astype(dtype) for x in (refs.v, refs.u, refs.d_h, refs.d_edge_sum))
    d_sent = triton.dot(refs.to_receivers[0].astype(dtype), d_h, trans_b=True).astype(dtype)  # [P, 16]
    w_e, a, scale = refs.w_e[...].astype(dtype), refs.a[...][None], refs.norm.scale[...][None]

    def tile(number: Array, sums: Sums) -> Sums:
        rows = pl.ds(number * width, width)
        is_edge, is_sender, is_receiver = ends(refs, number, num_places)
        of_sender, of_receiver = is_sender.astype(dtype), is_receiver.astype(dtype)

        def read(edges: Any) -> Array:
            return jnp.where(is_edge, edges[0, rows].astype(jnp.float32), 0.0)  # nothing of padding reaches a sum

        scaled, inverse = scaled_rows(kind, read(refs.g))
        normalized = scaled * scale + refs.norm.shift[...][None]
        x = jnp.where(is_edge, jax.nn.relu(normalized), 0.0).astype(dtype)
        y = triton.dot(x, w_e) + triton.dot(of_sender, v) + triton.dot(of_receiver, u)
        logits = jnp.sum(y * a, axis=1)
        alpha = attention(logits, is_receiver)
        mixed = y.astype(dtype) if config.message == "updated_edge" else x

        rounded = alpha.astype(dtype)
        d_mixed = triton.dot(rounded, d_edge_sum)
        d_alpha = triton.dot(mixed, d_edge_sum, trans_b=True) + triton.dot(of_sender, d_sent)  # [T, 16]
        d_alpha = alpha * (d_alpha - jnp.sum(alpha * d_alpha, axis=0)[None])
        d_logits = jnp.sum(d_alpha, axis=1)
        d_logits = jnp.where(logits > 0, d_logits, LEAKY_SLOPE * d_logits)[:, None]
        d_y = read(refs.d_g) + d_logits * a
        d_y = d_y + d_mixed if config.message == "updated_edge" else d_y
        d_rounded = d_y.astype(dtype)
        results.x[0, rows], results.g_new[0, rows] = x, d_rounded

        d_x = triton.dot(d_rounded, w_e, trans_b=True)
        d_x = d_x if config.message == "updated_edge" else d_x + d_mixed
        d_normalized = jnp.where(is_edge & (normalized > 0), d_x, 0.0)
        d_scaled = d_normalized * scale
        d_row = d_scaled - scaled * jnp.mean(d_scaled * scaled, axis=1, keepdims=True)
        d_row = inverse * (d_row - jnp.mean(d_scaled, axis=1, keepdims=True) if kind == "layer" else d_row)
        results.g[0, rows] = (d_row if refs.also is None else d_row + read(refs.also)).astype(dtype)
        return Sums(
            sums.v + triton.dot(of_sender, d_rounded, trans_a=True),
            sums.to_receivers + triton.dot(of_sender, rounded, trans_a=True),
            sums.u + triton.dot(of_receiver, d_rounded, trans_a=True),
            sums.edges + triton.dot(rounded, mixed, trans_a=True),
            sums.scale + jnp.sum(d_normalized * scaled, axis=0),
            sums.shift + jnp.sum(d_normalized, axis=0),
            sums.a + jnp.sum(d_logits * y, axis=0),
        )

    shapes = (num_places, a.shape[1]), (num_places, PROGRAM_RECEIVERS), *[d_h.shape] * 2, *[a.shape[1:]] * 3
    sums = jax.lax.fori_loop(0, num_tiles, tile, Sums(*map(jnp.zeros, shapes)))
    sums = sums._replace(to_receivers=triton.dot(sums.to_receivers.astype(dtype), d_h))
    for ref, total in zip(results.sums, sums, strict=True):
        ref[(0,) * (ref.ndim - total.ndim)] = total


def layer_gradient(
    groups: Groups,
    config: GateauConfig,
    variables: Variables,
    half: int,
    hg: Rows,
    d_hg: Rows,
    also: Rows | None = None,
) -> tuple[Variables, Rows]:
    """(gradients of a block's layer 1 or 2 by its weights, by its inputs hg), `also` added to the latter.

    variables: of the block. d_hg: by the layer's results.
    """
    kind, params, (h, g), (d_h, d_g) = config.normalization, variables["params"], hg, d_hg
    norm_h, norm_g = (affine_norm(config, variables, f"norm_{x}{half}") for x in "hg")
    w, features = params[f"gateau{half}"], h.shape[-1]

    def by_nodes(norm: AffineNorm, weights: list[Array], h: Array) -> list[Array]:
        x = normalize(kind, norm, h.reshape(-1, features))
        return [dot(config.dtype, x, weight).reshape(h.shape) for weight in weights]

    names = ["W_v", "W_h", "W_u", "W_0"]
    (v, to_receivers, u, _), gradient_of_nodes = jax.vjp(by_nodes, norm_h, [w[name] for name in names], h)
    found = run_gradient(
        groups,
        config,
        GradientRefs(
            v=v,
            to_receivers=to_receivers,
            u=u,
            d_h=d_h,
            d_edge_sum=dot(config.dtype, d_h, w["W_g"].T),
            g=g,
            d_g=d_g,
            also=None if also is None else also[1],
            senders=jnp.asarray(groups.senders),
            receivers=jnp.asarray(groups.receivers),
            norm=norm_g,
            w_e=w["W_e"],
            a=w["a"][:, 0],
        ),
    )
    sums = found.sums
    of_nodes = [sums.v.sum(axis=1), sums.to_receivers.sum(axis=1), sums.u, d_h]
    d_norm_h, d_weights, d_h_in = gradient_of_nodes(of_nodes)

    def rows(x: Array) -> Array:
        return x.reshape(-1, features)

    layer = dict(zip(names, d_weights, strict=True))
    layer["W_e"] = dot(config.dtype, rows(found.x).T, rows(found.g_new))
    layer["W_g"] = dot(config.dtype, rows(sums.edges).T, rows(d_h))
    layer["a"] = rows(sums.a).sum(axis=0)[:, None]
    d_norm_g = AffineNorm(rows(sums.scale).sum(axis=0), rows(sums.shift).sum(axis=0))
    gradient = {f"gateau{half}": layer}
    for name, norm in ((f"norm_h{half}", d_norm_h), (f"norm_g{half}", d_norm_g)):
        gradient[name] = {"scale": norm.scale} | ({"bias": norm.shift} if "bias" in params[name] else {})
    return gradient, (d_h_in if also is None else d_h_in + also[0], found.g)


def run_gradient(groups: Groups, config: GateauConfig, inputs: GradientRefs) -> Results:
    """The kernel's Results of B positions."""
    batch, num_places, features = inputs.v.shape
    num_programs, tiles, width = groups.senders.shape
    nodes, own = of_position(num_places, features), of_program(PROGRAM_RECEIVERS, features)
    edges, row = of_program(tiles * width, features), whole(features)
    specs = GradientRefs(
        v=nodes,
        to_receivers=nodes,
        u=own,
        d_h=own,
        d_edge_sum=own,
        g=edges,
        d_g=edges,
        also=None if inputs.also is None else edges,
        senders=of_tiles(groups),
        receivers=of_tiles(groups),
        norm=AffineNorm(row, row),
        w_e=whole(features, features),
        a=row,
    )
    of_nodes = pl.BlockSpec((1, 1, num_places, features), lambda b, program: (b, program, 0, 0))
    of_weights = of_program(1, features)
    out_specs = Results(edges, edges, edges, Sums(of_nodes, of_nodes, own, own, of_weights, of_weights, of_weights))

    def array(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((batch, *shape, features), jnp.float32)

    by_program, by_place, by_weight = array(num_programs, num_places), array(num_places), array(num_programs)
    g = jax.ShapeDtypeStruct(inputs.g.shape, inputs.g.dtype)
    shapes = Results(g, g, g, Sums(by_program, by_program, by_place, by_place, by_weight, by_weight, by_weight))
    kernel = partial(gradient_kernel, config)
    return run_kernel(kernel, (batch, num_programs), inputs, specs, shapes, out_specs)
