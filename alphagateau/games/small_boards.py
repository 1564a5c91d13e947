"""python-chess's classes of the small boards, made from their entries, and positions on them as arrays.

A class that is made here is added to the variants that `chess.pgn` and `chess.engine` know.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import chess
import chess.variant
import numpy as np

from alphagateau.games.entries import GAMES

CORNERS = (chess.BB_A1, chess.BB_H1, chess.BB_A8, chess.BB_H8)  # of White's two castling rights, then of Black's


class SmallBoard(chess.Board):
    """Chess of `size` squares a side, from a1 on python-chess's board; no double step, no castling."""

    size: int
    promotions: tuple[chess.PieceType, ...]  # from the queen down
    squares: chess.Bitboard  # the board's
    last_rank: chess.Bitboard  # where white pawns promote
    tbw_suffix = tbz_suffix = None
    tbw_magic = tbz_magic = None

    def __init__(self, fen: str | None = "startpos", *, chess960: bool = False) -> None:
        super().__init__(self.starting_fen if fen == "startpos" else fen, chess960=chess960)

    def reset(self) -> None:
        self.set_fen(self.starting_fen)

    def _set_board_fen(self, fen: str) -> None:
        if fen.count("/") != self.size - 1:
            raise ValueError(f"expected {self.size} rows in position part of fen: {fen!r}")
        outside = 8 - self.size
        ends = {str(n): str(n + outside) for n in range(1, self.size + 1)}
        rows = [row[:-1] + ends.get(row[-1:], row[-1:] + str(outside or "")) for row in fen.split("/")]
        super()._set_board_fen("/".join(["8"] * outside + rows))

    def board_fen(self, *, promoted: bool | None = False) -> str:
        outside, fen = 8 - self.size, super().board_fen(promoted=promoted)
        rows = fen.split("/")[outside:]
        return "/".join(row[:-1] + str(int(row[-1]) - outside).strip("0") for row in rows) if outside else fen

    def clean_castling_rights(self) -> chess.Bitboard:
        return chess.BB_EMPTY

    def generate_pseudo_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        for move in super().generate_pseudo_legal_moves(from_mask, to_mask & self.squares):
            is_pawn = self.pawns & chess.BB_SQUARES[move.from_square]
            if is_pawn and abs(move.to_square - move.from_square) == 16:
                continue
            if is_pawn and self.turn and chess.BB_SQUARES[move.to_square] & self.last_rank:
                for piece in self.promotions if move.promotion in (None, chess.QUEEN) else ():  # on 8x8 it has all
                    yield chess.Move(move.from_square, move.to_square, piece)
            elif not move.promotion or move.promotion in self.promotions:
                yield move

    def generate_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        return super().generate_legal_moves(from_mask, to_mask & self.squares)

    def is_pseudo_legal(self, move: chess.Move) -> bool:
        from_mask, to_mask = chess.BB_SQUARES[move.from_square], chess.BB_SQUARES[move.to_square]
        return bool(move) and move in self.generate_pseudo_legal_moves(from_mask, to_mask)

    def status(self) -> chess.Status:
        status = super().status()
        if self.pawns & self.last_rank:
            status |= chess.STATUS_PAWNS_ON_BACKRANK
        if chess.popcount(self.occupied_co[chess.WHITE]) > 2 * self.size:
            status |= chess.STATUS_TOO_MANY_WHITE_PIECES
        if chess.popcount(self.occupied_co[chess.BLACK]) > 2 * self.size:
            status |= chess.STATUS_TOO_MANY_BLACK_PIECES
        return status


@lru_cache
def board_class(name: str) -> type[chess.Board]:
    """python-chess's class of the board of the game called `name`; a class made here is known to PGN from then on.

    Raises ValueError for a small board with castling or double steps, which python-chess knows on 8x8 only.
    """
    entry = GAMES[name]
    if entry.board_class:
        return entry.board_class
    if entry.castlings or entry.double_step_rank is not None:
        raise ValueError(f"game {name!r} has castling or double steps: expected none, or a board_class of its own")
    squares = sum(chess.BB_FILES[: entry.size]) & sum(chess.BB_RANKS[: entry.size])
    facts = {
        "size": entry.size,
        "promotions": (chess.QUEEN, *sorted(entry.under_promotions, reverse=True)),
        "squares": squares,
        "last_rank": chess.BB_RANKS[entry.size - 1] & squares,
        "aliases": list(entry.variant_names),
        "uci_variant": entry.uci_variant,
        "xboard_variant": entry.uci_variant,
        "starting_fen": entry.start_fen,
    }
    made = type(entry.variant_names[0].title().replace(" ", "") + "Board", (SmallBoard,), facts)
    chess.variant.VARIANTS.append(made)
    return made


def square_number(size: int, is_white: bool, square: chess.Square) -> int:
    """python-chess's square as the player to move numbers it."""
    file, rank = chess.square_file(square), chess.square_rank(square)
    return file * size + (rank if is_white else size - 1 - rank)


def castling_rights(board: chess.Board) -> np.ndarray:
    """[4], as in State, of White's rights and then Black's."""
    rights = board.clean_castling_rights()
    if not board.chess960:
        return np.array([bool(rights & corner) for corner in CORNERS])
    found = np.zeros(4, np.int8)
    for rook in chess.scan_forward(rights):
        is_white = chess.square_rank(rook) == 0
        is_kings = rook > (board.king(is_white) or 0)
        found[2 * (not is_white) + is_kings] = 1 + chess.square_file(rook)
    return found


def enter_arguments(size: int, board: chess.Board) -> tuple[Any, ...]:
    """The arguments of `Game.enter` for the position on a board."""
    codes = np.zeros(size * size, np.int8)
    for square, piece in board.piece_map().items():
        sign = 1 if piece.color == board.turn else -1
        codes[square_number(size, board.turn, square)] = sign * piece.piece_type
    castling = castling_rights(board)
    return (
        codes,
        np.int8(not board.turn),
        castling if board.turn else np.roll(castling, 2),
        np.int8(-1 if board.ep_square is None else square_number(size, board.turn, board.ep_square)),
        np.int16(board.halfmove_clock),
        np.int16(board.ply()),
    )
