"""Labels boards by the searches of a network's player."""

import time
from collections.abc import Callable
from typing import Any

from alphagateau.data import label_files
from alphagateau.data.label_files import LabelJob, Unit
from alphagateau.data.tables import DataError, LabellingError
from alphagateau.data.workers import Pace, SearchResult, count_done, labels_of
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.scores import centipawns
from alphagateau.matches.players import Player
from alphagateau.matches.specs import SpecError
from alphagateau.suites.answers import find_answers, positions_of_fens


def label_by_player(
    job: LabelJob, player: Player, should_stop: Callable[[], bool], report: Callable[[Pace], None]
) -> bool:
    """Labels what is not labelled yet; True once all is, False if it was stopped or another process has the rest.

    Raises SpecError for a player without a network, and DataError.
    """
    if player.search is None or not player.variables:
        raise SpecError(f"player {player.name!r} has no network: expected a run or a checkpoint")
    job.output.mkdir(parents=True, exist_ok=True)
    units = label_files.read_units(job)
    about = {"name": player.name, "weights": player.identity.weights, "search": player.identity.search}
    identity = label_files.write_manifest(job.output, label_files.labels_manifest(job, about))
    total, before, began = sum(len(unit.boards) for unit in units), count_done(job, units), time.monotonic()

    def report_or_stop() -> bool:
        done = count_done(job, units)
        report(Pace(done, total, done - before, time.monotonic() - began, 0.0))
        return should_stop()

    label_files.write_parts(job, identity, units, report_or_stop, lambda unit: _label_unit(job, player, unit))
    report_or_stop()
    return label_files.finish(job.output, units, identity)


def _label_unit(job: LabelJob, player: Player, unit: Unit) -> list[dict[str, Any]]:
    """The rows of a unit's part. Raises DataError, naming file and row for a FEN that is none."""
    edges, labelled = [], []
    for row, board in enumerate(unit.boards, unit.first):
        try:
            legal = board_edges(job.game, board_from_fen(job.game, board["fen"]))
        except ValueError as error:
            raise DataError(f"{unit.source}, row {row}: {error}") from None
        edges.append({move: edge for edge, move in legal.items()})
    for part in find_answers(job.game, player, positions_of_fens(job.game, [x["fen"] for x in unit.boards], seed=0)):
        assert part.output
        for row, move, value in zip(part.rows, part.moves, part.output.search_value.tolist(), strict=True):
            board, result = unit.boards[row], SearchResult(centipawns(value), 0, move)
            if move not in edges[row]:
                raise LabellingError(f"{player.name} answered {move}, which is no legal move of {board['fen']}")
            by_edge = {edges[row][move]: result} if job.target == "best" else {}
            labelled.append({**board, **labels_of(result, by_edge)})
    return labelled
