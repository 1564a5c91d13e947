"""Reads a CSV file of puzzles: a position each, the moves to be found in turn, and the replies.

Lichess's columns FEN, Moves, Rating, PuzzleId and Themes, which files without a header have in its order, or
ChessBench's, whose PGN beside the FEN gives the position its past. The first of the moves is the opponent's.
"""

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import chess

from alphagateau.games.notation import board_from_fen, board_outcome, normalize_fen
from alphagateau.games.pgn.epd import is_position
from alphagateau.games.pgn.pgn import read_pgn
from alphagateau.games.pgn.text_files import BOUNDS, Bounds, TextFileError, read_lines
from alphagateau.games.rules import Game

LICHESS = (
    *("PuzzleId", "FEN", "Moves", "Rating", "RatingDeviation"),
    *("Popularity", "NbPlays", "Themes", "GameUrl", "OpeningTags"),
)
MIN_LICHESS = 8  # columns of its older files
COLUMNS = {name.lower(): name for name in (*LICHESS, "PGN")}


class Puzzle(NamedTuple):
    """A position and its line. `moves` are of the game before, the opponent's move, and the line."""

    name: str
    start_fen: str
    moves: tuple[str, ...]  # UCI, from the FEN to the end of the line
    first: int  # which of the moves is the first to be found; then every other
    rating: int
    themes: tuple[str, ...] = ()


def read_puzzles(game: Game, path: str, most: int = 0, bounds: Bounds = BOUNDS) -> tuple[list[Puzzle], list[str]]:
    """The first `most` puzzles (0: all), and a sentence on each that our rules end before its line does.

    Raises TextFileError, naming file and line.
    """
    found, left_out = [], []
    for line, row in itertools.islice(_rows(path, bounds), most or None):
        try:
            puzzle, reason = _read(game, row, line)
        except ValueError as error:
            raise TextFileError(f"{path}, line {line}: {error}") from None
        if reason:
            left_out.append(f"{path}, line {line}: {reason}")
        else:
            found.append(puzzle)
    if not found:
        raise TextFileError(f"{path} holds no puzzles: expected a CSV file with the columns FEN, Moves and Rating")
    return found, left_out


def _rows(path: str, bounds: Bounds) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        reader = csv.reader(read_lines(path, bounds), strict=True)
        rows = ((reader.line_num, cells) for cells in reader if any(map(str.strip, cells)))
        line, first = next(rows, (1, []))
        header = _header(path, line, first)
        if header is LICHESS:
            rows = itertools.chain([(line, first)], rows)
        for line, cells in rows:
            if len(cells) != len(header) and not (header is LICHESS and MIN_LICHESS <= len(cells) < len(header)):
                raise TextFileError(f"{path}, line {line}: {len(cells)} cells, expected {len(header)}")
            yield line, dict(zip(header, cells, strict=False))
    except csv.Error as error:
        raise TextFileError(f"{path}: {error}") from None


def _header(path: str, line: int, cells: Sequence[str]) -> Sequence[str]:
    """The columns that a first row names, or those of Lichess if it is a puzzle. Raises TextFileError."""
    if len(cells) >= MIN_LICHESS and is_position(cells[1]):
        return LICHESS
    header = [COLUMNS.get(cell.strip().lower(), cell) for cell in cells]
    if {"Moves", "Rating"} - set(header) or not {"FEN", "PGN"} & set(header):
        raise TextFileError(
            f"{path}, line {line}: expected the columns FEN (or PGN), Moves and Rating, got {header[:12]}"
        )
    return header


def _read(game: Game, row: Mapping[str, str], line: int) -> tuple[Puzzle, str]:
    """A row's puzzle, and why it cannot be played by our rules, if so. Raises ValueError."""
    if not row["Rating"].strip().isdecimal():
        raise ValueError(f"Rating is {row['Rating'][:20]!r}, expected a whole number")
    start_fen, before = _past(row["PGN"]) if "PGN" in row else (normalize_fen(row["FEN"]), [])
    moves = row["Moves"].lower().split()
    if len(moves) < 2 or len(moves) % 2:
        raise ValueError(f"{len(moves)} moves, expected the opponent's, and then each found one's reply but the last's")
    reason = _early_end(game, start_fen, [*before, *moves], len(before))
    name = row.get("PuzzleId", "") or f"line {line}"
    themes, rating = tuple(row.get("Themes", "").split()), int(row["Rating"])
    return Puzzle(name, start_fen, (*before, *moves), len(before) + 1, rating, themes), reason


def _past(text: str) -> tuple[str, list[str]]:
    try:
        records = read_pgn(text)
    except ValueError as error:
        raise ValueError(f"PGN is no game: {error}") from None
    if len(records) != 1:
        raise ValueError(f"PGN holds {len(records)} games, expected one")
    return records[0].start_fen, list(records[0].moves)


def _early_end(game: Game, start_fen: str, moves: Sequence[str], first: int) -> str:
    """How our rules end a line from a FEN early, "" if they do not. Raises ValueError for an illegal move."""
    board = board_from_fen(game, start_fen)
    for number, uci in enumerate(moves):
        if uci not in map(chess.Move.uci, board.legal_moves):
            raise ValueError(
                f"move {number - first + 1} of Moves is {uci[:20]!r}, expected a legal one of {board.fen()}"
            )
        reason = board_outcome(game, board)[1]
        if reason != "unterminated":
            return f"the game is over by {reason} before the end of the line"
        board.push(chess.Move.from_uci(uci))
    return ""
