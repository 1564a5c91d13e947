"""Measures how well players play and rank the moves of labelled boards."""

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Column

from alphagateau.cli.arguments import PlayerOptions, UsageError, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import JSON
from alphagateau.cli.streams import make_reporter
from alphagateau.config.records import counted
from alphagateau.runs.files import write_json
from alphagateau.runs.logging.progress import print_results

if TYPE_CHECKING:
    from alphagateau.matches.players import Player
    from alphagateau.ratings.intervals import Estimate
    from alphagateau.suites.labelled_moves import LabelledBoards

SHARES = ("action_accuracy", "policy_top_1", "policy_top_3")  # shown in percent


@dataclasses.dataclass(frozen=True)
class Arguments(PlayerOptions):
    """Measure players on the boards that an engine labelled.

    Of every player: how often it plays one of the best moves. Of networks and the random mover also Kendall's tau-b of
    their ranking of the moves (and the published variant, another number), the log loss of the policy, how often the
    best move is the first or of the first three by it, and what values are off by; of networks with bins of values
    their log loss and divergence. Intervals are 2 standard errors. A player is a run, a checkpoint (with
    `?search=action_value` or another search behind it), `random`, or `uci:COMMAND`.

    Example: alphagateau evaluate checkpoints/labelled random data/gardner/labels
    """

    words: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYER... FOLDER")]
    """the players, and last the folder of labels"""
    split: Literal["test", "train"] = "test"
    """which boards"""
    max_boards: int = 0
    """only the first so many; 0: all"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """write all measures of each player, with their intervals"""


def run(arguments: Arguments) -> int:
    """1 if a player failed."""
    if len(arguments.words) < 2:
        raise UsageError("evaluate needs players and a folder, as in: alphagateau evaluate random data/gardner/labels")
    use_compilation_cache()
    from alphagateau.cli.players import measure_each
    from alphagateau.data.label_files import read_manifest
    from alphagateau.data.packed import open_packed
    from alphagateau.data.tables import DataError
    from alphagateau.games.variants import get_game
    from alphagateau.suites.labelled_moves import read_boards

    *specs, folder = arguments.words
    with usage_errors("", DataError):
        manifest = read_manifest(Path(folder))
        game = get_game(manifest["game"])
        columns = open_packed(Path(folder), arguments.split)
    if not len(columns.count):
        raise UsageError(f"{folder} holds no labelled board of {arguments.split}")
    boards = read_boards(game, columns, arguments.max_boards)
    is_best_only = manifest["target"] == "best"
    measure = partial(measures_of, boards=boards, seed=arguments.seed, is_best_only=is_best_only)
    found, failures = measure_each(specs, game.name, arguments.simulations, measure)
    if arguments.json:
        about = {"labels": manifest["engine"], "split": arguments.split, "game": game.name}
        write_measures(arguments.json, found, about)
    print_measures(found, f"{counted(len(boards.rows.count), f'{arguments.split} board')} of {folder}")
    return 1 if failures else 0


def measures_of(player: "Player", boards: "LabelledBoards", seed: int, is_best_only: bool) -> "dict[str, Estimate]":
    """The measures of a player by name. Raises PlayerError."""
    from alphagateau.networks.make_network import make_network
    from alphagateau.ratings.intervals import mean
    from alphagateau.suites.labelled_moves import measure, predict
    from alphagateau.training.labels.measures import measure_bins

    reporter = make_reporter(len(boards.rows.count), "boards", player.name)
    found = measure(boards, predict(boards, player, seed, reporter), is_best_only)
    if player.network is None:
        return found
    bins = measure_bins(make_network(boards.game, player.network), player.variables, boards.rows)
    return found | {name: mean(values) for name, values in bins.items()}


def print_measures(found: "Mapping[str, Mapping[str, Estimate]]", title: str) -> None:
    """A table on standard output: a row a measure, a column a player."""
    columns = [Column("measure", no_wrap=True), *(Column(name, justify="right", overflow="fold") for name in found)]
    names = dict.fromkeys(name for measures in found.values() for name in measures)
    rows = [(name, *(shown(name, measures.get(name)) for measures in found.values())) for name in names]
    print_results(title, columns, rows, max(160, 40 + 40 * len(found)))


def shown(measure: str, estimate: "Estimate | None") -> str:
    """Such as "61.2% (58.8 - 63.5)" or "0.275 ± 0.031"; "-" where nothing was measured."""
    if estimate is None or not estimate.count:
        return "-"
    if measure in SHARES:
        return f"{estimate.value:.1%} ({100 * estimate.lower:.1f} - {100 * estimate.upper:.1f})"
    half = "" if math.isnan(estimate.upper) else f" ± {estimate.upper - estimate.value:.3f}"
    return f"{estimate.value:.3f}{half}"


def write_measures(path: Path, found: "Mapping[str, Mapping[str, Estimate]]", about: Mapping[str, Any]) -> None:
    """One object a player: name, score and total of its action accuracy, and every measure."""
    rows = []
    for name, measures in found.items():
        accuracy = measures["action_accuracy"]
        known = {key: estimate._asdict() for key, estimate in measures.items()}
        rows.append({"name": name, "score": accuracy.successes, "total": accuracy.count, "measures": known, **about})
    write_json(path, rows)
