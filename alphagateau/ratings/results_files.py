"""Reads results tables from CSV, makes them of games, and writes tables and ratings as CSV."""

import csv
import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alphagateau.ratings.rate import Ratings
from alphagateau.ratings.results import (
    Results,
    ResultsError,
    Row,
    check_name,
    check_row,
    make_results,
    without_colors,
)
from alphagateau.runs.files import write_text

RESULTS_HEADER = ["player", "opponent", "wins", "draws", "losses"]
RATINGS_HEADER = ["player", "rating", "standard_error", "games", "score", "lower", "upper"]
RATINGS_HEADER += ["component", "method", "anchor"]
COUNTS = {"1-0": (1, 0, 0), "1/2-1/2": (0, 1, 0), "0-1": (0, 0, 1)}  # wins, draws, losses of white
UNFINISHED = "*"
NAMELESS = ("", "?")


class GameResult(NamedTuple):
    """A game as its file has it."""

    white: str
    black: str
    result: str  # of COUNTS, or "*"


@dataclass(frozen=True)
class GameResults:
    """The finished games between two different players, and what was left out."""

    results: Results
    num_games: int
    num_unfinished: int
    num_self_games: int

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence for each kind of game that was left out."""
        said = (
            (self.num_unfinished, "unfinished (result *)"),
            (self.num_self_games, "of a player against itself"),
        )
        return tuple(f"left out: {n} of {self.num_games} games, {why}" for n, why in said if n)


def read_results(lines: Iterable[str], name: object) -> Results:
    """A results.csv, strictly: that header, one pair a line, whole numbers. `name` is the file's.

    Raises ResultsError naming file, line and what was expected. A file of the header alone is an
    empty table.
    """
    reader = csv.reader(lines, strict=True)
    rows = []
    try:
        header = next(reader, None)
        if header != RESULTS_HEADER:
            raise ResultsError(f"expected the header {','.join(RESULTS_HEADER)}")
        rows = [_parse_row(fields) for fields in reader if fields]
    except (csv.Error, ResultsError) as error:
        raise ResultsError(f"{name}, line {max(reader.line_num, 1)}: {error}") from None
    return make_results(rows)


def _parse_row(fields: list[str]) -> Row:
    if len(fields) != len(RESULTS_HEADER):
        raise ResultsError(f"{len(fields)} fields, expected {','.join(RESULTS_HEADER)}")
    for name, text in zip(RESULTS_HEADER[2:], fields[2:], strict=True):
        if not re.fullmatch("[0-9]{1,10}", text):
            raise ResultsError(f"{name} is {text!r:.100}, expected a whole number of at least 0")
    row = Row(fields[0], fields[1], *map(int, fields[2:]))
    check_row(row)
    return row


def tabulate(games: Iterable[tuple[str, GameResult]]) -> GameResults:
    """A table of games, each behind where it stands. Raises ResultsError for a finished game without names."""
    counts: Counter[GameResult] = Counter()
    players: dict[str, None] = {}
    for where, game in games:
        names = (game.white, game.black)
        if game.result != UNFINISHED:
            for name in names:
                _check_player(name, where)
        players.update((name, None) for name in names if name not in NAMELESS)
        counts[game] += 1
    unfinished = sum(number for game, number in counts.items() if game.result == UNFINISHED)
    alone = sum(n for game, n in counts.items() if game.result != UNFINISHED and game.white == game.black)
    rows = [
        Row(white, black, *(number * count for count in COUNTS[result]), color=1)
        for (white, black, result), number in counts.items()
        if result != UNFINISHED and white != black
    ]
    return GameResults(make_results(rows, players), counts.total(), unfinished, alone)


def _check_player(name: str, where: str) -> None:
    try:
        check_name(name)
    except ResultsError as error:
        raise ResultsError(f"{where}: {error}") from None
    if name in NAMELESS:
        raise ResultsError(f"{where}: a player is '?', expected names in the White and Black tags")


def write_results(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes results.csv, one row a pair, whole or not at all."""
    rows = (row[:5] for row in without_colors(results).rows)
    _write_csv(path, RESULTS_HEADER, rows)


def write_ratings(
    ratings: Ratings, path: str | os.PathLike[str], more: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Writes ratings.csv, the strongest of the largest component first; Elo to 0.01.

    lower and upper: 2 standard errors away. score: points a game. more: columns at the end, by name, with what each
    player has there.
    """
    more = more or {}
    order = sorted(
        range(len(ratings.players)),
        key=lambda k: (ratings.component[k], -np.nan_to_num(ratings.rating[k], nan=-np.inf)),
    )
    rating, error = ratings.rating, ratings.standard_error
    columns = [rating - 2 * error, rating + 2 * error]
    rows = (
        [
            ratings.players[k],
            *(f"{x[k]:.2f}" for x in (rating, error)),
            ratings.games[k],
            f"{ratings.score[k]:.4f}",
            *(f"{x[k]:.2f}" for x in columns),
            ratings.component[k],
            ratings.method,
            ratings.anchor or "",
            *(column.get(ratings.players[k], "") for column in more.values()),
        ]
        for k in order
    )
    _write_csv(path, [*RATINGS_HEADER, *more], rows)


def _write_csv(path: str | os.PathLike[str], header: list[str], rows: Iterable) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_text(Path(path), text.getvalue())
