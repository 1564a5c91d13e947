"""Target noise and mirror figures by hand, and roots that are what they were in the game."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from boards import BATCH, KIWIPETE, batched, play

from alphagateau.games.notation import uci_to_edge
from alphagateau.games.symmetry import mirror_edges
from alphagateau.games.variants import get_game
from alphagateau.search.baselines import make_policy_search
from alphagateau.search.config import PolicyConfig
from alphagateau.search.search import SearchOutput
from alphagateau.training.selfplay.probes import divergence, measure_roots, probe_metrics, root_of

NUM = 4


def test_divergence_by_hand():
    p, q = jnp.float32([[0.5, 0.5, 0], [1, 0, 0]]), jnp.float32([[0.25, 0.75, 0], [0.5, 0.5, 0]])
    expected = [0.5 * math.log(2) + 0.5 * math.log(2 / 3), math.log(2)]
    np.testing.assert_allclose(divergence(p, q), expected, rtol=1e-6)
    assert divergence(p, p).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "moves"), [("chess", "e1g1 a6e2 c3e2 c7c5"), ("gardner_chess", "b2b3 a4b3 c2b3")], ids=["chess", "gardner"]
)
def test_a_root_is_the_state_without_its_keys(name, moves):
    game = get_game(name)
    played = play(game, KIWIPETE if name == "chess" else game.start_fen, moves)
    position = jax.tree.map(
        lambda x: x[0], batched(name)[1](jax.tree.map(lambda x: jnp.repeat(x[None], BATCH, 0), played))
    )
    root = jax.jit(partial(root_of, game))(position)
    for field, value, expected in zip(played._fields, root, played, strict=True):
        if field != "keys":
            np.testing.assert_array_equal(value, expected, field)
    assert (root.keys[0] == played.keys[0]).all()


@pytest.fixture(scope="module")
def roots(gardner):
    """Four times the first position, of seven moves."""
    return jax.tree.map(lambda x: np.repeat(np.asarray(x)[None], NUM, axis=0), gardner.position(gardner.init()))


def test_a_favourite_move_is_another_in_the_mirror_unless_its_image_is_as_good(gardner, roots, stub_network):
    """The network likes one edge everywhere, a knight's move, of which the first position has no image."""
    network = stub_network(gardner)
    look = jax.jit(partial(measure_roots, gardner, make_policy_search(gardner, network, PolicyConfig())))
    likes = np.zeros(gardner.num_edges, np.float32)
    likes[uci_to_edge(gardner, gardner.init(), "b1c3")] = 1
    keys = jax.random.split(jax.random.key(0), (NUM, 3))
    for prior, disagreements in ((likes, NUM), (likes + likes[mirror_edges(gardner)], 0)):
        found = look({**network.init(None), "prior_logits": jnp.asarray(prior)}, roots, keys)
        assert float(found["mirror_disagreements"].sum()) == disagreements
        assert float(found["mirrored"].sum()) == NUM and float(found["mirror_value_gap"].sum()) == 0
        assert float(found["target_noise"].sum()) == 0  # no search, no noise


def test_the_two_searches_of_a_root_have_seeds_of_their_own(gardner, roots):
    """A search whose policy its seed alone decides."""

    def search(variables, keys, states) -> SearchOutput:
        weights = jax.vmap(lambda key: jax.nn.softmax(jax.random.normal(key, (gardner.max_legal_moves,))))(keys)
        nothing = jnp.zeros(len(weights))
        return SearchOutput(states.legal_edges[:, 0], weights, weights, nothing, nothing)

    keys = jax.random.split(jax.random.key(0), (NUM, 3))
    noise = jax.jit(partial(measure_roots, gardner, search))({}, roots, keys)["target_noise"]
    assert (np.asarray(noise) > 0.1).all() and len(set(noise.tolist())) == NUM


def test_means_of_a_sample():
    sums = {"roots": 4.0, "target_noise": 2.0, "mirrored": 2.0, "mirror_disagreements": 1.0, "mirror_value_gap": 0.5}
    assert probe_metrics(sums) == {
        "search/target_noise": 0.5,
        "network/mirror_disagreement": 0.5,
        "network/mirror_value_gap": 0.25,
    }
    assert probe_metrics({**sums, "mirrored": 0.0}) == {"search/target_noise": 0.5}
    assert probe_metrics({}) == {}
