"""Turns games into what templates/viewer.html and page.js step through, for any square board."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import chess

from alphagateau.games.small_boards import board_class

if TYPE_CHECKING:  # imported with JAX, which pages without games do not need
    from alphagateau.games.pgn.pgn import GameRecord


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
    board: chess.Board, moves: Iterable[str], result: str, title: str, headers: Mapping[str, str] = {}
) -> GameView:
    """The game played by UCI `moves` from `board`, of any variant; raises ValueError for an illegal move."""
    board, fens, sans = board.copy(), [board.fen()], []
    for uci in moves:
        sans.append(board.san_and_push(board.parse_uci(uci)))
        fens.append(board.fen())
    return GameView(title, fens, sans, result, headers)


def view_record(record: "GameRecord", number: int) -> GameView:
    """A recorded game, its title with its number and players."""
    white, black = (record.headers.get(side, "?") for side in ("White", "Black"))
    board = board_class(record.game)(record.start_fen)
    title = f"{number}. {white} - {black}  {record.result}"
    return view_game(board, record.moves, record.result, title, dict(record.headers))


def viewer_data(games: Sequence[GameView]) -> list[dict[str, Any]]:
    """The games as page.js reads them; on their page #game=0&ply=3 opens a position."""
    return [{**game._asdict(), "headers": dict(game.headers)} for game in games]
