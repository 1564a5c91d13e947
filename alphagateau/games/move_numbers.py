"""The vocabulary of UCI moves of searchless chess (Ruoss et al. 2024; its utils.py)."""

import chess

from alphagateau.games.rules import Game


def action_names(game: Game) -> list[str]:
    """UCI moves in the order of their numbers, 1968 on 8x8; the first share their embeddings with the characters.

    From a1, b1 to the last square: the queen's moves, then the knight's, each by rising square; then promotions.
    """
    files, kinds = range(game.size), sorted({chess.QUEEN, *game.promotions.tolist()} - {0}, reverse=True)
    squares = [chess.square(file, rank) for rank in files for file in files]
    moves = []
    for start in squares:
        leaps = chess.SquareSet(chess.BB_KNIGHT_ATTACKS[start])
        moves += [chess.Move(start, end) for end in squares if chess.ray(start, end)]
        moves += [chess.Move(start, end) for end in squares if end in leaps]
    for rank, last in ((1, 0), (game.size - 2, game.size - 1)):
        for file in files:
            start, ends = chess.square(file, rank), [end for end in (file, file - 1, file + 1) if end in files]
            moves += [chess.Move(start, chess.square(end, last), kind) for end in ends for kind in kinds]
    return [move.uci() for move in moves]
