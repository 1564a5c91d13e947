"""Measures a loss on held-out labelled boards."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh

from alphagateau.data.packed import Boards
from alphagateau.distributed.mesh import REPLICATED, shardings
from alphagateau.games.rules import Game
from alphagateau.networks.network import Network, Variables
from alphagateau.training.labels.labelled_frames import to_frames
from alphagateau.training.losses.policy_value import reduce_terms
from alphagateau.training.losses.terms import LossFn

ROWS = 128  # boards of a forward pass

HeldOut = Callable[[Variables], dict[str, float]]  # weights -> means by name, such as test/action_accuracy


def choose_boards(columns: Boards, number: int) -> Boards:
    """Up to `number` boards, spread evenly over the games; a multiple of ROWS if they are more."""
    found = len(columns.count)
    number = min(number, found)
    number -= number % min(ROWS, number)
    chosen = np.arange(number) * found // number
    return Boards(*(column[chosen] for column in columns))


def make_held_out(rows: Boards, game: Game, network: Network, loss: LossFn, temperature: float, mesh: Mesh) -> HeldOut:
    """The measure of weights by `loss` on boards with all their labels; a network values all their moves.

    Args:
        temperature: of the policy target, as in training.
    """
    size = min(ROWS, len(rows.count))
    rows = jax.device_put(rows, shardings(mesh, REPLICATED))

    @jax.jit
    def measure(variables: Variables, rows: Boards):
        frames = to_frames(rows, temperature)
        parts = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), frames.position)
        evaluation = jax.lax.map(lambda part: network.apply(variables, part, False)[0], parts)
        evaluation = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), evaluation)
        return reduce_terms(loss(game, evaluation, frames))[1]

    def held_out(variables: Variables) -> dict[str, float]:
        found = jax.device_get(measure(variables, rows))
        return {f"test/{name}": float(x) for name, x in found.items() if not x.ndim}

    return held_out
