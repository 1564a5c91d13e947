"""Giraffe's two networks (Lai 2015): an evaluation of positions, and a logit for each legal move (section 6).

The evaluation has a first layer for each of three groups of features. Its value is White's, negated where Black is to
move; its prior is uniform. The move network's value is always 0; a search takes it from another network (`trained.py`).
A move's features join the position's first group. Moves are evaluated twice: each as if ranked first, then each with
its rank by the first pass. The inputs of both depend on the board, so the weights play no other one.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.games.actions import edges_by_slot, legal_edge_mask, slots_to_edges
from alphagateau.games.entries import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK
from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.giraffe.features import Groups, group_sizes, piece_features
from alphagateau.networks.network import Evaluation, Network, Outputs, Variables, statistics_of

OUTPUT_SCALE = 0.01  # bound of the last layer's initial weights


class GiraffeNetwork(nn.Module):
    """Groups [B, ...] to a value [B] in [-1, 1] for the side of the features."""

    widths: tuple[int, int, int]  # of the groups' first layers
    hidden_size: int

    @nn.compact
    def __call__(self, groups: Groups) -> Array:
        first = nn.initializers.normal((2 / sum(self.widths)) ** 0.5)
        parts = [
            nn.Dense(width, kernel_init=first, name=name)(group)
            for width, (name, group) in zip(self.widths, groups._asdict().items(), strict=True)
        ]
        x = nn.relu(jnp.concatenate(parts, axis=-1))
        second = nn.initializers.normal((2 / self.hidden_size) ** 0.5)
        x = nn.relu(nn.Dense(self.hidden_size, kernel_init=second, name="hidden")(x))
        return nn.tanh(nn.Dense(1, kernel_init=near_zero, name="value")(x)[:, 0])


def near_zero(key: Array, shape: tuple[int, ...], dtype=jnp.float32) -> Array:
    """Initial weights within OUTPUT_SCALE of 0."""
    return jax.random.uniform(key, shape, dtype, -OUTPUT_SCALE, OUTPUT_SCALE)


def first_widths(game: Game, divisor: int) -> tuple[int, int, int]:
    """Widths of the groups' first layers: as many as features of material, and features / `divisor` of the others."""
    material, pieces, squares = group_sizes(game)
    return material, -(-pieces // divisor), -(-squares // divisor)


def make_giraffe(game: Game, config) -> Network:
    """Makes the network of a GiraffeConfig, for `game`."""
    module = GiraffeNetwork(first_widths(game, config.group_divisor), config.hidden_size)
    from_mover = config.view == "mover"

    def init(key: jax.Array) -> Variables:
        groups = Groups(*(jnp.zeros((1, size)) for size in group_sizes(game)))
        return jax.jit(module.init)(key, groups)

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        del train, axis_name  # nothing in it depends on the batch
        value: Any = module.apply(variables, piece_features(game, positions, from_mover))
        value = value if from_mover else jnp.where(positions.color == 0, value, -value)
        logits = jnp.zeros((len(positions.color), game.num_edges))
        return Evaluation(logits, value), statistics_of(variables)

    return Network(init, apply)


PIECES = (PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING)
PROMOTIONS = (KNIGHT, BISHOP, ROOK, QUEEN)
MOVE_FEATURES = len(PIECES) + 4 + len(PROMOTIONS)
MAX_RANK = 20  # ranks from here on are equal


class GiraffeMovesNetwork(nn.Module):
    """Groups [B, ...], features of S moves [B, S, 14] and their legality [B, S] to logits [B, S]."""

    widths: tuple[int, int, int]  # of the first layers of material with the move, of pieces, of squares
    hidden_size: int
    num_passes: int

    def setup(self) -> None:
        first = nn.initializers.normal((2 / sum(self.widths)) ** 0.5)
        second = nn.initializers.normal((2 / self.hidden_size) ** 0.5)
        self.material, self.pieces, self.squares = (nn.Dense(width, kernel_init=first) for width in self.widths)
        self.move = nn.Dense(self.widths[0], use_bias=False, kernel_init=first)
        self.hidden = nn.Dense(self.hidden_size, kernel_init=second)
        self.hidden_move = nn.Dense(self.hidden_size, use_bias=False, kernel_init=second)
        self.logit = nn.Dense(1, use_bias=False, kernel_init=near_zero)

    def __call__(self, groups: Groups, moves: Array, is_legal: Array) -> Array:
        material, others = self.material(groups.material), [self.pieces(groups.pieces), self.squares(groups.squares)]
        position = self.hidden(nn.relu(jnp.concatenate(others, axis=-1)))

        def logits_of(ranks: Array) -> Array:
            own = nn.relu(material[:, None] + self.move(jnp.concatenate([moves, ranks], axis=-1)))
            return self.logit(nn.relu(position[:, None] + self.hidden_move(own)))[..., 0]

        logits = logits_of(jnp.zeros((*is_legal.shape, 2)))
        for _ in range(self.num_passes - 1):
            logits = logits_of(rank_features(jax.lax.stop_gradient(logits), is_legal))
        return logits


def rank_features(logits: Array, is_legal: Array) -> Array:
    """float32 [B, S, 2]: i/n and min(i, 20)/20 of each move's rank i by logit, from 0, among n legal ones."""
    logits = jnp.where(is_legal, logits, -jnp.inf)
    slots = jnp.arange(logits.shape[-1])
    is_equal_before = (logits[:, :, None] == logits[:, None]) & (slots[:, None] < slots)
    ranks = ((logits[:, :, None] > logits[:, None]) | is_equal_before).sum(axis=1)
    number = jnp.maximum(is_legal.sum(axis=-1, keepdims=True), 1)
    return jnp.stack([ranks / number, jnp.minimum(ranks, MAX_RANK) / MAX_RANK], axis=-1).astype(jnp.float32)


def move_features(game: Game, boards: Array, edges: Array) -> Array:
    """float32 [B, S, 14] of boards [B, N] and edges [B, S]: the piece, file and rank of both squares, promotion."""
    senders, receivers, promotions = (jnp.asarray(x)[edges] for x in (game.senders, game.receivers, game.promotions))
    piece = jnp.take_along_axis(boards, senders, axis=1)
    is_queening = (piece == PAWN) & (promotions == 0) & (receivers % game.size == game.size - 1)
    promotions = jnp.where(is_queening, QUEEN, promotions)
    places = [x for square in (senders, receivers) for x in (square // game.size, square % game.size)]
    features = [
        piece[..., None] == np.array(PIECES),
        jnp.stack(places, axis=-1) / (game.size - 1),
        promotions[..., None] == np.array(PROMOTIONS),
    ]
    return jnp.concatenate([x.astype(jnp.float32) for x in features], axis=-1)


def move_widths(game: Game, divisor: int) -> tuple[int, int, int]:
    """Widths of the first layers: half of material with a move, and features / `divisor` of the other groups."""
    material, pieces, squares = first_widths(game, divisor)
    return (material + MOVE_FEATURES + 3) // 2, pieces, squares


def make_giraffe_moves(game: Game, config) -> Network:
    """Makes the network of a GiraffeMovesConfig, for `game`."""
    module = GiraffeMovesNetwork(move_widths(game, config.group_divisor), config.hidden_size, config.num_passes)

    def init(key: jax.Array) -> Variables:
        groups = Groups(*(jnp.zeros((1, size)) for size in group_sizes(game)))
        return jax.jit(module.init)(key, groups, jnp.zeros((1, 1, MOVE_FEATURES)), jnp.ones((1, 1), bool))

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        del train, axis_name  # nothing in it depends on the batch
        legal = legal_edge_mask(game, positions)
        edges = edges_by_slot(legal, game.max_legal_moves)
        boards = positions.boards[:, 0].astype(jnp.int32)
        moves = move_features(game, boards, jnp.minimum(edges, game.num_edges - 1))
        groups = piece_features(game, positions, from_mover=True)
        by_slot = module.apply(variables, groups, moves, edges < game.num_edges)
        logits = slots_to_edges(legal, by_slot)  # pyright: ignore[reportArgumentType]
        return Evaluation(logits, jnp.zeros(len(boards))), statistics_of(variables)

    return Network(init, apply)
