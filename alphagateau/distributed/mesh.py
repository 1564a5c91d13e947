"""The devices of a platform as a mesh of one axis, arrays cut into shares along it, and reductions over it."""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alphagateau.distributed.processes import everywhere

AXIS = "data"
REPLICATED = PartitionSpec()
BY_FIRST = PartitionSpec(AXIS)  # the first axis is cut: games, shares, a batch
BY_SECOND = PartitionSpec(None, AXIS)  # the second axis is cut: [T, B]


class DeviceError(ValueError):
    """The devices asked for are not there, or do not fit the run; one sentence for the user."""


def choose_platform(platform: str, cpu_devices: int = 1) -> None:
    """Makes JAX use "cpu", "gpu" or "tpu", or what it finds ("auto"); a CPU then counts as `cpu_devices` of them.

    Raises DeviceError if the platform is not there, or if JAX has counted the CPU's devices already.
    """
    if cpu_devices > 1:
        try:
            jax.config.update("jax_num_cpu_devices", cpu_devices)
        except RuntimeError:
            if len(jax.devices("cpu")) != cpu_devices:
                raise DeviceError(f"cpu_devices = {cpu_devices} must be known before JAX starts") from None
    if platform == "auto":
        return
    jax.config.update("jax_platforms", {"gpu": "cuda"}.get(platform, platform))
    try:
        found, reason = jax.devices()[0].platform, "another platform is in use"
    except RuntimeError as error:
        found, reason = None, str(error).splitlines()[0]
    if found != platform:
        jax.config.update("jax_platforms", "")
        raise DeviceError(
            f"platform {platform!r} was asked for, but JAX finds no such device here ({reason}); "
            "use --platform auto or cpu"
        )


def make_mesh(num_shares: int, devices: Sequence | None = None) -> Mesh:
    """A mesh of `devices` (None: all of all processes). Raises DeviceError unless they divide the shares."""
    devices = jax.devices() if devices is None else devices
    count = len(devices)
    if num_shares % count:
        fits = [n for n in range(1, num_shares + 1) if num_shares % n == 0]
        near = [n for n in fits if n < count][-1:] + [n for n in fits if n > count][:1]
        below = num_shares // count * count
        shares = f"{below} or {below + count}" if below else f"{count}"
        advice = f"use {' or '.join(map(str, near))} devices, or num_shares {shares}"
        raise everywhere(DeviceError(f"{count} devices cannot share num_shares = {num_shares} evenly: {advice}"))
    return Mesh(np.array(devices), (AXIS,))


def per_device(mesh: Mesh, in_specs: tuple, out_specs) -> Callable[[Callable], Callable]:
    """A decorator: the function runs on each device's own part of its arguments, and nothing moves between devices."""
    return partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def shardings(mesh: Mesh, specs):
    """The PartitionSpecs of a tree as NamedShardings on `mesh`."""
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda x: isinstance(x, PartitionSpec))


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
