"""Heads that an experiment asks for: the fast GATEAU's against the plain one's, and what they say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.games.actions import edges_by_slot, legal_edge_mask, random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.alphazero.config import AlphaZeroConfig
from alphagateau.networks.gateau import network as gateau
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.gateau.network import make_gateau
from alphagateau.networks.gateau.reference import make_reference
from alphagateau.networks.heads import edges_to_slots, read_value
from alphagateau.networks.make_network import make_network

TINY: dict[str, Any] = {"hidden_size": 8, "num_blocks": 1}
HEADS: dict[str, Any] = {
    "value_head": "wdl",
    "action_values": True,
    "num_bins": 3,
    "reply_head": True,
    "moves_left_head": True,
}


def fast_and_plain(game, monkeypatch):
    """Two networks that should be one, and variables and positions to compare them by."""
    monkeypatch.setattr(gateau, "chunk_size", lambda *_: 2)  # 4 positions are two chunks
    config = GateauConfig(**TINY, **HEADS)
    fast, plain = make_gateau(game, config), make_reference(game, config)
    return fast, plain, fast.init(jax.random.key(1)), random_positions(game, 4)


def assert_close(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_the_heads_of_the_fast_network_equal_the_plain_ones(gardner, monkeypatch):
    fast, plain, variables, positions = fast_and_plain(gardner, monkeypatch)
    got, want = (jax.jit(network.apply)(variables, positions)[0] for network in (fast, plain))
    assert_close(got, want)


@pytest.mark.whole
def test_the_heads_of_the_fast_network_learn_as_the_plain_ones(gardner, monkeypatch):
    """The gradient of a sum of all outputs in which each number has another weight."""
    fast, plain, variables, positions = fast_and_plain(gardner, monkeypatch)
    params, rest = variables["params"], {k: v for k, v in variables.items() if k != "params"}

    edges = edges_by_slot(legal_edge_mask(gardner, positions), gardner.max_legal_moves)
    is_slot = (edges < gardner.num_edges)[..., None]

    def gradient(network):
        def total(params):
            evaluation, _ = network.apply({"params": params, **rest}, positions, True)
            outputs = {**evaluation.extra, "prior_logits": evaluation.prior_logits, "value": evaluation.value}
            outputs["action_value_logits"] *= is_slot  # what is said of empty slots means nothing
            parts = [(jnp.cos(jnp.arange(x.size)) * x.reshape(-1)).mean() for x in outputs.values()]
            return jnp.stack(parts).sum()

        return jax.jit(jax.value_and_grad(total))(params)

    assert_close(gradient(fast), gradient(plain))


def test_other_heads_leave_the_first_weights_of_the_rest_as_they_are(gardner):
    plain, more = (make_gateau(gardner, GateauConfig(**TINY, **heads)) for heads in ({}, HEADS))
    plain, more = (network.init(jax.random.key(3))["params"] for network in (plain, more))
    assert set(plain) - set(more) == {"value_out"}
    assert set(more) - set(plain) == {"value_wdl", "action_values", "reply_logit", "moves_left"}
    for name in set(plain) & set(more):
        jax.tree.map(np.testing.assert_array_equal, plain[name], more[name])


def test_a_value_of_win_draw_and_loss_by_hand():
    """Probabilities 1/2, 3/8, 1/8 are worth 3/8."""
    logits = jnp.log(jnp.float32([[4, 3, 1], [0.001, 0.001, 1000]]))
    found = read_value("wdl", logits)
    np.testing.assert_allclose(found["value"], [0.375, -1], atol=1e-5)
    assert found["wdl_logits"] is logits


def test_a_value_of_bins_by_hand():
    """Three bins stand for 1/6, 1/2, 5/6; half on the first, half on the second are q = 1/3, a value of -1/3."""
    found = read_value("bins", jnp.log(jnp.float32([[1, 1, 1e-9]])))
    np.testing.assert_allclose(found["value"], [-1 / 3], atol=1e-5)
    found = read_value("bins", jnp.float32([[0.75], [1.5]]))  # a number, of any size
    np.testing.assert_allclose(found["value"], [0.5, 1])


def test_edges_to_slots_are_those_of_the_legal_edges_and_only_these_learn():
    is_legal = jnp.array([[False, True, False, True], [True, False, False, False]])
    by_edge = jnp.arange(8.0).reshape(2, 4, 1)
    found, pull_back = jax.vjp(lambda x: edges_to_slots(x, is_legal, 3), by_edge)
    assert found[0, :2, 0].tolist() == [1, 3] and found[1, 0, 0] == 4
    (gradient,) = pull_back(10.0 + jnp.arange(6.0).reshape(2, 3, 1))
    assert gradient[..., 0].tolist() == [[0, 10, 0, 11], [13, 0, 0, 0]]


def test_slots_are_those_of_the_game(gardner):
    state = gardner.init()
    legal = legal_edge_mask(gardner, jax.tree.map(lambda x: x[None], gardner.position(state)))
    edges = edges_by_slot(legal, gardner.max_legal_moves)[0]
    np.testing.assert_array_equal(edges, np.where(state.legal_edges < 0, gardner.num_edges, state.legal_edges))


def test_an_action_value_of_the_cnn_is_read_where_the_piece_stands(gardner):
    """With convolutions that see one square only, a change of that square changes the values of its moves alone."""
    network = make_network(gardner, AlphaZeroConfig(**TINY, **HEADS, normalization="layer"))
    params = network.init(jax.random.key(0))["params"]
    for name in ("Conv_0", "Conv_1", "Conv_2"):
        center = np.zeros((3, 3, 1, 1))
        center[1, 1] = 1
        params[name]["kernel"] = params[name]["kernel"] * center
    position, pawn = jax.tree.map(lambda x: x[None], gardner.position(gardner.init())), 6
    emptied = position._replace(boards=position.boards.at[:, :, pawn].set(0))
    one, other = (network.apply({"params": params}, p)[0].extra["action_value_logits"][0] for p in (position, emptied))
    edges = np.flatnonzero(legal_edge_mask(gardner, position)[0])
    changed = (one != other).any(axis=-1)[: len(edges)]
    np.testing.assert_array_equal(changed, gardner.senders[edges] == pawn)
    assert changed.any() and not changed.all()


@pytest.mark.parametrize("config", [GateauConfig(**TINY, **HEADS), AlphaZeroConfig(**TINY, **HEADS)])
def test_networks_say_a_value_beside_its_logits(config):
    game = get_game("gardner_chess")
    network = make_network(game, config)
    variables, positions = network.init(jax.random.key(0)), random_positions(game, 3)
    evaluation, _ = jax.jit(network.apply)(variables, positions)
    shapes = {name: x.shape for name, x in evaluation.extra.items()}
    assert shapes == {
        "wdl_logits": (3, 3),
        "action_value_logits": (3, game.max_legal_moves, 3),
        "reply_logits": (3, game.num_edges),
        "moves_left": (3,),
    }
    assert (evaluation.extra["moves_left"] > 0).all()
    win, _, loss = jax.nn.softmax(evaluation.extra["wdl_logits"]).T
    np.testing.assert_allclose(evaluation.value, win - loss, atol=1e-6)
    assert evaluation.prior_logits.shape == (3, game.num_edges)
