"""Trains an experiment from Python, as `alphagateau train` does from the command line."""

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from alphagateau import config
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.experiments import check
from alphagateau.config import ConfigError, Experiment
from alphagateau.distributed import processes
from alphagateau.distributed.mesh import choose_platform
from alphagateau.runs import run_record
from alphagateau.runs.logging.log import read_metrics as read_metrics_file
from alphagateau.runs.newest import find_newest
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.stop import StopRequest, parse_duration

if TYPE_CHECKING:
    from alphagateau.runs.logging.progress import Reporter
    from alphagateau.training.phases import RunState


class TrainedRun(NamedTuple):
    """A run as `train` leaves it."""

    folder: Path
    is_finished: bool  # False: stopped before its last iteration; the same call goes on
    checkpoint: Path  # the newest
    metrics: list[dict[str, Any]]  # one row an iteration, as `read_metrics` has them


def train(
    experiment: Experiment | Mapping[str, Any] | str | PathLike,
    run: str | None = None,
    *,
    runs: str | PathLike = "checkpoints",
    changes: Mapping[str, Any] | None = None,
    init_from: str | PathLike | None = None,
    stop_after: float | None = None,
    on_iteration: Callable[[int, Mapping[str, float]], bool | None] | None = None,
) -> TrainedRun:
    """Trains, or continues a run that is there; Ctrl-C writes a checkpoint and returns, a second one ends the process.

    Args:
        experiment: a record, the tables of one as nested dictionaries, a TOML file, or the name of one of the package.
        run: name of the run's folder; None: that of the experiment's file.
        runs: the folder of runs.
        changes: other values for some keys, by dotted name: {"search.num_simulations": 16}.
        init_from: a checkpoint or run with whose weights to start, learnt on the same board or another.
        stop_after: seconds after which to stop.
        on_iteration: called after each iteration with its number, from 1, and its metrics; True stops the run.

    Raises:
        ConfigError: the experiment is impossible, or not that of the run.
        CheckpointError: the weights of `init_from`, or a checkpoint of the run, cannot be read.
        RunError: the run is in use or unhealthy.
        DeviceError: the devices asked for are not there.
    """
    if not (on_iteration is None or callable(on_iteration)):
        raise TypeError(f"on_iteration must be a function of a number and metrics, got {on_iteration!r:.40}")
    name = "experiment"
    if isinstance(experiment, str | PathLike):
        path = config.find_file(str(experiment), "experiment")
        experiment, name = config.load(path), path.stem
    elif not isinstance(experiment, Experiment):
        experiment = config.from_dict(experiment)
    experiment = config.change(experiment, changes or {}, name)
    folder = Path(runs) / config.check_folder_name(str(run or name), "run")
    wanted: list[str] = []

    def after(iteration: int, metrics: Mapping[str, float]) -> None:
        if on_iteration and on_iteration(iteration, metrics):
            wanted.append("asked for by on_iteration")

    origin = None if init_from is None else Path(init_from)
    stop = StopRequest(stop_after and parse_duration(str(stop_after)), lambda: next(iter(wanted), None))
    is_main = threading.current_thread() is threading.main_thread()  # others receive no signals
    with stop.listening() if is_main else nullcontext():
        is_finished = run_experiment(experiment, name, folder, stop, origin, after)
    return TrainedRun(folder, is_finished, find_newest(folder).path, read_metrics(folder))


def read_metrics(run: str | PathLike) -> list[dict[str, Any]]:
    """The rows of a run's metrics.jsonl, one an iteration; none of a run that has no iteration. Raises RunError."""
    if not Path(run).is_dir():
        raise RunError(f"{run}: no such run")
    return read_metrics_file(Path(run) / "metrics.jsonl")


def run_experiment(
    experiment: Experiment,
    name: str | Path,
    folder: Path,
    stop: StopRequest,
    init_from: Path | None,
    on_iteration: Callable[[int, Mapping[str, float]], None] = lambda iteration, metrics: None,
) -> bool:
    """Checks that all processes run the same possible experiment, then trains; False if stopped before the end."""
    processes.check_same(run_record.process_facts(experiment, init_from))
    choose_platform(experiment.platform, experiment.cpu_devices)
    use_compilation_cache()
    jax.devices()  # JAX's start needs all processes at once, so none may begin to compute alone
    processes.on_first(lambda: check(experiment, name), ConfigError)
    from alphagateau.training import loop

    return loop.train(experiment, folder, stop, init_from, partial(conclude, experiment, folder, stop), on_iteration)


def conclude(experiment: Experiment, folder: Path, stop: StopRequest, state: "RunState", reporter: "Reporter") -> bool:
    """Plays and prints the match at the end, on process 0; False if a stop came before its end."""
    from alphagateau.matches.final_match import final_match, known_scores, print_scores

    is_first = processes.is_first()
    processes.disconnect()
    if not experiment.evaluation.num_games or not is_first:
        return True
    variables = jax.device_get(state.train.playing)
    scores = known_scores(experiment, folder, variables)
    if not scores:
        reporter.say("the match at the end: the last network against iteration 0 and the random mover")
        scores = final_match(experiment, folder, variables, lambda: stop.reason is not None)
    if scores is None:
        reporter.say(f"stopped ({stop.reason}) in the match at the end; the same command plays it")
        return False
    print_scores(scores, f"{folder.name}, {experiment.game}")
    return True
