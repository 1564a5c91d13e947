"""Giraffe's network: its published size, whose value it gives, and that it stays on its board."""

from functools import cache

import jax
import numpy as np
import pytest

from alphagateau.games.notation import from_fens
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.networks.make_network import make_network

PARAMETERS = {"chess": 12_400, "gardner_chess": 5_449}
BOARD = "1k1n1/p4/2P2/4P/1K1R1"
MIRRORED = "1k1r1/4p/2p2/P4/1K1N1"  # the same with the colors exchanged


@cache
def valued(view: str):
    """(variables of an untrained network, (variables, two FENs) -> values), one program for each view."""
    game = get_game("gardner_chess")
    network = make_network(game, GiraffeConfig(view=view))
    apply = jax.jit(lambda variables, positions: network.apply(variables, positions)[0].value)

    def values(variables, fens: list[str]) -> np.ndarray:
        return np.asarray(apply(variables, jax.jit(jax.vmap(game.position))(from_fens(game, fens))))

    return network.init(jax.random.key(0)), values


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_network_is_as_large_as_published(name):
    network = make_network(get_game(name), GiraffeConfig())
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    assert sum(x.size for x in jax.tree.leaves(shapes)) == PARAMETERS[name]


def test_the_value_is_whites_turned_to_the_player_to_move():
    """From White's side two positions that differ in who moves have other values, almost opposite ones."""
    variables, values = valued("white")
    fens = [f"{BOARD} w - - 0 9", f"{BOARD} b - - 0 9"]
    assert (abs(values(variables, fens)) < 0.05).all()  # the last layer begins near 0
    kernel = variables["params"]["value"]["kernel"]
    large = {"params": {**variables["params"], "value": {**variables["params"]["value"], "kernel": 100 * kernel}}}
    white, black = values(large, fens)
    assert abs(white) > 0.05 and np.sign(white) == -np.sign(black)


@pytest.mark.whole
def test_the_movers_view_values_a_position_and_its_colors_exchanged_alike():
    """But for the one feature that says whether White is to move, which is taken out here."""
    variables, values = valued("mover")
    kernel = variables["params"]["material"]["kernel"].at[10].set(0.0)
    blind = {"params": {**variables["params"], "material": {**variables["params"]["material"], "kernel": kernel}}}
    white, black = values(blind, [f"{BOARD} w - - 0 9", f"{MIRRORED} b - - 0 9"])
    assert white == pytest.approx(black, abs=1e-6) and white != 0
