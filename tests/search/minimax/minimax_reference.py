"""Minimax by plain recursion on python-chess's boards, one position at a time and without a limit of nodes.

The oracle for value, move, principal variation and number of nodes of `search/minimax/`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import chess

from alphagateau.games.attacks import PIECE_VALUES
from alphagateau.games.notation import board_edges, board_outcome
from alphagateau.games.rules import Game
from alphagateau.search.minimax.node_pool import STATIC_LIMIT
from alphagateau.search.minimax.values import MATE_PLIES, MATE_STEP

QUEENS = (None, chess.QUEEN)


class Rules(NamedTuple):
    """The options of a search, as those of `make_minimax_search`."""

    evaluate: Callable[[chess.Board], float]  # for the player to move
    shares: Callable[[chess.Board, Mapping[int, str]], list[float]]  # of the moves, edges rising
    depth: int | None = None
    threshold: float = 0.0
    quiescence_plies: int = 6


class Found(NamedTuple):
    """A node's value for its player to move, the principal variation in UCI, and how many nodes were visited."""

    value: float
    line: tuple[str, ...]
    num_nodes: int


def search(game: Game, rules: Rules, board: chess.Board, plies: int = 0, probability: float = 1.0) -> Found:
    """The result of a node of the main tree, `plies` from the root."""
    if board_outcome(game, board, 1)[0] != "*":
        return Found(_end(board, plies), (), 1)
    is_deep = probability < rules.threshold if rules.depth is None else plies >= rules.depth
    if is_deep and plies:
        return leaf(game, rules, board, plies)
    edges = board_edges(game, board)
    children = []
    for uci, share in zip(edges.values(), rules.shares(board, edges), strict=True):
        board.push_uci(uci)
        children.append((uci, search(game, rules, board, plies + 1, probability * share)))
        board.pop()
    return _best(children)


def leaf(game: Game, rules: Rules, board: chess.Board, plies: int) -> Found:
    """The result of a leaf of the main tree: in check it is searched one ply deeper."""
    if not rules.quiescence_plies or not board.is_check():
        return quiet(game, rules, board, plies, rules.quiescence_plies)
    children = []
    for uci in board_edges(game, board).values():
        board.push_uci(uci)
        children.append((uci, quiet(game, rules, board, plies + 1, rules.quiescence_plies)))
        board.pop()
    return _best(children)


def quiet(game: Game, rules: Rules, board: chess.Board, plies: int, left: int) -> Found:
    """The result of a quiescence node, whose noisy moves are followed for `left` plies."""
    if board_outcome(game, board, 1)[0] != "*":
        return Found(_end(board, plies), (), 1)
    static = max(-STATIC_LIMIT, min(STATIC_LIMIT, rules.evaluate(board)))
    children = []
    for uci in board_edges(game, board).values() if left else ():
        if is_noisy(board, uci):
            board.push_uci(uci)
            children.append((uci, quiet(game, rules, board, plies + 1, left - 1)))
            board.pop()
    best = _best(children)
    return best if best.value > static else Found(static, (), best.num_nodes)


def is_noisy(board: chess.Board, uci: str) -> bool:
    """Whether a legal move is noisy, as in `minimax.noisy_moves`."""
    move = chess.Move.from_uci(uci)
    if move.promotion not in QUEENS:
        return False
    if move.promotion:
        return True
    if not board.is_capture(move):
        return False
    victim = board.piece_type_at(move.to_square) or chess.PAWN
    is_defended = board.is_attacked_by(not board.turn, move.to_square)
    return bool(PIECE_VALUES[victim] >= PIECE_VALUES[board.piece_type_at(move.from_square)] or not is_defended)


def _best(children: list[tuple[str, Found]]) -> Found:
    """The first of the best children for the player to move, -inf without any."""
    value, line = -float("inf"), ()
    for uci, found in children:
        if -found.value > value:
            value, line = -found.value, (uci, *found.line)
    return Found(value, line, 1 + sum(found.num_nodes for _, found in children))


def _end(board: chess.Board, plies: int) -> float:
    """The value of a finished game, for the player to move."""
    return -(1 - MATE_STEP * min(plies, MATE_PLIES)) if board.is_checkmate() else 0.0
