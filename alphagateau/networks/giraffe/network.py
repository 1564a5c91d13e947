"""Giraffe's evaluation network (Lai 2015): three groups of features, each with a first layer of its own, and a value.

The value is White's, negated where Black is to move. The prior is uniform. The inputs depend on the board, so the
weights play no other one.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.giraffe.features import Groups, group_sizes, piece_features
from alphagateau.networks.network import Evaluation, Network, Variables, statistics_of

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

    def apply(
        variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None
    ) -> tuple[Evaluation, Variables]:
        del train, axis_name  # nothing in it depends on the batch
        value: Any = module.apply(variables, piece_features(game, positions, from_mover))
        value = value if from_mover else jnp.where(positions.color == 0, value, -value)
        logits = jnp.zeros((len(positions.color), game.num_edges))
        return Evaluation(logits, value), statistics_of(variables)

    return Network(init, apply)
