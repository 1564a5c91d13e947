"""Heads that an experiment asks for: the fast GATEAU's against the plain one's, and what they say."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.commands.throughput import random_positions
from alphagateau.config import AlphaZeroConfig, GateauConfig
from alphagateau.games.variants import get_game
from alphagateau.networks import gateau
from alphagateau.networks.gateau import make_gateau
from alphagateau.networks.gateau_reference import make_reference
from alphagateau.networks.heads import Heads, read_value
from alphagateau.networks.make_network import make_network

TINY: dict[str, Any] = {"hidden_size": 8, "num_blocks": 1}
HEADS: dict[str, Any] = {"value_head": "wdl"}


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

    def gradient(network):
        def total(params):
            evaluation, _ = network.apply({"params": params, **rest}, positions, True)
            parts = [(jnp.cos(jnp.arange(x.size)) * x.reshape(-1)).mean() for x in jax.tree.leaves(evaluation)]
            return jnp.stack(parts).sum()

        return jax.jit(jax.value_and_grad(total))(params)

    assert_close(gradient(fast), gradient(plain))


def test_other_heads_leave_the_first_weights_of_the_rest_as_they_are(gardner):
    plain, more = (make_gateau(gardner, GateauConfig(**TINY, **heads)) for heads in ({}, HEADS))
    plain, more = (network.init(jax.random.key(3))["params"] for network in (plain, more))
    assert set(plain) - set(more) == {"value_out"} and set(more) - set(plain) == {"value_wdl"}
    for name in set(plain) & set(more):
        jax.tree.map(np.testing.assert_array_equal, plain[name], more[name])


def test_a_value_of_win_draw_and_loss_by_hand():
    """Probabilities 1/2, 3/8, 1/8 are worth 3/8."""
    logits = jnp.log(jnp.float32([[4, 3, 1], [0.001, 0.001, 1000]]))
    found = read_value(Heads(value="wdl"), logits)
    np.testing.assert_allclose(found["value"], [0.375, -1], atol=1e-5)
    assert found["wdl_logits"] is logits


@pytest.mark.parametrize("config", [GateauConfig(**TINY, **HEADS), AlphaZeroConfig(**TINY, **HEADS)])
def test_networks_say_a_value_beside_its_logits(config):
    game = get_game("gardner_chess")
    network = make_network(game, config)
    variables, positions = network.init(jax.random.key(0)), random_positions(game, 3)
    evaluation, _ = jax.jit(network.apply)(variables, positions)
    assert {name: x.shape for name, x in evaluation.extra.items()} == {"wdl_logits": (3, 3)}
    win, _, loss = jax.nn.softmax(evaluation.extra["wdl_logits"]).T
    np.testing.assert_allclose(evaluation.value, win - loss, atol=1e-6)
    assert evaluation.prior_logits.shape == (3, game.num_edges)
