"""The same run on 1, 2, 4 and 8 devices: the same games, window and losses, and checkpoints that fit them all."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from meshes import Record

from alphagateau.distributed.mesh import DeviceError, make_mesh
from alphagateau.networks.trained import load_weights
from alphagateau.runs.newest import newest_checkpoint

# What a network says of a position depends, in its last bits, on how many positions it is asked about at once.
ROUNDING = {"float16": dict(rtol=2**-10, atol=1e-6), "float32": dict(rtol=1e-5, atol=1e-6)}
SIZES = [pytest.param(n, marks=pytest.mark.slow if n == 4 else pytest.mark.whole) for n in (1, 2, 4, 8)]
PAIRS = [
    pytest.param(n, m, marks=pytest.mark.slow if 4 in (n, m) else pytest.mark.whole)
    for n in (1, 2, 4, 8)
    for m in (1, 2, 4, 8)
]


class Runs(NamedTuple):
    """What `meshes.py` left."""

    folder: Path
    records: dict[int, Record]
    restored: dict[tuple[int, int], Any]


def run_on_meshes(folder: Path, sizes: tuple[int, ...], xla_flags: str) -> Runs:
    flags = f"--xla_force_host_platform_device_count={max(sizes)} {xla_flags}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    cache = jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]
    environment |= {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    script = Path(__file__).parents[1] / "meshes.py"
    subprocess.run(
        [sys.executable, str(script), str(folder), *map(str, sizes)], env=environment, check=True, timeout=600
    )
    records, restored = (pickle.loads((folder / f"{name}.pickle").read_bytes()) for name in ("records", "restored"))
    return Runs(folder, {n: Record(*record) for n, record in records.items()}, restored)


@pytest.fixture(scope="module")
def runs(request, tmp_path_factory) -> Runs:
    """On all sizes if tests ask for them; else on some, compiled without LLVM's costly optimizations."""
    items = [item for item in request.session.items if item.path == request.path and item.get_closest_marker("slow")]
    is_all = not all(item.get_closest_marker("whole") for item in items)
    sizes, flags = ((1, 2, 4, 8), "") if is_all else ((1, 2, 8), "--xla_backend_optimization_level=0")
    return run_on_meshes(tmp_path_factory.mktemp("meshes"), sizes, flags)


def assert_equal(a: Any, b: Any) -> None:
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y, jax.tree_util.keystr(path))


def assert_same_up_to_rounding(a: Any, b: Any) -> None:
    """Whole numbers (boards, moves, counts, places in the window) are equal, floats are close."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        if np.issubdtype(x.dtype, np.floating):
            bound = ROUNDING[x.dtype.name]
            np.testing.assert_allclose(x.astype(np.float32), y.astype(np.float32), **bound, err_msg=str(path))
        else:
            np.testing.assert_array_equal(x, y, jax.tree_util.keystr(path))


@pytest.mark.parametrize("n", SIZES)
def test_games_and_window_stay_cut_and_weights_whole_on_each(runs, n):
    assert not runs.records[n].misplaced


@pytest.mark.parametrize("n", SIZES)
def test_the_first_games_are_the_same(runs, n):
    one, other = runs.records[1].trajectory, runs.records[n].trajectory
    np.testing.assert_array_equal(one.edge, other.edge)
    assert_same_up_to_rounding(one, other)


@pytest.mark.parametrize("n", SIZES)
def test_the_window_holds_the_same_frames_in_the_same_places(runs, n):
    assert_same_up_to_rounding(runs.records[1].window, runs.records[n].window)


@pytest.mark.parametrize("n", SIZES)
def test_the_first_losses_agree(runs, n):
    """Adam divides a gradient by its size, so a weight whose gradient is rounding alone moves by a whole step."""
    one, other = runs.records[1], runs.records[n]
    assert_same_up_to_rounding(one.first_step["loss"], other.first_step["loss"])
    for name in ("loss", "policy_loss", "value_loss", "policy_entropy", "target_entropy"):
        np.testing.assert_allclose(one.epoch[name], other.epoch[name], rtol=1e-3, err_msg=name)


@pytest.mark.parametrize("n", SIZES)
def test_the_same_frames_wait_and_the_others_are_in_the_window(runs, n):
    """Of the 16 games 8 end after 3 plies and 8 after 7 of the 8; what follows goes on."""
    one, other = runs.records[1].state, runs.records[n].state
    assert_same_up_to_rounding(one["waiting"], other["waiting"])
    assert one["waiting"].is_waiting.sum() == 8 * 5 + 8 * 1
    assert one["window"].count.tolist() == [3 + 7] * 8


@pytest.mark.parametrize("n", SIZES)
def test_the_probe_finds_the_same(runs, n):
    one, other = runs.records[1].probe, runs.records[n].probe
    assert one.keys() == other.keys() and len(one) == 3
    for name, figure in one.items():
        np.testing.assert_allclose(other[name], figure, rtol=1e-3, err_msg=name)


@pytest.mark.parametrize("n", SIZES)
def test_the_same_weights_restored_play_the_same_games_again(runs, n):
    one, other = runs.records[1], runs.records[n]
    np.testing.assert_array_equal(one.next_trajectory.edge, other.next_trajectory.edge)
    assert_same_up_to_rounding(one.next_trajectory, other.next_trajectory)
    assert_same_up_to_rounding(one.next_window, other.next_window)
    assert (one.next_trajectory.edge != one.trajectory.edge).any()


@pytest.mark.parametrize("n", SIZES)
def test_an_iteration_begun_on_other_devices_ends_with_the_same_games(runs, n):
    assert_same_up_to_rounding(runs.records[1].trajectory, runs.records[n].halfway)


@pytest.mark.parametrize(("n", "m"), PAIRS)
def test_a_checkpoint_written_on_n_devices_is_the_same_on_m(runs, n, m):
    assert_equal(runs.restored[n, m], runs.records[n].state)


@pytest.mark.parametrize("n", SIZES)
def test_weights_learnt_on_n_devices_are_read_where_there_is_one(runs, n):
    found = newest_checkpoint(runs.folder / str(n) / "whole")
    variables = load_weights(found, "gardner_chess")
    assert {device for x in jax.tree.leaves(variables) for device in x.devices()} == {jax.local_devices()[0]}
    assert_equal(jax.device_get(variables), runs.records[n].state["train"].variables)


@pytest.mark.parametrize(
    ("shares", "devices", "said"),
    [
        (8, 3, "use 2 or 4 devices, or num_shares 6 or 9"),
        (8, 6, "use 4 or 8 devices, or num_shares 6 or 12"),
        (8, 16, "use 8 devices, or num_shares 16"),
    ],
)
def test_devices_that_do_not_divide_the_shares_are_refused_with_the_nearest_that_do(shares, devices, said):
    with pytest.raises(DeviceError, match=said):
        make_mesh(shares, jax.devices()[:1] * devices)


def test_a_cpu_counts_as_the_devices_asked_for():
    script = "from alphagateau.distributed import mesh; mesh.choose_platform('cpu', 2); print(mesh.make_mesh(8))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert "'data': 2" in said.stdout
