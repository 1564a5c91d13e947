"""Reads and writes FEN and UCI moves of States, and finds how games ended (host side).

A State sees its board from the player to move, so black's squares are flipped here.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import chess
import jax
import numpy as np

from alphagateau.games.entries import PAWN
from alphagateau.games.rules import NO_PROGRESS_LIMIT, REPETITION_LIMIT, Game, outermost_rooks
from alphagateau.games.small_boards import CORNERS, enter_arguments
from alphagateau.games.state import Position, State
from alphagateau.games.variants import get_game

FAULTS = {  # of a position, with what was expected
    chess.STATUS_NO_WHITE_KING: "white has no king: expected one",
    chess.STATUS_NO_BLACK_KING: "black has no king: expected one",
    chess.STATUS_TOO_MANY_KINGS: "a side has several kings: expected one each",
    chess.STATUS_TOO_MANY_WHITE_PIECES: "white has too many pieces: expected at most two rows",
    chess.STATUS_TOO_MANY_BLACK_PIECES: "black has too many pieces: expected at most two rows",
    chess.STATUS_PAWNS_ON_BACKRANK: "a pawn is on a first or last rank: expected none there",
    chess.STATUS_OPPOSITE_CHECK: "the side that just moved is in check: expected it not to be",
    chess.STATUS_INVALID_EP_SQUARE: "no pawn has just passed the en passant square: expected '-'",
}


def from_fen(game: Game, fen: str) -> State:
    """The State of a position given as FEN, without a past.

    Castling rights are kept where king and rook are at home, an en passant square where a capture there is legal.
    Plies count from the FEN's move number. What else may be left out or written otherwise: see `normalize_fen`. Raises
    ValueError, in one sentence, for what is no FEN, and for a position with one of the FAULTS; others that no game
    reaches are taken.
    """
    return jitted(game.enter)(*enter_arguments(game.size, board_from_fen(game, fen)))


def from_fens(game: Game, fens: Sequence[str]) -> State:
    """States [B] of positions given as FEN, as `from_fen` makes each. Raises ValueError."""
    rows = [enter_arguments(game.size, board_from_fen(game, fen)) for fen in fens]
    return jitted(game.enter, True)(*map(np.stack, zip(*rows, strict=True)))


@lru_cache
def jitted(function: Callable, is_batched: bool = False) -> Callable:
    """A function of a Game, compiled once a process."""
    return jax.jit(jax.vmap(function) if is_batched else function)


def board_from_fen(game: Game, fen: str) -> chess.Board:
    """python-chess's board of a FEN, checked as by `from_fen`."""
    shown = repr(fen if len(fen) <= 100 else fen[:97] + "...")
    fields = normalize_fen(fen).split()
    if len(fields) != 6:
        raise ValueError(
            f"FEN {shown} has {len(fields)} fields: expected 6 (board, side to move, castling, "
            "en passant, halfmove clock, move number), or the first 4 or 5 of them"
        )
    if wrong := _wrong_field(game, *fields):
        raise ValueError(f"FEN {shown} has a wrong {wrong}")
    board = game.board_class(" ".join(fields))
    status = board.status()
    faults = [sentence for flag, sentence in FAULTS.items() if status & flag]
    if (moves := board.legal_moves.count()) > game.max_legal_moves:
        faults.append(f"it has {moves} legal moves: expected at most {game.max_legal_moves}")
    if faults:
        raise ValueError(f"FEN {shown} is impossible: {faults[0]}")
    return board


def normalize_fen(fen: str) -> str:
    """A FEN as the standard spells it, in six fields; text of other than 4 to 6 fields comes back as it is.

    Programs write castling rights in any order, or by the rooks' files, number moves from 0, or leave out the clocks.
    """
    fields = fen.split()
    if not 4 <= len(fields) <= 6:
        return fen
    pieces, side, castling, en_passant, *clocks = fields
    rights = castling.translate(str.maketrans("AHah", "QKqk"))  # the outermost rooks, in Fischer random too
    if len(set(rights)) == len(rights):
        castling = "".join(sorted(rights))
    clock, number = [*clocks, *["0", "1"][len(clocks) :]]
    clock = "0" if clock == "-" else clock
    number = "1" if number == "-" or re.fullmatch("0{1,4}", number) else number
    return " ".join([pieces, side.lower(), castling, en_passant.lower(), clock, number])


def _wrong_field(game: Game, pieces: str, side: str, castling: str, en_passant: str, clock: str, number: str) -> str:
    """The first faulty field of a FEN, with what was expected; "" if none is."""
    size, rows, letters = game.size, pieces.split("/"), game.pieces
    is_board = len(rows) == size and all(_width(letters, row) == size for row in rows)
    castlings, rights = ("-|K?Q?k?q?", "- or some of KQkq") if game.castlings else ("-", "-")
    if game.is_fischer_random:
        castlings, rights = "-|[B-GKQ]{0,2}[b-gkq]{0,2}", "- or some of KQkq and files of rooks, two a side"
    squares = ["-"]
    if game.double_step_rank is not None:
        passed = game.double_step_rank + 2  # by white's pawns, counted from 1
        squares += [f"{file}{size + 1 - passed if side == 'w' else passed}" for file in "abcdefgh"[:size]]
    is_valid = {
        f"board: expected {size} rows of {size} squares, in {letters}, {letters.lower()} and digits": is_board,
        "side to move: expected w or b": side in ("w", "b"),
        f"castling field: expected {rights}": re.fullmatch(castlings, castling),
        f"en passant field: expected {' or '.join(squares)}": en_passant in squares,
        "halfmove clock: expected 0 to 9999": re.fullmatch("[0-9]{1,4}", clock),
        "move number: expected 0 to 9999": re.fullmatch("[0-9]{1,4}", number),
    }
    return next((expected for expected, holds in is_valid.items() if not holds), "")


def _width(letters: str, row: str) -> int:
    """Squares of a row of a FEN with these pieces; 0 if it is none. Two digits never follow one another."""
    if not re.fullmatch(f"([{letters}{letters.lower()}]|[1-8](?![1-8]))+", row):
        return 0
    return sum(int(letter) if letter.isdigit() else 1 for letter in row)


def _unflip(game: Game, is_white: bool, square: Any) -> chess.Square:
    """python-chess's square of a number that the player to move gives it."""
    file, rank = divmod(int(square), game.size)
    return chess.square(file, rank if is_white else game.size - 1 - rank)


def to_board(game: Game, state: State | Position) -> chess.Board:
    """python-chess's board of one State or Position, without its past."""
    board = game.board_class(None)
    board.turn = is_white = int(state.color) == 0
    codes = np.asarray(state.boards)[0]
    for square in np.flatnonzero(codes):
        piece = chess.Piece(abs(int(codes[square])), is_white == bool(codes[square] > 0))
        board.set_piece_at(_unflip(game, is_white, square), piece)
    castling, rooks = np.asarray(state.castling), CORNERS
    if isinstance(state, Position):
        castling = np.unpackbits(castling, bitorder="little")[:4]
        if game.is_fischer_random:
            castling = np.where(castling, 1 + np.asarray(outermost_rooks(game.size, codes)), 0)
    flags = castling if is_white else np.roll(castling, 2)
    if game.is_fischer_random:
        firsts = (chess.A1, chess.A1, chess.A8, chess.A8)
        rooks = [chess.BB_SQUARES[first + max(int(flag) - 1, 0)] for first, flag in zip(firsts, flags, strict=True)]
    board.castling_rights = sum(rook for rook, has in zip(rooks, flags, strict=True) if has)
    if int(state.en_passant) >= 0:
        board.ep_square = _unflip(game, is_white, state.en_passant)
    board.halfmove_clock = int(state.halfmove_count)
    board.fullmove_number = int(state.ply) // 2 + 1
    return board


def to_fen(game: Game, state: State | Position) -> str:
    """The FEN of one State or Position; an en passant square only if a capture there is legal."""
    return to_board(game, state).fen(en_passant="fen")


def edge_to_uci(game: Game, state: State | Position | chess.Board, edge: Any) -> str:
    """The UCI text of an edge, legal or not, in `state`: e2e4, e1g1 (castling; on chess960 e1h1), a7a8q."""
    edge = int(edge)
    if not 0 <= edge < game.num_edges:
        raise ValueError(f"edge {edge} is not on the board: expected 0 to {game.num_edges - 1}")
    if isinstance(state, chess.Board):
        is_white, sender = state.turn, _unflip(game, state.turn, game.senders[edge])
        return _write(game, is_white, edge, state.piece_type_at(sender) == chess.PAWN)
    is_pawn = np.asarray(state.boards)[0, game.senders[edge]] == PAWN
    return _write(game, int(state.color) == 0, edge, is_pawn)


def _write(game: Game, is_white: bool, edge: int, is_pawn: bool) -> str:
    sender, receiver = game.senders[edge], game.receivers[edge]
    promotion = int(game.promotions[edge]) or None
    if is_pawn and not promotion and receiver % game.size == game.size - 1:
        promotion = chess.QUEEN
    start, end = _unflip(game, is_white, sender), _unflip(game, is_white, receiver)
    return chess.Move(start, end, promotion).uci()


@lru_cache
def edges_by_uci(game_name: str, is_white: bool) -> dict[str, int]:
    """UCI text, without the q of a queen, -> edge."""
    game = get_game(game_name)
    return {_write(game, is_white, edge, is_pawn=False): edge for edge in range(game.num_edges)}


def legal_moves(game: Game, state: State) -> dict[str, int]:
    """UCI text -> edge of each legal move; a game drawn by rule may have some left."""
    codes, is_white = np.asarray(state.boards)[0], int(state.color) == 0
    edges = [edge for edge in np.asarray(state.legal_edges).tolist() if edge >= 0]
    is_pawn = codes[game.senders[edges]] == PAWN
    return {_write(game, is_white, edge, pawn): edge for edge, pawn in zip(edges, is_pawn, strict=True)}


def board_edges(game: Game, board: chess.Board) -> dict[int, str]:
    """Edge -> UCI text of each legal move of python-chess's board, edges rising."""
    edges = edges_by_uci(game.name, board.turn)
    found = {edges[move.uci().removesuffix("q")]: move.uci() for move in board.legal_moves}
    return dict(sorted(found.items()))


def normalize_uci(board: chess.Board, text: str) -> str:
    """A move as UCI usually spells it; text that is no legal move comes back as it is.

    Programs write promotions in upper case, and castling as the king's move onto the rook.
    """
    try:
        return board.parse_uci(text.lower()).uci()
    except ValueError:
        return text


def uci_to_edge(game: Game, state: State, uci: str) -> int:
    """The edge of a legal move given in UCI, as `normalize_uci` reads it. Raises ValueError if it is none."""
    moves = legal_moves(game, state)
    text = uci if uci in moves else normalize_uci(to_board(game, state), uci)
    if text not in moves:
        raise ValueError(f"{uci[:20]!r} is not a move: expected a legal one of {to_fen(game, state)}")
    return moves[text]


def outcome(game: Game, state: State) -> tuple[str, str]:
    """(result, reason) of a State: "1-0", "0-1", "1/2-1/2" or "*", and a reason of `board_outcome`."""
    keys = np.asarray(state.keys)
    occurrences = int((keys == keys[0]).all(axis=-1).sum())
    return board_outcome(game, to_board(game, state), occurrences)


def board_outcome(game: Game, board: chess.Board, occurrences: int | None = None) -> tuple[str, str]:
    """(result, reason) of a position that occurred so often (None: in the board's own moves); the first that holds.

    "unterminated" goes with the result "*".
    """
    if board.is_checkmate():
        return "0-1" if board.turn else "1-0", "checkmate"
    is_repeated = board.is_repetition(REPETITION_LIMIT) if occurrences is None else occurrences >= REPETITION_LIMIT
    draws = {
        "stalemate": board.is_stalemate(),
        "insufficient material": board.is_insufficient_material(),
        "fifty moves": board.halfmove_clock >= NO_PROGRESS_LIMIT,
        "threefold repetition": is_repeated,
        "ply limit": board.ply() >= game.max_plies,
    }
    reasons = [reason for reason, holds in draws.items() if holds]
    return ("1/2-1/2", reasons[0]) if reasons else ("*", "unterminated")
