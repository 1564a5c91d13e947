"""A network in, the network that averages what it says of a position and of its mirror image out."""

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.symmetry import has_mirror, mirror_positions, reflection, select
from alphagateau.networks.network import Evaluation, Network, Variables


def average_mirrors(game: Game, network: Network) -> Network:
    """The network whose logits and values are means over a position and its mirror image, for twice the work.

    Where a castling right is left there is no such image, and the network is asked about the position twice. Trained,
    it is as it was. Of `extra` its evaluations have the mean bins of the value alone.
    """

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None):
        if train:
            return network.apply(variables, positions, train, axis_name)
        images = select(has_mirror(positions), mirror_positions(game, positions), positions)
        both = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), positions, images)
        found, statistics = network.apply(variables, both, False)
        (logits, of_images), values = jnp.split(found.prior_logits, 2), jnp.split(found.value, 2)
        of_images = select(has_mirror(positions), of_images[:, reflection(game).edges], of_images)
        bins = {name: x for name, x in found.extra.items() if name == "value_logits"}
        extra = {name: jnp.mean(jnp.stack(jnp.split(x, 2)), axis=0) for name, x in bins.items()}
        return Evaluation((logits + of_images) / 2, (values[0] + values[1]) / 2, extra), statistics

    return Network(network.init, apply)
