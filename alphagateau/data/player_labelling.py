"""Boards and a player of ours in, its best moves out as labels, in parts like those of an engine's labels."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from filelock import FileLock, Timeout

from alphagateau.data.crew import Order, Pace, Unit, labels_of, part_path, write_part
from alphagateau.data.labelling import claim, describe, finish, read_units
from alphagateau.data.positions import SPLITS
from alphagateau.data.searches import Found
from alphagateau.data.tables import DataError, LabellingError
from alphagateau.games.notation import board_edges, board_from_fen


class Labeller(NamedTuple):
    """A player that is asked for its best moves."""

    about: Mapping[str, Any]  # who it is and how it searches; it stands in the manifest
    search: Callable[[Sequence[str]], list[Found]]  # of the FENs of a unit


def label_by_player(
    order: Order, player: Labeller, should_stop: Callable[[], bool], tell: Callable[[Pace], None]
) -> bool:
    """Labels what is not labelled yet; True once all is, False if it was stopped or another process has the rest.

    Of `order` the program, its options, nodes, workers and timeout are not used. Raises DataError.
    """
    order.output.mkdir(parents=True, exist_ok=True)
    units = [unit for split in SPLITS for unit in read_units(order, split)]
    identity = claim(order.output, describe(order, player.about))
    locks, began, labelled = order.output / ".locks", time.monotonic(), 0
    locks.mkdir(exist_ok=True)
    for unit in units:
        if should_stop():
            return False
        path = part_path(order.output, unit)
        with suppress(Timeout), FileLock(locks / unit.name, timeout=0):
            if not path.exists():
                write_part(order, identity, unit, _label(order, player, unit))
                labelled += len(unit.boards)
        done = sum(len(unit.boards) for unit in units if part_path(order.output, unit).exists())
        tell(Pace(done, sum(len(unit.boards) for unit in units), labelled, time.monotonic() - began, 0.0))
    if any(not part_path(order.output, unit).exists() for unit in units):
        return False
    finish(order.output, units, identity)
    return True


def _label(order: Order, player: Labeller, unit: Unit) -> list[dict[str, Any]]:
    """The rows of a unit's part. Raises DataError."""
    edges = [_edges(order, unit, row) for row in range(len(unit.boards))]
    rows = []
    for board, moves, found in zip(unit.boards, edges, player.search([x["fen"] for x in unit.boards]), strict=True):
        if found.move not in moves:
            raise LabellingError(
                f"{player.about['name']} answered {found.move}, which is no legal move of {board['fen']}"
            )
        of_moves = {moves[found.move]: found} if order.target == "best" else {}
        rows.append({**board, **labels_of(found, of_moves)})
    return rows


def _edges(order: Order, unit: Unit, row: int) -> dict[str, int]:
    """The edges of a board's legal moves by UCI. Raises DataError, naming file and row, for a FEN that is none."""
    try:
        board = board_from_fen(order.game, unit.boards[row]["fen"])
    except ValueError as error:
        raise DataError(f"{unit.source}, row {unit.first + row}: {error}") from None
    return {move: edge for edge, move in board_edges(order.game, board).items()}
