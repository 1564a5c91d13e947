"""A game as the browser's page shows it: positions, legal moves and PGN, without a network."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import chess

from alphagateau.games.notation import board_from_fen, board_outcome
from alphagateau.games.pgn.pgn import GameRecord, Identity, MoveNote, player_tags, read_pgn, to_pgn
from alphagateau.games.rules import Game
from alphagateau.games.scores import white_score
from alphagateau.matches.specs import PlayerSpec, name_of
from alphagateau.play.board.requests import MAX_PLIES, GameRequest
from alphagateau.play.opponents import identity_of


def positions(game: Game, request: GameRequest) -> list[dict[str, Any]]:
    """The positions of a game from ply `since` on. Raises ValueError, in one sentence, at the first illegal move."""
    board = board_from_fen(game, request.fen)
    found = [_position(game, board, "", "")] if not request.since else []
    for number, uci in enumerate(request.moves, 1):
        move = next((move for move in board.legal_moves if move.uci() == uci), None)
        if move is None:
            raise ValueError(f"move {number}, {uci[:20]!r}: expected a legal move of {board.fen()}")
        san = board.san(move)
        board.push(move)
        if number >= request.since:
            found.append(_position(game, board, uci, san))
    return found


def _position(game: Game, board: chess.Board, uci: str, san: str) -> dict[str, Any]:
    """One position and the move that led to it; its moves, by UCI, as SAN."""
    result, reason = board_outcome(game, board)
    return {
        "uci": uci,
        "san": san,
        "fen": board.fen(),
        "legal": {move.uci(): board.san(move) for move in board.legal_moves},
        "check": board.is_check(),
        "result": result,
        "reason": reason,
    }


def games_of(text: str) -> list[dict[str, Any]]:
    """The games of a PGN file. Raises ValueError, in one sentence."""
    records = read_pgn(text)
    if not records:
        raise ValueError("the file holds no game: expected PGN")
    for number, record in enumerate(records, 1):
        if len(record.moves) > MAX_PLIES:
            raise ValueError(f"PGN game {number} has {len(record.moves)} moves: expected at most {MAX_PLIES}")
    return [
        {
            "board": record.game,
            "fen": record.start_fen,
            "moves": record.moves,
            "white": record.headers.get("White", "?"),
            "black": record.headers.get("Black", "?"),
            "result": record.result,
            "reason": record.termination,
        }
        for record in records
    ]


def pgn_of(game: Game, request: GameRequest, players: Sequence[PlayerSpec]) -> str:
    """The game as PGN, with its result if it is over. Raises ValueError, in one sentence."""
    last = positions(game, request)[-1]
    result, reason = (last["result"], last["reason"]) if last["result"] != "*" else (request.result, "")
    headers = {"Event": "alphagateau board", "Site": "?", "Date": f"{date.today():%Y.%m.%d}", "Round": "-"}
    who = ("White", request.white, request.white_player), ("Black", request.black, request.black_player)
    for color, name, number in who:
        if 0 <= number < len(players):
            player = players[number]
            headers |= player_tags(color, name_of(player.found), identity_of(player, request.simulations))
        else:
            headers |= player_tags(color, name, Identity(type="human" if name == "Human" else ""))
    notes = [MoveNote(white_score(value, is_white=True)) for value in request.values]
    return to_pgn(GameRecord(game.name, request.fen, request.moves, result, reason, headers, tuple(notes)))
