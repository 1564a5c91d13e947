"""The attention of Chessformer's heads, against the equations."""

import chessformer_reference as plain
import jax
import numpy as np

from alphagateau.games.actions import random_positions
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.chessformer.network import make_square_attention
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import make_network


def test_attention_is_that_of_the_equations(gardner):
    """Of the first layer of two; each square's weights sum to 1."""
    config = ChessformerConfig(hidden_size=8, num_blocks=2, num_heads=2, ffn_size=8)
    params = make_network(gardner, config).init(jax.random.key(0))["params"]
    keys = iter(jax.random.split(jax.random.key(7), len(jax.tree.leaves(params))))
    params = jax.tree.map(lambda x: x + 0.3 * jax.random.normal(next(keys), x.shape), params)
    positions = random_positions(gardner, 1)
    attention = make_square_attention(gardner, config)
    assert attention is not None
    found = jax.jit(attention)({"params": params}, positions)
    assert found.shape == (1, 2, 2, 25, 25)
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-5)
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    tokens = plain.tokens(gardner, jax.tree.map(lambda x: np.asarray(x[0]), positions))
    x = plain.scale_and_shift(params["squares"], 5, plain.mish(plain.dense(params["embed"], tokens)))
    _, weights = plain.attention("shaw", params["block0"], 5, 2, x)
    np.testing.assert_allclose(found[0, 0], weights, atol=1e-5)


def test_a_network_without_squares_has_none(gardner):
    assert make_square_attention(gardner, GateauConfig()) is None
