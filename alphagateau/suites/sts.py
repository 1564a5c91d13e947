"""Reads positions whose moves have points, such as those of the Strategic Test Suite, and scores a player's moves.

Operation c9 has the moves in UCI, or c7 in SAN, and c8 their points; where they are missing c0 has both, in SAN:
"f5=10, Be5+=2".
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import chess

from alphagateau.games.notation import board_from_fen, board_outcome
from alphagateau.games.pgn.epd import read_position, text_lines
from alphagateau.games.pgn.san import read_move
from alphagateau.games.pgn.text_files import BOUNDS, Bounds, TextFileError, read_lines
from alphagateau.games.rules import Game
from alphagateau.matches.players import Player
from alphagateau.suites.answers import find_answers, positions_of_fens


class ScoredPosition(NamedTuple):
    """A position and the points of some of its moves; the others have none."""

    fen: str
    name: str  # operation id
    theme: str  # of the name, without its number; of the Strategic Test Suite its number and the first such name
    points: dict[str, int]  # by UCI move
    num_moves: int  # legal ones


def read_epd(game: Game, path: Path, bounds: Bounds = BOUNDS) -> list[ScoredPosition]:
    """The positions of a file, in its order. A move that is named twice has its first points.

    Raises TextFileError, naming file and line.
    """
    found, names = [], {}
    for number, line in text_lines(read_lines(path, bounds)):
        try:
            found.append(_read(game, line, names))
        except ValueError as error:
            raise TextFileError(f"{path} line {number}: {error}") from None
    if not found:
        raise TextFileError(f"{path} holds no positions, expected EPD")
    return found


def first_of_each_theme(positions: Sequence[ScoredPosition], number: int) -> list[ScoredPosition]:
    """The first `number` positions of each theme (0: all), in their order."""
    counts, found = Counter(), []
    for position in positions:
        counts[position.theme] += 1
        found += [position] if not number or counts[position.theme] <= number else []
    return found


def _read(game: Game, line: str, names: dict[str, str]) -> ScoredPosition:
    fen, operations = read_position(line)
    board = board_from_fen(game, fen)
    if (why := board_outcome(game, board)[1]) != "unterminated":
        raise ValueError(f"the game is over by {why}: {board.fen()}")
    name, pairs = " ".join(operations.get("id", [])), _pairs({key: " ".join(x) for key, x in operations.items()})
    points: dict[str, int] = {}
    for move, text in pairs:
        points.setdefault(_move(board, move), int(text))
    if not any(points.values()):
        raise ValueError("none of its moves has a point")
    return ScoredPosition(fen, name, _theme(name, names), points, board.legal_moves.count())


def _pairs(operations: dict[str, str]) -> list[tuple[str, str]]:
    """(move, points) of each move. Raises ValueError."""
    listed = operations.get("c9", operations.get("c7"))
    if listed is not None and "c8" in operations:
        moves, texts = listed.split(), operations["c8"].split()
    elif "c0" in operations:
        parts = [part.rpartition("=") for part in operations["c0"].split(",") if part.strip()]
        moves, texts = [move.strip() for move, _, _ in parts], [text.strip() for _, _, text in parts]
    else:
        raise ValueError("its moves have no points, expected operations c8 and c9 or c7, or c0")
    if len(moves) != len(texts) or not all(re.fullmatch("[0-9]{1,6}", text) for text in texts):
        raise ValueError(f"{len(moves)} moves have the points {' '.join(texts)[:60]!r}, expected a number for each")
    return list(zip(moves, texts, strict=True))


def _move(board: chess.Board, text: str) -> str:
    try:
        return read_move(board, text).uci()
    except ValueError:
        raise ValueError(f"{text[:20]!r} is no legal move of {board.fen()}") from None


def _theme(name: str, names: dict[str, str]) -> str:
    """Of an id; `names` are those of suites by number so far, as one of them is spelled in two ways."""
    theme = re.sub(r"\.?\d+$", "", name).strip() or "all"
    suite = re.match(r"STS\(v(\d+)\.\d+\) *(.*)", theme)
    if not suite:
        return theme
    return f"{int(suite[1]):2} {names.setdefault(suite[1], suite[2])}"


class Answer(NamedTuple):
    """A player's move in a position."""

    move: str  # UCI
    points: int
    best: int  # the most there were
    num_nodes: float  # positions visited; NaN: not counted


class ThemeScore(NamedTuple):
    """What a player made of some of the positions."""

    theme: str
    positions: int
    score: int
    total: int
    best_moves: int  # positions in which it played a move with the most points
    nodes: float  # a position, on average
    random: float  # what the random mover is expected to score

    @property
    def standard_error(self) -> float:
        """Of the score, if each position counted as one draw of a share of its points."""
        share = self.score / self.total
        return self.total * math.sqrt(max(share * (1 - share), 0.0) / self.positions)


def answer(
    game: Game, player: Player, positions: Sequence[ScoredPosition], seed: int, report: Callable[[int], None]
) -> list[Answer]:
    """An Answer for each position; `report` takes the number of them that are done. Raises PlayerError."""
    found: list[Answer] = []
    for part in find_answers(game, player, positions_of_fens(game, [position.fen for position in positions], seed)):
        for row, move, nodes in zip(part.rows, part.moves, part.nodes, strict=True):
            points = positions[row].points
            found.append(Answer(move, points.get(move, 0), max(points.values()), nodes))
        report(len(found))
    return found


def scores(positions: Sequence[ScoredPosition], answers: Sequence[Answer]) -> list[ThemeScore]:
    """By theme, in the themes' order, and at last of all together, called "total"."""
    themes = sorted({position.theme for position in positions})
    pairs = list(zip(positions, answers, strict=True))
    found = [_score(theme, [pair for pair in pairs if pair[0].theme == theme]) for theme in themes]
    return [*found, _score("total", pairs)]


def _score(theme: str, pairs: Iterable[tuple[ScoredPosition, Answer]]) -> ThemeScore:
    positions, answers = zip(*pairs, strict=True)
    return ThemeScore(
        theme=theme.strip(),
        positions=len(positions),
        score=sum(one.points for one in answers),
        total=sum(one.best for one in answers),
        best_moves=sum(one.points == one.best for one in answers),
        nodes=sum(one.num_nodes for one in answers) / len(answers),
        random=sum(sum(one.points.values()) / one.num_moves for one in positions),
    )
