"""What devices agree on: means and sums over the mesh, and whether a flag holds in any process."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alphagateau.distributed.mesh import BY_FIRST, REPLICATED


def is_any(mesh: Mesh, flag: bool) -> bool:
    """Whether `flag` holds in any process; all call it together. One small reduction over the mesh."""
    if jax.process_count() == 1:
        return flag
    cut = NamedSharding(mesh, BY_FIRST)
    flags = jax.make_array_from_callback((mesh.size,), cut, lambda _: np.array([flag]))
    return bool(jax.jit(jax.numpy.any, out_shardings=NamedSharding(mesh, REPLICATED))(flags))


def mean_over(x, axis_name: str | None):
    """Of a tree of equal shapes on each device along `axis_name`: the mean. As it is if there is no axis."""
    return x if axis_name is None else jax.lax.pmean(x, axis_name)


def sum_over(x, axis_name: str | None):
    """As `mean_over`, the sum."""
    return x if axis_name is None else jax.lax.psum(x, axis_name)
