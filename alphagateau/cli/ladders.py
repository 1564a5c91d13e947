"""Plays a ladder, of a command or of a study, prints its ratings and writes its tables, plot and pages."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alphagateau import config
from alphagateau.cli.arguments import usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.streams import report
from alphagateau.config import MAX_INT, ConfigError, Experiment, LadderConfig
from alphagateau.distributed.mesh import choose_platform
from alphagateau.games.variants import get_game
from alphagateau.matches.ladder.ladder import MissingPlayers, RatedPool, merge_ladders, play_ladder
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.ladder.pool_files import OPENINGS, find_pool
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.player_specs import player_search
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerSpec, at_checkpoint, parse_spec
from alphagateau.networks.trained import player_search_name
from alphagateau.reports.ladder_page import LearntOn
from alphagateau.reports.ratings import RatingsReport, print_ratings, write_boards_page, write_ratings_report
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.run_record import read_record
from alphagateau.runs.spent import Spent, find_origin, read_spent
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.plan import PlannedRun
from alphagateau.studies.results import Rated
from alphagateau.studies.status import Status, last_iterations, whole_checkpoints
from alphagateau.studies.training import Study
from alphagateau.training.flops import experiment_flops

WATCH_SECONDS = 5.0  # between two scans for new checkpoints
COSTS = ("frames", "device_seconds", "simulations", "flops", "joules")


def run_ladder(
    ladder: LadderConfig,
    folder: Path,
    report: Callable[[str], None],
    should_stop: Callable[[], bool] = lambda: False,
    should_renew: Callable[[], bool] = lambda: False,
    specs: Sequence[PlayerSpec] | None = None,
) -> list[RatingsReport]:
    """Plays the games that are left, and writes and prints each board's table, plot, games and page.

    `specs`: the players, found before, in the place of those that the ladder names.
    """
    specs = list_specs(ladder.players, ladder.every) if specs is None else specs
    return _report(ladder, folder, play_ladder(ladder, specs, folder, Callbacks(report, should_stop, should_renew)))


def merge_into_ladder(
    ladder: LadderConfig, folder: Path, sources: Sequence[Path], report: Callable[[str], None]
) -> list[RatingsReport]:
    """Adds the games of other ladders, and writes and prints what `run_ladder` does."""
    specs = list_specs(ladder.players, ladder.every)
    return _report(ladder, folder, merge_ladders(ladder, specs, folder, sources, Callbacks(report)))


def watch_ladder(
    ladder: LadderConfig, folder: Path, report: Callable[[str], None], should_stop: Callable[[], bool]
) -> None:
    """Plays until it is stopped, and begins anew whenever the checkpoints of its runs change."""
    while not should_stop():
        specs = list_specs(ladder.players, ladder.every)
        has_changed = _watch(ladder, [spec.text for spec in specs])
        try:
            run_ladder(ladder, folder, report, should_stop, has_changed, specs)
        except (MissingPlayers, CheckpointError) as error:
            report(str(error))
        limit = f"; max_games is {ladder.max_games:,}, newcomers included" if ladder.max_games else ""
        report(f"waiting for new checkpoints; the page so far is {folder / 'index.html'}{limit}")
        while not (should_stop() or has_changed()):
            time.sleep(0.2)


def _watch(ladder: LadderConfig, known: list[str]) -> Callable[[], bool]:
    """A call that is True once other checkpoints are there than those known; it scans every WATCH_SECONDS."""
    next_scan, is_changed = 0.0, False

    def has_changed() -> bool:
        nonlocal next_scan, is_changed
        if not is_changed and time.monotonic() >= next_scan:
            next_scan = time.monotonic() + WATCH_SECONDS
            is_changed = [spec.text for spec in list_specs(ladder.players, ladder.every)] != known
        return is_changed

    return has_changed


def _report(ladder: LadderConfig, folder: Path, pools: Iterable[RatedPool]) -> list[RatingsReport]:
    """Writes and prints the results of each board as it ends, and at last the page of all boards."""
    reports = {}
    for pool in pools:
        reports[pool.table.game.name] = report_of(pool)
        write_ratings_report(pool.table.folder, reports[pool.table.game.name])
        print_ratings(reports[pool.table.game.name])
    if len(ladder.boards) > 1:
        write_boards_page(folder, reports)
    return [*reports.values()]


def report_of(pool: RatedPool) -> RatingsReport:
    """The report of a pool, with a column for each kind of cost, empty where a player has none."""
    table, players = pool.table, pool.table.players
    spent = spent_by(players)
    columns: dict[str, dict[str, Any]] = {
        "search": {p.name: p.identity.search for p in players},
        "protocol": {p.name: table.protocol for p in players},
        **{unit: {name: _number(getattr(cost, unit)) for name, cost in spent.items()} for unit in COSTS},
        "devices": {name: "; ".join(cost.devices) for name, cost in spent.items()},
    }
    return RatingsReport(
        pool.title,
        pool.results,
        pool.ratings,
        curves=pool.curves,
        columns=columns,
        records=pool.records,
        notes=pool.notes,
        board=table.game.name,
        learnt_on=learnt_on(pool),
        protocol={**pool.protocol, **{p.name: p.key[1] or p.key[0] for p in players}},
    )


def learnt_on(pool: RatedPool) -> dict[str, LearntOn]:
    """The boards and iterations that the run of each curve learnt on."""
    by_curve: dict[str, LearntOn] = {}
    for p in pool.table.players:
        folders = [p.folder, *(folder for folder, _ in p.also)]
        for folder, (curve, _) in zip(folders, pool.curves.get(p.name, ()), strict=False):
            if folder is not None and curve not in by_curve:
                board, (iterations, others) = _board_of(folder) or pool.table.game.name, _learnt_before(folder)
                by_curve[curve] = LearntOn(board, iterations, tuple(other for other in others if other != board))
    return by_curve


def _board_of(folder: Path) -> str:
    try:
        return config.load(folder / "config.toml").game
    except ConfigError:
        return ""


def _learnt_before(folder: Path, depth: int = 8) -> tuple[int, list[str]]:
    """(iterations, boards) of all the runs that led to the weights a run began from."""
    try:
        origin = find_origin(folder, read_record(folder))
    except RunError:
        return 0, []
    if not (origin and depth):
        return 0, []
    iterations, boards = _learnt_before(origin[0], depth - 1)
    new = [board for board in [_board_of(origin[0])] if board and board not in boards]
    return origin[1] + iterations, boards + new


def spent_by(players: list[Player]) -> dict[str, Spent]:
    """Costs by name, of the players whose run has a record of them."""
    by_run: dict[Path, dict[int, Spent]] = {}
    flops: dict[tuple, dict[str, float]] = {}

    def forward_flops(experiment: Experiment) -> dict[str, float]:
        key = experiment.game, experiment.network, experiment.selfplay  # which has the shares of several boards
        if key not in flops:
            flops[key] = _forward_flops(experiment)
        return flops[key]

    by_name = {}
    for p in players:
        if p.folder is None or p.identity.iteration is None:
            continue
        if p.folder not in by_run:
            by_run[p.folder] = read_spent(p.folder, forward_flops)
        if p.identity.iteration in by_run[p.folder]:
            by_name[p.name] = by_run[p.folder][p.identity.iteration]
    return by_name


def _forward_flops(experiment: Experiment) -> dict[str, float]:
    """NaN for an experiment whose game or network is gone."""
    try:
        return experiment_flops(experiment)
    except (ConfigError, ValueError):
        return dict.fromkeys(experiment.boards, math.nan)


def _number(value: float) -> float | str:
    """A table cell: a whole number, with decimals below 10, empty for NaN."""
    if not math.isfinite(value):
        return ""
    return round(value) if value >= 10 or value == round(value) else round(value, 3)


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
    if len(specs) + len(ladder.players) < 2:
        return {}
    choose_platform(study.plan.reference.experiment.platform)
    use_compilation_cache()
    with usage_errors(f"{study.plan.study.name}, [ladder]"):
        specs += list_specs(ladder.players, ladder.every)
        whole, should_stop = dataclasses.replace(ladder, boards=boards), lambda: stop.reason is not None
        reports = run_ladder(whole, folder, report, should_stop, specs=specs)
        if study.plan.study.direct_games:
            _play_direct_games(study, known, whole, folder, Callbacks(report, should_stop))
            reports = run_ladder(whole, folder, report, should_stop, specs=specs)
    rated = [dataclasses.replace(one.ratings, notes=(*one.ratings.notes, *one.notes)) for one in reports]
    played = zip(boards, rated, reports, strict=True)
    return {get_game(board).name: Rated(ratings, report.results, names) for board, ratings, report in played}


def _play_direct_games(
    study: Study, known: Mapping[str, Status], ladder: LadderConfig, folder: Path, callbacks: Callbacks
) -> None:
    """The games that are left of each run's last weights against those of the reference's run of its seed."""
    rules = {"matching": "all", "max_games": 0, "target_error": 0.0, "method": "bradley-terry", "anchor": ""}
    if ladder.pool:  # whose members they do not meet here
        rules |= {"pool": "", "openings": str(find_pool(ladder.pool) / OPENINGS)}
    ladder = dataclasses.replace(ladder, games_per_pair=study.plan.study.direct_games, **rules)
    last = {(run.variant.name, run.seed): specs_of(study, run, known, MAX_INT)[-1:] for run in study.plan.runs}
    for (variant, seed), ours in last.items():
        theirs = last[study.plan.reference.name, seed]
        weights = {spec.found.manifest["weights_hash"] for spec in (*ours, *theirs)}
        if variant != study.plan.reference.name and len(weights) == 2:
            for _ in play_ladder(ladder, [*ours, *theirs], folder, callbacks):
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
            name, manifest = f"{run.name}/{checkpoint.path.name}", checkpoint.manifest
            search = player_search(spec, manifest["search"], ladder.simulations or None, ladder.gumbel_scale)
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
