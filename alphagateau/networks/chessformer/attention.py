"""Turns positions into the attention of Chessformer's heads, and that into which moves and squares a head follows."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.entries import QUEEN
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, forget
from alphagateau.networks.chessformer.encoder import layer, split_heads
from alphagateau.networks.chessformer.network import first_tokens, make_encoder, stacked_layers
from alphagateau.networks.chessformer.relative_attention import attention_weights, make_places
from alphagateau.networks.network import Variables

# (variables, positions [B]) -> float32 [B, L, H, N, N]: of each head how much each square (the query, next to last)
# takes from each other (the key, last), which sums to 1 over keys.
SquareAttention = Callable[[Variables, Position], Array]


class HeadStudy(NamedTuple):
    """What the heads of a network follow, over B positions; arrays [L, H]."""

    correlations: Mapping[str, np.ndarray]  # by pattern, of a head's weights with its squares; NaN: never seen
    stillness: np.ndarray  # 0 to 1, the share of the weights' variance that is the same in all positions
    on_itself: np.ndarray  # the share of a square's attention on itself


def make_square_attention(game: Game, config) -> SquareAttention | None:
    """The attention of the network that a configuration record names; None if it has none between squares."""
    if config.architecture != "chessformer":
        return None
    net = make_encoder(game, config)

    def attention(variables: Variables, positions: Position) -> Array:
        positions = positions if config.history else forget(positions)

        def attending_layer(x: Array, w: dict[str, Array]) -> tuple[Array, Array]:
            q, k, _ = split_heads(net, w, x)
            return layer(net, w, x), attention_weights(q, k, make_places(net.position, w, net.size), net.dtype)

        x = first_tokens(variables["params"], game, positions)
        return jax.lax.scan(attending_layer, x, stacked_layers(net, variables["params"]))[1].swapaxes(0, 1)

    return attention


def piece_patterns(game: Game) -> dict[str, np.ndarray]:
    """bool [N, N] by name: is the key a move of that piece away from the query, on an empty board?

    "pawn" is a capture by either side, "color" the squares of the query's color but itself.
    """
    file, rank = np.divmod(np.arange(game.num_squares), game.size)
    files, ranks = np.abs(file[:, None] - file), np.abs(rank[:, None] - rank)
    far = np.maximum(files, ranks)
    diagonal, straight = (files == ranks) & (far > 0), (np.minimum(files, ranks) == 0) & (far > 0)
    return {
        "pawn": (files == 1) & (ranks == 1),
        "knight": (files * ranks) == 2,
        "bishop": diagonal,
        "rook": straight,
        "queen": diagonal | straight,
        "king": far == 1,
        "color": ((files + ranks) % 2 == 0) & (far > 0),
    }


def position_patterns(game: Game, positions: Position) -> dict[str, np.ndarray]:
    """bool [B, N, N] by name, of what stands on the key's square.

    "arrivals": a piece of the player to move that can move to the query.
    """
    board, size = np.asarray(positions.boards[:, 0]), (len(positions.color), game.num_squares, game.num_squares)
    arrivals = np.zeros(size, bool)
    batch, edges = np.nonzero(np.asarray(legal_edge_mask(game, positions)))
    arrivals[batch, game.receivers[edges], game.senders[edges]] = True
    found = {"own pieces": board > 0, "their pieces": board < 0, "their queen": board == -QUEEN}
    return {name: np.broadcast_to(mask[:, None], size) for name, mask in found.items()} | {"arrivals": arrivals}


def study_heads(game: Game, positions: Position, weights: np.ndarray) -> HeadStudy:
    """What the heads follow, of weights [B, L, H, N, N] in B positions."""
    patterns = {name: mask[None] for name, mask in piece_patterns(game).items()}
    patterns |= position_patterns(game, positions)
    pairs = weights.reshape(*weights.shape[:3], -1)
    mean = pairs.mean(axis=0)
    return HeadStudy(
        {name: correlation(pairs, mask.reshape(len(mask), -1)) for name, mask in patterns.items()},
        stillness=mean.var(axis=-1) / np.maximum(pairs.var(axis=-1).mean(axis=0), 1e-12),
        on_itself=np.diagonal(weights, axis1=-2, axis2=-1).mean(axis=(0, -1)),
    )


def correlation(pairs: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """[L, H]: Pearson's of weights [B, L, H, P] and a pattern [B or 1, P], a mean over the positions that have it."""
    has_pattern = np.broadcast_to(mask.any(axis=-1) & ~mask.all(axis=-1), len(pairs))
    if not has_pattern.any():
        return np.full(pairs.shape[1:3], np.nan)
    mask = np.broadcast_to(mask, (len(pairs), mask.shape[-1]))[has_pattern].astype(float)
    x = pairs[has_pattern] - pairs[has_pattern].mean(axis=-1, keepdims=True)
    y = (mask - mask.mean(axis=-1, keepdims=True))[:, None, None]
    spread = np.sqrt((x * x).mean(axis=-1) * (y * y).mean(axis=-1))
    return ((x * y).mean(axis=-1) / np.maximum(spread, 1e-12)).mean(axis=0)


def followed(study: HeadStudy, least: float) -> list[list[str]]:
    """For each layer and head the pattern that fits best, "" where none reaches a correlation of `least`."""
    names = list(study.correlations)
    stacked = np.nan_to_num(np.stack([study.correlations[name] for name in names]), nan=-1.0)
    best = stacked.argmax(axis=0)
    return [
        [names[i] if stacked[i, row, column] >= least else "" for column, i in enumerate(heads)]
        for row, heads in enumerate(best)
    ]
