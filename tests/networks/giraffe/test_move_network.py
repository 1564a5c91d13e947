"""Giraffe's move-probability network: what it knows of a move, of its place, and whose policy splits a search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.games.actions import edges_by_slot, legal_edge_mask
from alphagateau.games.notation import from_fens, legal_moves
from alphagateau.games.variants import get_game
from alphagateau.networks.giraffe.config import GiraffeConfig, GiraffeMovesConfig
from alphagateau.networks.giraffe.network import move_features, move_widths, rank_features
from alphagateau.networks.make_network import make_network
from alphagateau.networks.trained import with_policy

PROMOTING = "k4/3P1/5/2p2/K3R b - - 0 20", "k4/3P1/5/5/K3R w - - 0 20"  # black to move has a pawn; white promotes


def test_the_network_is_as_large_as_its_layers():
    """8x8: 19 + 14 + 2, 216 and 128 features to 18, 22 and 13 units, 53 to 64, 64 to a logit without bias."""
    assert move_widths(get_game("chess"), 10) == (18, 22, 13)
    network = make_network(get_game("chess"), GiraffeMovesConfig())
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    first = 35 * 18 + 18 + 216 * 22 + 22 + 128 * 13 + 13
    assert sum(x.size for x in jax.tree.leaves(shapes)) == first + 53 * 64 + 64 + 64


def test_places_are_those_of_the_legal_moves_by_logit():
    """Of two alike the first comes first; the last two slots are empty."""
    logits, is_legal = jnp.array([[1.0, 3, 3, 2, 9, 9]]), jnp.array([[True] * 4 + [False] * 2])
    places = rank_features(logits, is_legal)[0, :4]
    np.testing.assert_allclose(places, [[3 / 4, 3 / 20], [0, 0], [1 / 4, 1 / 20], [2 / 4, 2 / 20]])


@pytest.mark.whole
def test_a_move_is_its_piece_its_squares_and_what_it_promotes_to(gardner):
    """d4d5 as queen and as rook; black's pawn from c2 to c1 is seen from black's side, as it will promote too."""
    states = from_fens(gardner, list(PROMOTING))
    positions = jax.jit(jax.vmap(gardner.position))(states)
    edges = jnp.minimum(edges_by_slot(legal_edge_mask(gardner, positions), 40), gardner.num_edges - 1)
    found = np.asarray(move_features(gardner, positions.boards[:, 0].astype(jnp.int32), edges))
    pawn, squares = [1, 0, 0, 0, 0, 0], [3 / 4, 3 / 4, 3 / 4, 1]
    of_white = dict(zip(legal_moves(gardner, jax.tree.map(lambda x: x[1], states)), found[1], strict=False))
    np.testing.assert_allclose(of_white["d4d5q"], [*pawn, *squares, 0, 0, 0, 1])
    np.testing.assert_allclose(of_white["d4d5r"], [*pawn, *squares, 0, 0, 1, 0])
    np.testing.assert_allclose(of_white["e1e5"], [0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0])
    of_black = dict(zip(legal_moves(gardner, jax.tree.map(lambda x: x[0], states)), found[0], strict=False))
    np.testing.assert_allclose(of_black["c2c1q"], [*pawn, 2 / 4, 3 / 4, 2 / 4, 1, 0, 0, 0, 1])


@pytest.mark.whole
def test_one_network_values_and_another_one_splits(gardner):
    """Two looks differ from one; the value stays the valuing network's."""
    positions = jax.jit(jax.vmap(gardner.position))(from_fens(gardner, list(PROMOTING)))
    valuing = make_network(gardner, GiraffeConfig())
    values, logits = valuing.init(jax.random.key(0)), {}
    for num_passes in (1, 2):
        network = make_network(gardner, GiraffeMovesConfig(num_passes=num_passes))
        variables = jax.tree.map(lambda x: 10 * x, network.init(jax.random.key(1)))
        apply = jax.jit(with_policy(valuing, network, variables).apply, static_argnums=2)
        evaluation, _ = apply(values, positions, False)
        np.testing.assert_array_equal(evaluation.value, jax.jit(valuing.apply)(values, positions)[0].value)
        logits[num_passes] = np.asarray(evaluation.prior_logits)
    legal = np.asarray(legal_edge_mask(gardner, positions))
    assert (logits[2][~legal] == 0).all() and (logits[1] != 0).sum() > 8
    assert not np.allclose(logits[1], logits[2])
