"""Results tables: wins, draws and losses of pairs of players, checked."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class ResultsError(ValueError):
    """Results that cannot be used; one sentence with the place and what was expected."""


class Row(NamedTuple):
    """Games of one pair, from `player`'s side."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int
    color: int = 0  # of the player: 1 white, -1 black, 0 mixed


@dataclass(frozen=True)
class Results:
    """A results table, as `make_results` builds it. Players may have no games."""

    players: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


MAX_COUNT = 10**9


def make_results(rows: Iterable[Row], players: Iterable[str] = ()) -> Results:
    """A table of `players`, then those of the rows; rows of the same pair and color are merged, swapped ones too.

    Raises ResultsError for a bad name or count.
    """
    order: dict[str, int] = {}
    for name in players:
        check_name(name)
        order.setdefault(name, len(order))
    merged: dict[tuple[str, str, int], np.ndarray] = {}
    for row in rows:
        check_row(row)
        for name in row[:2]:
            order.setdefault(name, len(order))
        player, opponent, *counts, color = row
        if order[player] > order[opponent]:
            player, opponent, counts, color = opponent, player, counts[::-1], -color
        key = (player, opponent, color)
        merged[key] = merged.get(key, 0) + np.array(counts)
    table = (Row(a, b, *map(int, n), color=c) for (a, b, c), n in merged.items())
    return Results(tuple(order), tuple(table))


def without_colors(results: Results) -> Results:
    """The same table with one row a pair."""
    return make_results((row._replace(color=0) for row in results.rows), results.players)


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise ResultsError(f"player name {name!r:.100}, expected printable text without spaces at its ends")


def check_row(row: Row) -> None:
    check_name(row.player)
    check_name(row.opponent)
    if row.player == row.opponent:
        raise ResultsError(f"player {row.player!r} meets itself, expected two different players")
    if any(type(n) is not int or not 0 <= n <= MAX_COUNT for n in row[2:5]):
        raise ResultsError(f"wins, draws, losses {row[2:5]}, expected whole numbers from 0 to {MAX_COUNT}")
    if row.color not in (-1, 0, 1):
        raise ResultsError(f"color {row.color!r}, expected -1, 0 or 1")
