"""Attention of Chessformer's heads by layer: the weight of each square for each other."""

from collections.abc import Callable

import jax

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, without_past
from alphagateau.networks.chessformer.encoder import Encoder, layer, split_heads
from alphagateau.networks.chessformer.network import first_tokens, stacked_layers
from alphagateau.networks.chessformer.relative_attention import attention_weights, make_places
from alphagateau.networks.network import Variables

# (variables, positions [B]) -> float32 [B, L, H, N, N]: the weights of each head by layer, by query square and, last,
# key square; they sum to 1 over keys.
SquareAttention = Callable[[Variables, Position], Array]


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
