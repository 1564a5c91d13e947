"""The outer loop: self-play, frame window, training, checkpoint, log; Algorithm 1 of the AlphaGateau paper.

repeat num_iterations times:
    games   <- num_games games for num_plies plies, by search with the present weights
    window  <- all new frames + a uniform sample of the old window
    weights <- one epoch over the window in batches
"""

import dataclasses
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from alphagateau import checkpoint, processes, rundir
from alphagateau.checkpoint import TRAINING, WEIGHTS, Checkpoint, CheckpointError
from alphagateau.config import ConfigError, Experiment, flatten
from alphagateau.engine import Engine, RunState, make_engine
from alphagateau.entrants import newest
from alphagateau.figures import pace_figures, selfplay_figures, training_figures
from alphagateau.finished import duplicate_rate, finished_games, sample_pgn
from alphagateau.health import is_finite, not_finite, symptoms
from alphagateau.match import final_match, print_scores
from alphagateau.metrics import MetricsLog, Reporter, Timer, open_aim, open_log, warn
from alphagateau.processes import everywhere, on_first
from alphagateau.rundir import RunError, Unhealthy
from alphagateau.sharding import is_any, make_mesh
from alphagateau.stopping import StopRequest
from alphagateau.types import Variables


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


def train(experiment: Experiment, run: Path, stop: StopRequest, init_from: Path | None = None) -> bool:
    """Runs or continues the experiment in the folder `run`; True once it is finished, False if stopped before.

    All processes of a run call it, on one folder. Raises RunError, ConfigError, CheckpointError, DeviceError,
    ProcessError: each one sentence.
    """
    reporter = Reporter(is_quiet=not processes.is_first())
    with ExitStack() as held:
        on_first(lambda: held.enter_context(rundir.locked(run)), RunError)
        processes.check_shared(run)
        on_first(partial(rundir.check, run, experiment), RunError, ConfigError)
        engine = make_engine(experiment, make_mesh(experiment.num_shares))
        record = on_first(partial(rundir.read_record, run), RunError)
        found = newest_state(engine, run, reporter)
        if found is None:
            variables = load_weights(engine, init_from) if init_from else engine.init_variables()
            record["init_from"] = str(init_from) if init_from else None
        on_first(partial(rundir.claim, run, experiment), RunError)
        if found is None:
            reporter.say(f"starting {run}")
            found = Progress(), engine.init(variables)
            save(engine, experiment, run, found[1], found[0])
        elif processes.is_first():
            retire(experiment, run / "checkpoints")  # what a kill left half done, or a new `[retention]` lets go
        progress, state = found
        log = open_run_log(experiment, run, record, progress.iteration) if processes.is_first() else None
        try:
            with reporter.running(progress.iteration, experiment.num_iterations):
                state = loop(engine, experiment, run, state, progress, log, reporter, stop)
        except Unhealthy as error:
            advice = on_first(partial(rundir.mark_unhealthy, run, str(error)))
            raise everywhere(RunError(f"{error}; {advice}")) from None
        else:
            return state is not None and conclude(experiment, run, state, reporter, stop)
        finally:
            if log is not None:
                log.close()


def conclude(experiment: Experiment, run: Path, state: RunState, reporter: Reporter, stop: StopRequest) -> bool:
    """Plays and prints the match at the end, if there is to be one; False if it was asked to stop.

    Process 0 plays it; the others are done.
    """
    is_first = processes.is_first()
    processes.part()
    if not experiment.evaluation.num_games or not is_first:
        return True
    reporter.say("the match at the end: the last network against iteration 0 and the random mover")
    variables = jax.device_get(state.train.variables)
    scores = final_match(experiment, run, variables, lambda: stop.reason is not None)
    if scores is None:
        reporter.say(f"stopped ({stop.reason}) in the match at the end; the same command plays it")
        return False
    print_scores(scores, f"{run.name}, {experiment.game}")
    return True


def open_run_log(experiment: Experiment, run: Path, record: dict, iteration: int) -> MetricsLog:
    """The run's log, and its record with this start and its Aim run written down."""
    devices = [f"{d.platform} {d.device_kind}" for d in jax.devices()]
    if unhealthy := record.pop("unhealthy", None):
        warn(f"the start before this one {unhealthy['why']}")
    record["starts"].append({**rundir.describe_start(devices), "iteration": iteration, "time": _now()})
    aim_run = None
    if experiment.aim:
        aim_run = open_aim(run, record.get("aim_run"), flatten(experiment))
        record["aim_run"] = aim_run.hash
    rundir.write_record(run, record)
    return open_log(run, iteration, aim_run)


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
    rest = _training_part(abstract, is_between=progress.segments == 0)
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
    parts = {WEIGHTS: state.train.variables, TRAINING: _training_part(state, is_between)}
    saved = checkpoint.save(folder, name, parts, manifest)
    if processes.is_first():
        retire(experiment, folder)
    return saved


def _training_part(state: RunState, is_between: bool) -> dict[str, Any]:
    """All of a RunState but the weights; between iterations there is no trajectory and there are no totals."""
    train = {"opt_state": state.train.opt_state, "num_steps": state.train.num_steps}
    part = {"train": train, "games": state.games, "window": state.window}
    return part if is_between else {**part, "trajectory": state.trajectory, "totals": state.totals}


def retire(experiment: Experiment, folder: Path) -> None:
    """Frees what `retention` does not keep.

    Checkpoint 0 keeps its weights: the final match needs them. The newest healthy one is kept, and each that its user
    gave another name.
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


def loop(
    engine: Engine,
    experiment: Experiment,
    run: Path,
    state: RunState,
    progress: Progress,
    log: MetricsLog | None,
    reporter: Reporter,
    stop: StopRequest,
) -> RunState | None:
    """Runs the iterations that are left; None if it was asked to stop, a checkpoint then holding all that was done."""
    total, timer, began = experiment.num_iterations, Timer(), time.perf_counter()
    first, saved = progress.iteration, progress  # a start has a checkpoint of what it goes on from

    def show(phase: str, fraction: float) -> None:
        reporter.phase(phase, progress.iteration + fraction)

    while progress.iteration < total:
        state, progress, values = one_iteration(engine, experiment, state, progress, timer, show, stop)
        if values is None:
            if progress != saved:
                save(engine, experiment, run, state, progress)
            reason = processes.first_of(stop.reason)
            reporter.say(f"stopped ({reason}) in iteration {progress.iteration + 1}; the same command goes on")
            return None
        iteration = progress.iteration
        pace = (time.perf_counter() - began) / (iteration - first)
        reporter.iteration(iteration, total, values, pace * (total - iteration))
        values["selfplay/duplicate_rate"], pgn = record_games(engine, experiment, run, state, iteration)
        if log is not None:
            log.write(iteration, values)
            log.write_games(iteration, pgn)
        progress = dataclasses.replace(progress, symptoms=judge(experiment, values, iteration, reporter))
        if iteration % experiment.checkpoint_every == 0 or iteration == total:
            with timer("checkpoint"):
                save(engine, experiment, run, state, progress)
            saved = progress
    return state


def one_iteration(engine, experiment, state, progress, timer, show, stop):
    """(state, progress, figures) after one iteration; the figures are None if it was asked to stop on the way."""
    iteration, num_plies = progress.iteration, experiment.selfplay.num_plies
    while progress.selfplay is None:
        if is_any(engine.mesh, stop.reason is not None):
            return state, progress, None
        show("self-play", 0.8 * progress.plies / num_plies)
        with timer("selfplay"):
            if progress.plies < num_plies:
                state = jax.block_until_ready(engine.play(state, iteration, progress.plies))
                progress = dataclasses.replace(progress, plies=progress.plies + engine.segment_plies)
            else:
                state, statistics = engine.fill_window(state, iteration)
                statistics = {k: float(v) for k, v in statistics.items()}
                progress = dataclasses.replace(progress, selfplay=statistics)
    epoch_steps = int(progress.selfplay["frames"]) // experiment.training.batch_size
    while progress.epoch < experiment.training.num_epochs:
        if is_any(engine.mesh, stop.reason is not None):
            return state, progress, None
        show("training", 0.8 + 0.2 * progress.steps / max(epoch_steps, 1))
        last = min(progress.steps + experiment.training.segment_steps, epoch_steps)
        with timer("train"):
            state = engine.train(state, iteration, progress.epoch, progress.steps, last)
            jax.block_until_ready(state)
        is_over = last == epoch_steps
        progress = dataclasses.replace(progress, epoch=progress.epoch + is_over, steps=0 if is_over else last)
    values = training_figures(state.totals, epoch_steps * experiment.training.num_epochs)
    if not is_finite(values):
        raise everywhere(Unhealthy(not_finite(values, iteration + 1)))
    values["train/steps"] = int(state.train.num_steps)
    values |= selfplay_figures(progress.selfplay)
    values |= pace_figures(experiment, progress.selfplay["plies"], epoch_steps, timer.take())
    return state, Progress(iteration=iteration + 1), values


def judge(experiment: Experiment, values: dict, iteration: int, reporter: Reporter) -> list[str]:
    """Says what is unhealthy, and returns it; raises Unhealthy where `[health]` wants a stop."""
    found = [symptom.sentence for symptom in symptoms(values, experiment.health)]
    for sentence in found:
        reporter.say(f"unhealthy in iteration {iteration}: {sentence}")
    if found and experiment.health.action == "stop":
        raise everywhere(Unhealthy(f"stopped as unhealthy in iteration {iteration}: {found[0]}"))
    return found


def record_games(
    engine: Engine, experiment: Experiment, run: Path, state: RunState, iteration: int
) -> tuple[float, str]:
    """(rate of repeated games, PGN of the sample games, saved in games/) of the iteration just played."""
    games = finished_games(state.trajectory)
    text = sample_pgn(engine.game, games, experiment.sample_games, run.name, iteration)
    if text and processes.is_first():
        folder = run / "games"
        folder.mkdir(exist_ok=True)
        checkpoint.write_text(folder / f"{iteration:06}.pgn", text)
    return duplicate_rate(games), text


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
