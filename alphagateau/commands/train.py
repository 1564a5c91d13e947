"""Trains an experiment in the folder of a run."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from alphagateau import config
from alphagateau.cli.arguments import DURATION, UsageError, usage_errors
from alphagateau.cli.compilation import collect_rarely, use_compilation_cache
from alphagateau.cli.experiments import ExperimentArguments, check, parse_experiment
from alphagateau.config import ConfigError, Experiment
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.budget import make_budget_check

if TYPE_CHECKING:  # imported with JAX, which --help and a typo must not wait for
    from alphagateau.runs.logging.progress import Reporter
    from alphagateau.training.phases import RunState


@dataclasses.dataclass(frozen=True)
class Arguments(ExperimentArguments):
    """Train an experiment in checkpoints/<name>, or continue its run there.

    Every key of the experiment is an option. On several hosts run the same command on each, in a folder that all of
    them share. Under Slurm, Open MPI or Kubernetes the processes find one another; elsewhere give --coordinator,
    --num-processes and --process-id.

    Example: alphagateau train quickstart --search.num-simulations 32 --no-aim
    """

    init_from: Annotated[Path | None, tyro.conf.arg(metavar="CKPT")] = None
    """start from the weights of this checkpoint or run, on the same board or another"""
    network_from_init: bool = False
    """take the network's keys from that checkpoint or run"""
    run: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """name of the run's folder; None: that of the experiment"""
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("checkpoints")
    """where runs live"""
    stop_after: Annotated[float | None, DURATION] = None
    """write a checkpoint and exit 0 after this time, such as 3h or 45m"""
    until: Annotated[str | None, tyro.conf.arg(metavar="UNIT=N")] = None
    """end with the first iteration that reaches this budget; a unit is iterations, frames, steps, flops or seconds"""
    coordinator: Annotated[str | None, tyro.conf.arg(metavar="HOST:PORT")] = None
    """address of process 0"""
    num_processes: Annotated[str | None, tyro.conf.arg(metavar="N")] = None
    """number of processes"""
    process_id: Annotated[str | None, tyro.conf.arg(metavar="I")] = None
    """number of this process, from 0"""


def run(words: Sequence[str]) -> int:
    """Trains; 0 also if it was asked to stop before the end."""
    arguments, path, experiment = parse_experiment(Arguments, words, "train")
    named = (path.stem, "the experiment's file name") if arguments.run is None else (arguments.run, "--run")
    folder = arguments.runs / config.check_folder_name(*named)
    ask = (
        make_budget_check(folder, config.parse_budget(arguments.until), experiment) if arguments.until else lambda: None
    )
    stop = StopRequest(arguments.stop_after, ask)
    with stop.listening():  # the import of JAX already takes seconds
        from alphagateau.distributed import launch, processes

        with usage_errors():
            here = launch.parse_launch(arguments.coordinator, arguments.num_processes, arguments.process_id)
        launch.start(here)
        with processes.ending_together():
            if arguments.network_from_init:
                experiment = with_network_of(arguments.init_from, experiment, folder)
            run_experiment(experiment, path, folder, stop, arguments.init_from)
    return 0


def with_network_of(source: Path | None, experiment: Experiment, folder: Path) -> Experiment:
    """The experiment with the network of a checkpoint or run; a run that has begun keeps its own.

    Raises UsageError, ConfigError, CheckpointError.
    """
    from alphagateau.networks.trained import network_config
    from alphagateau.runs.newest import newest_checkpoint

    if source is None:
        raise UsageError("--network-from-init needs --init-from CKPT, whose network it takes")
    own = folder / "config.toml"
    network = config.load(own).network if own.exists() else network_config(newest_checkpoint(source))
    return dataclasses.replace(experiment, network=network)


def run_experiment(experiment: Experiment, path: Path, folder: Path, stop: StopRequest, init_from: Path | None) -> None:
    """Checks that all processes run the same possible experiment, then trains."""
    import jax

    from alphagateau.distributed import processes
    from alphagateau.distributed.mesh import choose_platform
    from alphagateau.runs import run_record

    processes.check_same(run_record.process_facts(experiment, init_from))
    choose_platform(experiment.platform, experiment.cpu_devices)
    use_compilation_cache()
    jax.devices()  # JAX's start needs all processes at once, so none may begin to compute alone
    processes.on_first(lambda: check(experiment, path), ConfigError)
    from alphagateau.training.loop import train

    collect_rarely()
    train(
        experiment, folder, stop, init_from, lambda state, reporter: conclude(experiment, folder, state, reporter, stop)
    )


def conclude(experiment: Experiment, folder: Path, state: "RunState", reporter: "Reporter", stop: StopRequest) -> bool:
    """Plays and prints the match at the end, on process 0; False if a stop came before its end."""
    import jax

    from alphagateau.distributed import processes
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
