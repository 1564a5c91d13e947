"""A file of EPD in, positions whose moves have points out, such as those of the Strategic Test Suite.

Operation c9 has the moves in UCI and c8 their points; where they are missing c0 has both, in SAN: "f5=10, Be5+=2".
"""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from alphagateau.games.notation import board_from_fen
from alphagateau.games.rules import Game


class EpdError(ValueError):
    """A file that cannot be read as such; one sentence naming file and line."""


class ScoredPosition(NamedTuple):
    """A position and the points of some of its moves; the others have none."""

    fen: str
    name: str  # operation id
    theme: str  # of the name, without its number; of the Strategic Test Suite its number and the first such name
    points: dict[str, int]  # by UCI move
    num_moves: int  # legal ones


def read_epd(game: Game, path: Path) -> list[ScoredPosition]:
    """The positions of a file, in its order. A move that is named twice has its first points. Raises EpdError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EpdError(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from None
    found, names = [], {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                found.append(_read(game, line, names))
            except ValueError as error:
                raise EpdError(f"{path} line {number}: {error}") from None
    if not found:
        raise EpdError(f"{path} holds no positions, expected EPD")
    return found


def first_of_each_theme(positions: Sequence[ScoredPosition], number: int) -> list[ScoredPosition]:
    """The first `number` positions of each theme (0: all), in their order."""
    counts, found = Counter(), []
    for position in positions:
        counts[position.theme] += 1
        found += [position] if not number or counts[position.theme] <= number else []
    return found


def _read(game: Game, line: str, names: dict[str, str]) -> ScoredPosition:
    fields = line.split(maxsplit=4)
    if len(fields) < 5:
        raise ValueError(f"it has {len(fields)} fields, expected a board, who moves, castling, en passant, operations")
    fen, operations = " ".join([*fields[:4], "0", "1"]), _operations(fields[4])
    board, name = board_from_fen(game, fen), operations.get("id", "")
    legal = {move.uci() for move in board.legal_moves}
    if "c9" in operations and "c8" in operations:
        moves, texts = operations["c9"].split(), operations["c8"].split()
    elif "c0" in operations:
        pairs = [pair.partition("=")[::2] for pair in re.sub(r"=(?=[QRBN])", "", operations["c0"]).split(",")]
        moves, texts = [board.parse_san(san.strip()).uci() for san, _ in pairs], [text.strip() for _, text in pairs]
    else:
        raise ValueError("its moves have no points, expected operations c8 and c9, or c0")
    if len(moves) != len(texts) or not all(text.isdecimal() for text in texts):
        raise ValueError(f"{len(moves)} moves have the points {' '.join(texts)[:60]!r}, expected a number for each")
    if not any(map(int, texts)):
        raise ValueError("none of its moves has a point")
    if wrong := [move for move in moves if move not in legal]:
        raise ValueError(f"{wrong[0]!r} is no legal move of {fen}")
    points: dict[str, int] = {}
    for move, text in zip(moves, texts, strict=True):
        points.setdefault(move, int(text))
    return ScoredPosition(fen, name, _theme(name, names), points, len(legal))


def _operations(text: str) -> dict[str, str]:
    """Operands by opcode, without quotes."""
    found = {}
    for part in re.findall(r'(?:[^;"]|"[^"]*")+', text):
        words = shlex.split(part)
        if words:
            found[words[0]] = " ".join(words[1:])
    return found


def _theme(name: str, names: dict[str, str]) -> str:
    """Of an id; `names` are those of suites by number so far, as one of them is spelled in two ways."""
    theme = re.sub(r"\.?\d+$", "", name).strip() or "all"
    suite = re.match(r"STS\(v(\d+)\.\d+\) *(.*)", theme)
    if not suite:
        return theme
    return f"{int(suite[1]):2} {names.setdefault(suite[1], suite[2])}"
