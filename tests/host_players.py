"""Players for ladders that need no network: each chooses by a hash of its name and the position."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from alphagateau.games.pgn.pgn import Identity
from alphagateau.games.small_boards import board_class
from alphagateau.matches.players import Player

BOARD = "gardner_chess"


def host_player(name: str, folder: Path | None = None, iteration: int | None = None, board_name: str = BOARD) -> Player:
    """Of a run and iteration if these are given."""

    def move(start_fen: str, moves: Sequence[str]) -> str:
        board = board_class(board_name)(start_fen)
        for uci in moves:
            board.push_uci(uci)
        legal = sorted(one.uci() for one in board.legal_moves)
        captures = [uci for uci in legal if board.is_capture(board.parse_uci(uci))]
        chosen = captures or legal
        return chosen[hashlib.sha256(f"{name} {board.fen()}".encode()).digest()[0] % len(chosen)]

    identity = Identity(folder.name if folder else "", iteration, search="hash")
    return Player(name, identity=identity, move=move, key=(name, "hash", board_name), folder=folder)
