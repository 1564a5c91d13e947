"""Runs iterations with checkpoints and metrics: Algorithm 1 of the AlphaGateau paper.

repeat num_iterations times:
    games   <- num_games games for num_plies plies, by search with the present weights
    window  <- all new frames + a uniform sample of the old window
    weights <- one epoch over the window in batches
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau import config
from alphagateau.config import ConfigError, Experiment, flatten
from alphagateau.distributed import processes
from alphagateau.distributed.mesh import is_any, make_mesh
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.runs import checkpoint, files, run_folder, run_record
from alphagateau.runs.checkpoint import Checkpoint, CheckpointError, weights_hash
from alphagateau.runs.energy import find_counters, open_meter
from alphagateau.runs.health import not_finite, symptoms
from alphagateau.runs.logging.aim_process import AimProcess
from alphagateau.runs.logging.log import MetricsLog, open_log
from alphagateau.runs.logging.progress import Reporter, TimeLeft, Timer, warn
from alphagateau.runs.run_folder import RunError, Unhealthy
from alphagateau.runs.stop import StopRequest
from alphagateau.training import resume
from alphagateau.training.iteration_metrics import training_metrics, training_pace
from alphagateau.training.optimizer import num_run_steps
from alphagateau.training.phases import Progress, RunState, advance, compile_all
from alphagateau.training.trainer import Trainer, make_trainer, num_iteration_steps


class Run(NamedTuple):
    """The parts of a run in progress."""

    experiment: Experiment
    folder: Path
    trainer: Trainer
    log: MetricsLog | None  # of process 0
    reporter: Reporter
    stop: StopRequest
    timer: Timer
    on_iteration: Callable[[int, dict[str, Any]], None]


def train(
    experiment: Experiment,
    folder: Path,
    stop: StopRequest,
    init_from: Path | None = None,
    conclude: Callable[[RunState, Reporter], bool] = lambda state, reporter: True,
    on_iteration: Callable[[int, dict[str, Any]], None] = lambda iteration, values: None,
) -> bool:
    """Runs or continues an experiment in its folder; all processes of the run call it. False: it was stopped.

    Args:
        conclude: called after the last iteration while the folder is locked; False: it was stopped.
        on_iteration: called with the number of each finished iteration, from 1, and its metrics.

    Raises:
        RunError, ConfigError, CheckpointError, DeviceError, ProcessError: each one sentence.
    """
    reporter = Reporter(is_quiet=not processes.is_first())
    with ExitStack() as held:
        on_first(lambda: held.enter_context(run_folder.locked(folder)), RunError)
        processes.check_shared(folder)
        on_first(partial(run_folder.check_folder, folder, experiment), RunError, ConfigError)
        trainer = make_trainer(experiment, make_mesh(experiment.num_shares))
        if not num_run_steps(trainer.plan):
            why = "nothing is learnt: all iterations together have too few frames for one optimizer step"
            raise everywhere(ConfigError(why))
        record = on_first(partial(run_record.read_record, folder), RunError)
        progress, state, start = begin(experiment, folder, trainer, record, init_from, reporter)
        counters = find_counters(with_gpus=jax.default_backend() == "gpu") if processes.count() == 1 else []
        timer = Timer(start.manifest.get("seconds", {}), open_meter(counters))
        if progress.iteration < experiment.num_iterations:  # and nothing is left to refuse
            is_ahead = jax.default_backend() == "cpu" and processes.count() == 1  # elsewhere kernels are timed
            phases = compile_all(trainer.phases, trainer.abstract_state, is_ahead, reporter.say, timer)
            trainer = trainer._replace(phases=phases)
        else:
            reporter.say(f"{folder} is finished: a larger --num-iterations goes on with it")
        log = open_run_log(experiment, folder, record, progress.iteration) if processes.is_first() else None
        held.push(lambda kind, *_: log and log.close(is_waiting=kind is None))
        try:
            with reporter.running(progress.iteration, experiment.num_iterations):
                run = Run(experiment, folder, trainer, log, reporter, stop, timer, on_iteration)
                state = loop(run, state, progress, start.manifest["symptoms"])
        except Unhealthy as error:
            advice = on_first(partial(run_record.mark_unhealthy, folder, str(error)))
            raise everywhere(RunError(f"{error}; {advice}")) from None
        return state is not None and conclude(state, reporter)


def begin(
    experiment: Experiment, folder: Path, trainer: Trainer, record: dict, init_from: Path | None, reporter: Reporter
) -> tuple[Progress, RunState, Checkpoint]:
    """Progress and state of the newest checkpoint, or of a new run's first one."""
    found, variables = resume.newest_state(trainer, folder, reporter), None
    source = on_first(partial(source_hash, experiment), OSError)
    if found is not None:
        if (record.get("labels") or source) != source:
            other = "labels than those of data.path" if experiment.data else "positions than those of selfplay.starts"
            why = f"{folder} learnt from other {other} now: use another --run name"
            raise everywhere(ConfigError(why))
        check_goes_on(experiment, folder, record, init_from, reporter)
        experiment = replace(experiment, num_iterations=max(experiment.num_iterations, found[0].iteration))
    else:
        began = record.get("init_from")  # of a start that ended before its first checkpoint
        init_from = init_from or (Path(began) if began else None)
        origin = resume.find_origin(init_from) if init_from else None
        if origin:
            resume.check_fits(trainer, origin, reporter)
        variables = resume.load_weights(trainer, origin) if origin else trainer.init_variables()
        record["labels"] = source
        record["init_from"] = str(init_from) if init_from else None
        record["init_from_hash"] = origin.manifest["weights_hash"] if origin else None
        on_first(partial(run_record.write_record, folder, record))  # before the weights, which are of its `init_from`
    on_first(lambda: files.write_text(folder / "config.toml", config.dumps(experiment)), OSError)
    if found is None:
        reporter.say(f"starting {folder} from {init_from}" if init_from else f"starting {folder}")
        saved = resume.save(trainer, folder, trainer.init(variables or {}), Progress())
        found = *read_back(trainer, saved), saved
    elif processes.is_first():
        resume.retire(experiment.retention, folder / "checkpoints")  # after a kill, or by a new `[retention]`
    return found


def source_hash(experiment: Experiment) -> str | None:
    """The hash of the labels' manifest, which shards have not, or of the positions of `selfplay.starts`, if any.

    run.json has it as `labels`.
    """
    if experiment.data:
        path = Path(experiment.data.path) / "manifest.json"
    elif not experiment.selfplay or experiment.selfplay.starts == "none":
        return None
    else:
        path = Path(experiment.selfplay.starts)
        path = path / "train.parquet" if path.is_dir() else path
    return files.file_hash(path) if path.is_file() else None


def read_back(trainer: Trainer, saved: Checkpoint) -> tuple[Progress, RunState]:
    """Progress and state of a run's first checkpoint; CheckpointError: one whose checkpoints are bad does not begin."""
    try:
        return resume.restore(trainer, saved)
    except CheckpointError as error:
        if processes.count() > 1 and not processes.is_everywhere(error):  # as where another process is lost
            raise
        if processes.is_first():
            checkpoint.remove(saved)
        raise CheckpointError(f"what this run writes cannot be read, so it does not begin: {error}") from None


def check_goes_on(
    experiment: Experiment, folder: Path, record: dict, init_from: Path | None, reporter: Reporter
) -> None:
    """Raises ConfigError if `init_from` is not where the run began; reports a schedule that changes."""
    began = record.get("init_from")
    if init_from and not run_record.is_same_origin(began, init_from):
        began = began or "no weights"
        why = f"{folder} goes on, and began from {began}, not from {init_from}: use another --run name"
        raise everywhere(ConfigError(why))
    before, training = config.load(folder / "config.toml").num_iterations, experiment.training
    if before != experiment.num_iterations and training.schedule != "constant" and not training.decay_steps:
        reporter.say(
            f"num_iterations was {before} and is {experiment.num_iterations}: the {training.schedule} schedule of the "
            "learning rate now ends there, so that this run is no longer one that was begun so"
        )


def open_run_log(experiment: Experiment, run: Path, record: dict, iteration: int) -> MetricsLog:
    """The run's log, once its record has this start; Aim's process adds its own run to the record."""
    if unhealthy := record.pop("unhealthy", None):
        warn(f"the start before this one {unhealthy['why']}")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    start = run_record.start_record(processes.device_names())
    record["starts"].append({**start, "iteration": iteration, "time": now})
    run_record.write_record(run, record)
    log = open_log(run, iteration)
    if not experiment.aim:
        return log
    on_open = partial(run_record.record_aim_run, run)
    return log._replace(aim=AimProcess(run, record.get("aim_run"), flatten(experiment), on_open))


def loop(run: Run, state: RunState, progress: Progress, sick: list[str]) -> RunState | None:
    """Runs the iterations that are left; None if it is stopped, once a checkpoint holds all that was done.

    `sick` are the symptoms of the last finished iteration; `run.timer` has the seconds of the one in progress.
    """
    experiment, total, timer = run.experiment, run.experiment.num_iterations, run.timer
    time_left, saved = TimeLeft(progress.iteration), progress  # a start has a checkpoint of what it goes on from
    while progress.iteration < total:
        state, progress, is_stopped = one_iteration(run, state, progress)
        if is_stopped:
            if progress != saved:
                save_and_retire(run, state, progress, sick, timer.take())
            reason = processes.first_of(run.stop.reason)
            goes_on = "a larger one" if str(reason).startswith("the budget of ") else "the same command"
            run.reporter.say(f"stopped ({reason}) in iteration {progress.iteration + 1}; {goes_on} goes on")
            return None
        iteration = progress.iteration
        values = iteration_values(run, state, iteration, timer.take())
        if why := not_finite(values, iteration):
            raise everywhere(Unhealthy(why))
        run.reporter.iteration(iteration, total, values, time_left.seconds(iteration, total))
        if run.log is not None:
            run.log.write(iteration, values)
        sick = check_health(run, values, iteration)
        if iteration % experiment.checkpoint_every == 0 or iteration == total:
            with timer("checkpoint"):
                save_and_retire(run, state, progress, sick)
            saved = progress
        run.on_iteration(iteration, values)
    return state


def save_and_retire(
    run: Run, state: RunState, progress: Progress, sick: list[str], seconds: dict[str, float] | None = None
) -> None:
    """Saves a checkpoint, then frees those that `[retention]` does not keep."""
    resume.save(run.trainer, run.folder, state, progress, sick, seconds)
    if processes.is_first():
        resume.retire(run.experiment.retention, run.folder / "checkpoints")


def one_iteration(run: Run, state: RunState, progress: Progress) -> tuple[RunState, Progress, bool]:
    """Finishes the iteration in progress: (state, progress, whether it was stopped before its end)."""
    trainer, iteration = run.trainer, progress.iteration
    while progress.iteration == iteration:
        if is_any(trainer.mesh, run.stop.reason is not None):
            return state, progress, True
        phase = trainer.phases[progress.phase]
        share = progress.segment / max(phase.num_segments(state), 1)
        run.reporter.phase(phase.name, iteration + (progress.phase + share) / len(trainer.phases))
        with run.timer(phase.name):
            state, progress = advance(trainer.phases, state, progress)
            jax.block_until_ready(state)
        if progress == (iteration, len(trainer.producer.phases), 0):
            write_games(run, state, iteration + 1)
    return state, progress, False


def iteration_values(run: Run, state: RunState, iteration: int, seconds: dict[str, float]) -> dict[str, Any]:
    """The metrics of the iteration just finished; all processes call it."""
    producer = run.trainer.producer
    num_steps = num_iteration_steps(run.experiment, producer, state)
    totals = state.totals if num_steps else jax.tree.map(np.zeros_like, state.totals)  # not an earlier iteration's
    values = training_metrics(totals, num_steps)
    values["train/steps"] = int(state.train.num_steps)
    values |= producer.metrics(state, iteration, seconds)
    num_frames = num_steps * run.experiment.training.batch_size
    values["train/frame_reuse"] = num_frames / max(producer.num_new_frames(state.producer), 1)
    return values | training_pace(num_frames, seconds)


def check_health(run: Run, values: dict, iteration: int) -> list[str]:
    """The symptoms of an iteration, which are reported; raises Unhealthy if `[health]` stops the run."""
    health = run.experiment.health
    found = symptoms(values, health)
    for sentence in found:
        run.reporter.say(f"unhealthy in iteration {iteration}: {sentence}")
    if found and health.action == "stop":
        raise everywhere(Unhealthy(f"stopped as unhealthy in iteration {iteration}: {found[0]}"))
    return found


def write_games(run: Run, state: RunState, iteration: int) -> None:
    """Writes some of the iteration's games to games/, with the hash of the weights that played them."""
    weights = weights_hash(jax.device_get(state.train.playing))
    pgn = run.trainer.producer.sample_games(state.producer, run.folder.name, iteration, weights)
    if pgn and run.log is not None:
        files.write_result(run.folder / "games" / f"{iteration:06}.pgn", pgn)
