"""Plays a ladder, of a command or of a study, prints its ratings and writes its tables, plot and pages."""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from alphagateau import config
from alphagateau.config import ConfigError, Experiment, LadderConfig
from alphagateau.matches.ladder.ladder import MissingPlayers, RatedPool, merge_ladders, play_ladder
from alphagateau.matches.ladder.players import list_specs
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.players import Player
from alphagateau.matches.specs import PlayerSpec
from alphagateau.reports.ladder_page import LearntOn
from alphagateau.reports.ratings import RatingsReport, print_ratings, write_boards_page, write_ratings_report
from alphagateau.runs.checkpoint import CheckpointError
from alphagateau.runs.run_folder import RunError
from alphagateau.runs.run_record import read_record
from alphagateau.runs.spent import Spent, find_origin, read_spent
from alphagateau.training.flops import experiment_flops

WATCH_SECONDS = 5.0  # between two scans for new checkpoints
COSTS = ("frames", "device_seconds", "simulations", "flops", "joules")


def run_ladder(
    ladder: LadderConfig,
    folder: Path,
    callbacks: Callbacks,
    specs: Sequence[PlayerSpec] | None = None,
    sources: Sequence[Path] = (),
) -> list[RatingsReport]:
    """Plays the games that are left, and writes and prints each board's table, plot, games and page.

    specs: the players, found before, in the place of those that the ladder names. sources: other ladders, whose games
    are added; none is played.
    """
    specs = list_specs(ladder.players, ladder.every) if specs is None else specs
    if sources:
        pools = merge_ladders(ladder, specs, folder, sources, callbacks)
    else:
        pools = play_ladder(ladder, specs, folder, callbacks)
    reports = {}
    for pool in pools:  # as each board ends
        reports[pool.table.game.name] = report = report_of(pool)
        write_ratings_report(pool.table.folder, report)
        print_ratings(report)
    if len(ladder.boards) > 1:
        write_boards_page(folder, reports)
    return [*reports.values()]


def watch_ladder(ladder: LadderConfig, folder: Path, callbacks: Callbacks) -> None:
    """Plays until it is stopped, and begins anew whenever the checkpoints of its runs change."""
    while not callbacks.should_stop():
        specs = list_specs(ladder.players, ladder.every)
        has_changed = _watch(ladder, [spec.text for spec in specs])
        try:
            run_ladder(ladder, folder, callbacks._replace(should_renew=has_changed), specs)
        except (MissingPlayers, CheckpointError) as error:
            callbacks.report(str(error))
        limit = f"; max_games is {ladder.max_games:,}, newcomers included" if ladder.max_games else ""
        callbacks.report(f"waiting for new checkpoints; the page so far is {folder / 'index.html'}{limit}")
        while not (callbacks.should_stop() or has_changed()):
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
        protocol={**pool.protocol, **{f"player {p.name}": p.key[1] or p.key[0] for p in players}},
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
    flops: dict[tuple, dict[str, float]] = {}

    def forward_flops(experiment: Experiment) -> dict[str, float]:
        key = experiment.game, experiment.network, experiment.selfplay  # which has the shares of several boards
        if key not in flops:
            flops[key] = _forward_flops(experiment)
        return flops[key]

    folders = dict.fromkeys(p.folder for p in players if p.folder)
    by_run = {folder: read_spent(folder, forward_flops) for folder in folders}
    places = [(p.name, by_run[p.folder], p.identity.iteration) for p in players if p.folder]
    return {name: spent[iteration] for name, spent, iteration in places if iteration in spent}


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
