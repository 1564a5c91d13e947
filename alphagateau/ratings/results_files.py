"""Reads results tables from CSV and PGN, merges them, and writes tables and ratings as CSV."""

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chess.pgn
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
LINE_END = re.compile(r"\r\n?|\n")  # no other: ISO 8859-1 makes a line end of what Windows means as an ellipsis
ESCAPED = re.compile(r"\\(.)")  # a quote or a backslash in a tag


@dataclass(frozen=True)
class PgnResults:
    """The finished games of a PGN file between two different players, and what was left out."""

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


def read_results(path: str | os.PathLike[str]) -> Results:
    """A results.csv, strictly: UTF-8, that header, one pair a line, whole numbers.

    Raises ResultsError naming file, line and what was expected. A file of the header alone is an
    empty table.
    """
    reader = csv.reader(io.StringIO(_read_text(path), newline=""), strict=True)
    rows = []
    try:
        header = next(reader, None)
        if header != RESULTS_HEADER:
            raise ResultsError(f"expected the header {','.join(RESULTS_HEADER)}")
        rows = [_parse_row(fields, reader.line_num, path) for fields in reader if fields]
    except (csv.Error, ResultsError) as error:
        raise ResultsError(f"{path}, line {max(reader.line_num, 1)}: {error}") from None
    return make_results(rows)


def _parse_row(fields: list[str], line: int, path: object) -> Row:
    if len(fields) != len(RESULTS_HEADER):
        raise ResultsError(f"{len(fields)} fields, expected {','.join(RESULTS_HEADER)}")
    for name, text in zip(RESULTS_HEADER[2:], fields[2:], strict=True):
        if not re.fullmatch("[0-9]{1,10}", text):
            raise ResultsError(f"{name} is {text!r:.100}, expected a whole number of at least 0")
    row = Row(fields[0], fields[1], *map(int, fields[2:]))
    check_row(row)
    return row


def _read_text(path: str | os.PathLike[str], otherwise: str = "") -> str:
    """The text of a UTF-8 file, or of one in the encoding `otherwise`. Raises ResultsError."""
    try:
        data = Path(path).read_bytes()
        data = gzip.decompress(data) if Path(path).suffix.lower() == ".gz" else data
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            if not otherwise:
                raise
            return data.decode(otherwise)
    except (OSError, EOFError, zlib.error) as error:
        raise ResultsError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ResultsError(f"{path}, line {line}: byte that is not UTF-8, expected text") from None


def read_pgn_results(path: str | os.PathLike[str]) -> PgnResults:
    """Results by the White, Black and Result tags of every game; the moves are not replayed.

    Games may follow each other without an empty line, and may lack the result after their moves. The file is UTF-8 or
    ISO 8859-1, which PGN's standard names.
    Raises ResultsError naming file and game number.
    """
    rows, players, left_out = [], {}, {UNFINISHED: 0, "self": 0}
    number = 0
    for number, (line, text, movetext) in enumerate(_split_games(_read_text(path, "latin-1"), path), 1):
        try:
            white, black, result = _outcome(text, movetext)
        except ResultsError as error:
            where = f"{path}, game {number} (line {line})"
            raise ResultsError(f"{where}: {error}") from None
        players.update({white: None, black: None})
        if result == UNFINISHED:
            left_out[UNFINISHED] += 1
        elif white == black:
            left_out["self"] += 1
        else:
            rows.append(Row(white, black, *COUNTS[result], color=1))
    return PgnResults(make_results(rows, players), number, left_out[UNFINISHED], left_out["self"])


def _outcome(text: str, movetext: str) -> tuple[str, str, str]:
    """White, Black and Result of the PGN text of one game."""
    headers = chess.pgn.read_headers(io.StringIO(text)) or {}
    for tag in ("White", "Black", "Result"):
        if tag not in headers:
            raise ResultsError(f"no {tag} tag, expected one")
    white, black, result = (ESCAPED.sub(r"\1", headers[tag]).strip() for tag in ("White", "Black", "Result"))
    for name in (white, black):
        check_name(name)
        if name == "?":
            raise ResultsError("a player is '?', expected names in the White and Black tags")
    if result not in COUNTS and result != UNFINISHED:
        raise ResultsError(f"Result is {result!r:.100}, expected one of {', '.join(COUNTS)}, *")
    tokens = movetext.split()
    ends = [i for i, token in enumerate(tokens) if token in COUNTS or token == UNFINISHED]
    if ends and (ends != [len(tokens) - 1] or tokens[-1] != result):
        found = " ".join(tokens[ends[0] :])
        raise ResultsError(f"moves end with {found!r:.100}, expected {result!r} as its Result tag")
    return white, black, result


def _split_games(text: str, path: object) -> Iterator[tuple[int, str, str]]:
    """Line number, text and movetext without comments of each game of a PGN file.

    A game begins at its tags: at a tag line after moves, or one whose tag this game already has. By hand because
    python-chess takes two games without an empty line between them for one, and drops the second without a word.
    """
    start, tags, movetext, lines, comment = 1, set(), [], [], 0
    for number, line in enumerate(LINE_END.split(text), 1):
        moves = ""
        tag = None if comment else re.match(r"\[\s*(\w+)\s", line)
        if tag and (movetext or tag[1] in tags):
            yield start, "\n".join(lines), " ".join(movetext)
            start, tags, movetext, lines = number, set(), [], []
        if tag:
            tags.add(tag[1])
        elif comment or not line.startswith("%"):
            moves, comment = _without_comments(line, comment, number)
        lines.append(line)
        if moves.strip():
            movetext.append(moves)
    if comment:
        raise ResultsError(f"{path}, line {comment}: comment without an end, expected a }}")
    if tags or movetext:
        yield start, "\n".join(lines), " ".join(movetext)


def _without_comments(line: str, comment: int, number: int) -> tuple[str, int]:
    """The line without {comments} and ;comments, and the line where an open comment began, or 0."""
    kept = ""
    while line:
        if comment:
            _, end, line = line.partition("}")
            comment = 0 if end else comment
            continue
        found = re.search("[{;]", line)
        if not found or found[0] == ";":
            return kept + line[: found.start() if found else len(line)], 0
        kept, comment, line = kept + line[: found.start()] + " ", number, line[found.end() :]
    return kept, comment


def read_any_results(path: str | os.PathLike[str]) -> tuple[Results, tuple[str, ...]]:
    """A table from a .csv or .pgn file, or one that gzip compressed (.pgn.gz), and notes on what was left out."""
    kind = Path(Path(path).name.lower().removesuffix(".gz")).suffix
    if kind == ".pgn":
        found = read_pgn_results(path)
        return found.results, found.notes
    if kind == ".csv":
        return read_results(path), ()
    raise ResultsError(f"{path} has suffix {kind!r}, expected .csv or .pgn")


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
