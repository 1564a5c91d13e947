"""The token transformer of searchless chess, on the characters of FENs and on moves.

A decoder without causal mask, with pre-normalization, SwiGLU and learnt positional embeddings (Ruoss et al. 2024; the
paper has post-normalization, its code and weights are as here). A sequence is 0, the position's tokens and, to value a
move, the move's; outputs are read at its last place. The three heads are those of the paper, which has a network for
each: action values (AV, a forward pass a move), state value (SV) and policy (BC).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.actions import edges_by_slot, legal_edge_mask, slots_to_edges
from alphagateau.games.move_numbers import action_names
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.chunks import CHUNK_BYTES, apply_in_chunks, equal_chunks, num_cores
from alphagateau.networks.graph_gather import lookup
from alphagateau.networks.heads import make_evaluation, mean_of_bins, read_value, value_layer
from alphagateau.networks.layers import dot, linear, row_means
from alphagateau.networks.network import Network, Outputs, Variables
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.networks.tokens.tokenizer import CHARACTERS, action_tokens, num_position_tokens, position_tokens

EPSILON = 1e-5  # of layer normalization, as in Haiku
EMBEDDING_SCALE = 0.02
WIDENING = 4  # of the hidden layer of a block
ACCELERATOR_BYTES = 2**30  # of a block's activations of a chunk on an accelerator


class Transformer(NamedTuple):
    """The static arguments of the network's functions."""

    num_tokens: int  # T, of the longest sequence
    num_actions: int  # V
    num_slots: int  # S
    config: TokenTransformerConfig
    hidden_size: int  # d
    num_blocks: int
    num_heads: int

    @property
    def outputs(self) -> dict[str, int]:
        """Width of the last layer of each head by name."""
        config = self.config
        widths = {"policy": self.num_actions} if config.policy_head else {}
        widths |= dict([value_layer(config)]) if config.value_head != "none" else {}
        return widths | ({"action_values": config.num_bins} if config.action_values else {})

    def dot(self, x: Array, w: Array) -> Array:
        return dot(self.config.dtype, x, w)


def init_params(net: Transformer, key: jax.Array) -> Variables:
    """Initial weights as published: truncated normal, of scale 0.02 (tokens), 1 (places) or 1 / sqrt(inputs)."""
    d, wide = net.hidden_size, WIDENING * net.hidden_size
    matrices = {"W_q": (d, d), "W_k": (d, d), "W_v": (d, d), "W_o": (d, d)}
    matrices |= {"W_1": (d, wide), "W_2": (d, wide), "W_3": (wide, d)}
    token_key, place_key, blocks_key, heads_key = jax.random.split(key, 4)

    def sample(key: jax.Array, shape: tuple[int, int], scale: float) -> Array:
        return scale * jax.random.truncated_normal(key, -2, 2, shape)

    def norm() -> Variables:
        return {"scale": jnp.ones(d), "bias": jnp.zeros(d)}

    def block(key: jax.Array) -> Variables:
        keys = jax.random.split(key, len(matrices))
        weights = {
            name: sample(k, shape, shape[0] ** -0.5) for k, (name, shape) in zip(keys, matrices.items(), strict=True)
        }
        return {**weights, "norm_attention": norm(), "norm_hidden": norm()}

    params = {
        "embed_tokens": sample(token_key, (net.num_actions, d), EMBEDDING_SCALE),
        "embed_places": sample(place_key, (net.num_tokens, d), 1.0),
        "norm_last": norm(),
    }
    params |= {f"block{i}": block(k) for i, k in enumerate(jax.random.split(blocks_key, net.num_blocks))}
    for name, k in zip(net.outputs, jax.random.split(heads_key, len(net.outputs)), strict=True):
        width = net.outputs[name]
        params[name] = {"kernel": sample(k, (d, width), d**-0.5), "bias": jnp.zeros(width)}
    return params


def layer_norm(params: Variables, x: Array) -> Array:
    """Layer normalization along the last axis."""
    centered = x - row_means(x)
    return centered * jax.lax.rsqrt(row_means(jnp.square(centered)) + EPSILON) * params["scale"] + params["bias"]


def attention(net: Transformer, w: Variables, x: Array, num_queries: int) -> Array:
    """Attention of the last places, [R, num_queries, d], to all of x [R, T, d]."""
    split = (*x.shape[:2], net.num_heads, -1)
    q = net.dot(x[:, -num_queries:], w["W_q"]).reshape(len(x), num_queries, net.num_heads, -1)
    k, v = (net.dot(x, w[name]).reshape(split) for name in ("W_k", "W_v"))
    weights = jax.nn.softmax(jnp.einsum("rqhd,rthd->rhqt", q, k) * q.shape[-1] ** -0.5)
    mixed = jnp.einsum("rhqt,rthd->rqhd", weights, v)
    return net.dot(mixed.reshape(len(x), num_queries, -1), w["W_o"])


def block(net: Transformer, w: Variables, x: Array, num_queries: int) -> Array:
    """A block of x [R, T, d], at its last places alone, [R, num_queries, d]."""
    x = x[:, -num_queries:] + attention(net, w, layer_norm(w["norm_attention"], x), num_queries)
    h = layer_norm(w["norm_hidden"], x)
    return x + net.dot(jax.nn.silu(net.dot(h, w["W_1"])) * net.dot(h, w["W_2"]), w["W_3"])


def embed(net: Transformer, params: Variables, tokens: Array, actions: Array | None) -> Array:
    """The embedding [R, T, d] of 0, a position's tokens [R, T'] and, if there is one, a move [R]."""
    tokens = jnp.pad(tokens, [(0, 0), (1, 0)])
    characters = params["embed_tokens"][: len(CHARACTERS)]
    x = lookup(characters[None], tokens.reshape(1, -1)).reshape(*tokens.shape, -1)
    if actions is not None:
        x = jnp.concatenate([x, lookup(params["embed_tokens"][None], actions[None])[:, None]], axis=1)
    return x * net.hidden_size**0.5 + params["embed_places"][: x.shape[1]]


def encode(net: Transformer, params: Variables, tokens: Array, actions: Array | None = None) -> Array:
    """The trunk's output [R, d] at the last place, the only one that the last block computes."""
    x, last = embed(net, params, tokens, actions), net.num_blocks - 1
    block_fn = jax.checkpoint(block, static_argnums=(0, 3)) if net.config.rematerialize else block
    if last:  # a scan compiles one block for all
        weights = jax.tree.map(lambda *w: jnp.stack(w), *(params[f"block{i}"] for i in range(last)))
        x, _ = jax.lax.scan(lambda x, w: (block_fn(net, w, x, x.shape[1]), None), x, weights)
    return layer_norm(params["norm_last"], block_fn(net, params[f"block{last}"], x, 1)[:, 0])


def state_heads(net: Transformer, params: Variables, tokens: Array, edges: Array) -> dict[str, Array]:
    """Prior logits [R, E] at the edges' actions and values [R], by name, if the network has such heads."""
    x, outputs = encode(net, params, tokens), {}
    if net.config.policy_head:
        outputs["prior_logits"] = jnp.take_along_axis(linear(params["policy"], x), edges, axis=1)
    if net.config.value_head != "none":
        outputs |= read_value(net.config.value_head, linear(params[value_layer(net.config)[0]], x))
    return outputs


def state_outputs(net: Transformer, params: Variables, inputs: tuple[Array, Array], train: bool) -> dict[str, Array]:
    """`state_heads` of (tokens [B, T'], edges' actions [B, E]); in chunks in inference."""
    if not net.config.policy_head and net.config.value_head == "none":
        return {}
    if train:
        return state_heads(net, params, *inputs)
    num_chunks = -(-len(inputs[0]) // sequences_at_a_time(net, train))
    return apply_in_chunks(lambda chunk: state_heads(net, params, *(x[0] for x in chunk)), inputs, num_chunks)


def move_logits(net: Transformer, params: Variables, tokens: Array, actions: Array) -> Array:
    """Logits over bins [R, K] of the value of one move each, by number [R]."""
    return linear(params["action_values"], encode(net, params, tokens, actions))


def legal_move_logits(net: Transformer, params: Variables, tokens: Array, actions: Array, num_legal: Array) -> Array:
    """[B, S, K] of the legal moves of B positions, by number [B, S]; 0 on empty slots.

    Most slots are empty, so the legal moves of all boards are gathered, and only the chunks that they fill are
    evaluated. The loop's length is dynamic, so there is no gradient.
    """
    batch, num_slots = actions.shape
    num_rows = min(sequences_at_a_time(net, train=False), batch * num_slots)
    ends = jnp.cumsum(num_legal)

    def chunk(i: Array, logits: Array) -> Array:
        row = i * num_rows + jnp.arange(num_rows)
        board = jnp.minimum(jnp.searchsorted(ends, row, side="right", method="compare_all"), batch - 1)
        slot = row - (ends - num_legal)[board]
        new = move_logits(net, params, tokens[board], actions[board, jnp.minimum(slot, num_slots - 1)])
        return logits.at[board, jnp.where(row < ends[-1], slot, num_slots)].set(new, mode="drop")

    logits = jnp.zeros((batch, num_slots, net.config.num_bins))
    return jax.lax.fori_loop(0, -(-ends[-1] // num_rows), chunk, logits)


def one_move_outputs(
    net: Transformer, params: Variables, inputs: tuple[Array, Array], legal: Array, slots: Array
) -> dict[str, Array]:
    """Action value logits [B, 1, K] of the moves in `slots` [B, 1], by name; `legal` bool [B, E]."""
    tokens, edges = inputs
    edge = jnp.take_along_axis(edges_by_slot(legal, net.num_slots), slots, axis=1)
    action = jnp.take_along_axis(edges, edge, axis=1, mode="clip")[:, 0]
    return {"action_value_logits": move_logits(net, params, tokens, action)[:, None]}


def all_moves_outputs(
    net: Transformer, params: Variables, inputs: tuple[Array, Array], legal: Array
) -> dict[str, Array]:
    """Action value logits [B, S, K], and prior and value from them, by name; `legal` bool [B, E].

    With action values q, the prior is softmax(q / prior_temperature), the value 2 max q - 1, or 0 without a legal move.
    """
    tokens, edges = inputs
    actions = jnp.take_along_axis(edges, edges_by_slot(legal, net.num_slots), axis=1, mode="clip")
    logits = legal_move_logits(net, params, tokens, actions, legal.sum(axis=-1))
    q, num_legal = mean_of_bins(logits), legal.sum(axis=-1, keepdims=True)
    best = jnp.where(jnp.arange(q.shape[1]) < num_legal, q, -jnp.inf).max(axis=-1)
    value = jnp.where(num_legal[:, 0] > 0, jnp.clip(2 * best - 1, -1, 1), 0.0)
    prior_logits = slots_to_edges(legal, q / net.config.prior_temperature)
    return {"action_value_logits": logits, "prior_logits": prior_logits, "value": value}


def sequences_at_a_time(net: Transformer, train: bool) -> int:
    """Sequences of a chunk: as many as fit a CPU's cache, or an accelerator's memory."""
    width = 3 * WIDENING * net.hidden_size + net.num_heads * net.num_tokens
    block_bytes = 4 * net.num_tokens * width
    if jax.default_backend() == "cpu":
        return num_cores() * max(1, CHUNK_BYTES // block_bytes)
    if train:  # the backward pass needs the activations of all blocks
        return max(1, 4 * ACCELERATOR_BYTES // (block_bytes * net.num_blocks))
    return max(1, ACCELERATOR_BYTES // block_bytes)


def make_token_transformer(game: Game, config) -> Network:
    """Makes the token transformer of a TokenTransformerConfig, for `game`; its weights are for this board alone."""
    num_tokens, num_actions = num_position_tokens(game) + 2, len(action_names(game))
    net = Transformer(num_tokens, num_actions, game.max_legal_moves, config, *config.widths)

    def init(key: jax.Array) -> Variables:
        return {"params": jax.jit(partial(init_params, net))(key)}

    def apply(
        variables: Variables,
        positions: Position,
        train: bool = False,
        axis_name: str | None = None,
        slots: Array | None = None,
    ) -> Outputs:
        del axis_name
        params, legal = variables["params"], legal_edge_mask(game, positions)
        inputs = position_tokens(game, positions), action_tokens(game, positions)
        outputs = {"prior_logits": jnp.zeros(legal.shape), "value": jnp.zeros(len(legal))}  # without heads for them
        if config.action_values and slots is not None:
            outputs |= one_move_outputs(net, params, inputs, legal, slots)
        elif config.action_values and not train:
            outputs |= all_moves_outputs(net, params, inputs, legal)
        return make_evaluation(outputs | state_outputs(net, params, inputs, train)), {}

    def num_chunks(batch: int) -> int:
        return equal_chunks(batch, sequences_at_a_time(net, train=True))

    return Network(init, apply, num_chunks, values_one_move=config.action_values)
