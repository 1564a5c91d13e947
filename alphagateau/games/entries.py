"""Entries of the chess-like games: a new board is one more entry, and nothing else."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import chess

from alphagateau.config import registers
from alphagateau.config.records import ConfigError
from alphagateau.config.registers import Register

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)  # the codes of python-chess and of pgx


def spelling(variant: str) -> str:
    """A variant's letters and digits, which its ways to be written share."""
    return re.sub(r"[\W_]", "", variant.lower())


class Castling(NamedTuple):
    """Squares of the player to move, numbered as in `rules.py`; king and rook stand on the first rank."""

    king: int
    king_to: int
    rook: int
    rook_to: int


@dataclass(frozen=True)
class GameEntry:
    """The facts of one game, on a square board of at most 64 squares.

    Pieces move as in chess. Pawns start on the second rank and promote on the last: to a queen along the plain edge
    of the move, to each of `under_promotions` along an edge of its own.
    """

    name: str
    size: int  # squares a side
    start_fen: str  # white moves first
    max_legal_moves: int  # a bound that holds in every position that a game can reach
    max_plies: int  # the game is then a draw
    variant_names: tuple[str, ...]  # in PGN's Variant tag; the first is written
    uci_variant: str  # of UCI_Variant, as Fairy-Stockfish and pyffish have it
    under_promotions: tuple[int, ...] = (KNIGHT, BISHOP, ROOK)
    double_step_rank: int | None = None  # where a pawn may step twice, the first rank being 0; None: nowhere
    castlings: tuple[Castling, ...] = ()  # none, or the queen's side and the king's
    is_fischer_random: bool = False  # kings castle onto their rooks, from any files to the squares of `castlings`
    board_class: type[chess.Board] | None = None  # python-chess's own; None: `small_boards.py` makes one

    def __post_init__(self) -> None:
        """Raises ConfigError for a board that cannot be, or whose start has another size."""
        ranks = [sum(int(x) if x.isdigit() else 1 for x in rank) for rank in self.start_fen.split(" ")[0].split("/")]
        if not 3 <= self.size <= 8 or ranks != [self.size] * self.size:
            raise ConfigError(f"game {self.name!r}: size must be 3 to 8, as start_fen's ranks {ranks}, got {self.size}")
        if not all(map(spelling, self.variant_names or ("",))):
            raise ConfigError(f"game {self.name!r}: variant_names must have one or more, got {self.variant_names}")

    @property
    def spellings(self) -> frozenset[str]:
        """The variants of PGN that are this game, as `spelling` has them."""
        return frozenset(map(spelling, (*self.variant_names, self.uci_variant, self.name)))

    @property
    def pieces(self) -> str:
        """The pieces that can stand on the board, as letters of FEN: PNBRQK without what this game lacks."""
        promoted = {chess.piece_symbol(kind).upper() for kind in (*self.under_promotions, QUEEN)}
        known = promoted | set(self.start_fen.split()[0].upper())
        return "".join(letter for letter in "PNBRQK" if letter in known)


CHESS = GameEntry(
    name="chess",
    size=8,
    start_fen="rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    max_legal_moves=218,  # a known result
    max_plies=512,
    variant_names=tuple(chess.Board.aliases),
    uci_variant="chess",
    double_step_rank=1,
    castlings=(Castling(king=32, king_to=16, rook=0, rook_to=24), Castling(king=32, king_to=48, rook=56, rook_to=40)),
    board_class=chess.Board,
)


class FischerRandomBoard(chess.Board):
    """python-chess's board, on which kings castle onto their rooks."""

    aliases: ClassVar = ["Chess960", "Fischerandom", "Fischer Random", "Fischer Random Chess", "Chess 960"]
    uci_variant = "fischerandom"

    def __init__(self, fen: str | None = chess.STARTING_FEN, *, chess960: bool = True) -> None:
        super().__init__(fen, chess960=True)


CHESS960 = replace(
    CHESS,
    name="chess960",
    max_legal_moves=220,  # those of chess and two castlings that begin on other squares
    variant_names=tuple(FischerRandomBoard.aliases),
    uci_variant="fischerandom",
    is_fischer_random=True,
    board_class=FischerRandomBoard,
)

GARDNER = GameEntry(
    name="gardner_chess",
    size=5,
    start_fen="rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1",
    # The most a side can own, on the squares that give most: 6 queens (16 moves from the centre, at most 14
    # elsewhere), rook, bishop, knight, king 8 each.
    max_legal_moves=118,
    max_plies=256,
    variant_names=("Gardner", "Gardner chess", "Gardner minichess"),
    uci_variant="gardner",
)

LOS_ALAMOS = GameEntry(
    name="los_alamos_chess",
    size=6,
    start_fen="rnqknr/pppppp/6/6/PPPPPP/RNQKNR w - - 0 1",
    # Counted as on 5x5: 7 queens (19 moves from the 4 squares of the centre, 17 from the ring around it), 2 rooks
    # of 10, 2 knights of 8, the king 8. A pawn about to promote has 9 moves at most, fewer than the queen it becomes.
    max_legal_moves=171,
    max_plies=384,
    variant_names=("Los Alamos", "Los Alamos chess"),
    uci_variant="losalamos",
    under_promotions=(KNIGHT, ROOK),
)

GAMES: Register[GameEntry] = registers.GAMES
Register.by_kind[GameEntry] = GAMES


def have_equal_moves(name: str, other: str) -> bool:
    """Whether boards differ in starts and castlings alone, so that weights of one have the size of the other's."""
    return name == other or {name, other} == {CHESS.name, CHESS960.name}
