"""Rates the runs of a study on one ladder."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from alphagateau.cli.arguments import usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.ladders import run_ladder
from alphagateau.cli.streams import report
from alphagateau.config import LadderConfig
from alphagateau.distributed.mesh import choose_platform
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.player_specs import player_search
from alphagateau.matches.specs import PlayerSpec, at_checkpoint, parse_spec
from alphagateau.networks.trained import player_search_name
from alphagateau.ratings.rate import Ratings
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.results import Names
from alphagateau.studies.status import Status, whole_checkpoints
from alphagateau.studies.training import Study


def rate_runs(
    study: Study, known: Mapping[str, Status], folder: Path, stop: StopRequest
) -> dict[str, tuple[Ratings, Names]]:
    """Ratings and players by board; none if the study has no ladder or less than two players.

    Raises UsageError for wrong players, anchors or openings; with the file corrected the same command continues.
    """
    ladder = study.plan.study.ladder
    if ladder is None:
        return {}
    specs, names = list_players(study, known, ladder)
    boards = ladder.boards or (study.plan.reference.experiment.game,)
    if len(specs) + len(ladder.players) < 2:
        return {}
    choose_platform(study.plan.reference.experiment.platform)
    use_compilation_cache()
    with usage_errors(f"{study.plan.study.name}, [ladder]"):
        specs += list_specs(ladder.players, ladder.every)
        whole = dataclasses.replace(ladder, boards=boards)
        rated = run_ladder(whole, folder, report, lambda: stop.reason is not None, specs=specs)
    return {get_game(board).name: (ratings, names) for board, ratings in zip(boards, rated, strict=True)}


def list_players(
    study: Study, known: Mapping[str, Status], ladder: LadderConfig
) -> tuple[list[PlayerSpec], dict[tuple[str, int], str]]:
    """The specs of all checkpoints to rate, and the name under which each is rated.

    Equal weights that search alike, such as those of two variants before the first iteration, are one player.
    """
    specs, names, same = [], {}, {}
    query = f"?{study.plan.study.player}" if study.plan.study.player else ""
    for run in study.plan.runs:
        if not known[run.name].ended:
            continue
        of_run = parse_spec(f"{study.folder / run.name}{query}")
        for checkpoint in _rated(study.folder / run.name, known[run.name].iteration, ladder.every):
            name, spec = f"{run.name}/{checkpoint.path.name}", at_checkpoint(of_run, checkpoint)
            identity = _identity(spec, ladder)
            if identity not in same:
                specs.append(spec)
            names[run.name, checkpoint.order[0]] = same.setdefault(identity, name)
    return specs, names


def _rated(folder: Path, last: int, every: int) -> list[Checkpoint]:
    """Every `every`-th iteration up to the last, which is rated in any case."""
    whole = [c for c in whole_checkpoints(folder) if c.order[0] <= last]
    return [c for c in whole if c.order[0] == last or (every <= last and c.order[0] % every == 0)]


def _identity(spec: PlayerSpec, ladder: LadderConfig) -> tuple[str, str]:
    """What makes a player one of its own. Raises PlayerError for options that it cannot have."""
    manifest = spec.found.manifest
    search = player_search(spec, manifest["search"], ladder.simulations or None, ladder.gumbel_scale)
    return manifest["weights_hash"], player_search_name(search)
