"""Chessformer's heads on square tokens: logits of edges, values and their errors, action values, plies left."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.actions import edges_by_slot
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chessformer.encoder import mish
from alphagateau.networks.graph_gather import Table, make_table, take
from alphagateau.networks.heads import attention_pooling, read_moves_left, read_value, value_layer
from alphagateau.networks.layers import GLOROT, Weight, dense, dot, einsum, linear

TOKEN_SIZE = 32  # features of a square, where a value head concatenates them
VALUE_SIZE = 128  # of the last hidden layer of a value head
PROMOTIONS = 3  # kinds of under-promotions: knight, bishop, rook
NUM_VALUE_BINS = 32  # of [-1, 1]

Params = dict[str, Any]


class SquareHeads(NamedTuple):
    """The heads of a network, and the edges' places among pairs of squares."""

    config: ChessformerConfig
    game: Game
    pairs: Table  # (receiver, sender) [N * N] -> edges [E]
    under_promotions: Table  # (receiver, kind) [N * 3] -> edges [E], where there is one


def make_square_heads(game: Game, config) -> SquareHeads:
    """The SquareHeads of a ChessformerConfig, for `game`."""
    num_squares, is_promotion = game.num_squares, game.promotions > 0
    kinds = np.where(is_promotion, game.promotions - 2, 0)  # a knight is 2, a rook 4
    return SquareHeads(
        config=config,
        game=game,
        pairs=make_table(game.receivers * num_squares + game.senders, num_squares**2),
        under_promotions=make_table(game.receivers * PROMOTIONS + kinds, num_squares * PROMOTIONS, is_promotion),
    )


def head_weights(net: SquareHeads) -> Params:
    """The weights of all heads, by name."""
    config, d = net.config, net.config.hidden_size
    one, promotion = dense(VALUE_SIZE, 1), Weight((PROMOTIONS, d), GLOROT)
    if config.value_pooling == "attention":
        value = {"token": dense(d, d), "a": Weight((d, 1), GLOROT), "hidden": dense(d, VALUE_SIZE)}
    else:
        value = {"token": dense(d, TOKEN_SIZE), "hidden": dense(net.game.num_squares * TOKEN_SIZE, VALUE_SIZE)}
    pair = {"query": dense(d, d), "key": dense(d, d), "promotion": promotion}
    weights: Params = {"policy": dense(d, d)} | {name: pair for name in logit_names(net)}
    weights["value"] = value | {"out": dense(VALUE_SIZE, value_layer(config)[1])}
    if config.moves_left_head:
        weights["moves_left"] = value | {"out": one}
    bins = {"bins": dense(VALUE_SIZE, NUM_VALUE_BINS)} if config.categorical_values else {}
    weights |= {name: value | {"out": one, "error": one} | bins for name in value_names(net)}
    if config.action_values:
        weights["action_values"] = {"sender": dense(d, d), "receiver": dense(d, d), "promotion": promotion}
        weights["action_values"]["out"] = dense(d, config.num_bins)
    return weights


def logit_names(net: SquareHeads) -> list[str]:
    """The heads of a logit an edge."""
    return ["prior"] + ["soft"] * net.config.soft_policy_head + ["reply"] * net.config.reply_head


def value_names(net: SquareHeads) -> list[str]:
    """The heads that predict a value and the error of that prediction."""
    return ["search_value"] * net.config.search_value_head + ["short_term"] * net.config.short_term_head


def outputs_of(net: SquareHeads, params: Params, x: Array, is_legal: Array) -> dict[str, Array]:
    """All outputs [B, ...] by name, of tokens x [B, N, d] and the legality of edges [B, E].

    Beside those of `networks/heads.py`: "soft_logits" [B, E]; "search_value" and "short_term" [B] in [-1, 1], each with
    its predicted "..._error" [B], 0 or more, and "..._bins" [B, 32].
    """
    config, p = net.config, mish(apply_dense(net, params["policy"], x))
    outputs = {f"{name}_logits": edge_logits(net, params[name], p) for name in logit_names(net)}
    if config.action_values:
        outputs["action_value_logits"] = action_values(net, params["action_values"], p, is_legal)
    outputs |= read_value(config.value_head, linear(params["value"]["out"], value_hidden(net, params["value"], x)))
    if config.moves_left_head:
        hidden = value_hidden(net, params["moves_left"], x)
        outputs["moves_left"] = read_moves_left(linear(params["moves_left"]["out"], hidden))
    for name in value_names(net):
        hidden, head = value_hidden(net, params[name], x), params[name]
        outputs[name] = jnp.tanh(linear(head["out"], hidden)[:, 0])
        outputs[f"{name}_error"] = jax.nn.softplus(linear(head["error"], hidden)[:, 0])
        if config.categorical_values:
            outputs[f"{name}_bins"] = linear(head["bins"], hidden)
    return outputs


def edge_logits(net: SquareHeads, params: Params, p: Array) -> Array:
    """[B, E] of tokens p [B, N, d]: Q of the sender times K of the receiver, plus u K of an under-promotion."""
    batch, _, d = p.shape
    q, k = apply_dense(net, params["query"], p), apply_dense(net, params["key"], p)
    pairs = einsum("brd,bsd->brs", k, q, net.config.dtype) / np.sqrt(d)
    logits = jnp.reshape(take(net.pairs, pairs.reshape(-1, 1), batch), (batch, -1))
    offsets = einsum("bnd,ud->bnu", k, params["promotion"], net.config.dtype)
    offsets = jnp.reshape(take(net.under_promotions, offsets.reshape(-1, 1), batch), (batch, -1))
    return logits + jnp.where(net.under_promotions.valid, offsets, 0)


def action_values(net: SquareHeads, params: Params, p: Array, is_legal: Array) -> Array:
    """[B, S, bins] of the legal edges in rising order, arbitrary on empty slots.

    Rows of sender and receiver are added. They are gathered by matrix products, as the gradient would scatter slowly.
    """
    game, num_squares = net.game, net.game.num_squares
    edges = jnp.minimum(edges_by_slot(is_legal, game.max_legal_moves), game.num_edges - 1)
    kinds = jnp.asarray(game.promotions)[edges] - 2

    def gather(rows: Array, places: Array, num_rows: int) -> Array:
        is_row = (places[..., None] == jnp.arange(num_rows)).astype(jnp.float32)
        return einsum("bsn,bnd->bsd" if rows.ndim == 3 else "bsn,nd->bsd", is_row, rows, net.config.dtype)

    x = gather(apply_dense(net, params["sender"], p), jnp.asarray(game.senders)[edges], num_squares)
    x += gather(apply_dense(net, params["receiver"], p), jnp.asarray(game.receivers)[edges], num_squares)
    return linear(params["out"], mish(x + gather(params["promotion"], kinds, PROMOTIONS)))


def value_hidden(net: SquareHeads, params: Params, x: Array) -> Array:
    """The last hidden layer of a value head, [B, 128], of tokens x [B, N, d]."""
    h = mish(apply_dense(net, params["token"], x))
    pooled = attention_pooling(params["a"], h) if net.config.value_pooling == "attention" else h.reshape(len(h), -1)
    return mish(linear(params["hidden"], pooled))


def apply_dense(net: SquareHeads, params: Params, x: Array) -> Array:
    """A dense layer of tokens [B, N, d], of operands rounded to the network's dtype."""
    return dot(net.config.dtype, x, params["kernel"]) + params["bias"]
