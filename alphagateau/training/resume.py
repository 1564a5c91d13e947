"""A run's state to a checkpoint and back, and which checkpoints stay."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagateau.config import Experiment
from alphagateau.distributed import processes
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.networks.network import Variables
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import TRAINING, WEIGHTS, Checkpoint, CheckpointError
from alphagateau.runs.progress import Reporter
from alphagateau.runs.run_folder import Unhealthy, newest
from alphagateau.training.phases import Engine, RunState


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run is. All counts but `iteration` are of the iteration in progress."""

    iteration: int = 0  # iterations finished
    plies: int = 0
    epoch: int = 0
    steps: int = 0  # of the epoch
    selfplay: dict[str, float] | None = None  # its statistics, once the window holds its frames
    symptoms: Sequence[str] = ()  # what was unhealthy in the last iteration finished

    @property
    def segments(self) -> int:
        """A number that grows with every segment of an iteration, 0 at its start."""
        return self.plies + (self.selfplay is not None) + self.epoch * 10**9 + self.steps


def newest_state(engine: Engine, run: Path, reporter: Reporter) -> tuple[Progress, RunState] | None:
    """The newest checkpoint that is whole; None if the run has none at all. CheckpointError if all are damaged."""
    folder = run / "checkpoints"

    def look() -> tuple[list[tuple[str, dict]], list[str]]:
        checkpoint.clean(folder)
        found, complaints = checkpoint.find(folder)
        return [(c.path.name, c.manifest) for c in found], complaints

    seen, complaints = on_first(look)
    found = [Checkpoint(folder / name, manifest) for name, manifest in seen]
    for place, candidate in enumerate(found):
        try:
            progress, state = restore(engine, candidate)
        except CheckpointError as error:
            if processes.count() > 1 and not processes.is_everywhere(error):
                raise
            complaints.append(str(error))
            continue
        for complaint in complaints:
            reporter.say(f"passed over: {complaint}")
        reporter.say(f"continuing {run} after iteration {progress.iteration} ({candidate.path.name})")
        for symptom in progress.symptoms:
            reporter.say(f"that iteration was unhealthy: {symptom}")
        if processes.is_first():
            for other in found[:place]:  # what was written later is damaged, or stopped short of this
                checkpoint.remove(other)
        return progress, state
    if complaints:
        raise everywhere(CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(complaints)}"))
    return None


def restore(engine: Engine, candidate: Checkpoint) -> tuple[Progress, RunState]:
    """The RunState of a checkpoint. Raises CheckpointError."""
    abstract = engine.abstract_state
    try:
        progress = Progress(**candidate.manifest["progress"])
    except TypeError as error:
        raise CheckpointError(f"{candidate.path} holds a progress that this version does not know: {error}") from None
    weights = checkpoint.load(candidate, WEIGHTS, abstract.train.variables)
    rest = training_part(abstract, is_between=progress.segments == 0)
    rest = checkpoint.load(candidate, TRAINING, rest)
    zeros = engine.zeros_between() if progress.segments == 0 else {}
    train = abstract.train._replace(variables=weights, **rest.pop("train"))
    return progress, RunState(train=train, **rest, **zeros)


def load_weights(engine: Engine, source: Path) -> Variables:
    """The weights of a checkpoint of a network like this one, on any board. Raises CheckpointError."""
    path = on_first(lambda: str(newest(source).path), CheckpointError)
    return checkpoint.load(checkpoint.open_checkpoint(Path(path)), WEIGHTS, engine.abstract_state.train.variables)


def save(engine: Engine, experiment: Experiment, run: Path, state: RunState, progress: Progress) -> Checkpoint:
    """Writes the state as a checkpoint and lets older ones go as `retention` says.

    Raises CheckpointError, or Unhealthy if a weight is not finite: no checkpoint holds such weights.
    """
    variables = jax.device_get(state.train.variables)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(variables)):
        why = f"stopped as unhealthy after iteration {progress.iteration}: the weights are not finite"
        raise everywhere(Unhealthy(why))
    is_between = progress.segments == 0
    folder = run / "checkpoints"
    name = str(progress.iteration) if is_between else f"{progress.iteration}-stopped"
    manifest = {
        "iteration": progress.iteration,
        "segments": progress.segments,
        "progress": dataclasses.asdict(progress),
        "game": experiment.game,
        "network": dataclasses.asdict(experiment.network),
        "search": {
            "num_simulations": experiment.selfplay.num_simulations,
            "max_num_considered_actions": experiment.selfplay.max_num_considered_actions,
        },
        "weights_hash": checkpoint.weights_hash(variables),
        "parameters": sum(x.size for x in jax.tree.leaves(state.train.variables["params"])),
        "optimizer_steps": int(state.train.num_steps),
    }
    parts = {WEIGHTS: state.train.variables, TRAINING: training_part(state, is_between)}
    saved = checkpoint.save(folder, name, parts, manifest)
    if processes.is_first():
        retire(experiment, folder)
    return saved


def training_part(state: RunState, is_between: bool) -> dict[str, Any]:
    """All of a RunState but the weights; between iterations there is no trajectory and there are no totals."""
    train = {"opt_state": state.train.opt_state, "num_steps": state.train.num_steps}
    part = {"train": train, "games": state.games, "window": state.window}
    return part if is_between else {**part, "trajectory": state.trajectory, "totals": state.totals}


def retire(experiment: Experiment, folder: Path) -> None:
    """Frees what `retention` does not keep.

    Checkpoint 0 keeps its weights: the final match needs them. The newest healthy one is kept, and each that its user
    gave another name. By hand because orbax's retention keeps or deletes whole checkpoints and knows nothing of health.
    """
    rule = experiment.retention
    found = [c for c in checkpoint.find(folder)[0] if c.path.name.removesuffix("-stopped") == str(c.order[0])]
    healthy = next((c for c in found if not c.manifest["progress"].get("symptoms")), None)
    for old in found[rule.keep_newest :]:
        iteration, segments = old.order
        if old is healthy:
            continue
        is_kth = rule.keep_every > 0 and iteration % rule.keep_every == 0
        if segments or not (rule.weights or is_kth or iteration == 0):
            checkpoint.remove(old)
        elif (old.path / TRAINING).exists():  # also of one that a kill left without a line in its manifest
            checkpoint.drop_part(old, TRAINING)
