"""Turns games into a board that steps through them, for any square board (page.js moves the pieces)."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import chess

from alphagateau.reports.parts import UNSHOWABLE, Html

MAX_SIZE = 26  # files a to z

# Our own drawings, 100 x 100 with the foot at 88. class="line": drawn on the body in the contrasting color.
FOOT = '<path d="M24 88v-6q0-6 7-6h38q7 0 7 6v6z"/>'
PIECES = {
    "p": '<path d="M37 76q9-10 8-27h10q-1 17 8 27z"/><path d="M36 50q0-5 5-5h18q5 0 5 5z"/>'
    '<circle cx="50" cy="33" r="13"/>',
    "n": '<path d="M33 76c-2-15 14-18 15-29-7 6-13 5-19 11-5 4-12-1-9-8 4-8 12-12 15-22l3-14 9 9'
    'c19 1 29 20 26 53z"/><circle class="dot" cx="41" cy="34" r="2.6"/>'
    '<path class="line" d="M55 33c8 7 11 19 10 35"/>',
    "b": '<path d="M36 76q7-7 7-16h14q0 9 7 16z"/><path d="M38 60c-14-12-3-29 12-39 15 10 26 27 12 39z"/>'
    '<circle cx="50" cy="16" r="5"/><path class="line" d="M50 34v17M43 41h14"/>',
    "r": '<path d="M35 76l3-36h24l3 36z"/><path d="M28 18h11v8h6v-8h10v8h6v-8h11v17l-8 7H36l-8-7z"/>'
    '<path class="line" d="M39 50h22"/>',
    "q": '<path d="M34 76l-2-12-13-31 14 13 3-22 14 20 14-20 3 22 14-13-13 31-2 12z"/>'
    '<circle cx="19" cy="30" r="5"/><circle cx="36" cy="20" r="5"/>'
    '<circle cx="64" cy="20" r="5"/><circle cx="81" cy="30" r="5"/>'
    '<path class="line" d="M34 65h32"/>',
    "k": '<path d="M33 76l-2-10c-17-10-15-34 2-34 10 0 14 6 17 12 3-6 7-12 17-12 17 0 19 24 2 34l-2 10z"/>'
    '<path d="M46 32v-9h-8v-7h8V8h8v8h8v7h-8v9l-4 8z"/><path class="line" d="M34 66h32"/>',
}


class GameView(NamedTuple):
    """A game to step through: FENs from the start on, each move (SAN or UCI) leading to the next FEN."""

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


def game_viewer(games: Sequence[GameView]) -> Html:
    """A board, buttons, moves and a choice of games; #game=0&ply=3 opens a position. Nothing if no games.

    Raises ValueError for a game whose moves and FENs do not match in number, or a board that is not square.
    """
    for i, game in enumerate(games):
        num_moves, num_fens = len(game.moves), len(game.fens)
        if num_fens != num_moves + 1:
            raise ValueError(f"game {i} has {num_moves} moves and {num_fens} FENs: expected one FEN more")
        for fen in game.fens:
            _check_board(fen)
    if not games:
        return Html("")
    symbols = "".join(
        f'<symbol id="piece-{letter}" viewBox="0 0 100 100">{shape}{FOOT}</symbol>' for letter, shape in PIECES.items()
    )
    buttons = "".join(
        f'<button data-go="{where}" title="{said}" aria-label="{said}">{sign}</button>'
        for where, sign, said in (
            ("first", "«", "First position (Home)"),
            ("back", "‹", "One move back (left arrow)"),
            ("on", "›", "One move on (right arrow)"),
            ("last", "»", "Last position (End)"),
            ("flip", "Flip", "Turn the board (f)"),
        )
    )
    return Html(
        '<div class="viewer" tabindex="-1">'
        f'<svg class="symbols" aria-hidden="true">{symbols}</svg>'
        f'<script type="application/json">{_data(games)}</script>'
        "<noscript><p>Stepping through the games needs JavaScript.</p></noscript>"
        '<label class="choice">Game <select></select></label>'
        '<div class="stage"><div><svg class="board" role="img"></svg>'
        f'<div class="buttons">{buttons}</div><p class="place"><output aria-live="polite"></output> '
        '<a href="#">link</a></p></div><div><dl class="facts"></dl><div class="moves"></div>'
        '<p class="fen"><code></code></p></div></div></div>'
    )


def _check_board(fen: str) -> None:
    rows = fen.split(" ")[0].split("/")
    signs = [re.findall("[0-9]+|.", row) for row in rows]
    widths = [sum(int(sign) if sign[0] in "0123456789" else 1 for sign in row) for row in signs]
    if len(rows) > MAX_SIZE or widths != [len(rows)] * len(rows):
        raise ValueError(f"FEN {fen[:100]!r}: expected a square board of at most {MAX_SIZE} rows")


def _data(games: Sequence[GameView]) -> str:
    """JSON that no text in it can break out of a script element with."""
    plain = [{**game._asdict(), "headers": dict(game.headers)} for game in games]
    data = UNSHOWABLE.sub("\ufffd", json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    for sign in "<>&":
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return data
