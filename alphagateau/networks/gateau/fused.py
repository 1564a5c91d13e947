"""GATEAU's inference on a GPU with one kernel a layer: edge features are read once and written once.

A program of the kernel (Pallas, compiled by Triton) has 16 receivers of one position and all edges into them, a tile at
a time, so that no sum leaves it. Rows of senders are products with one-hot rows, which the GPU's matrix units make of
what a program holds already. Edges stay in the order of the tiles, padded, from the first layer to the policy head,
which is one kernel too. `network.py` is the same network, a gather at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from alphagateau.games.state import Array
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.groups import PROGRAM_RECEIVERS, TILES, Groups
from alphagateau.networks.gateau.layer import Gateau
from alphagateau.networks.gateau.network import Inputs, block_variables, embed_nodes, policy_heads, value_heads
from alphagateau.networks.graph_gather import choose_rows
from alphagateau.networks.heads import LEAKY_SLOPE, make_evaluation
from alphagateau.networks.layers import EPSILON, fold_statistics
from alphagateau.networks.network import Evaluation, Variables


class AffineNorm(NamedTuple):
    """The weights [K] of a normalization with ReLU."""

    scale: Any
    shift: Any


def affine_norm(config: GateauConfig, variables: Variables, name: str) -> AffineNorm:
    """Normalization `name`; by running statistics it is a product and a sum."""
    params = variables["params"][name]
    if config.normalization in ("batch", "ghost"):
        running = variables["batch_stats"][name]
        return AffineNorm(*fold_statistics(config.normalization, params, running["mean"], running["var"]))
    return AffineNorm(params["scale"], params.get("bias", jnp.zeros_like(params["scale"])))


def normalize(kind: str, norm: AffineNorm, x: Array) -> Array:
    """Rows x [R, K] normalized, and ReLU, in float32."""
    x = x.astype(jnp.float32)
    if kind in ("layer", "rms"):
        x = x - x.mean(axis=1, keepdims=True) if kind == "layer" else x
        x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=1, keepdims=True) + EPSILON[kind])
    return jax.nn.relu(x * norm.scale[...][None] + norm.shift[...][None])


class LayerRefs(NamedTuple):
    """What the kernel of a layer reads of one position, and writes of one program."""

    h: Any  # [1, P, K], all nodes
    own: Any  # [1, 16, K], the program's receivers among them
    g: Any  # [1, TILES * T, K], its edges
    senders: Any  # int32 [1, TILES, T], as in Groups
    receivers: Any
    norm_h: AffineNorm
    norm_g: AffineNorm
    w: dict[str, Any]  # weights by name
    residual: tuple[Any, Any] | None  # of `own` and `g`, added to the results
    results: tuple[Any, ...]  # h' and g'


def layer_kernel(config: GateauConfig, refs: LayerRefs) -> None:
    """Equations (4) to (6)."""
    kind, dtype, w = config.normalization, refs.g.dtype, refs.w
    width = refs.senders.shape[2]
    h = normalize(kind, refs.norm_h, refs.h[0]).astype(dtype)
    own = normalize(kind, refs.norm_h, refs.own[0]).astype(dtype)

    def product(x: Array, name: str) -> Array:
        return triton.dot(x, w[name][...].astype(dtype))

    v, to_receivers = (product(h, name).astype(dtype) for name in ("W_v", "W_h"))
    u, to_self = product(own, "W_u").astype(dtype), product(own, "W_0")

    def tile(number: Array, sums: tuple[Array, Array]) -> tuple[Array, Array]:
        rows = pl.ds(number * width, width)
        sender, receiver = refs.senders[0, number], refs.receivers[0, number]
        is_sender = (sender[:, None] == jnp.arange(h.shape[0])[None]).astype(dtype)
        is_receiver = receiver[:, None] == jnp.arange(PROGRAM_RECEIVERS)[None]
        x = normalize(kind, refs.norm_g, refs.g[0, rows])
        x = jnp.where(receiver[:, None] >= 0, x, 0.0).astype(dtype)  # nothing of padding reaches a sum
        y = product(x, "W_e") + triton.dot(is_sender, v) + triton.dot(is_receiver.astype(dtype), u)
        before = 0.0 if refs.residual is None else refs.residual[1][0, rows].astype(jnp.float32)
        refs.results[1][0, rows] = (before + y).astype(dtype)

        logits = jnp.sum(y * w["a"][...][None], axis=1)
        logits = jnp.where(logits > 0, logits, LEAKY_SLOPE * logits)
        by_receiver = jnp.where(is_receiver, logits[:, None], -1e30)
        powers = jnp.where(is_receiver, jnp.exp(by_receiver - jnp.max(by_receiver, axis=0)[None]), 0.0)
        alpha = (powers / jnp.maximum(jnp.sum(powers, axis=0), 1e-30)[None]).astype(dtype)  # [T, 16]
        mixed = y.astype(dtype) if config.message == "updated_edge" else x
        from_sender = triton.dot(is_sender, to_receivers).astype(dtype)
        return sums[0] + triton.dot(alpha, mixed, trans_a=True), sums[1] + triton.dot(alpha, from_sender, trans_a=True)

    nothing = jnp.zeros((PROGRAM_RECEIVERS, h.shape[1]), jnp.float32)
    edge_sum, node_sum = jax.lax.fori_loop(0, TILES, tile, (nothing, nothing))
    h_new = to_self + node_sum + product(edge_sum.astype(dtype), "W_g")
    refs.results[0][0] = h_new if refs.residual is None else h_new + refs.residual[0][0]


def run_kernel(
    kernel: Callable[..., None], out_shape: Any, grid: tuple[int, int], in_specs: Any, out_specs: Any
) -> Any:
    """The kernel for all programs of all positions; on a CPU it is interpreted, to be tested."""
    on_cpu = jax.default_backend() == "cpu"
    options: Any = {} if on_cpu else {"compiler_params": triton.CompilerParams(num_warps=8, num_stages=1)}
    return pl.pallas_call(
        kernel, out_shape, grid=grid, in_specs=in_specs, out_specs=out_specs, interpret=on_cpu, **options
    )


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
    hg: tuple[Array, Array],
    residual: tuple[Array, Array] | None,
) -> tuple[Array, Array]:
    """(h', g') of h [B, P, K] and g [B, E', K] before their norms, E' padded edges; `residual` is added to the two."""
    h, g = hg
    batch, num_places, features = h.shape
    num_programs, tiles, width = groups.senders.shape
    own, edges = of_program(PROGRAM_RECEIVERS, features), of_program(tiles * width, features)
    static = pl.BlockSpec((1, tiles, width), lambda b, program: (program, 0, 0))
    norm = AffineNorm(whole(features), whole(features))
    weights = {**w, "a": w["a"][:, 0]}
    specs = LayerRefs(
        h=pl.BlockSpec((1, num_places, features), lambda b, program: (b, 0, 0)),
        own=own,
        g=edges,
        senders=static,
        receivers=static,
        norm_h=norm,
        norm_g=norm,
        w={name: whole(*x.shape) for name, x in weights.items()},
        residual=None if residual is None else (own, edges),
        results=(own, edges),
    )
    inputs = LayerRefs(
        h, h, g, jnp.asarray(groups.senders), jnp.asarray(groups.receivers), *norms, weights, residual, ()
    )
    leaves, tree = jax.tree.flatten(inputs)

    def kernel(*refs: Any) -> None:
        read, results = jax.tree.unflatten(tree, refs[: len(leaves)]), refs[len(leaves) :]
        layer_kernel(config, read._replace(results=results))

    shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in hg)
    in_specs = jax.tree.leaves(specs._replace(results=()), is_leaf=lambda x: isinstance(x, pl.BlockSpec))
    return run_kernel(kernel, shapes, (batch, num_programs), in_specs, (own, edges))(*leaves)


def fused_block(groups: Groups, config: GateauConfig, variables: Variables, hg: tuple[Array, Array]):
    """A residual block of two layers on (h, g)."""
    x = hg
    for half in (1, 2):
        norms = (affine_norm(config, variables, f"norm_h{half}"), affine_norm(config, variables, f"norm_g{half}"))
        w = variables["params"][f"gateau{half}"]
        x = fused_layer(groups, config, w, norms, x, hg if half == 2 else None)
    return x


def head_kernel(kind: str, g: Any, hidden: Any, last: Any, *norms_and_out: Any) -> None:
    """The policy head of a program's edges g [1, TILES * T, K]: its outputs [1, heads, TILES * T]."""
    *norms, out = norms_and_out
    kernel, bias = hidden
    width = g.shape[1] // TILES
    for number in range(TILES):
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
    leaves, tree = jax.tree.flatten((g, hidden, last, *norms))

    def kernel(*refs: Any) -> None:
        head_kernel(config.normalization, *jax.tree.unflatten(tree, refs[:-1]), refs[-1])

    in_specs = [of_program(tiles * width, features), *(whole(*x.shape) for x in leaves[1:])]
    out_spec = pl.BlockSpec((1, len(names), tiles * width), lambda b, program: (b, 0, program))
    shape = jax.ShapeDtypeStruct((batch, len(names), num_rows), jnp.float32)
    logits = run_kernel(kernel, shape, (batch, num_programs), in_specs, out_spec)(*leaves)
    return dict(zip(names, jnp.moveaxis(logits[..., groups.edge_places], 1, 0), strict=True))


def evaluate_fused(net: Gateau, groups: Groups, variables: Variables, residual: Array, inputs: Inputs) -> Evaluation:
    """The Evaluation of B positions, as `network.evaluate` makes it, whose first edges are rows of `residual`."""
    config, batch = net.config, len(inputs.codes)
    h = embed_nodes(variables["params"]["embed_nodes"], inputs.codes, inputs.scalars)
    h = jnp.where(groups.nodes[:, None] >= 0, h.reshape(batch, -1, h.shape[1])[:, groups.nodes], 0.0)
    row = jnp.where(groups.edges >= 0, inputs.start_row[:, groups.edges], 0)
    hg = h, choose_rows(residual, row).reshape(batch, len(groups.edges), -1)
    for i in range(config.num_blocks):
        hg = fused_block(groups, config, block_variables(variables, i), hg)
    h, g = hg

    def in_order(rows: Array, places: Any) -> Array:
        return rows[:, places].reshape(1, -1, rows.shape[2])

    outputs, _ = value_heads(net, variables, in_order(h, groups.node_places))
    if config.action_values:
        outputs |= policy_heads(net, variables, in_order(g, groups.edge_places), inputs.start_row[None])[0]
    else:
        layers = {"policy_logit": "prior_logits"} | ({"reply_logit": "reply_logits"} if config.reply_head else {})
        found = fused_policy_head(groups, config, variables, tuple(layers), g)
        outputs |= {layers[name]: logits for name, logits in found.items()}
    return make_evaluation(outputs)
