"""The first lesson of new weights: what material is worth, and that a network learns it."""

import jax
import numpy as np
import pytest

from alphagateau.games.notation import from_fens
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.networks.make_network import make_network
from alphagateau.training.material import learn_material, material_value

FENS = [  # a pawn more for White; the same for Black to move; queen against rook and knight; bare kings and a knight
    "k4/5/2P2/5/K4 w - - 0 9",
    "k4/5/2P2/5/K4 b - - 0 9",
    "kr1n1/5/5/5/K2Q1 w - - 0 9",
    "k4/5/2n2/5/K4 w - - 0 9",
]
VALUES = np.tanh([0.198, -0.198, 2.521 - 1.270 - 0.817, -0.817])


@pytest.mark.whole
def test_material_is_worth_what_was_published():
    game = get_game("gardner_chess")
    positions = jax.jit(jax.vmap(game.position))(from_fens(game, FENS))
    np.testing.assert_allclose(material_value(positions), VALUES, atol=1e-6)


@pytest.mark.whole
def test_giraffe_learns_to_count_material():
    game = get_game("gardner_chess")
    network = make_network(game, GiraffeConfig())
    variables = learn_material(game, network, network.init(jax.random.key(0)), 100_000, seed=1)
    positions = jax.jit(jax.vmap(game.position))(from_fens(game, FENS))
    found = jax.jit(lambda positions: network.apply(variables, positions)[0].value)(positions)
    np.testing.assert_allclose(found, VALUES, atol=0.15)
