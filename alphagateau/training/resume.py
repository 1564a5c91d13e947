"""Saves and restores a run's state, and frees older checkpoints."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from alphagateau.config import NETWORKS, ConfigError, RetentionConfig, show
from alphagateau.distributed import processes
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Variables
from alphagateau.networks.trained import check_board, network_config
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import TRAINING, WEIGHTS, Checkpoint, CheckpointError
from alphagateau.runs.logging.progress import Reporter
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.run_folder import Unhealthy
from alphagateau.training.phases import Progress, RunState, saved_fields, with_fields
from alphagateau.training.trainer import Trainer, transient


def newest_state(trainer: Trainer, run: Path, reporter: Reporter) -> tuple[Progress, RunState, Checkpoint] | None:
    """Progress, state and manifest of the newest whole checkpoint, if any. Raises CheckpointError if all are bad."""
    (found, complaints), damaged = find_all(run / "checkpoints"), []
    for candidate in found:
        try:
            progress, state = restore(trainer, candidate)
        except CheckpointError as error:
            if processes.count() > 1 and not processes.is_everywhere(error):
                raise
            complaints.append(str(error))
            if error.__cause__ is None and has_own_name(candidate):  # else it may be read another day, or is kept
                damaged.append(candidate)
            continue
        for complaint in complaints:
            reporter.say(f"passed over: {complaint}")
        reporter.say(f"continuing {run} after iteration {progress.iteration} ({candidate.path.name})")
        for symptom in candidate.manifest["symptoms"]:
            reporter.say(f"that iteration was unhealthy: {symptom}")
        if processes.is_first():
            for other in damaged:
                checkpoint.remove(other)
                reporter.say(f"removed: {other.path}")
        return progress, state, candidate
    if complaints:
        raise everywhere(CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(complaints)}"))
    return None


def find_all(folder: Path) -> tuple[list[Checkpoint], list[str]]:
    """(checkpoints, newest first; what is wrong with others), as process 0 finds them, once it has cleaned up."""

    def find() -> tuple[list[tuple[str, dict]], list[str]]:
        checkpoint.clean(folder)
        found, complaints = checkpoint.find(folder)
        return [(c.path.name, c.manifest) for c in found], complaints

    found, complaints = on_first(find)
    return [Checkpoint(folder / name, manifest) for name, manifest in found], complaints


def restore(trainer: Trainer, candidate: Checkpoint) -> tuple[Progress, RunState]:
    """The RunState of a checkpoint. Raises CheckpointError, or ConfigError if its segments are of another size."""
    abstract, progress = trainer.abstract_state, Progress(*candidate.order)
    weights = checkpoint.load(candidate, WEIGHTS, abstract.train.variables)
    part = checkpoint.load(candidate, TRAINING, training_part(trainer, abstract, progress.is_between))
    part |= jax.tree.map(jnp.zeros_like, transient(trainer.producer, abstract)) if progress.is_between else {}
    average = {} if abstract.train.average is None else {"average": weights}
    train = abstract.train._replace(**({"variables": weights} | part.pop("train") | average))
    totals = part.pop("totals")
    state = RunState(train, with_fields(abstract.producer, part), totals)
    if not 0 <= progress.phase < len(trainer.phases):
        raise CheckpointError(
            f"{candidate.path} stands in phase {progress.phase}, expected one of {len(trainer.phases)}"
        )
    phase, size = trainer.phases[progress.phase], candidate.manifest["progress"].get("segment_size")
    if progress.segment and size != phase.segment_size:
        why = f"{candidate.path} was stopped inside an iteration whose {phase.name} goes in segments of {size}"
        advice = f"go on with {size}; the size can change between iterations"
        raise everywhere(ConfigError(f"{why}, not {phase.segment_size}: {advice}"))
    return progress, state


def find_origin(source: Path) -> Checkpoint:
    """The checkpoint of `source` that process 0 finds to begin a run from. Raises CheckpointError."""
    return checkpoint.open_checkpoint(Path(on_first(lambda: str(newest_checkpoint(source).path), CheckpointError)))


def load_weights(trainer: Trainer, origin: Checkpoint) -> Variables:
    """The weights of a checkpoint of the same network, of any board that they fit. Raises CheckpointError."""
    check_board(origin, network_config(origin), trainer.plan.game.name)
    return checkpoint.load(origin, WEIGHTS, trainer.abstract_state.train.variables)


def check_fits(trainer: Trainer, origin: Checkpoint, reporter: Reporter) -> None:
    """Raises ConfigError with the keys that differ if a checkpoint's weights do not fit the trainer's network."""
    there, here = NETWORKS.read(origin.manifest["network"]), trainer.plan.experiment.network
    theirs = jax.eval_shape(make_network(trainer.plan.game, there).init, jax.random.key(0))
    trees = map(jax.tree_util.tree_leaves_with_path, (theirs, trainer.abstract_state.train.variables))
    one, other = ([(path, leaf.shape, leaf.dtype) for path, leaf in tree] for tree in trees)
    names = [name for name in vars(there) | vars(here) if vars(there).get(name) != vars(here).get(name)]
    differences = [f"network.{x} is {show(vars(there).get(x))}, not {show(vars(here).get(x))}" for x in names]
    if one == other:
        if names:
            reporter.say(f"the weights of {origin.path} fit, and were learnt with {', '.join(differences)}")
        return
    why = f"the weights of {origin.path} do not fit this experiment: there {', '.join(differences)}"
    raise everywhere(ConfigError(f"{why}; --network-from-init takes the network's keys from there"))


def save(
    trainer: Trainer,
    run: Path,
    state: RunState,
    progress: Progress,
    symptoms: list[str] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Checkpoint:
    """Writes the state as a checkpoint. Raises CheckpointError, or Unhealthy if a weight is not finite.

    Args:
        symptoms: what was unhealthy in the last finished iteration.
        seconds: of the iteration in progress, by phase.
    """
    variables = jax.device_get(state.train.playing)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(variables)):
        why = f"stopped as unhealthy after iteration {progress.iteration}: the weights are not finite"
        raise everywhere(Unhealthy(why))
    experiment, phase = trainer.plan.experiment, trainer.phases[progress.phase]
    name = str(progress.iteration) if progress.is_between else f"{progress.iteration}-stopped"
    manifest = {
        "iteration": progress.iteration,
        "order": list(progress),
        "progress": {**progress._asdict(), "phase_name": phase.name, "segment_size": phase.segment_size},
        "symptoms": symptoms or [],
        "seconds": dict(seconds or {}),
        "game": experiment.game,  # from here to `search`: what a player is made from
        **({"boards": list(experiment.boards)} if len(trainer.plan.boards) > 1 else {}),
        "network": dataclasses.asdict(experiment.network),
        "search": dataclasses.asdict(experiment.search),
        "weights_hash": checkpoint.weights_hash(variables),
        "parameters": sum(x.size for x in jax.tree.leaves(state.train.variables["params"])),
        "optimizer_steps": int(state.train.num_steps),
    }
    parts = {WEIGHTS: state.train.playing, TRAINING: training_part(trainer, state, progress.is_between)}
    return checkpoint.save(run / "checkpoints", name, parts, manifest)


def training_part(trainer: Trainer, state: RunState, is_between: bool) -> dict[str, Any]:
    """A RunState without the weights that play and, between iterations, without its transient fields."""
    train = {"opt_state": state.train.opt_state, "num_steps": state.train.num_steps}
    train |= {"variables": state.train.variables} if state.train.average is not None else {}
    part = {"train": train, **saved_fields(state.producer), "totals": state.totals}
    return {name: x for name, x in part.items() if not (is_between and name in transient(trainer.producer, state))}


def has_own_name(found: Checkpoint) -> bool:
    """Whether a checkpoint has the name that the run gave it; one that its user renames or copies is kept."""
    return found.path.name.removesuffix("-stopped") == str(found.order[0])


def retire(rule: RetentionConfig, folder: Path) -> None:
    """Frees the checkpoints, or their training part, that `[retention]` does not keep.

    The newest healthy one stays, each that the user renamed, and the weights of checkpoint 0 for the final match. By
    hand because orbax's retention keeps or deletes whole checkpoints and knows nothing of health.
    """
    found = list(filter(has_own_name, checkpoint.find(folder)[0]))
    healthy = next((c for c in found if not c.manifest["symptoms"]), None)
    for old in found[rule.keep_newest :]:
        iteration, *inside = old.order
        if old is healthy:
            continue
        is_kth = rule.keep_every > 0 and iteration % rule.keep_every == 0
        if any(inside) or not (rule.weights or is_kth or iteration == 0):
            checkpoint.remove(old)
        elif (old.path / TRAINING).exists():  # also of one that a kill left without a line in its manifest
            checkpoint.drop_part(old, TRAINING)
