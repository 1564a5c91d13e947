"""Chessformer: a transformer whose tokens are the squares of a board (Monroe and Chalmers 2024), on every board.

`square_tokens.py` embeds the squares, `encoder.py` is a layer, `relative_attention.py` its attention by offset, and
`heads.py` the outputs. In the default configuration no weight belongs to a square, so the same weights play every
board. All layers are one scan, so compile time does not grow with their number.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, without_past
from alphagateau.networks.chessformer.encoder import Encoder, layer, layer_weights, mish, split_heads
from alphagateau.networks.chessformer.heads import head_weights, make_square_heads, outputs_of
from alphagateau.networks.chessformer.relative_attention import attention_weights, make_places
from alphagateau.networks.chessformer.square_tokens import embed_attacks, embed_tokens, input_weights, scale_and_shift
from alphagateau.networks.chunks import CHUNK_BYTES, equal_chunks, num_cores
from alphagateau.networks.heads import make_evaluation
from alphagateau.networks.layers import draw
from alphagateau.networks.network import Network, Outputs, Variables

LEAST_CHUNK = 4  # positions: of fewer, matrix products are too small

# (variables, positions [B]) -> float32 [B, L, H, N, N]: the weights of each head by layer, by query square and, last,
# key square; they sum to 1 over keys.
SquareAttention = Callable[[Variables, Position], Array]


def stacked_layers(net: Encoder, params: dict[str, Any]) -> dict[str, Array]:
    """The weights of all layers, [L, ...] each."""
    return jax.tree.map(lambda *x: jnp.stack(x), *(params[f"block{i}"] for i in range(net.config.num_blocks)))


def first_tokens(params: dict[str, Any], game: Game, positions: Position) -> Array:
    """The tokens of the first layer, [B, N, d]."""
    x = embed_tokens(params["embed"], game, positions)
    if "attacks" in params:
        x += embed_attacks(params["attacks"], game, positions)
    x = mish(x)
    return scale_and_shift(params.get("squares", {}), game.size, x.reshape(-1, game.num_squares, x.shape[-1]))


def make_chessformer(game: Game, config) -> Network:
    """Makes the Chessformer of a ChessformerConfig, for `game`."""
    net, heads = Encoder(game.size, config), make_square_heads(game, config)
    one_layer = partial(layer, net)
    if config.rematerialize:
        one_layer = jax.checkpoint(one_layer, prevent_cse=False)  # CSE does not undo it in a scan

    def init(key: jax.Array) -> Variables:
        weights = {f"block{i}": layer_weights(net) for i in range(config.num_blocks)}
        weights |= input_weights(config, game.num_squares) | {"heads": head_weights(heads)}
        return {"params": draw(key, weights)}

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        del train, axis_name  # there are no statistics
        params = variables["params"]
        x = first_tokens(params, game, positions)
        x, _ = jax.lax.scan(lambda x, w: (one_layer(w, x), None), x, stacked_layers(net, params))
        return make_evaluation(outputs_of(heads, params["heads"], x, legal_edge_mask(game, positions))), {}

    return Network(init, apply, partial(num_chunks, game, config))


def make_square_attention(game: Game, config) -> SquareAttention | None:
    """The SquareAttention of a configuration record's network; None if it is not Chessformer."""
    if config.architecture != "chessformer":
        return None
    net = Encoder(game.size, config)

    def attention(variables: Variables, positions: Position) -> Array:
        positions = positions if config.history else without_past(positions)

        def attending_layer(x: Array, w: dict[str, Array]) -> tuple[Array, Array]:
            q, k, _ = split_heads(net, w, x)
            return layer(net, w, x), attention_weights(q, k, make_places(config.position, w, game.size), config.dtype)

        x = first_tokens(variables["params"], game, positions)
        return jax.lax.scan(attending_layer, x, stacked_layers(net, variables["params"]))[1].swapaxes(0, 1)

    return attention


def num_chunks(game: Game, config, batch: int) -> int:
    """The number of training chunks of a batch, so that a layer's activations fit a CPU core's cache.

    Vectors of offsets need matrix products over the batch, one a pair of squares, which are slow in small chunks.
    """
    if config.position in ("shaw", "shaw_kv") or jax.default_backend() != "cpu":
        return 1
    num_squares = game.num_squares
    num_bytes = 4 * (6 * num_squares * config.hidden_size + 2 * config.num_heads * num_squares**2)
    return equal_chunks(batch, max(LEAST_CHUNK, num_cores() * CHUNK_BYTES // num_bytes))
