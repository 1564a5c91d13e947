"""Requests of the browser's page, checked as records."""

import json
from typing import Any, TypeVar

from alphagateau.config.records import choice, key, names, num, record
from alphagateau.games.entries import GAMES
from alphagateau.games.notation import normalize_fen
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game

MAX_BODY = 2**20  # bytes
MAX_PLIES = 1024  # of a game; more than any board's own limit
MAX_SIMULATIONS = 20_000
MAX_TEMPERATURE = 10
T = TypeVar("T")


@record
class GameRequest:
    """A game so far, and what to do with it."""

    board: str = choice("name of the board", default="")
    fen: str = key("of the start; none: the usual one", default="")
    moves: tuple[str, ...] = names("from there on, in UCI", default=())
    since: int = num("the first ply to answer for", default=0, high=MAX_PLIES)
    player: int = num("which of the checkpoints", default=0)
    simulations: int = num("of the search", default=200, high=MAX_SIMULATIONS)
    temperature: float = num("of the move sampled by visits; 0: the best", default=0.0, high=MAX_TEMPERATURE)
    seed: int = num("of that sample", default=0)
    white: str = key("the name of who plays white", default="?")
    black: str = key("the name of who plays black", default="?")
    white_player: int = num("the checkpoint that plays white in place of that name; -1: none", default=-1, low=-1)
    black_player: int = num("the checkpoint that plays black", default=-1, low=-1)
    result: str = key("of a game that a file has ended before the board does", default="*")
    values: tuple[float, ...] = names("for White, of the positions after the first moves", default=())


@record
class PgnRequest:
    """A file of games."""

    pgn: str = key("the text of the file")


def read(kind: type[T], body: bytes) -> T:
    """The record of a body of JSON. Raises ValueError, in one sentence."""
    try:
        table = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the body of the request is no JSON: expected an object") from None
    if not isinstance(table, dict):
        raise ValueError(f"the body of the request is a JSON {type(table).__name__}: expected an object")
    return kind(**table)


def read_request(body: bytes, num_players: int) -> tuple[GameRequest, Game]:
    """(the request, its board), with the usual start where no FEN is given. Raises ValueError, in one sentence."""
    request = read(GameRequest, body)
    if request.board not in GAMES:
        raise ValueError(f"board is {request.board[:40]!r}: expected one of {', '.join(GAMES)}")
    if request.player >= num_players:
        raise ValueError(f"player is {request.player}: expected less than {num_players}")
    if len(request.moves) > MAX_PLIES:
        raise ValueError(f"the game has {len(request.moves)} moves: expected at most {MAX_PLIES}")
    if len(request.values) > len(request.moves) or not all(abs(value) <= 1 for value in request.values):
        raise ValueError(f"values are {str(list(request.values))[:40]}: expected one in [-1, 1] a move, at most")
    if request.since > len(request.moves):
        raise ValueError(f"since is {request.since}: expected at most the number of moves, {len(request.moves)}")
    game = get_game(request.board)
    values: dict[str, Any] = {**vars(request), "fen": normalize_fen(request.fen.strip()) or game.start_fen}
    return GameRequest(**values), game
