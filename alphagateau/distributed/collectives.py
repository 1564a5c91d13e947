"""Reductions over the mesh: means, sums, and a flag of any process."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED


def is_any(mesh: Mesh, flag: bool) -> bool:
    """Whether `flag` holds in any process, by a reduction over the mesh; all call it together."""
    if jax.process_count() == 1:
        return flag
    cut = NamedSharding(mesh, BY_FIRST)
    flags = jax.make_array_from_callback((mesh.size,), cut, lambda _: np.array([flag]))
    return bool(jax.jit(jax.numpy.any, out_shardings=NamedSharding(mesh, REPLICATED))(flags))


def mean_over(x, axis_name: str | None):
    """The mean over `axis_name` of a tree on each device; the tree itself without an axis."""
    return x if axis_name is None else jax.lax.pmean(x, axis_name)


def sum_over(x, axis_name: str | None):
    """The sum, as `mean_over`."""
    return x if axis_name is None else jax.lax.psum(x, axis_name)
