"""Publishes a checkpoint of a run: its weights, its experiment and a model card."""

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau import config
from alphagateau.cli.arguments import UsageError
from alphagateau.config.study import NAME

if TYPE_CHECKING:  # imported with JAX, which --help and a typo must not wait for
    from alphagateau.reports.model_card import Card
    from alphagateau.runs.checkpoint import Checkpoint


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Publish a checkpoint of a run in checkpoints/NAME, with a model card.

    It has the weights and the experiment, plays like any checkpoint and can be committed to git. The card lists
    training, cost, data and ratings from the run's own files. `alphagateau info` verifies the files.

    Example: alphagateau publish checkpoints/quickstart gardner_small --ratings eval/quickstart_pool/ratings.csv
    """

    path: tyro.conf.Positional[Path]
    """a run for its newest checkpoint, or one of its checkpoints"""
    name: tyro.conf.Positional[str]
    """the name of its folder"""
    ratings: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE.csv")] = ()
    """ratings.csv of ladders that rate it"""
    note: Annotated[tuple[str, ...], tyro.conf.arg(metavar="SENTENCE")] = ()
    """more limits, for the card"""
    license: str = "Apache-2.0, as the code."
    """license of the weights, for the card"""
    folder: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("checkpoints")
    """where published checkpoints live"""


def run(arguments: Arguments) -> int:
    """Prints the folder's path."""
    if not NAME.fullmatch(arguments.name):
        raise UsageError(f"NAME is {arguments.name!r}, expected letters, digits, _, - and dots, as of a folder")
    from alphagateau.reports.model_card import model_card
    from alphagateau.runs.publishing import CARD, EXPERIMENT, publish

    found, card = read_run(arguments)
    texts = {EXPERIMENT: config.dumps(card.experiment), CARD: model_card(card)}
    target = arguments.folder / arguments.name
    publish(found, target, texts, card.run, card.spent)
    print(target)
    return 0


def read_run(arguments: Arguments) -> tuple["Checkpoint", "Card"]:
    """The checkpoint to publish and its Card. Raises CheckpointError, ConfigError, RunError."""
    from alphagateau.matches.specs import name_of, run_of
    from alphagateau.reports.model_card import Card, read_ratings
    from alphagateau.runs.checkpoint import NoCheckpointError
    from alphagateau.runs.newest import newest_checkpoint
    from alphagateau.runs.publishing import without_programs
    from alphagateau.runs.run_record import read_final_match, read_record
    from alphagateau.runs.spent import read_spent
    from alphagateau.training.flops import experiment_flops

    found = newest_checkpoint(arguments.path)
    run, iteration = found.run, found.manifest["iteration"]
    if run is None:
        raise NoCheckpointError(f"{found.path} is of no run, whose config.toml a published checkpoint must have")
    experiment = without_programs(config.load(run / "config.toml"), run)
    folder = Path("checkpoints") if arguments.folder.is_absolute() else arguments.folder  # no path of this machine
    card = Card(
        name=arguments.name,
        folder=shlex.quote(str(folder / arguments.name)),
        run=run_of(found),
        manifest=found.manifest,
        experiment=experiment,
        record=read_record(run),
        spent=read_spent(run, experiment_flops).get(iteration),
        final=read_final_match(run),
        ratings=[read_ratings(path, (name_of(found), arguments.name)) for path in arguments.ratings],
        labels=labels_of(experiment),
        license=arguments.license,
        notes=arguments.note,
    )
    return found, card


def labels_of(experiment: config.Experiment) -> dict[str, Any]:
    """The manifest of the labels that an experiment learns from; empty if it has none, or they are gone."""
    from alphagateau.data.label_files import read_manifest
    from alphagateau.data.tables import DataError

    if experiment.data is None:
        return {}
    try:
        return read_manifest(Path(experiment.data.path))
    except DataError:
        return {}
