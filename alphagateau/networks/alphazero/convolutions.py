"""Convolutions of boards with a fast gradient on CPUs.

Inside a loop, where optimizer steps run, XLA's CPU kernel for the gradient of a convolution's weights took 16 times as
long as outside. On CPUs it is one matrix product here (docs/performance.md).
"""

from functools import partial

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array

same_convolution = partial(
    jax.lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
)


def convolve(x: Array, kernel: Array, *args, **kwargs) -> Array:
    """A convolution of planes [B, H, W, I] with stride 1, for `nn.Conv(conv_general_dilated=convolve)`.

    The kernel is [3, 3, I, O], with a border of zeros, or [1, 1, I, O]; other arguments of nn.Conv are ignored.
    """
    del args, kwargs
    return _three_by_three(x, kernel) if kernel.shape[0] == 3 else x @ kernel[0, 0]


@jax.custom_vjp
def _three_by_three(x: Array, kernel: Array) -> Array:
    return same_convolution(x, kernel)


def _backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    d_x = same_convolution(gradient, kernel[::-1, ::-1].swapaxes(2, 3))
    d_kernel = jax.lax.platform_dependent(x, gradient, cpu=_kernel_gradient_by_matmul, default=_kernel_gradient)
    return d_x, d_kernel.astype(kernel.dtype)


_three_by_three.defvjp(lambda x, kernel: (_three_by_three(x, kernel), (x, kernel)), _backward)


def _kernel_gradient(x: Array, gradient: Array) -> Array:
    """The gradient of the kernel [3, 3, I, O], by XLA."""
    zeros = jnp.zeros((3, 3, x.shape[-1], gradient.shape[-1]), x.dtype)
    return jax.linear_transpose(partial(same_convolution, x), zeros)(gradient)[0]


def _kernel_gradient_by_matmul(x: Array, gradient: Array) -> Array:
    """The same, from the nine shifts of `gradient` side by side, which has fewer channels than the planes."""
    height, width, channels = gradient.shape[1:]
    padded = jnp.pad(gradient, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [padded[:, 2 - i : 2 - i + height, 2 - j : 2 - j + width] for i in range(3) for j in range(3)]
    columns = jnp.concatenate(shifts, axis=-1).reshape(-1, 9 * channels)
    product = x.reshape(-1, x.shape[-1]).T @ columns
    return product.reshape(-1, 3, 3, channels).transpose(1, 2, 0, 3)
