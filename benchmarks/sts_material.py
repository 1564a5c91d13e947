"""What counting material scores on the Strategic Test Suite: python benchmarks/sts_material.py FILE --depth 2

Alpha-beta to so many plies, then captures while they gain, by the piece values of `training.material_positions`; of
equal moves captures come first, then quiet ones at random. Beside it `alphagateau sts` of a Giraffe that has learnt its
lesson alone (Lai 2015, Figure 4).
"""

import argparse
import math
import random
import statistics
from pathlib import Path

import chess

from alphagateau.games.variants import get_game
from alphagateau.suites.sts import first_of_each_theme, read_epd
from alphagateau.training.material import WORTH

VALUES = {kind: int(WORTH[kind]) for kind in (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN)}
MATE = 30_000


class Searcher:
    """Searches by material; counts the positions that it looks at."""

    def __init__(self, seed: int) -> None:
        self.random, self.nodes = random.Random(seed), 0

    def material(self, board: chess.Board) -> int:
        """For the player to move."""
        own, other = board.occupied_co[board.turn], board.occupied_co[not board.turn]
        pieces = (
            (value, board.pieces_mask(kind, True) | board.pieces_mask(kind, False)) for kind, value in VALUES.items()
        )
        return sum(value * ((mask & own).bit_count() - (mask & other).bit_count()) for value, mask in pieces)

    def ordered(self, board: chess.Board, captures_alone: bool) -> list[chess.Move]:
        """Captures of much by little first, the others in a random order."""

        def key(move: chess.Move) -> float:
            if not board.is_capture(move):
                return -5000 if move.promotion == chess.QUEEN else 0
            victim = board.piece_type_at(move.to_square) or chess.PAWN
            return VALUES.get(board.piece_type_at(move.from_square) or chess.KING, 0) / 10 - 10 * VALUES.get(victim, 0)

        moves = list(board.generate_legal_captures() if captures_alone else board.legal_moves)
        if not captures_alone:
            self.random.shuffle(moves)
        return sorted(moves, key=key)

    def search(self, board: chess.Board, depth: int, low: int, high: int) -> int:
        """The value for the player to move, from `low` to `high`; at depth 0 by captures, or in check by all moves."""
        self.nodes += 1
        captures_alone = depth == 0 and not board.is_check()
        if captures_alone:
            low = max(low, self.material(board))
            if low >= high:
                return low
        moves = self.ordered(board, captures_alone)
        if not moves and not captures_alone:
            return -MATE - depth if board.is_check() else 0
        for move in moves:
            board.push(move)
            low = max(low, -self.search(board, max(depth - 1, 0), -high, -low))
            board.pop()
            if low >= high:
                break
        return low

    def best(self, board: chess.Board, depth: int) -> chess.Move:
        """The best move by a search of so many plies."""
        best, value = chess.Move.null(), -2 * MATE
        for move in self.ordered(board, False):
            board.push(move)
            found = -self.search(board, depth - 1, -2 * MATE, -value)
            board.pop()
            if found > value:
                best, value = move, found
        return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="only so many positions of each theme")
    args = parser.parse_args()
    searcher = Searcher(1)
    positions = first_of_each_theme(read_epd(get_game("chess"), args.file), args.first)
    points = [
        position.points.get(searcher.best(chess.Board(position.fen), args.depth).uci(), 0) for position in positions
    ]
    scale = 1500 / len(points)
    error = 2 * scale * statistics.stdev(points) * math.sqrt(len(points))
    print(f"{scale * sum(points):,.0f} +- {error:.0f} of 15 000, by {len(points)} positions,", end=" ")
    print(f"{searcher.nodes / len(points):,.0f} nodes each")


if __name__ == "__main__":
    main()
