"""Giraffe's evaluation network: three groups of features, each with a first layer of its own, one value out (Lai 2015).

The value comes from White's side and is turned to the player to move. There is no policy: all moves are alike to it.
Its inputs are those of one board, so its weights do not move to another.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Array, Position
from alphagateau.networks.giraffe.features import Groups, group_sizes, piece_features
from alphagateau.networks.network import Evaluation, Network, Variables, statistics_of

OUTPUT_SCALE = 0.01  # the last layer's first weights lie within this of 0


class GiraffeNetwork(nn.Module):
    """Groups [B, ...] to a value [B] in [-1, 1], of the side that the features are of."""

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
    """Weights within OUTPUT_SCALE of 0."""
    return jax.random.uniform(key, shape, dtype, -OUTPUT_SCALE, OUTPUT_SCALE)


def first_widths(game: Game, divisor: int) -> tuple[int, int, int]:
    """Outputs of the groups' first layers: as many as there are global features; of the others over `divisor`."""
    material, pieces, squares = group_sizes(game)
    return material, -(-pieces // divisor), -(-squares // divisor)


def make_giraffe(game: Game, config) -> Network:
    """The network for `game`, as its configuration record says."""
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
