"""A run on n of this process's devices, for each n: `python meshes.py FOLDER 1 2 8` leaves what each did in FOLDER.

`records.pickle` holds a Record for each number of devices; `restored.pickle` what a checkpoint of one of them is on
another. For a process of its own, as the number of devices is fixed when JAX starts.
"""

import pickle
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from command_lines import read_experiment

from alphagateau.distributed.mesh import make_mesh
from alphagateau.networks.network import Variables
from alphagateau.runs import checkpoint
from alphagateau.training import resume
from alphagateau.training.phases import Progress, RunState, advance
from alphagateau.training.trainer import Trainer, make_trainer

SMOKE = Path(__file__).parents[1] / "experiments" / "smoke.toml"
SOURCE = 2  # devices that write the checkpoint from which all go on
OPTIONS = ["--selfplay.num-games", "16", "--selfplay.segment-plies", "4", "--training.segment-steps", "1"]
OPTIONS += ["--selfplay.continue-games", "--targets.wait-for-result", "--training.mirror", "--sample-roots", "8"]
OPTIONS += ["--selfplay.full-search-share", "0.5", "--selfplay.cheap-simulations", "2"]
OPTIONS += ["--selfplay.random-openings", "0.5", "--selfplay.resign-plies", "9", "--selfplay.resign-value", "0"]
PLIES_LEFT = (3, 7)  # of each share's two games before the ply limit, when the run begins
EXPERIMENT = read_experiment(SMOKE, OPTIONS)


class Record(NamedTuple):
    """What a mesh did, as numpy arrays."""

    misplaced: list[str]  # arrays that lie on the devices otherwise than they should, after any step
    trajectory: Any  # of the first iteration
    window: Any
    first_step: Any  # figures of the first optimizer step
    epoch: Any  # figures summed over the first epoch
    probe: dict[str, float]  # target noise and mirrors, before the first epoch
    state: Any  # at the end of the iteration, all that a checkpoint holds
    halfway: Any  # trajectory of the first iteration, played from the SOURCE's checkpoint in its middle
    next_trajectory: Any  # of the second iteration, from the SOURCE's checkpoint after the first
    next_window: Any


PLAY, WINDOW, TRAIN = range(3)  # phases


def go(trainer: Trainer, state: RunState, start: Progress, end: Progress) -> RunState:
    """From one place of a run to another."""
    while start < end:
        state, start = advance(trainer.phases, state, start)
    return state


def save(trainer: Trainer, folder: Path, state: RunState, progress: Progress) -> None:
    resume.save(trainer, folder, state, progress)


def misplaced(trainer: Trainer, state: RunState) -> list[str]:
    """The arrays of a RunState that are not cut as the trainer says."""
    pairs = zip(jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(trainer.abstract_state), strict=True)
    return [
        jax.tree_util.keystr(path)
        for (path, x), wanted in pairs
        if not x.sharding.is_equivalent_to(wanted.sharding, x.ndim)
    ]


def kept(state: RunState) -> dict[str, Any]:
    """What a checkpoint between two iterations must give back."""
    producer = {name: getattr(state.producer, name) for name in ("games", "resigning", "window", "waiting")}
    return jax.device_get({"train": state.train, **producer})


def aged(trainer: Trainer, state: RunState) -> RunState:
    """Near the end of its games, so that some frames get a result in the first iteration and others wait."""
    games = state.producer.games
    ply = np.tile(trainer.plan.game.max_plies - np.array(PLIES_LEFT, np.int16), len(games.ply) // 2)
    games = games._replace(ply=jax.device_put(ply, games.ply.sharding))
    return state._replace(producer=state.producer._replace(games=games))


def first_iteration(trainer: Trainer, variables: Variables, folder: Path) -> dict[str, Any]:
    """Fields of Record; checkpoints half-way through the iteration and after it in `folder`."""
    state = aged(trainer, trainer.init(variables))
    found = misplaced(trainer, state)
    places = [
        Progress(),
        Progress(0, PLAY, 1),
        Progress(0, WINDOW),
        Progress(0, TRAIN),
        Progress(0, TRAIN, 1),
        Progress(1),
    ]
    reached, metrics = {}, {}
    for start, end in pairwise(places):
        state = go(trainer, state, start, end)
        found += misplaced(trainer, state)
        reached[end] = jax.device_get(state)
        if end == Progress(0, TRAIN):
            metrics = trainer.producer.metrics(state, 0, {})
        if end in (Progress(0, PLAY, 1), Progress(1)):
            save(trainer, folder / ("whole" if end.is_between else "halfway"), state, end)
    trajectory, window = reached[Progress(0, WINDOW)].producer.trajectory, reached[Progress(0, TRAIN)].producer.window
    first_step, epoch = reached[Progress(0, TRAIN, 1)].totals, reached[Progress(1)].totals
    return dict(
        misplaced=found,
        trajectory=trajectory,
        window=window,
        first_step=first_step,
        epoch=epoch,
        probe={name: value for name, value in metrics.items() if name.startswith(("search/", "network/"))},
        state=kept(state),
    )


def restore(trainer: Trainer, folder: Path) -> RunState:
    (found,), _ = checkpoint.find(folder / "checkpoints")
    return resume.restore(trainer, found)[1]


def go_on(trainer: Trainer, folder: Path) -> dict[str, Any]:
    """Fields of Record that begin with a checkpoint of another mesh, in `folder`."""
    halfway = go(trainer, restore(trainer, folder / "halfway"), Progress(0, PLAY, 1), Progress(0, WINDOW))
    state = go(trainer, restore(trainer, folder / "whole"), Progress(1), Progress(1, WINDOW))
    next_trajectory = jax.device_get(state.producer.trajectory)
    state = go(trainer, state, Progress(1, WINDOW), Progress(1, TRAIN))
    return dict(
        halfway=jax.device_get(halfway.producer.trajectory),
        next_trajectory=next_trajectory,
        next_window=jax.device_get(state.producer.window),
    )


def main(folder: Path, sizes: list[int]) -> None:
    trainers = {n: make_trainer(EXPERIMENT, make_mesh(EXPERIMENT.num_shares, jax.devices()[:n])) for n in sizes}
    variables = trainers[1].init_variables()
    begun = {n: first_iteration(trainer, variables, folder / str(n)) for n, trainer in trainers.items()}
    records = {n: Record(**begun[n], **go_on(trainer, folder / str(SOURCE))) for n, trainer in trainers.items()}
    restored = {
        (n, m): kept(restore(trainer, folder / str(n) / "whole")) for n in sizes for m, trainer in trainers.items()
    }
    (folder / "records.pickle").write_bytes(pickle.dumps({n: tuple(r) for n, r in records.items()}))
    (folder / "restored.pickle").write_bytes(pickle.dumps(restored))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(n) for n in sys.argv[2:]])
