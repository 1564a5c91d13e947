"""Giraffe's network: its published size, whose value it gives, and that it stays on its board."""

import jax
import numpy as np
import pytest

from alphagateau.config import GiraffeConfig
from alphagateau.games.notation import from_fens
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network

PARAMETERS = {"chess": 12_400, "gardner_chess": 5_449}
BOARD = "1k1n1/p4/2P2/4P/1K1R1"
MIRRORED = "1k1r1/4p/2p2/P4/1K1N1"  # the same with the colors exchanged


def value_of(config: GiraffeConfig, fens: list[str], scale: float) -> np.ndarray:
    """Values of an untrained network whose last layer is `scale` times as large."""
    game = get_game("gardner_chess")
    network = make_network(game, config)
    variables = network.init(jax.random.key(0))
    variables["params"]["value"]["kernel"] *= scale
    positions = jax.jit(jax.vmap(game.position))(from_fens(game, fens))
    return np.asarray(jax.jit(lambda p: network.apply(variables, p)[0].value)(positions))


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_network_is_as_large_as_published(name):
    network = make_network(get_game(name), GiraffeConfig())
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    assert sum(x.size for x in jax.tree.leaves(shapes)) == PARAMETERS[name]


def test_the_value_is_whites_turned_to_the_player_to_move():
    """From White's side two positions that differ in who moves have other values, almost opposite ones."""
    white, black = value_of(GiraffeConfig(), [f"{BOARD} w - - 0 9", f"{BOARD} b - - 0 9"], 100.0)
    assert abs(white) > 0.05 and np.sign(white) == -np.sign(black)
    assert abs(value_of(GiraffeConfig(), [f"{BOARD} w - - 0 9"], 1.0)[0]) < 0.05  # the last layer begins near 0


def test_the_movers_view_values_a_position_and_its_colors_exchanged_alike():
    """But for the one feature that says whether White is to move, which is taken out here."""
    game, config = get_game("gardner_chess"), GiraffeConfig(view="mover")
    network = make_network(game, config)
    variables = network.init(jax.random.key(0))
    variables["params"]["material"]["kernel"] = variables["params"]["material"]["kernel"].at[10].set(0.0)
    fens = [f"{BOARD} w - - 0 9", f"{MIRRORED} b - - 0 9"]
    positions = jax.jit(jax.vmap(game.position))(from_fens(game, fens))
    white, black = jax.jit(lambda p: network.apply(variables, p)[0].value)(positions)
    assert float(white) == pytest.approx(float(black), abs=1e-6) and white != 0
