"""The games by name: an entry each, with all that is special to its board."""

from functools import lru_cache

import pgx.gardner_chess as pgx_gardner
from pgx._src.games import chess as pgx_chess

from alphagateau.games.rules import Game, build_edges, chess_move, gardner_move, make_game


@lru_cache
def get_game(name: str) -> Game:
    """The Game called `name`: "chess" (8x8) or "gardner_chess" (5x5).

    The most legal moves a chess position can have is 218 (a known result). The 5x5 bound counts the most a side
    can own, 6 queens (16 moves from the centre, at most 14 elsewhere), rook, bishop, knight, king 8 each.
    """
    if name == "chess":
        return make_game(
            name,
            size=8,
            max_legal_moves=218,
            max_plies=512,
            start_fen="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            start_castling=True,
            num_labels=64 * 73,
            edges=build_edges(pgx_chess.Action._from_label, 64 * 73),
            move=chess_move,
        )
    if name == "gardner_chess":
        return make_game(
            name,
            size=5,
            max_legal_moves=118,
            max_plies=256,
            start_fen="rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1",
            start_castling=False,
            num_labels=25 * 49,
            edges=build_edges(pgx_gardner.Action._from_label, 25 * 49),
            move=gardner_move,
        )
    raise ValueError(f"unknown game {name!r}: expected 'chess' or 'gardner_chess'")
