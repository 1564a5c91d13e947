"""What other programs say of a game: python-chess on 8x8, Fairy-Stockfish (pyffish) on smaller boards."""

from collections import Counter
from functools import cache
from typing import NamedTuple

import pyffish

from alphagateau.games.small_boards import board_class

VARIANTS = {"gardner_chess": "gardner", "los_alamos_chess": "losalamos"}  # of pyffish
MAX_PLIES = {"chess": 512, "gardner_chess": 256, "los_alamos_chess": 384}
REASONS = ["checkmate", "stalemate", "insufficient material", "fifty moves"]
REASONS += ["threefold repetition", "ply limit"]


class Said(NamedTuple):
    """An oracle's account of the last position of a line."""

    fen: str
    legal: set[str]  # UCI
    reason: str  # the first of REASONS for which the game is over, else "unterminated"
    repeated: list[bool]  # of this position, the one before, ...: it occurred at least twice


class Line:
    """One game in progress, told to the oracle move by move.

    A call of pyffish takes 3 ms, so on small boards our class for python-chess keeps the FEN, which pyffish
    confirms every `confirm_every` moves; legal moves and endings are pyffish's.
    """

    def __init__(self, name: str, fen: str, confirm_every: int = 10) -> None:
        self.name, self.start, self.moves, self.confirm_every = name, fen, [], confirm_every
        self.board, self.variant = board_class(name)(fen), VARIANTS.get(name)
        self.fens = [self.board.fen()]

    def push(self, uci: str) -> None:
        self.moves.append(uci)
        self.board.push_uci(uci)
        self.fens.append(self.board.fen())
        if self.variant and len(self.moves) % self.confirm_every == 0:
            fen = pyffish.get_fen(self.variant, self.start, self.moves)
            assert self.fens[-1] == fen, (self.start, self.moves)

    def say(self) -> Said:
        positions = [fen.rsplit(" ", 2)[0] for fen in self.fens]
        counts = Counter(positions)
        said = self._small(counts[positions[-1]]) if self.variant else self._chess()
        legal, endings = said
        reasons = [reason for reason in REASONS if endings[reason]]
        repeated = [counts[position] >= 2 for position in reversed(positions)]
        return Said(self.fens[-1], legal, (reasons or ["unterminated"])[0], repeated)

    def _chess(self) -> tuple[set[str], dict[str, bool]]:
        return {move.uci() for move in self.board.legal_moves}, {
            "checkmate": self.board.is_checkmate(),
            "stalemate": self.board.is_stalemate(),
            "insufficient material": self.board.is_insufficient_material(),
            "fifty moves": self.board.halfmove_clock >= 100,
            "threefold repetition": self.board.is_repetition(3),
            "ply limit": self.board.ply() >= MAX_PLIES[self.name],
        }

    def _small(self, occurrences: int) -> tuple[set[str], dict[str, bool]]:
        fen = self.fens[-1]
        pieces, color, _, _, clock, number = fen.split()
        legal = set(pyffish.legal_moves(self.variant, fen, []))
        is_check = not legal and pyffish.gives_check(self.variant, fen, [])
        is_draw = int(clock) >= 100 or occurrences >= 3
        if int(clock) >= 99 or occurrences >= 2:
            said, _ = pyffish.is_optional_game_end(self.variant, self.start, self.moves)
            assert said == is_draw or not legal, (self.start, self.moves)
        is_bare = not set(pieces) & set("PRQprq")
        return legal, {
            "checkmate": not legal and is_check,
            "stalemate": not legal and not is_check,
            "insufficient material": is_bare and all(pyffish.has_insufficient_material(self.variant, fen, [])),
            "fifty moves": int(clock) >= 100,
            "threefold repetition": occurrences >= 3,
            "ply limit": 2 * (int(number) - 1) + (color == "b") >= MAX_PLIES[self.name],
        }


@cache
def codes_of(fen: str, is_white: bool) -> list[int]:
    """[N], the board of a FEN as the given side sees it, own pieces positive."""
    rows: list[list[int]] = []
    for row in fen.split()[0].split("/"):
        codes: list[int] = []
        for letter in row:
            code = "pnbrqk".find(letter.lower()) + 1
            codes += [0] * int(letter) if code == 0 else [code if letter.isupper() else -code]
        rows.append(codes)
    if is_white:
        rows.reverse()  # the first rank first
    sign = 1 if is_white else -1
    return [sign * code for file in zip(*rows, strict=True) for code in file]
