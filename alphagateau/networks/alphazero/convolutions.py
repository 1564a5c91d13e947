"""Convolutions of the squares of a board whose gradient a CPU finds fast.

Inside a loop, as optimizer steps are, XLA has no fast kernel on CPUs for the gradient of a convolution's weights: it
took 16 times as long as outside. Here it is one product of matrices there (docs/performance.md).
"""

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array

NUMBERS = ("NHWC", "HWIO", "NHWC")


def convolve(x: Array, kernel: Array, *args, **kwargs) -> Array:
    """What `nn.Conv(conv_general_dilated=convolve)` does to planes [B, H, W, I]: 3x3 with a rim of zeros, or 1x1.

    The kernel is [3, 3, I, O] or [1, 1, I, O], steps are of one square; what else nn.Conv says is left aside.
    """
    del args, kwargs
    return _three_by_three(x, kernel) if kernel.shape[0] == 3 else x @ kernel[0, 0]


@jax.custom_vjp
def _three_by_three(x: Array, kernel: Array) -> Array:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=NUMBERS)


def _forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _three_by_three(x, kernel), (x, kernel)


def _backward(kept: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = kept
    of_x = jax.lax.conv_general_dilated(
        gradient, kernel[::-1, ::-1].swapaxes(2, 3), (1, 1), "SAME", dimension_numbers=NUMBERS
    )
    of_kernel = jax.lax.platform_dependent(x, gradient, cpu=_of_kernel_by_product, default=_of_kernel)
    return of_x, of_kernel.astype(kernel.dtype)


_three_by_three.defvjp(_forward, _backward)


def _of_kernel(x: Array, gradient: Array) -> Array:
    """The gradient of the kernel [3, 3, I, O], as XLA has it."""
    no_kernel = jnp.zeros((3, 3, x.shape[-1], gradient.shape[-1]), x.dtype)
    plain = jax.linear_transpose(
        lambda kernel: jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=NUMBERS), no_kernel
    )
    return plain(gradient)[0]


def _of_kernel_by_product(x: Array, gradient: Array) -> Array:
    """The same, of the gradient's nine shifts side by side: it has fewer columns than a board's planes."""
    height, width, channels = gradient.shape[1:]
    padded = jnp.pad(gradient, ((0, 0), (1, 1), (1, 1), (0, 0)))
    shifts = [padded[:, 2 - i : 2 - i + height, 2 - j : 2 - j + width] for i in range(3) for j in range(3)]
    columns = jnp.concatenate(shifts, axis=-1).reshape(-1, 9 * channels)
    product = x.reshape(-1, x.shape[-1]).T @ columns
    return product.reshape(-1, 3, 3, channels).transpose(1, 2, 0, 3)
