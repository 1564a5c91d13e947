"""Attention of Chessformer's heads, and its correlation with moves and pieces."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.entries import QUEEN
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position, without_past
from alphagateau.networks.chessformer.encoder import Encoder, layer, split_heads
from alphagateau.networks.chessformer.network import first_tokens, stacked_layers
from alphagateau.networks.chessformer.relative_attention import attention_weights, make_places
from alphagateau.networks.network import Variables

# (variables, positions [B]) -> float32 [B, L, H, N, N]: the weights of each head by layer, by query square and, last,
# key square; they sum to 1 over keys.
SquareAttention = Callable[[Variables, Position], Array]


class HeadStudy(NamedTuple):
    """Statistics [L, H] of a network's heads over B positions."""

    correlations: Mapping[str, np.ndarray]  # by pattern, of a head's weights and the pattern; NaN: no position has it
    stillness: np.ndarray  # 0 to 1, the share of the weights' variance that all positions have in common
    on_itself: np.ndarray  # mean weight of a square on itself


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


def piece_patterns(game: Game) -> dict[str, np.ndarray]:
    """Masks bool [N, N] by name: whether that piece moves from query to key on an empty board.

    "pawn" is a capture by either side, "color" another square of the query's color.
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
    """Masks bool [B, N, N] by name, of the piece on the key square.

    "arrivals": it is the player's to move, and can move to the query.
    """
    board, size = np.asarray(positions.boards[:, 0]), (len(positions.color), game.num_squares, game.num_squares)
    arrivals = np.zeros(size, bool)
    batch, edges = np.nonzero(np.asarray(legal_edge_mask(game, positions)))
    arrivals[batch, game.receivers[edges], game.senders[edges]] = True
    pieces = {"own pieces": board > 0, "their pieces": board < 0, "their queen": board == -QUEEN}
    return {name: np.broadcast_to(mask[:, None], size) for name, mask in pieces.items()} | {"arrivals": arrivals}


def study_heads(game: Game, positions: Position, weights: np.ndarray) -> HeadStudy:
    """The HeadStudy of weights [B, L, H, N, N] in B positions."""
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
    """Pearson's correlation [L, H] of weights [B, L, H, P] and a pattern [B or 1, P], over positions that have it."""
    has_pattern = np.broadcast_to(mask.any(axis=-1) & ~mask.all(axis=-1), len(pairs))
    if not has_pattern.any():
        return np.full(pairs.shape[1:3], np.nan)
    mask = np.broadcast_to(mask, (len(pairs), mask.shape[-1]))[has_pattern].astype(float)
    x = pairs[has_pattern] - pairs[has_pattern].mean(axis=-1, keepdims=True)
    y = (mask - mask.mean(axis=-1, keepdims=True))[:, None, None]
    spread = np.sqrt((x * x).mean(axis=-1) * (y * y).mean(axis=-1))
    return ((x * y).mean(axis=-1) / np.maximum(spread, 1e-12)).mean(axis=0)


def best_patterns(study: HeadStudy, least: float) -> list[list[str]]:
    """For each layer and head the pattern of highest correlation, "" where that is below `least`."""
    names = [*study.correlations, ""]
    stacked = np.nan_to_num(np.stack(list(study.correlations.values())), nan=-1.0)
    best = np.where(stacked.max(axis=0) >= least, stacked.argmax(axis=0), -1)
    return [[names[i] for i in heads] for heads in best]
