"""A run's state to a checkpoint and back, and which checkpoints stay."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagateau.config import NETWORKS, ConfigError, Experiment, NetworkConfig, show
from alphagateau.distributed import processes
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.games.variants import get_game
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Variables
from alphagateau.runs import checkpoint
from alphagateau.runs.checkpoint import TRAINING, WEIGHTS, Checkpoint, CheckpointError
from alphagateau.runs.logging.progress import Reporter
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.run_folder import Unhealthy
from alphagateau.training.phases import Phase, Progress, RunState, saved_fields, with_fields
from alphagateau.training.plan import Plan
from alphagateau.training.trainer import Trainer, transient


def newest_state(trainer: Trainer, run: Path, reporter: Reporter) -> tuple[Progress, RunState, list[str]] | None:
    """Progress, state and symptoms of the newest checkpoint that is whole; None if the run has none at all.

    Raises CheckpointError if all are damaged.
    """
    folder = run / "checkpoints"

    def look() -> tuple[list[tuple[str, dict]], list[str]]:
        checkpoint.clean(folder)
        found, complaints = checkpoint.find(folder)
        return [(c.path.name, c.manifest) for c in found], complaints

    seen, complaints = on_first(look)
    found = [Checkpoint(folder / name, manifest) for name, manifest in seen]
    for place, candidate in enumerate(found):
        try:
            progress, state = restore(trainer, candidate)
        except CheckpointError as error:
            if processes.count() > 1 and not processes.is_everywhere(error):
                raise
            complaints.append(str(error))
            continue
        for complaint in complaints:
            reporter.say(f"passed over: {complaint}")
        reporter.say(f"continuing {run} after iteration {progress.iteration} ({candidate.path.name})")
        for symptom in candidate.manifest["symptoms"]:
            reporter.say(f"that iteration was unhealthy: {symptom}")
        if processes.is_first():
            for other in found[:place]:  # what was written later is damaged, or stopped short of this
                checkpoint.remove(other)
        return progress, state, candidate.manifest["symptoms"]
    if complaints:
        raise everywhere(CheckpointError(f"no checkpoint of {run} is whole: {'; '.join(complaints)}"))
    return None


def restore(trainer: Trainer, candidate: Checkpoint) -> tuple[Progress, RunState]:
    """The RunState of a checkpoint. Raises CheckpointError, or ConfigError if its segments are of another size."""
    abstract = trainer.abstract_state
    weights = checkpoint.load(candidate, WEIGHTS, abstract.train.variables)
    is_between = candidate.manifest["order"][1:] == [0, 0]
    part = checkpoint.load(candidate, TRAINING, training_part(trainer, abstract, is_between))
    part |= trainer.zeros_between() if is_between else {}
    train = {"variables": weights, **part.pop("train")} | (
        {} if abstract.train.average is None else {"average": weights}
    )
    train, totals = abstract.train._replace(**train), part.pop("totals")
    state = RunState(train, with_fields(abstract.producer, part), totals)
    return read_progress(candidate, trainer.phases), state


def read_progress(candidate: Checkpoint, phases: tuple[Phase, ...]) -> Progress:
    """Where a checkpoint stands. Raises CheckpointError, or ConfigError if its segments are of another size."""
    progress, size = Progress(*candidate.manifest["order"]), candidate.manifest["progress"].get("segment_size")
    if not 0 <= progress.phase < len(phases):
        raise CheckpointError(f"{candidate.path} stands in phase {progress.phase}, expected one of {len(phases)}")
    phase = phases[progress.phase]
    if progress.segment and size != phase.segment_size:
        raise everywhere(
            ConfigError(
                f"{candidate.path} was stopped inside an iteration whose {phase.name} goes in segments of {size}, not "
                f"{phase.segment_size}: go on with {size}; the size can change between iterations"
            )
        )
    return progress


def load_weights(trainer: Trainer, source: Path) -> Variables:
    """The weights of a checkpoint of a network like this one, on any board if they fit it. Raises CheckpointError."""
    path = on_first(lambda: str(newest_checkpoint(source).path), CheckpointError)
    found, game = checkpoint.open_checkpoint(Path(path)), trainer.game.name
    learnt, network = found.manifest["game"], NETWORKS.read(found.manifest["network"])
    if learnt != game and not network.plays_every_board:
        misfit = f"the weights of its {network.architecture} have the size of {learnt}"
        raise everywhere(CheckpointError(f"{path} cannot begin a run of {game}: {misfit}"))
    variables = checkpoint.load(found, WEIGHTS, trainer.abstract_state.train.variables)
    boards = map(get_game, found.manifest.get("boards", [learnt]))
    return trainer.network.move_from(variables, max(boards, key=lambda board: board.size))


def check_fits(trainer: Trainer, here: NetworkConfig, source: Path) -> None:
    """Raises ConfigError that names the keys in which a checkpoint's network differs, if its weights do not fit `here`.

    Raises CheckpointError if there is none.
    """
    path, table = on_first(
        lambda: (str(newest_checkpoint(source).path), newest_checkpoint(source).manifest["network"]), CheckpointError
    )
    there = NETWORKS.read(table)
    theirs = jax.eval_shape(make_network(trainer.game, there).init, jax.random.key(0))
    if sizes(theirs) == sizes(trainer.abstract_state.train.variables):
        return
    names = [name for name in vars(there) | vars(here) if vars(there).get(name) != vars(here).get(name)]
    differences = [f"network.{x} is {show(vars(there).get(x))}, not {show(vars(here).get(x))}" for x in names]
    raise everywhere(
        ConfigError(
            f"the weights of {path} do not fit this experiment: there {', '.join(differences)}; "
            "--network-from-init takes the network's keys from there"
        )
    )


def sizes(tree: Any) -> dict[str, tuple]:
    """Shape and type of each array, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): (leaf.shape, leaf.dtype) for path, leaf in leaves}


def origin_hash(source: Path) -> str:
    """The hash of the weights that `load_weights` finds, which may begin a run changed (`far_offsets`)."""
    return on_first(lambda: newest_checkpoint(source).manifest["weights_hash"], CheckpointError)


def save(
    trainer: Trainer,
    experiment: Experiment,
    run: Path,
    state: RunState,
    progress: Progress,
    symptoms: list[str] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> Checkpoint:
    """Writes the state as a checkpoint and lets older ones go as `retention` says.

    `symptoms`: what was unhealthy in the last iteration finished. `seconds`: of the iteration in progress, by phase.
    Raises CheckpointError, or Unhealthy if a weight is not finite: no checkpoint holds such weights.
    """
    variables = jax.device_get(state.train.playing)
    if not all(np.isfinite(x).all() for x in jax.tree.leaves(variables)):
        why = f"stopped as unhealthy after iteration {progress.iteration}: the weights are not finite"
        raise everywhere(Unhealthy(why))
    phase, folder = trainer.phases[progress.phase], run / "checkpoints"
    name = str(progress.iteration) if progress.is_between else f"{progress.iteration}-stopped"
    manifest = {
        "iteration": progress.iteration,
        "order": list(progress),
        "progress": {**progress._asdict(), "phase_name": phase.name, "segment_size": phase.segment_size},
        "symptoms": symptoms or [],
        "seconds": dict(seconds or {}),
        **player_facts(trainer.plan),
        "weights_hash": checkpoint.weights_hash(variables),
        "parameters": sum(x.size for x in jax.tree.leaves(state.train.variables["params"])),
        "optimizer_steps": int(state.train.num_steps),
    }
    parts = {WEIGHTS: state.train.playing, TRAINING: training_part(trainer, state, progress.is_between)}
    saved = checkpoint.save(folder, name, parts, manifest)
    if processes.is_first():
        retire(experiment, folder)
    return saved


def seconds_before(run: Path, progress: Progress) -> dict[str, float]:
    """What the iteration in progress had taken by phase when the run was stopped there, which its metrics count too."""
    found = checkpoint.find(run / "checkpoints")[0]
    return next((c.manifest.get("seconds", {}) for c in found if c.order == progress), {})


def player_facts(plan: Plan) -> dict[str, Any]:
    """What a player of the checkpoint's weights needs: board, network and search."""
    experiment = plan.experiment
    return {
        "game": experiment.game,
        **({"boards": plan.names} if len(plan.boards) > 1 else {}),
        "network": dataclasses.asdict(experiment.network),
        "search": dataclasses.asdict(experiment.search),
    }


def training_part(trainer: Trainer, state: RunState, is_between: bool) -> dict[str, Any]:
    """All of a RunState but the weights that play and, between iterations, what means nothing then."""
    train = {"opt_state": state.train.opt_state, "num_steps": state.train.num_steps}
    train |= {"variables": state.train.variables} if state.train.average is not None else {}
    part = {"train": train, **saved_fields(state.producer), "totals": state.totals}
    return {name: x for name, x in part.items() if not (is_between and name in transient(trainer.producer, state))}


def retire(experiment: Experiment, folder: Path) -> None:
    """Frees what `retention` does not keep.

    Checkpoint 0 keeps its weights: the final match needs them. The newest healthy one is kept, and each that its user
    gave another name. By hand because orbax's retention keeps or deletes whole checkpoints and knows nothing of health.
    """
    rule = experiment.retention
    found = [c for c in checkpoint.find(folder)[0] if c.path.name.removesuffix("-stopped") == str(c.order[0])]
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
