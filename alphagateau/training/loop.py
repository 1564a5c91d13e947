"""The outer loop: self-play, frame window, training, checkpoint, log; Algorithm 1 of the AlphaGateau paper.

repeat num_iterations times:
    games   <- num_games games for num_plies plies, by search with the present weights
    window  <- all new frames + a uniform sample of the old window
    weights <- one epoch over the window in batches
"""

import dataclasses
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import jax

from alphagateau.config import ConfigError, Experiment, flatten
from alphagateau.distributed import processes
from alphagateau.distributed.collectives import is_any
from alphagateau.distributed.mesh import make_mesh
from alphagateau.distributed.processes import everywhere, on_first
from alphagateau.runs import files, run_folder
from alphagateau.runs.aim_process import AimProcess
from alphagateau.runs.health import is_finite, not_finite, symptoms
from alphagateau.runs.log import MetricsLog, open_log
from alphagateau.runs.progress import Reporter, Timer, warn
from alphagateau.runs.run_folder import RunError, Unhealthy
from alphagateau.runs.stop import StopRequest
from alphagateau.training.iteration_metrics import pace_figures, selfplay_figures, training_figures
from alphagateau.training.phases import Engine, RunState, make_engine
from alphagateau.training.resume import Progress, load_weights, newest_state, retire, save
from alphagateau.training.sample_games import duplicate_rate, finished_games, sample_pgn


def train(
    experiment: Experiment,
    run: Path,
    stop: StopRequest,
    init_from: Path | None = None,
    conclude: Callable[[RunState, Reporter], bool] = lambda state, reporter: True,
) -> bool:
    """Runs or continues the experiment in the folder `run`; True once it is finished, False if stopped before.

    All processes of a run call it, on one folder. Raises RunError, ConfigError, CheckpointError, DeviceError,
    ProcessError: each one sentence.
    """
    reporter = Reporter(is_quiet=not processes.is_first())
    with ExitStack() as held:
        on_first(lambda: held.enter_context(run_folder.locked(run)), RunError)
        processes.check_shared(run)
        on_first(partial(run_folder.check, run, experiment), RunError, ConfigError)
        engine = make_engine(experiment, make_mesh(experiment.num_shares))
        record = on_first(partial(run_folder.read_record, run), RunError)
        found = newest_state(engine, run, reporter)
        if found is None:
            variables = load_weights(engine, init_from) if init_from else engine.init_variables()
            record["init_from"] = str(init_from) if init_from else None
        on_first(partial(run_folder.claim, run, experiment), RunError)
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
            advice = on_first(partial(run_folder.mark_unhealthy, run, str(error)))
            raise everywhere(RunError(f"{error}; {advice}")) from None
        else:
            return state is not None and conclude(state, reporter)
        finally:
            if log is not None:
                log.close()


def open_run_log(experiment: Experiment, run: Path, record: dict, iteration: int) -> MetricsLog:
    """The run's log, and its record with this start written down; that of its Aim run follows once it is open."""
    devices = [f"{d.platform} {d.device_kind}" for d in jax.devices()]
    if unhealthy := record.pop("unhealthy", None):
        warn(f"the start before this one {unhealthy['why']}")
    record["starts"].append({**run_folder.describe_start(devices), "iteration": iteration, "time": _now()})
    run_folder.write_record(run, record)
    log = open_log(run, iteration)
    if not experiment.aim:
        return log
    on_open = partial(run_folder.record_aim_run, run)
    return log._replace(aim=AimProcess(run, record.get("aim_run"), flatten(experiment), on_open))


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
        values["selfplay/duplicate_rate"], _ = record_games(engine, experiment, run, state, iteration)
        if log is not None:
            log.write(iteration, values)
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
        files.write_text(folder / f"{iteration:06}.pgn", text)
    return duplicate_rate(games), text


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
