"""Results tables: wins, draws and losses of pairs of players, checked."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
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

    def checked(self) -> "Row":
        """The row itself. Raises ResultsError for one that is no result."""
        check_name(self.player)
        check_name(self.opponent)
        if self.player == self.opponent:
            raise ResultsError(f"player {self.player!r} meets itself, expected two different players")
        if any(type(n) is not int or not 0 <= n <= MAX_COUNT for n in self[2:5]):
            raise ResultsError(f"wins, draws, losses {self[2:5]}, expected whole numbers from 0 to {MAX_COUNT}")
        if self.color not in (-1, 0, 1):
            raise ResultsError(f"color {self.color!r}, expected -1, 0 or 1")
        return self


class Pairs(NamedTuple):
    """Pairs of games of two players, each of one opening with colors exchanged."""

    player: str
    opponent: str
    counts: tuple[int, ...]  # [5], pairs that brought the player 0, 1/2, 1, 3/2, 2 points


class Alike(NamedTuple):
    """Two players who seem to be one."""

    player: str
    opponent: str
    why: str


@dataclass(frozen=True)
class Results:
    """A results table, as `make_results` builds it. Players may have no games.

    pairs: how the games of the rows, by color there, belong together, as far as that is known. alike: by their games.
    """

    players: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    pairs: tuple[Pairs, ...] = ()
    alike: tuple[Alike, ...] = ()


MAX_COUNT = 10**9
Counts = dict[tuple[str, str, int], np.ndarray]  # by player, opponent and the player's color


def make_results(rows: Iterable[Row], players: Iterable[str] = (), pairs: Iterable[Pairs] = ()) -> Results:
    """A table of `players`, then those of the rows; rows of the same pair and color are merged, swapped ones too.

    Raises ResultsError for a bad name or count.
    """
    order: dict[str, int] = {}
    for name in players:
        check_name(name)
        order.setdefault(name, len(order))
    games: Counts = {}
    for row in rows:
        row.checked()
        _add(games, order, row[:2], row[2:5], row.color)
    together: Counts = {}
    for pair in pairs:
        _add(together, order, pair[:2], pair.counts, 0)
    for (a, b, _), counts in together.items():
        most = min(np.sum(games.get((a, b, color), 0)) for color in (1, -1))
        if len(counts) != 5 or counts.min() < 0 or counts.sum() > most:
            raise ResultsError(f"pairs {counts.tolist()} of {a!r} and {b!r}, expected 5 counts of {most} pairs at most")
    merged = tuple(Row(a, b, *n.tolist(), color=c) for (a, b, c), n in games.items())
    return Results(tuple(order), merged, tuple(Pairs(a, b, tuple(n.tolist())) for (a, b, _), n in together.items()))


def _add(table: Counts, order: dict[str, int], players: Sequence[str], counts: Sequence[int], color: int) -> None:
    """Adds the counts, from all won to all lost or the reverse, of two players to theirs in the table."""
    for name in players:
        order.setdefault(name, len(order))
    player, opponent = players
    if order[player] > order[opponent]:
        player, opponent, counts, color = opponent, player, counts[::-1], -color
    key = (player, opponent, color)
    table[key] = table.get(key, 0) + np.array(counts)


def restrict(results: Results, players: Collection[str]) -> Results:
    """The table of these players, in this order, and the games among them."""
    names = {*players}
    rows = (row for row in results.rows if {*row[:2]} <= names)
    return make_results(rows, players, (pair for pair in results.pairs if {*pair[:2]} <= names))


def games_between(results: Results) -> Counter[frozenset[str]]:
    """Games of each two players, 0 of those who never met."""
    played: Counter[frozenset[str]] = Counter()
    for row in results.rows:
        played[frozenset(row[:2])] += sum(row[2:5])
    return played


def without_colors(results: Results) -> Results:
    """The same table with one row a pair."""
    return make_results((row._replace(color=0) for row in results.rows), results.players)


def listed(names: Sequence[str], most: int = 5, separator: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not name:
        raise ResultsError(f"player name {name!r:.100}, expected printable text without spaces at its ends")
