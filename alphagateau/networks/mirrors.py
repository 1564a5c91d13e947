"""A network in, the network that averages what it says of a position and of its mirror image out."""

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.symmetry import has_mirror, mirror_positions, reflection, select
from alphagateau.networks.network import Evaluation, Network, Variables


def evaluate_mirrors(
    game: Game, network: Network, variables: Variables, positions: Position
) -> tuple[Evaluation, Evaluation]:
    """What a network says of Positions [B], and of their mirror images by the edges of the Positions themselves.

    One call for all 2 B. Without `extra`. A position that has no mirror image stands for it.
    """
    mirrored = select(has_mirror(positions), mirror_positions(game, positions), positions)
    both = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), positions, mirrored)
    found, _ = network.apply(variables, both, False)
    (logits, images), (value, of_images) = jnp.split(found.prior_logits, 2), jnp.split(found.value, 2)
    images = select(has_mirror(positions), images[:, reflection(game).edges], images)
    return Evaluation(logits, value), Evaluation(images, of_images)


def average_mirrors(game: Game, network: Network) -> Network:
    """The network whose logits and values are means over a position and its mirror image, for twice the work.

    Where a castling right is left there is no such image, and the network is asked about the position twice. Trained,
    it is as it was. Its evaluations have no `extra`.
    """

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None):
        if train:
            return network.apply(variables, positions, train, axis_name)
        one, other = evaluate_mirrors(game, network, variables, positions)
        statistics = {name: x for name, x in variables.items() if name != "params"}
        return Evaluation((one.prior_logits + other.prior_logits) / 2, (one.value + other.value) / 2), statistics

    return Network(network.init, apply)
