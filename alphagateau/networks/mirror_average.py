"""Averages a network's outputs over a position and its mirror image."""

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.symmetry import has_mirror, mirror_positions, reflection, select
from alphagateau.networks.network import Evaluation, Network, Variables


def average_mirrors(game: Game, network: Network) -> Network:
    """The network with logits and values averaged over a position and its mirror image, for twice the work.

    A position with a castling right has no such image and is evaluated twice. Training is unchanged. Of `extra`
    the mean bins of the value alone are left.
    """

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None):
        if train:
            return network.apply(variables, positions, train, axis_name)
        images = select(has_mirror(positions), mirror_positions(game, positions), positions)
        both = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), positions, images)
        evaluation, statistics = network.apply(variables, both, False)
        (logits, image_logits), values = jnp.split(evaluation.prior_logits, 2), jnp.split(evaluation.value, 2)
        image_logits = select(has_mirror(positions), image_logits[:, reflection(game).edges], image_logits)
        bins = {name: x for name, x in evaluation.extra.items() if name == "value_logits"}
        extra = {name: jnp.mean(jnp.stack(jnp.split(x, 2)), axis=0) for name, x in bins.items()}
        return Evaluation((logits + image_logits) / 2, (values[0] + values[1]) / 2, extra), statistics

    return Network(network.init, apply)
