"""Estimates the memory and time of an experiment on this machine."""

import dataclasses
from functools import partial
from pathlib import Path

from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.experiments import ExperimentArguments, check, parse_experiment
from alphagateau.config import Experiment


@dataclasses.dataclass(frozen=True)
class Arguments(ExperimentArguments):
    """Estimate the memory and time of an experiment on this machine.

    Computed from its shapes and a few short trials. Exit code 1: its memory does not fit. Every key of the experiment
    is an option, as with train.

    Example: alphagateau doctor quickstart --search.num-simulations 64
    """


read_arguments = partial(parse_experiment, Arguments, command="doctor")


def run(arguments: Arguments, path: Path, experiment: Experiment) -> int:
    """1 if the memory does not fit."""
    from alphagateau.distributed.mesh import choose_platform

    choose_platform(experiment.platform, experiment.cpu_devices)
    use_compilation_cache()
    check(experiment, path)
    from alphagateau.training.doctor import diagnose, print_diagnosis

    diagnosis = diagnose(experiment)
    print_diagnosis(diagnosis, str(path))
    return 1 if diagnosis.advice else 0
