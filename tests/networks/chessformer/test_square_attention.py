"""The attention of Chessformer's heads, against the equations, and which moves a head follows."""

import chessformer_reference as plain
import jax
import numpy as np
import pytest

from alphagateau.games.actions import random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.attention import (
    best_patterns,
    make_square_attention,
    piece_patterns,
    position_patterns,
    study_heads,
)
from alphagateau.networks.chessformer.config import ChessformerConfig
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


def test_patterns_are_moves_on_an_empty_board():
    """From d4: 8 knight's and king's moves, 13 of the bishop, 14 of the rook, 4 captures, 31 squares of its color."""
    patterns, d4 = piece_patterns(get_game("chess")), 3 * 8 + 3
    counts = {name: int(mask[d4].sum()) for name, mask in patterns.items()}
    assert counts == {"pawn": 4, "knight": 8, "bishop": 13, "rook": 14, "queen": 27, "king": 8, "color": 31}
    assert all((mask == mask.T).all() and not mask.diagonal().any() for mask in patterns.values())


def test_patterns_of_a_position_are_what_stands_there(gardner):
    """The start of 5x5: the knight of b1 can move to a3 and c3; ten own pieces, ten of theirs, one queen."""
    position = jax.tree.map(lambda x: x[None], gardner.position(gardner.init()))
    found = {name: mask[0] for name, mask in position_patterns(gardner, position).items()}
    b1, a3, c3, c2 = 5, 2, 12, 11
    assert found["arrivals"][a3, b1] and found["arrivals"][c3, b1] and not found["arrivals"][c2, b1]
    counts = [int(found[name][0].sum()) for name in ("own pieces", "their pieces", "their queen")]
    assert counts == [10, 10, 1]


def test_a_head_follows_the_pattern_that_it_was_made_of(gardner):
    """Three heads made by hand: knight's moves always, the opponent's pieces, and all squares alike."""
    positions = random_positions(gardner, 6, 8)
    knight = piece_patterns(gardner)["knight"][None].repeat(6, axis=0)
    theirs = position_patterns(gardner, positions)["their pieces"]
    heads = [mask / mask.sum(axis=-1, keepdims=True) for mask in (knight, theirs, np.ones_like(knight))]
    study = study_heads(gardner, positions, np.stack(heads, axis=1)[:, None])
    assert best_patterns(study, 0.5) == [["knight", "their pieces", ""]]
    assert study.correlations["knight"][0, 0] > 0.9
    np.testing.assert_allclose(study.correlations["their pieces"][0, 1], 1, atol=1e-6)
    assert study.stillness[0, 0] == pytest.approx(1) and study.stillness[0, 1] < 0.8
    np.testing.assert_allclose(study.on_itself[0, [0, 2]], [0, 1 / 25], atol=1e-7)
