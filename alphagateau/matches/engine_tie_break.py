"""Breaks ties of players of values in won positions by a UCI engine.

To such a player every move that keeps a won game won is worth the same, and it may never mate. As in Ruoss et al.
(2024): where its best moves are all as good as won and the engine agrees, the engine's choice among them is played. It
searches on the host, from the midst of a device call.
"""

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import chess
import numpy as np

from alphagateau.engines.engine import Engine
from alphagateau.games.notation import edge_to_uci, to_board
from alphagateau.games.rules import Game
from alphagateau.games.scores import win_chance
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.matches.uci_player import EngineSearch, analyse, start_process
from alphagateau.search.move_values import TieBreak

NODES = 10_000  # of the engine's search
WON = 0.99  # chance of winning, by the engine, from which it agrees
TIMEOUT = 60.0  # seconds


@lru_cache
def make_finish(game_name: str, command: str) -> TieBreak:
    """A tie break by an engine, which runs until this program ends. Raises UciError if it cannot be started."""
    game, wanted = get_game(game_name), EngineSearch(command, ("nodes", NODES), {}, TIMEOUT, 1)
    engine, lock = start_process(wanted, game), threading.Lock()

    def finish(positions: Position, candidates: Any) -> np.ndarray:
        edges = np.asarray(candidates)
        found = np.full(len(edges), -1, np.int32)
        for row in np.flatnonzero(edges[:, 0] >= 0):
            position = Position(*(np.asarray(x)[row] for x in positions))
            with lock:
                found[row] = _choose(game, position, edges[row][edges[row] >= 0].tolist(), engine, wanted)
        return found

    return finish


def _choose(game: Game, position: Position, edges: Sequence[int], engine: Engine, wanted: EngineSearch) -> int:
    """The engine's edge, or -1 where it does not hold the position for won."""
    board = to_board(game, position)
    moves = {edge_to_uci(game, board, edge): edge for edge in edges}
    line = analyse(engine, wanted, board, [chess.Move.from_uci(uci) for uci in moves]).line
    if line is None:
        return -1
    is_won = line.number > 0 if line.kind == "mate" else win_chance(line.number) >= WON
    return moves.get(line.move, -1) if is_won else -1
