"""The first lesson of new weights: what material is worth, and that a network learns it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.games.notation import from_fens
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.networks.make_network import make_network
from alphagateau.search.baselines import make_random_search
from alphagateau.training.material import learn_material, material_value
from alphagateau.training.selfplay.selfplay import Games, make_selfplay, start_games

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
    """Over 2 048 positions of other random games, and not at a few, which one machine's rounding decides."""
    game = get_game("gardner_chess")
    network = make_network(game, GiraffeConfig())
    variables = learn_material(game, network, network.init(jax.random.key(0)), 100_000, seed=1)
    play = jax.jit(make_selfplay(game, make_random_search(), 32))
    rows = jnp.arange(64)
    _, trajectory = play({}, jax.random.key(2), rows, jnp.int32(0), Games(start_games(game, 64)))
    positions = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), trajectory.position)
    found = jax.jit(lambda positions: network.apply(variables, positions)[0].value)(positions)
    wanted = material_value(positions)
    assert jnp.var(wanted) > 0.1
    assert jnp.mean(jnp.square(found - wanted)) < 0.1 * jnp.var(wanted)


@pytest.mark.whole
def test_a_network_with_auxiliary_heads_has_the_lesson_too():
    """Random games have no targets for them: its value learns, and the heads stay as they are."""
    game = get_game("gardner_chess")
    network = make_network(game, GateauConfig(hidden_size=4, num_blocks=1, reply_head=True, moves_left_head=True))
    before = network.init(jax.random.key(0))
    after = learn_material(game, network, before, 1, seed=1)
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), before["params"], after["params"])
    assert any(jax.tree.leaves(moved))
    heads = {name: part for name, part in moved.items() if "reply" in name or "moves_left" in name}
    assert heads and not any(jax.tree.leaves(heads)), moved.keys()
