"""Turns games into what templates/viewer.html and page.js step through, for any square board."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import chess


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
    """The games as page.js reads them; on their page #game=0&ply=3 opens a position."""
    return [{**game._asdict(), "headers": dict(game.headers)} for game in games]
