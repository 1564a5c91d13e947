"""The CNN's convolutions are XLA's, and so are their gradients."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.networks.alphazero.convolutions import _kernel_gradient, _kernel_gradient_by_matmul, convolve


@pytest.mark.parametrize("kernel_size", [(3, 3), (1, 1)])
@pytest.mark.parametrize("shape", [(3, 5, 5, 7), (2, 4, 8, 3)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_values_and_gradients_are_those_of_a_plain_convolution(kernel_size, shape, use_bias):
    x = jax.random.normal(jax.random.key(0), shape)
    weights = jax.random.normal(jax.random.key(1), (*shape[:3], 6))
    plain, ours = (nn.Conv(6, kernel_size, use_bias=use_bias, conv_general_dilated=c) for c in (None, convolve))
    variables = plain.init(jax.random.key(2), x)
    assert jax.tree.structure(variables) == jax.tree.structure(ours.init(jax.random.key(2), x))

    def of(module: nn.Module):
        return jax.value_and_grad(lambda v, x: (weights * jnp.tanh(module.apply(v, x))).sum(), (0, 1))(variables, x)

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), of(plain), of(ours))


def test_what_an_accelerator_does_for_the_kernel_equals_what_a_cpu_does():
    x, gradient = jax.random.normal(jax.random.key(0), (3, 6, 5, 4)), jax.random.normal(jax.random.key(1), (3, 6, 5, 2))
    np.testing.assert_allclose(
        _kernel_gradient(x, gradient), _kernel_gradient_by_matmul(x, gradient), rtol=1e-4, atol=1e-5
    )


def test_operands_of_bfloat16_give_gradients_in_the_weights_own_dtype():
    module = nn.Conv(4, (3, 3), dtype=jnp.bfloat16, conv_general_dilated=convolve)
    x = jax.random.normal(jax.random.key(0), (2, 5, 5, 3))
    variables = module.init(jax.random.key(1), x)
    gradients = jax.grad(lambda v: module.apply(v, x).astype(jnp.float32).sum())(variables)
    assert {g.dtype for g in jax.tree.leaves(gradients)} == {jnp.dtype("float32")}
