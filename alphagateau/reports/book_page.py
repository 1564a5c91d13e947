"""Turns games into the page of their book (templates/book.html): the most played line, and the tree of first moves.

A move is known by the line that leads to it: positions that two lines reach are not merged.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import chess

from alphagateau.config.records import counted
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.pgn.text import WHITE_SCORES
from alphagateau.games.small_boards import board_class
from alphagateau.reports.drawing.game_viewer import GameView, view_game, viewer_data
from alphagateau.reports.drawing.pages import render

MAX_PLIES = 20  # of the tree; the most played line goes on to its end


class Branch(NamedTuple):
    """A move in the tree, the most played first among its siblings."""

    text: str
    branches: Sequence["Branch"]


def book_page(name: str, records: Sequence[GameRecord], player: str | None = None, least: int = 0) -> str:
    """The HTML of one or more games; those that begin as most of them do are shown.

    Args:
        player: only games with this player, in two parts: as White, as Black.
        least: games of a move in the tree; 0: a hundredth of the part's, 2 at least.

    Raises:
        ValueError: the player is in none of these games.
    """
    sides = ("White", "Black")
    own = [r for r in records if player is None or player in map(r.headers.get, sides)]
    if not own:
        games = counted(len(records), "game")
        raise ValueError(f"player {str(player)[:60]!r} is in none of {games}: expected a name in them")
    (game, start), num_games = Counter((r.game, r.start_fen) for r in own).most_common(1)[0]
    left_out, records = len(own) - num_games, [r for r in own if (r.game, r.start_fen) == (game, start)]
    others = f"; {counted(left_out, 'game')} that begin otherwise are left out" if left_out else ""
    parts = {"all games": records}
    if player is not None:
        parts = {f"{player} as {side}": [r for r in records if r.headers.get(side) == player] for side in sides}
    parts, board = {title: found for title, found in parts.items() if found}, board_class(game)(start)
    trees = [(title, _branches(board, found, 0, least or max(2, len(found) // 100))) for title, found in parts.items()]
    return render(
        "book.html",
        title=f"Book of {name}",
        subtitle=f"{counted(num_games, 'game')} of {game} from {start}{others}",
        trees=trees,
        max_plies=MAX_PLIES,
        games=viewer_data([_view(board, title, found) for title, found in parts.items()]),
    )


def most_played_line(records: Sequence[GameRecord]) -> tuple[list[str], list[GameRecord], int]:
    """(UCI moves, the games that end as they do, the moves that two games or more share) of games from one position."""
    line, num_shared = [], 0
    while moves := next_moves(records, len(line)):
        uci, records = moves[0]
        line.append(uci)
        num_shared += len(records) > 1
    return line, list(records), num_shared


def next_moves(records: Sequence[GameRecord], ply: int) -> list[tuple[str, list[GameRecord]]]:
    """The games by their move after `ply` plies, most first; of equally many, those of the first game."""
    found: defaultdict[str, list[GameRecord]] = defaultdict(list)
    for record in records:
        if len(record.moves) > ply:
            found[record.moves[ply]].append(record)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def _branches(board: chess.Board, records: Sequence[GameRecord], ply: int, least: int) -> list[Branch]:
    """The moves of at least `least` of the games that reached `board` after `ply` plies."""
    branches = []
    for uci, found in next_moves(records, ply) if ply < MAX_PLIES else ():
        if len(found) >= least:
            move, after = chess.Move.from_uci(uci), board.copy(stack=False)
            after.push(move)
            number = f"{board.fullmove_number}{'.' if board.turn else '...'} {board.san(move)}"
            games, share = counted(len(found), "game"), len(found) / len(records)
            text = f"{number}: {games}, {share:.0%}{_score(found, board.turn)}"
            branches.append(Branch(text, _branches(after, found, ply + 1, least)))
    return branches


def _score(records: Sequence[GameRecord], is_white: bool) -> str:
    """The points a finished game of a side, as the end of a sentence; "" without one."""
    points = [WHITE_SCORES[record.result] for record in records if record.result in WHITE_SCORES]
    if not points:
        return ""
    score = sum(points) / len(points)
    return f", White scored {score:.3f}" if is_white else f", Black scored {1 - score:.3f}"


def _view(board: chess.Board, title: str, records: Sequence[GameRecord]) -> GameView:
    line, last, num_shared = most_played_line(records)
    results = {record.result for record in last}
    facts = {"Games": str(len(records)), "Plies that two games or more share": str(num_shared)}
    return view_game(board, line, results.pop() if len(results) == 1 else "*", f"{title}: the most played line", facts)
