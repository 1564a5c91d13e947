"""GATEAU by the programs that `network.kernel` asks for.

In inference these are one kernel a layer (`fused.py`), or what XLA makes of `network.py`, which trains too.
"""

import dataclasses
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import jax
import jax.numpy as jnp

from alphagateau.games.actions import random_positions
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.graph import static_features
from alphagateau.networks.gateau.groups import make_groups
from alphagateau.networks.gateau.layer import Gateau, make_layout
from alphagateau.networks.gateau.network import inputs_of, make_gateau, start_edges
from alphagateau.networks.layers import make_norm
from alphagateau.networks.network import Network, Outputs, Variables, statistics_of

POSITIONS = 64  # which the two are compared on
TOLERANCE = 0.1  # of logits and values, root mean square: bfloat16's rounding is some 0.02, an error of order 1


def make_gateau_by_kernel(game: Game, config: GateauConfig) -> Network:
    """Makes GATEAU for `game`; which kernels compute it is settled when it is first traced, on the device at hand."""
    plain = make_gateau(game, config)

    def apply(variables: Variables, positions: Position, train: bool = False, axis_name: str | None = None) -> Outputs:
        if train or not uses_fused(game.name, config):
            return plain.apply(variables, positions, train, axis_name)
        from alphagateau.networks.gateau.fused import evaluate_fused  # with Pallas and Triton, which others do without

        norm = make_norm(config.normalization, config.batch_norm_momentum, False, None)
        net = Gateau(make_layout(game, config.neighbors), static_features(game), game.max_legal_moves, config, norm)
        inputs, legal = inputs_of(game, positions)
        start, _ = start_edges(net, variables, legal.mean(axis=0))
        groups = make_groups(game, config.neighbors)
        return evaluate_fused(net, groups, variables, start.residual, inputs), statistics_of(variables)

    return plain._replace(apply=apply)


def uses_fused(board: str, config: GateauConfig) -> bool:
    """Whether `network.kernel` asks for the fused kernels, or "auto" finds them right on this GPU."""
    if config.kernel == "auto":
        return jax.default_backend() == "gpu" and config.can_fuse and fused_is_right(board, config)
    return config.kernel == "fused"


@lru_cache
def fused_is_right(board: str, config: GateauConfig) -> bool:
    """Whether the fused network says what the plain one says of random positions; warns where it does not."""
    try:
        with ThreadPoolExecutor(1) as another:  # as in this one a program that has the network is being traced
            difference = another.submit(difference_of_kernels, board, config).result()
    except Exception as error:  # whatever Triton or its absence raises
        warnings.warn(f'network.kernel = "xla": the fused kernels do not run here ({error})', stacklevel=2)
        return False
    if difference <= TOLERANCE:
        return True
    warnings.warn(
        f'network.kernel = "xla": logits of the fused kernels differ by {difference:.3g} on this device, '
        f"expected at most {TOLERANCE}",
        stacklevel=2,
    )
    return False


def difference_of_kernels(board: str, config: GateauConfig) -> float:
    """The root mean square of the differences of logits, or of values if that is greater; nan if one is."""
    game = get_game(board)
    plain, fused = make_gateau(game, config), make_gateau_by_kernel(game, dataclasses.replace(config, kernel="fused"))
    variables, positions = plain.init(jax.random.key(0)), random_positions(game, POSITIONS)
    found, expected = (jax.jit(network.apply)(variables, positions)[0] for network in (fused, plain))
    pairs = (found.prior_logits, expected.prior_logits), (found.value, expected.value)
    return float(jnp.stack([jnp.sqrt(jnp.square(a - b).mean()) for a, b in pairs]).max())
