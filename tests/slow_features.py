"""Giraffe's features of a position by python-chess, square by square, for `networks/giraffe/features.py`."""

import chess

from alphagateau.games.rules import Game

WORTH = {chess.PAWN: 100, chess.KNIGHT: 325, chess.BISHOP: 325, chess.ROOK: 500, chess.QUEEN: 975, chess.KING: 1500}
SIDES = (chess.WHITE, chess.BLACK)
RIGHT, LEFT, UP, DOWN = (1, 0), (-1, 0), (0, 1), (0, -1)
STRAIGHT = (RIGHT, LEFT, UP, DOWN)
DIAGONAL = ((1, 1), (-1, 1), (1, -1), (-1, -1))
DIRECTIONS = {chess.QUEEN: STRAIGHT + DIAGONAL, chess.ROOK: STRAIGHT, chess.BISHOP: DIAGONAL, chess.KNIGHT: ()}
BOARDS = {  # per side: slots of Q, R, B, N; divisors of the numbers of Q, R, B, N, P
    "chess": ((1, 2, 2, 2), (1, 2, 2, 2, 8)),
    "gardner_chess": ((1, 1, 1, 1), (1, 1, 1, 1, 5)),
    "los_alamos_chess": ((1, 2, 0, 2), (1, 2, 1, 2, 6)),
}
KINDS = (chess.QUEEN, chess.ROOK, chess.BISHOP, chess.KNIGHT)


def squares_of(game: Game) -> list[chess.Square]:
    """The board's squares, a1 b1 .. h8."""
    return [chess.square(file, rank) for rank in range(game.size) for file in range(game.size)]


def control(board: chess.Board, side: chess.Color, square: chess.Square) -> float:
    worths = [WORTH[board.piece_type_at(attacker) or 0] for attacker in board.attackers(side, square)]
    return (2250 - min(worths)) / 3000 if worths else 0.0


def placed(game: Game, board: chess.Board, square: chess.Square) -> tuple[list[float], list[float]]:
    """(exists, file, rank), (control by White and Black)."""
    last = game.size - 1
    here = [1.0, chess.square_file(square) / last, chess.square_rank(square) / last]
    return here, [control(board, side, square) for side in SIDES]


def walk(game: Game, board: chess.Board, square: chess.Square, step: tuple[int, int]) -> list[chess.Square]:
    file, rank, found = chess.square_file(square), chess.square_rank(square), []
    while True:
        file, rank = file + step[0], rank + step[1]
        if not (0 <= file < game.size and 0 <= rank < game.size):
            return found
        found.append(chess.square(file, rank))
        if board.piece_at(found[-1]):
            return found


def is_safe(board: chess.Board, side: chess.Color, worth: int, square: chess.Square) -> bool:
    enemies = [WORTH[board.piece_type_at(attacker) or 0] for attacker in board.attackers(not side, square)]
    return not enemies or (min(enemies) >= worth and len(board.attackers(side, square)) >= 2)


def piece(game: Game, board: chess.Board, square: chess.Square | None, kind: int) -> list[float]:
    """The features of a slot."""
    directions = DIRECTIONS[kind]
    if square is None:
        return [0.0] * (6 + len(directions))
    side = bool(board.color_at(square))
    reaches = [walk(game, board, square, step) for step in directions]
    inside = set(squares_of(game))
    targets = (
        [s for s in board.attacks(square) if s in inside]
        if kind == chess.KNIGHT
        else [s for reach in reaches for s in reach]
    )
    safe = sum(is_safe(board, side, WORTH[kind], s) for s in targets)
    here, controls = placed(game, board, square)
    return [*here, *(len(reach) / (game.size - 1) for reach in reaches), safe / (2 * game.size), *controls]


def slots(game: Game, board: chess.Board, side: chess.Color, kind: int, number: int) -> list[chess.Square | None]:
    found: list[chess.Square | None] = [s for s in squares_of(game) if board.piece_at(s) == chess.Piece(kind, side)]
    found = found[:number]
    if number < 2:
        return [*found, None][:number]
    if len(found) == 2:
        return sorted(found, key=lambda s: chess.square_file(s or 0))
    if not found:
        return [None, None]
    return [*found, None] if chess.square_file(found[0] or 0) < game.size // 2 else [None, *found]


def pawn_slots(game: Game, board: chess.Board, side: chess.Color) -> list[chess.Square | None]:
    found: list[chess.Square | None] = [None] * game.size
    others = []
    for square in squares_of(game):
        if board.piece_at(square) == chess.Piece(chess.PAWN, side):
            file = chess.square_file(square)
            if found[file] is None:
                found[file] = square
            else:
                others.append(square)
    for square in others:
        empty = [slot for slot in range(game.size) if found[slot] is None]
        file = chess.square_file(square)
        if empty:
            found[min(empty, key=lambda slot: (abs(slot - file), slot))] = square
    return found


def rights(board: chess.Board, side: chess.Color) -> list[float]:
    return [float(board.has_kingside_castling_rights(side)), float(board.has_queenside_castling_rights(side))]


def features(game: Game, board: chess.Board) -> tuple[list[float], list[float], list[float]]:
    """The three groups, from White's side."""
    (numbers, divisors), last = BOARDS[game.name], game.size - 1
    material = [
        len(board.pieces(kind, side)) / divisor
        for side in SIDES
        for kind, divisor in zip((*KINDS, chess.PAWN), divisors, strict=True)
    ]
    material.append(float(board.turn))
    for side in SIDES:
        king = board.king(side)
        assert king is not None
        material += [chess.square_file(king) / last, chess.square_rank(king) / last]
        material += rights(board, side) if game.castlings else []
    pieces: list[float] = []
    for side in SIDES:
        for square in pawn_slots(game, board, side):
            here, controls = placed(game, board, square) if square is not None else ([0.0] * 3, [0.0] * 2)
            pieces += here + controls
    for kind, number in zip(KINDS, numbers, strict=True):
        for side in SIDES:
            for square in slots(game, board, side, kind, number):
                pieces += piece(game, board, square, kind)
            if kind == chess.ROOK and game.castlings:
                pieces += rights(board, side)
    by_file = [chess.square(file, rank) for file in range(game.size) for rank in range(game.size)]
    return material, pieces, [control(board, side, square) for side in SIDES for square in by_file]
