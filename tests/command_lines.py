"""Experiments as a command line makes them."""

from collections.abc import Sequence
from pathlib import Path

from alphagateau.cli.experiments import ExperimentArguments, parse_experiment
from alphagateau.config import Experiment


def read_experiment(name: str | Path, options: Sequence[str] = ()) -> Experiment:
    """The experiment `name` with options such as `--no-aim`. Raises UsageError, ConfigError."""
    return parse_experiment(ExperimentArguments, [str(name), *options], "train")[2]
