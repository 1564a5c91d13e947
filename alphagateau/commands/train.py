"""Trains an experiment in the folder of a run."""

import dataclasses
import gc
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from alphagateau import config
from alphagateau.cli.arguments import DURATION, UsageError, usage_errors
from alphagateau.cli.experiments import ExperimentArguments, parse_experiment
from alphagateau.config import Experiment
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.budget import make_budget_check


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


read_arguments = partial(parse_experiment, Arguments, command="train")


def run(arguments: Arguments, path: Path, experiment: Experiment) -> int:
    """Trains; 0 also after a stop before the end."""
    named = (path.stem, "the experiment's file name") if arguments.run is None else (arguments.run, "--run")
    folder = arguments.runs / config.check_folder_name(*named)
    until = None if arguments.until is None else config.parse_budget(arguments.until)
    stop = StopRequest(arguments.stop_after)
    if until and not arguments.network_from_init:
        stop.ask = make_budget_check(folder, until, experiment)
    with stop.listening():  # the import of JAX already takes seconds
        from alphagateau.distributed import launch, processes

        with usage_errors():
            here = launch.parse_launch(arguments.coordinator, arguments.num_processes, arguments.process_id)
        launch.start(here)
        with processes.ending_together():
            if arguments.network_from_init:
                experiment = with_network_of(arguments.init_from, experiment, folder)
                if until:  # whose FLOPs are this network's
                    stop.ask = make_budget_check(folder, until, experiment)
            from alphagateau.api.training import run_experiment

            gc.freeze()  # tracing makes objects that stay, and visiting them took a fifth of its time
            gc.set_threshold(100_000, 50, 1000)
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
