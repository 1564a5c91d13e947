"""Counts the FLOPs of a forward pass on each board of an experiment; as a program, of files as JSON."""

import json
import math
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import jaxprs_in_params

from alphagateau import config
from alphagateau.config import Experiment
from alphagateau.games.rules import Game
from alphagateau.networks.network import Network
from alphagateau.training.plan import make_plan


def forward_flops(game: Game, network: Network) -> float:
    """Multiplications and additions of matrix products and convolutions for one more position in a forward pass.

    They are counted in the traced program of training, by hand because XLA's count (`cost_analysis`) takes a loop's
    body once and depends on the device. A network that values one move a pass is counted for one move.
    """
    variables = jax.eval_shape(network.init, jax.eval_shape(lambda: jax.random.key(0)))

    def of_batch(size: int) -> float:
        positions = jax.eval_shape(lambda: jax.vmap(lambda _: game.position(game.init()))(jnp.arange(size)))
        options = {"slots": jnp.zeros((size, 1), jnp.int32)} if network.values_one_move else {}
        return _count(jax.make_jaxpr(partial(network.apply, train=True, **options))(variables, positions).jaxpr)

    return of_batch(2) - of_batch(1)


def experiment_flops(experiment: Experiment) -> dict[str, float]:
    """`forward_flops` of an experiment's network on each of its boards."""
    boards = make_plan(experiment).boards
    return {board.experiment.game: forward_flops(board.game, board.network) for board in boards}


def _count(jaxpr: Any) -> float:
    return sum(_count_equation(equation) for equation in jaxpr.eqns)


def _count_equation(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return 2.0 * math.prod(shape[axis] for axis in contracted) * equation.outvars[0].aval.size
    if name == "conv_general_dilated":
        kernel, numbers = equation.invars[1].aval, params["dimension_numbers"]
        return 2.0 * equation.outvars[0].aval.size * kernel.size / kernel.shape[numbers.rhs_spec[0]]
    inner = [_count(part) for part in jaxprs_in_params(params)]
    if name == "cond":
        return max(inner)
    return sum(inner) * (params["length"] if name == "scan" else 1)


if __name__ == "__main__":
    print(json.dumps([experiment_flops(config.load(path)) for path in sys.argv[1:]]))
