"""A CSV file of puzzles in, the puzzles out: a position, the moves to be found in turn, and the replies.

Lichess's columns FEN, Moves, Rating, PuzzleId and Themes, or ChessBench's PGN, Moves, Rating, whose games give the
positions a past. The first of the moves is the opponent's.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import chess
import chess.pgn

from alphagateau.games.notation import board_edges, board_from_fen, ending
from alphagateau.games.pgn_files import PgnFileError, read_lines
from alphagateau.games.rules import Game

MAX_FIELD = 10**6  # letters


class PuzzleError(ValueError):
    """A file that holds no puzzles; one sentence naming file and line."""


class Puzzle(NamedTuple):
    """A position and its line. `moves` and `edges` are of the game before, the opponent's move, and the line."""

    name: str
    start_fen: str
    moves: tuple[str, ...]  # UCI, from the FEN to the end of the line
    edges: tuple[int, ...]
    first: int  # which of the moves is the first to be found; then every other
    rating: int
    themes: tuple[str, ...] = ()


def read_puzzles(game: Game, path: str, most: int = 0) -> tuple[list[Puzzle], list[str]]:
    """The first `most` puzzles (0: all), and a sentence on each that our rules end before its line does.

    Raises PuzzleError.
    """
    found, left_out = [], []
    for line, row in itertools.islice(_rows(path), most or None):
        try:
            puzzle, reason = _read(game, row, line)
        except ValueError as error:
            raise PuzzleError(f"{path}, line {line}: {error}") from None
        if reason:
            left_out.append(f"{path}, line {line}: {reason}")
        else:
            found.append(puzzle)
    if not found:
        raise PuzzleError(f"{path} holds no puzzles: expected a CSV file with the columns FEN, Moves and Rating")
    return found, left_out


def _rows(path: str) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of each row. Raises PuzzleError."""
    csv.field_size_limit(MAX_FIELD)
    try:
        reader = csv.reader(read_lines(path), strict=True)
        header = next(reader, [])
        lacking = [name for name in ("Moves", "Rating") if name not in header]
        if lacking or not {"FEN", "PGN"} & set(header):
            raise PuzzleError(f"{path}, line 1: expected the columns FEN (or PGN), Moves and Rating, got {header[:12]}")
        for cells in reader:
            if len(cells) != len(header):
                raise PuzzleError(f"{path}, line {reader.line_num}: {len(cells)} cells, expected {len(header)}")
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except (PgnFileError, csv.Error) as error:
        raise PuzzleError(f"{error}" if isinstance(error, PgnFileError) else f"{path}: {error}") from None


def _read(game: Game, row: Mapping[str, str], line: int) -> tuple[Puzzle, str]:
    """A row's puzzle, and why it cannot be played by our rules, if so. Raises ValueError."""
    if not row["Rating"].strip().isdecimal():
        raise ValueError(f"Rating is {row['Rating'][:20]!r}, expected a whole number")
    start_fen, before = _past(row["PGN"]) if "PGN" in row and "FEN" not in row else (row["FEN"], [])
    moves = row["Moves"].split()
    if len(moves) < 2 or len(moves) % 2:
        raise ValueError(f"{len(moves)} moves, expected the opponent's, and then each found one's reply but the last's")
    edges, reason = _edges(game, start_fen, [*before, *moves], len(before))
    name = row.get("PuzzleId", "") or f"line {line}"
    themes, rating = tuple(row.get("Themes", "").split()), int(row["Rating"])
    return Puzzle(name, start_fen, (*before, *moves), tuple(edges), len(before) + 1, rating, themes), reason


def _past(text: str) -> tuple[str, list[str]]:
    """(FEN of the start, moves) of a game."""
    read = chess.pgn.read_game(io.StringIO(text))
    if read is None or read.errors:
        raise ValueError(f"PGN is no game: {read.errors[0] if read else 'it is empty'}")
    return read.board().fen(), [move.uci() for move in read.mainline_moves()]


def _edges(game: Game, start_fen: str, moves: Sequence[str], first: int) -> tuple[list[int], str]:
    """The edges of moves from a FEN, and how our rules end the line early, if they do. Raises ValueError."""
    board, edges = board_from_fen(game, start_fen), []
    for number, uci in enumerate(moves):
        of_moves = {move: edge for edge, move in board_edges(game, board).items()}
        if uci not in of_moves:
            raise ValueError(
                f"move {number - first + 1} of Moves is {uci[:20]!r}, expected a legal one of {board.fen()}"
            )
        reason = ending(game, board, 3 if board.is_repetition(3) else 1)[1]
        if reason != "unterminated":
            return [], f"the game is over by {reason} before the end of the line"
        edges.append(of_moves[uci])
        board.push(chess.Move.from_uci(uci))
    return edges, ""
