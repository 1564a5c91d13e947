"""Losses of win, draw and loss, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.networks.network import Evaluation
from alphagateau.training.frames import Frame
from alphagateau.training.losses.policy_value import policy_value_loss, policy_wdl_loss, reduce_terms, win_draw_loss
from alphagateau.training.losses.terms import LossTerms, join_terms


def frames_of(game, values, known) -> Frame:
    """The first position with each value target, its first legal move the policy's."""
    num = len(values)
    position = jax.tree.map(lambda x: np.broadcast_to(x, (num, *x.shape)), jax.device_get(game.position(game.init())))
    policy = np.zeros((num, game.max_legal_moves), np.float16)
    policy[:, 0] = 1
    return Frame(position, jnp.asarray(policy), jnp.float32(values), jnp.asarray(known))


def test_a_value_between_two_results_is_shared_by_them():
    targets = win_draw_loss(jnp.float32([1, 0, -1, 0.25, -0.6]))
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.25, 0.75, 0], [0, 0.4, 0.6]]
    np.testing.assert_allclose(targets, expected, atol=1e-6)
    np.testing.assert_allclose(targets[:, 0] - targets[:, 2], [1, 0, -1, 0.25, -0.6], atol=1e-6)


def test_the_loss_of_win_draw_and_loss_by_hand(gardner):
    """Said 1/2, 1/4, 1/4 of a win (ln 2), of half a win, half a draw (1.5 ln 2), and of a game not known (0)."""
    frames = frames_of(gardner, [1, 0.5, -1], [True, True, False])
    wdl = jnp.log(jnp.float32([[0.5, 0.25, 0.25]] * 3))
    logits, value = jnp.zeros((3, gardner.num_edges)), jnp.full(3, 0.25)
    total, metrics = reduce_terms(policy_wdl_loss(gardner, Evaluation(logits, value, {"wdl_logits": wdl}), frames))
    np.testing.assert_allclose(metrics["value_loss"], 2.5 * np.log(2) / 3, rtol=1e-6)
    np.testing.assert_allclose(total, metrics["policy_loss"] + metrics["value_loss"], rtol=1e-6)
    _, others = reduce_terms(policy_value_loss(gardner, Evaluation(logits, value), frames))
    assert set(metrics) == set(others)
    same = set(metrics) - {"value_loss"}  # what is logged does not depend on how the value is learnt
    for name in same:
        np.testing.assert_array_equal(metrics[name], others[name])


def test_a_mean_among_some_frames_has_nothing_of_the_others():
    """Whatever a loss says of those that are not in the mask."""
    mask = jnp.array([True, False, True, False])
    values = jnp.array([1.0, jnp.inf, 0.0, 7.0])
    terms = LossTerms({"loss": jnp.zeros(4)}, {}, {"share": (values, mask), "right": (values > 0, mask)}, {})
    _, metrics = reduce_terms(terms)
    assert metrics["share"] == metrics["right"] == 0.5


def test_a_term_of_a_name_that_another_has_is_refused():
    """The later one took the place of the first. A part that is no LossTerms is said to be none."""
    one, other = LossTerms({"policy_loss": jnp.ones(4)}), LossTerms({"policy_loss": jnp.zeros(4)})
    with pytest.raises(ValueError, match='the loss\'s term "policy_loss" is given twice'):
        join_terms(one, other)
    with pytest.raises(ValueError, match="the terms of a loss or a head must be LossTerms, got NoneType"):
        join_terms(one, None)
    assert join_terms(one, LossTerms({"mine": jnp.zeros(4)})).minimized.keys() == {"policy_loss", "mine"}
