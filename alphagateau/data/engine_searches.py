"""Searches a board, or all its moves, by an engine."""

from collections.abc import Collection
from typing import NamedTuple

from alphagateau.data.scores import encode
from alphagateau.data.tables import DataError
from alphagateau.engines.engine import Engine, EngineFault, ScoredLine

MOST_DOUBLINGS = 8  # of the nodes, while a search gives no score


class SearchResult(NamedTuple):
    """The best move of a search and its score."""

    score: int  # `scores.encode`, for the player to move
    depth: int
    move: str  # UCI


def search(engine: Engine, fen: str, nodes: int, move: str | None = None, is_fresh: bool = True) -> SearchResult:
    """The result of `nodes` nodes on a position, or on one move there.

    A fresh search begins from an empty hash table, another one from that of the last. A search without a score, as
    small ones may be, is made again with twice the nodes. Raises EngineFault, and DataError for another move.
    """
    for doubling in range(MOST_DOUBLINGS + 1):
        answer = engine.go(f"fen {fen}", f"nodes {nodes << doubling}", [move] if move else (), is_fresh=is_fresh)
        if move and answer.move != move:
            answered = answer.move or "nothing"
            raise DataError(f"engine {engine.command!r} answered {answered} to searchmoves {move} in {fen}")
        if answer.line:
            return _result(answer.line, answer.move)
    raise EngineFault(f"engine {engine.command!r} gave no score of {fen}")


def search_moves(engine: Engine, fen: str, nodes: int, moves: Collection[str]) -> dict[str, SearchResult]:
    """The results of one search of all legal moves (UCI's MultiPV), from an empty hash table, of `nodes` nodes a move.

    Each move has the score of the last depth to which it was searched; while some have none, the search is made again
    with twice the nodes. Raises as `search`.
    """
    for doubling in range(MOST_DOUBLINGS + 1):
        limit = f"nodes {(nodes << doubling) * len(moves)}"
        by_move = engine.go(f"fen {fen}", limit, num_lines=len(moves)).by_move
        if strange := by_move.keys() - set(moves):
            raise DataError(f"engine {engine.command!r} showed {min(strange)}, which is no legal move of {fen}")
        if len(by_move) == len(moves):
            return {move: _result(line, move) for move, line in by_move.items()}
    raise EngineFault(f"engine {engine.command!r} gave no score of some moves of {fen}")


def _result(line: ScoredLine, move: str) -> SearchResult:
    return SearchResult(encode(line.kind, line.number), min(max(line.depth, 0), 255), move)
