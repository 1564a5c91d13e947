"""Gathers the boards that occur in games, each once, cut into training and test by game."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import chess
import numpy as np

from alphagateau.data.tables import BOARDS, DataError, read_table, write_table
from alphagateau.games.notation import board_from_fen, board_outcome
from alphagateau.games.pgn.pgn import GameRecord
from alphagateau.games.rules import Game

SPLITS = ("train", "test")


class Board(NamedTuple):
    """A board and where it was first seen."""

    key: str  # board, side to move, castling rights, legal en passant square
    fen: str
    game: int  # 64 bits of a hash of the game's start and moves
    ply: int


class Gathered(NamedTuple):
    """Counts of a gathering."""

    games: int
    boards: dict[str, int]  # by split
    repeated: int  # occurrences of a board after its first


def boards_of(game: Game, record: GameRecord, random_moves: float = 0.0) -> Iterator[Board]:
    """The boards of a game that are not its end by rule, with their clocks, in order.

    After a share `random_moves` of them comes the board after a random legal move that was not played: positions after
    mistakes, as a search meets them and games do not. What is sampled depends on the board alone.
    """
    text = " ".join((record.start_fen, *record.moves))
    identity = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    board = board_from_fen(game, record.start_fen)
    for ply, uci in enumerate([*record.moves, None]):
        if board_outcome(game, board, 1)[0] == "*":
            yield (here := _board(board, identity, ply))
            sample, choice = np.frombuffer(hashlib.sha256(here.key.encode()).digest()[:16], ">u8")
            if sample < random_moves * 2**64:
                moves = sorted(move.uci() for move in board.legal_moves if move.uci() != uci)
                if moves:
                    board.push_uci(moves[int(choice) % len(moves)])
                    if board_outcome(game, board, 1)[0] == "*":
                        yield _board(board, identity, ply + 1)
                    board.pop()
        if uci is not None:
            board.push(chess.Move.from_uci(uci))  # the record's moves are legal


def _board(board: chess.Board, identity: int, ply: int) -> Board:
    fen = board.fen(en_passant="legal")
    return Board(fen.rsplit(" ", 2)[0], fen, identity, ply)


def split_of(identity: int, test_share: float) -> str:
    """The split of the boards that are first met in a game."""
    return "test" if identity < test_share * 2**64 else "train"


def gather(
    game: Game,
    records: Iterable[GameRecord],
    folder: Path,
    test_share: float,
    max_boards: int = 0,
    random_moves: float = 0.0,
) -> Gathered:
    """Writes train.parquet and test.parquet; a board is in that of the game where it is first met.

    `max_boards`: of more, those whose hash is lowest stay, whatever the order of the games; 0: all. `random_moves`: as
    in `boards_of`. Raises DataError if there is no board.
    """
    first: dict[str, Board] = {}
    counts: dict[str, int] = {}
    num_games = 0
    for record in records:
        num_games += 1
        for board in boards_of(game, record, random_moves):
            first.setdefault(board.key, board)
            counts[board.key] = counts.get(board.key, 0) + 1
    if not first:
        raise DataError(f"the {num_games} games hold no board of {game.name} to label")
    kept = list(first)
    if 0 < max_boards < len(first):
        lowest = set(sorted(first, key=lambda key: hashlib.sha256(key.encode()).digest())[:max_boards])
        kept = [key for key in first if key in lowest]
    identity = hashlib.sha256(f"{test_share} {max_boards}".encode())
    for key in kept:
        identity.update(f"{key} {counts[key]} {first[key].game}\n".encode())
    about = {"board": game.name, "gathered": identity.hexdigest()}
    sizes = {}
    for split in SPLITS:
        boards = [first[key] for key in kept if split_of(first[key].game, test_share) == split]
        columns = {name: [getattr(board, name) for board in boards] for name in ("fen", "game", "ply")}
        columns["count"] = [counts[board.key] for board in boards]
        write_table(folder / f"{split}.parquet", columns, BOARDS, about)
        sizes[split] = len(boards)
    return Gathered(num_games, sizes, sum(counts.values()) - len(first))


def board_name(folder: Path) -> str:
    """The game of the boards in a folder. Raises DataError, also if they were not gathered together."""
    about = {}
    for split in SPLITS:
        path = folder / f"{split}.parquet"
        if not path.exists():
            raise DataError(f"{path} does not exist: expected a folder that `alphagateau positions` wrote")
        about[split] = read_table(path, BOARDS)[1]
    if about["train"].get("gathered") != about["test"].get("gathered"):
        raise DataError(f"{folder} holds train.parquet and test.parquet of two gatherings: gather the boards again")
    return about["train"].get("board", "")
