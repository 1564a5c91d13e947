"""Teaches python-chess Gardner's 5x5 game, so that its SAN, PGN and engine code serve both boards.

Importing this module adds `GardnerBoard` to the variants that `chess.pgn` and `chess.engine` know.
A program without it still reads the tags and results of our 5x5 PGN: python-chess then skips the
moves and lists "unsupported variant" in `game.errors`.
"""

from collections.abc import Iterator

import chess
import chess.variant

CORNER = sum(chess.BB_FILES[:5]) & sum(chess.BB_RANKS[:5])  # a1-e5
LAST = chess.BB_RANK_5 & CORNER  # where white pawns promote


class GardnerBoard(chess.Board):
    """5x5 chess on the squares a1 to e5 of python-chess's board; no double step, no castling."""

    aliases = ["Gardner", "Gardner chess", "Gardner minichess"]  # noqa: RUF012
    uci_variant = "gardner"
    xboard_variant = "gardner"
    starting_fen = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
    tbw_suffix = tbz_suffix = None
    tbw_magic = tbz_magic = None

    def __init__(self, fen: str | None = starting_fen, *, chess960: bool = False) -> None:
        super().__init__(fen, chess960=chess960)

    def reset(self) -> None:
        self.set_fen(self.starting_fen)

    def _set_board_fen(self, fen: str) -> None:
        if fen.count("/") != 4:
            raise ValueError(f"expected 5 rows in position part of fen: {fen!r}")
        ends = {str(n): str(n + 3) for n in range(1, 6)}
        rows = [row[:-1] + ends.get(row[-1:], row[-1:] + "3") for row in fen.split("/")]
        super()._set_board_fen("/".join(["8", "8", "8", *rows]))

    def board_fen(self, *, promoted: bool | None = False) -> str:
        rows = super().board_fen(promoted=promoted).split("/")[3:]
        return "/".join(row[:-1] + str(int(row[-1]) - 3).strip("0") for row in rows)

    def clean_castling_rights(self) -> chess.Bitboard:
        return chess.BB_EMPTY

    def generate_pseudo_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        for move in super().generate_pseudo_legal_moves(from_mask, to_mask & CORNER):
            is_pawn = self.pawns & chess.BB_SQUARES[move.from_square]
            if is_pawn and self.turn and chess.BB_SQUARES[move.to_square] & LAST:
                for piece in (chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT):
                    yield chess.Move(move.from_square, move.to_square, piece)
            elif not is_pawn or abs(move.to_square - move.from_square) < 16:
                yield move

    def generate_legal_moves(
        self, from_mask: chess.Bitboard = chess.BB_ALL, to_mask: chess.Bitboard = chess.BB_ALL
    ) -> Iterator[chess.Move]:
        return super().generate_legal_moves(from_mask, to_mask & CORNER)

    def is_pseudo_legal(self, move: chess.Move) -> bool:
        from_mask, to_mask = chess.BB_SQUARES[move.from_square], chess.BB_SQUARES[move.to_square]
        return bool(move) and move in self.generate_pseudo_legal_moves(from_mask, to_mask)

    def status(self) -> chess.Status:
        status = super().status()
        if self.pawns & LAST:
            status |= chess.STATUS_PAWNS_ON_BACKRANK
        if chess.popcount(self.occupied_co[chess.WHITE]) > 10:
            status |= chess.STATUS_TOO_MANY_WHITE_PIECES
        if chess.popcount(self.occupied_co[chess.BLACK]) > 10:
            status |= chess.STATUS_TOO_MANY_BLACK_PIECES
        return status


chess.variant.VARIANTS.append(GardnerBoard)
