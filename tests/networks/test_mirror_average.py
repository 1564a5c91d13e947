"""A network averaged over mirror images says of a position and of its image the same."""

from functools import partial

import jax
import numpy as np

from alphagateau.games.actions import random_positions
from alphagateau.games.notation import from_fen
from alphagateau.games.state import stack_rows
from alphagateau.games.symmetry import mirror_edges, mirror_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import average_mirrors, make_network


def test_the_average_is_the_same_in_the_mirror(gardner, tiny):
    positions = jax.device_get(random_positions(gardner, 8))
    image, edges = jax.device_get(jax.jit(partial(mirror_positions, gardner))(positions)), mirror_edges(gardner)
    plain, average = (
        jax.jit(network.apply, static_argnums=2) for network in (tiny.network, average_mirrors(gardner, tiny.network))
    )
    (one, statistics), (other, _) = (average(tiny.variables, p, False) for p in (positions, image))
    np.testing.assert_allclose(other.prior_logits, one.prior_logits[:, edges], atol=1e-5)
    np.testing.assert_allclose(other.value, one.value, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, statistics, {"batch_stats": tiny.variables["batch_stats"]})
    (here, _), (there, _) = (plain(tiny.variables, p, False) for p in (positions, image))
    np.testing.assert_allclose(one.prior_logits, (here.prior_logits + there.prior_logits[:, edges]) / 2, atol=1e-5)
    np.testing.assert_allclose(one.value, (here.value + there.value) / 2, atol=1e-5)
    assert abs(here.prior_logits - there.prior_logits[:, edges]).max() > 1e-2  # the network itself is not symmetric


def test_where_castling_is_left_the_average_is_what_the_network_says(stub_network):
    game = get_game("chess")
    states = [from_fen(game, f"r3k2r/8/8/8/8/8/8/R3K2R w {right} - 0 1") for right in ("Kq", "-")]
    rows = stack_rows(jax.device_get(states))
    logits = np.random.default_rng(0).normal(size=game.num_edges).astype(np.float32)
    network = average_mirrors(game, stub_network(game))
    variables = {**network.init(None), "prior_logits": logits}  # pyright: ignore[reportArgumentType]
    evaluation, _ = jax.jit(lambda rows: network.apply(variables, jax.vmap(game.position)(rows), False))(rows)
    np.testing.assert_allclose(evaluation.prior_logits[0], logits, rtol=1e-6)
    np.testing.assert_allclose(evaluation.prior_logits[1], (logits + logits[mirror_edges(game)]) / 2, rtol=1e-5)


def test_bins_of_values_are_averaged_too(gardner):
    """By which a search knows how many there are."""
    network = make_network(gardner, GateauConfig(hidden_size=8, num_blocks=1, value_head="bins", num_bins=8))
    variables, positions = network.init(jax.random.key(0)), random_positions(gardner, 4)
    image = jax.jit(partial(mirror_positions, gardner))(positions)
    (here, _), (there, _) = (jax.jit(network.apply, static_argnums=2)(variables, p, False) for p in (positions, image))
    found, _ = jax.jit(average_mirrors(gardner, network).apply, static_argnums=2)(variables, positions, False)
    assert set(found.extra) == {"value_logits"} and found.extra["value_logits"].shape == (4, 8)
    mean = (here.extra["value_logits"] + there.extra["value_logits"]) / 2
    np.testing.assert_allclose(found.extra["value_logits"], mean, atol=1e-5)
