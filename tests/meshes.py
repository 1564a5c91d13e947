"""A run on n of this process's devices, for each n: `python meshes.py FOLDER 1 2 8` leaves what each did in FOLDER.

`records.pickle` holds a Record for each number of devices; `restored.pickle` what a checkpoint of one of them is on
another. For a process of its own, as the number of devices is fixed when JAX starts.
"""

import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax

from alphagateau.commands.experiments import read_experiment
from alphagateau.distributed.mesh import make_mesh
from alphagateau.networks.network import Variables
from alphagateau.runs import checkpoint
from alphagateau.training import resume
from alphagateau.training.phases import Engine, RunState, make_engine
from alphagateau.training.resume import Progress

SMOKE = Path(__file__).parents[1] / "experiments" / "smoke.toml"
SOURCE = 2  # devices that write the checkpoint from which all go on
EXPERIMENT = read_experiment(SMOKE, ["--selfplay.num-games", "16", "--selfplay.segment-plies", "4"])


class Record(NamedTuple):
    """What a mesh did, as numpy arrays."""

    misplaced: list[str]  # arrays that lie on the devices otherwise than they should, after any step
    trajectory: Any  # of the first iteration
    window: Any
    first_step: Any  # figures of the first optimizer step
    epoch: Any  # figures summed over the first epoch
    state: Any  # at the end of the iteration, all that a checkpoint holds
    halfway: Any  # trajectory of the first iteration, played from the SOURCE's checkpoint in its middle
    next_trajectory: Any  # of the second iteration, from the SOURCE's checkpoint after the first
    next_window: Any


def play(engine: Engine, state: RunState, iteration: int, first_ply: int = 0) -> RunState:
    for ply in range(first_ply, EXPERIMENT.selfplay.num_plies, engine.segment_plies):
        state = engine.play(state, iteration, ply)
    return state


def save(engine: Engine, folder: Path, state: RunState, progress: Progress) -> None:
    resume.save(engine, EXPERIMENT, folder, state, progress)


def misplaced(engine: Engine, state: RunState) -> list[str]:
    """The arrays of a RunState that are not cut as the engine says."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(engine.abstract_state), strict=True)
    return [
        jax.tree_util.keystr(path)
        for (path, x), wanted in pairs
        if not x.sharding.is_equivalent_to(wanted.sharding, x.ndim)
    ]


def kept(state: RunState) -> dict[str, Any]:
    """What a checkpoint between two iterations must give back."""
    return jax.device_get({"train": state.train, "games": state.games, "window": state.window})


def first_iteration(engine: Engine, variables: Variables, folder: Path) -> dict[str, Any]:
    """Fields of Record; checkpoints half-way through the iteration and after it in `folder`."""
    state = engine.init(variables)
    found = misplaced(engine, state)
    state = engine.play(state, 0, 0)
    found += misplaced(engine, state)
    save(engine, folder / "halfway", state, Progress(plies=engine.segment_plies))
    state = play(engine, state, 0, engine.segment_plies)
    trajectory = jax.device_get(state.trajectory)
    state, statistics = engine.fill_window(state, 0)
    found += misplaced(engine, state)
    window, num_steps = jax.device_get(state.window), int(statistics["frames"]) // EXPERIMENT.training.batch_size
    state = engine.train(state, 0, 0, 0, 1)
    first_step = jax.device_get(state.totals)
    state = engine.train(state, 0, 0, 1, num_steps)
    found += misplaced(engine, state)
    save(engine, folder / "whole", state, Progress(iteration=1))
    epoch = jax.device_get(state.totals)
    return dict(
        misplaced=found,
        trajectory=trajectory,
        window=window,
        first_step=first_step,
        epoch=epoch,
        state=kept(state),
    )


def restore(engine: Engine, folder: Path) -> RunState:
    (found,), _ = checkpoint.find(folder / "checkpoints")
    return resume.restore(engine, found)[1]


def go_on(engine: Engine, folder: Path) -> dict[str, Any]:
    """Fields of Record that begin with a checkpoint of another mesh, in `folder`."""
    halfway = play(engine, restore(engine, folder / "halfway"), 0, engine.segment_plies)
    state = play(engine, restore(engine, folder / "whole"), 1)
    next_trajectory = jax.device_get(state.trajectory)
    state, _ = engine.fill_window(state, 1)
    return dict(
        halfway=jax.device_get(halfway.trajectory),
        next_trajectory=next_trajectory,
        next_window=jax.device_get(state.window),
    )


def main(folder: Path, sizes: list[int]) -> None:
    engines = {n: make_engine(EXPERIMENT, make_mesh(EXPERIMENT.num_shares, jax.devices()[:n])) for n in sizes}
    variables = engines[1].init_variables()
    begun = {n: first_iteration(engine, variables, folder / str(n)) for n, engine in engines.items()}
    records = {n: Record(**begun[n], **go_on(engine, folder / str(SOURCE))) for n, engine in engines.items()}
    restored = {
        (n, m): kept(restore(engine, folder / str(n) / "whole")) for n in sizes for m, engine in engines.items()
    }
    (folder / "records.pickle").write_bytes(pickle.dumps({n: tuple(r) for n, r in records.items()}))
    (folder / "restored.pickle").write_bytes(pickle.dumps(restored))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(n) for n in sys.argv[2:]])
