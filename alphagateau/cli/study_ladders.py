"""Plays the ladder of a study, and keeps what it needs to go on where the runs are not."""

import dataclasses
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from alphagateau import config
from alphagateau.cli.arguments import usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.ladders import run_ladder
from alphagateau.cli.streams import report
from alphagateau.config import MAX_INT, LadderConfig
from alphagateau.distributed.mesh import choose_platform
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder.ladder import play_ladder
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.ladder.pool_files import OPENINGS, find_pool
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.player_specs import search_of
from alphagateau.matches.specs import PlayerSpec, at_checkpoint, name_of, parse_spec
from alphagateau.networks.trained import player_search_name
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.runs.files import replacing, write_text
from alphagateau.runs.publishing import EXPERIMENT, publish, without_programs
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.plan import PlannedRun
from alphagateau.studies.results import Rated
from alphagateau.studies.status import Status, last_iterations, whole_checkpoints
from alphagateau.studies.training import Study


def rate_runs(study: Study, known: Mapping[str, Status], folder: Path, stop: StopRequest) -> dict[str, Rated]:
    """The study's ladder by board; none if it has no ladder or less than two players.

    Direct games of runs are played after the others, and rated with them. Raises UsageError for wrong players, anchors
    or openings; with the file corrected the same command continues.
    """
    ladder = study.plan.study.ladder
    if ladder is None:
        return {}
    specs, names = list_players(study, known, ladder)
    boards = ladder.boards or (study.plan.reference.experiment.game,)
    if len(specs) + len(ladder.players) < (1 if ladder.pool else 2):
        return {}
    choose_platform(study.plan.reference.experiment.platform)
    use_compilation_cache()
    with usage_errors(f"{study.plan.study.name}, [ladder]"):
        specs += list_specs(ladder.players, ladder.every)
        whole = dataclasses.replace(ladder, boards=boards)
        callbacks = Callbacks(report, lambda: stop.reason is not None)
        reports = run_ladder(whole, folder, callbacks, specs)
        if study.plan.study.direct_games:
            _play_direct_games(study, known, whole, folder, callbacks.should_stop)
            reports = run_ladder(whole, folder, callbacks, specs)
    rated = [dataclasses.replace(one.ratings, notes=(*one.ratings.notes, *one.notes)) for one in reports]
    played = zip(boards, rated, reports, strict=True)
    return {get_game(board).name: Rated(ratings, report.results, names) for board, ratings, report in played}


def _play_direct_games(
    study: Study, known: Mapping[str, Status], ladder: LadderConfig, folder: Path, should_stop: Callable[[], bool]
) -> None:
    """The games that are left of each run's last weights against those of the reference's run of its seed.

    A line a pair says so: the whole ladder has said the rest, and networks do not fail as engines do.
    """
    silent = Callbacks(lambda _: None, should_stop)
    rules = {"matching": "all", "max_games": 0, "target_error": 0.0, "method": "bradley-terry", "anchor": ""}
    rules |= {"anchor_rating": 0.0, "make_pool": False}
    if ladder.pool:  # whose members they do not meet here
        rules |= {"pool": "", "openings": str(find_pool(ladder.pool) / OPENINGS)}
    rules |= {"players": tuple(run.name for run in study.plan.runs), "games_per_pair": study.plan.study.direct_games}
    ladder = dataclasses.replace(ladder, **rules)
    last = {(run.variant.name, run.seed): specs_of(study, run, known, MAX_INT)[-1:] for run in study.plan.runs}
    for (variant, seed), ours in last.items():
        theirs = last[study.plan.reference.name, seed]
        weights = {spec.found.manifest["weights_hash"] for spec in (*ours, *theirs)}
        if variant != study.plan.reference.name and len(weights) == 2 and not should_stop():
            report(f"direct games, seed {seed}: {variant} and {study.plan.reference.name}")
            for _ in play_ladder(ladder, [*ours, *theirs], folder, silent):
                pass


def list_players(
    study: Study, known: Mapping[str, Status], ladder: LadderConfig
) -> tuple[list[PlayerSpec], dict[tuple[str, int], str]]:
    """The specs of all checkpoints to rate, and the name under which each is rated.

    Equal weights that search alike, such as those of two variants before the first iteration, are one player. Raises
    PlayerError for options that a player cannot have.
    """
    specs, names, same = [], {}, {}
    for run in study.plan.runs:
        for spec in specs_of(study, run, known, ladder.every):
            checkpoint = spec.found
            name, manifest = name_of(checkpoint), checkpoint.manifest  # also where the run is a link
            search = search_of(spec, manifest["search"], ladder.simulations or None, ladder.gumbel_scale)
            identity = manifest["weights_hash"], player_search_name(search)
            if identity not in same:
                specs.append(spec)
            names[run.name, checkpoint.order[0]] = same.setdefault(identity, name)
    return specs, names


def specs_of(study: Study, run: PlannedRun, known: Mapping[str, Status], every: int) -> list[PlayerSpec]:
    """Of a run that has ended every `every`-th iteration up to the last, and the last ones that its rating is of."""
    last, folder = known[run.name].iteration, study.folder / run.name
    whole = [c for c in whole_checkpoints(folder) if c.order[0] <= last] if known[run.name].ended else []
    latest = last_iterations((c.order[0] for c in whole), study.plan.study.last)
    of_run = parse_spec(str(folder) + (f"?{study.plan.study.player}" if study.plan.study.player else ""))
    chosen = [c for c in whole if c.order[0] in latest or (every <= last and c.order[0] % every == 0)]
    return [at_checkpoint(of_run, c) for c in chosen]


def keep(study: Study, known: Mapping[str, Status], out: Path) -> None:
    """Writes into a study's results each run's last weights, its ladder's games packed, and a file of that ladder.

    Where a rating is the mean of several checkpoints, the earlier ones have their iteration behind the run's name.
    Weights that are too large to keep are reported.
    """
    ladder = study.plan.study.ladder
    if ladder is None:
        return
    query, kept = f"?{study.plan.study.player}" if study.plan.study.player else "", {}
    for run in study.plan.runs:
        last = specs_of(study, run, known, MAX_INT)
        found = specs_of(study, run, known, ladder.every)
        specs = [s for s in found if s in last or f"{run.name}/{s.found.path.name}" == ladder.anchor]
        for spec in specs:
            name = run.name if spec is specs[-1] else f"{run.name}.{spec.found.path.name}"
            folder = out / "weights" / name
            text = config.dumps(without_programs(run.experiment, study.folder / run.name))
            try:
                publish(spec.found, folder, {EXPERIMENT: text}, run.name, None)
                kept[f"{run.name}/{spec.found.path.name}"] = folder
            except CheckpointError as error:
                report(f"the weights of {name} are not kept: {error}")
    for path in (out / "ladder").rglob("games.pgn"):
        with replacing(path.with_suffix(".pgn.gz")) as packed:
            packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    keys = dataclasses.asdict(ladder)
    keys["players"] = [*(f"{folder}{query}" for folder in kept.values()), *ladder.players]
    keys["boards"] = ladder.boards or [study.plan.reference.experiment.game]
    keys["anchor"] = kept[ladder.anchor].name if ladder.anchor in kept else ladder.anchor
    lines = [f"# The ladder of study {study.plan.study.name}, to add games to: docs/studies.md has the commands."]
    lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in keys.items()]
    write_text(out / "ladder.toml", "\n".join(lines) + "\n")
