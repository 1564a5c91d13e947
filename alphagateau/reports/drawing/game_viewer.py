"""Turns games into what templates/viewer.html and page.js step through, for any square board."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import chess

MAX_SIZE = 26  # files a to z


class GameView(NamedTuple):
    """A game to step through: FENs from the start on, each move (SAN or UCI) leading to the next FEN.

    title: with the game's number, as its choice among others has it.
    """

    title: str
    fens: Sequence[str]
    moves: Sequence[str]
    result: str
    headers: Mapping[str, str] = {}


def view_game(
    board: chess.Board,
    moves: Iterable[str],
    result: str,
    title: str,
    headers: Mapping[str, str] | None = None,
) -> GameView:
    """The game played by UCI `moves` from `board`, of any variant; raises ValueError for an illegal move."""
    board, fens, sans = board.copy(), [board.fen()], []
    for uci in moves:
        move = board.parse_uci(uci)
        sans.append(board.san(move))
        board.push(move)
        fens.append(board.fen())
    return GameView(title, fens, sans, result, headers or {})


def viewer_data(games: Sequence[GameView]) -> list[dict[str, Any]]:
    """The games as page.js reads them; on their page #game=0&ply=3 opens a position.

    Raises ValueError for a game whose moves and FENs do not match in number, or a board that is not square.
    """
    for i, game in enumerate(games):
        num_moves, num_fens = len(game.moves), len(game.fens)
        if num_fens != num_moves + 1:
            raise ValueError(f"game {i} has {num_moves} moves and {num_fens} FENs: expected one FEN more")
        for fen in game.fens:
            _check_board(fen)
    return [{**game._asdict(), "headers": dict(game.headers)} for game in games]


def _check_board(fen: str) -> None:
    rows = fen.split(" ")[0].split("/")
    signs = [re.findall("[0-9]+|.", row) for row in rows]
    widths = [sum(int(sign) if sign[0] in "0123456789" else 1 for sign in row) for row in signs]
    if len(rows) > MAX_SIZE or widths != [len(rows)] * len(rows):
        raise ValueError(f"FEN {fen[:100]!r}: expected a square board of at most {MAX_SIZE} rows")
