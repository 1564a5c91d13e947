"""Distributions over bins, against numbers worked out with scipy's normal distribution."""

import jax.numpy as jnp
import numpy as np
import optax

from alphagateau.networks.heads import mean_of_bins
from alphagateau.training.losses.terms import hl_gauss, one_hot

WIN_100 = 0.5910258971916128  # the probability of winning of 100 centipawns


def test_hl_gauss_of_eight_bins():
    target = hl_gauss(jnp.float32([0.6]), 8)[0]
    expected = [0, 0.000094, 0.008103, 0.134865, 0.462080, 0.340067, 0.053123, 0.001667]
    np.testing.assert_allclose(target, expected, atol=2e-6)
    np.testing.assert_allclose(mean_of_bins(jnp.log(target)), 0.599995, atol=2e-6)
    np.testing.assert_allclose(optax.softmax_cross_entropy(jnp.log(target), target), 1.200218, atol=2e-5)


def test_hl_gauss_of_128_bins_and_at_the_end():
    target = hl_gauss(jnp.float32([WIN_100, 1.0]), 128)
    expected = [0.000203, 0.013638, 0.178741, 0.486421, 0.284928, 0.035200, 0.000865]
    np.testing.assert_allclose(target[0, 72:79], expected, atol=3e-5)
    np.testing.assert_allclose(target[1, 124:], [0.000063, 0.007597, 0.174762, 0.817578], atol=3e-5)
    np.testing.assert_allclose(mean_of_bins(jnp.log(target)), [0.591026, 0.994608], atol=2e-6)


def test_the_bin_of_a_probability():
    """Bin 75 of 128 holds 0.591; a half lies between two bins and falls low."""
    found = one_hot(jnp.float32([WIN_100, 0.5, 0.0, 1.0]), 128).argmax(axis=-1)
    assert found.tolist() == [75, 63, 0, 127]
    np.testing.assert_allclose(mean_of_bins(jnp.log(one_hot(jnp.float32([WIN_100]), 128)))[0], 0.589844, atol=1e-6)
