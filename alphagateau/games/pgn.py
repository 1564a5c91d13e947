"""Turns games that were played into PGN text and back, for every board (host side).

Beside the Seven Tag Roster, games say what is known of a player, each tag after White or Black:

    WhiteType        program or human
    WhiteRun         the run that its network is of
    WhiteIteration   the iteration of that run
    WhiteWeights     the hash of its weights, as `alphagateau info` shows it
    WhiteSearch      its search, such as "gumbel 64 simulations, 16 considered"

Variant, SetUp and FEN stand where board or start need them. After a move stand what its player thought of the position
then, `[%eval 0.23]` in pawns from White's side or `[%eval #-3]`, and the time that the move took, `[%emt 0:00:01.5]`.
"""

import io
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import chess
import chess.engine
import chess.pgn

from alphagateau.games.entries import GAMES
from alphagateau.games.notation import board_from_fen, edge_to_uci, ending
from alphagateau.games.rules import REPETITION_LIMIT, Game
from alphagateau.games.small_boards import board_class
from alphagateau.games.variants import get_game

RESULTS = ("1-0", "0-1", "1/2-1/2", "*")
OWN_TAGS = ("Result", "Termination", "Variant", "FEN", "SetUp")  # fields of a GameRecord
TAG_ORDER = ("type", "run", "iteration", "weights", "search")  # of an Identity


class MoveNote(NamedTuple):
    """What is known of a move."""

    score: chess.engine.Score | None = None  # of the position after it, for White
    seconds: float | None = None  # that it took
    nag: int = 0  # of chess.pgn, such as NAG_BLUNDER; 0: none
    comment: str = ""  # what else is said of it


class Identity(NamedTuple):
    """Who plays, as far as it is known."""

    run: str = ""
    iteration: int | None = None
    weights: str = ""  # hash
    search: str = ""
    type: str = "program"  # or "human"


def player_tags(color: str, name: str, identity: Identity) -> dict[str, str]:
    """The tags of a player; `color` is White or Black."""
    tags = {color: name}
    known = {key: str(value) for key, value in identity._asdict().items() if value not in ("", None)}
    return tags | {f"{color}{key.title()}": known[key] for key in TAG_ORDER if key in known}


@dataclass(frozen=True)
class GameRecord:
    """A game as it was played, finished or not."""

    game: str  # name of the Game
    start_fen: str
    moves: tuple[str, ...]  # UCI
    result: str  # one of RESULTS; "*": not finished
    termination: str = ""  # why it ended, as `notation.ending` says, or what its PGN says
    headers: Mapping[str, str] = field(default_factory=dict)  # other tags: White, Black, Round, ...
    notes: tuple[MoveNote, ...] = ()  # of the first moves, in their order; of those without nothing is known


def record_game(
    game: Game,
    edges: Iterable[Any],
    start_fen: str | None = None,
    headers: Mapping[str, str] | None = None,
    notes: Iterable[MoveNote] = (),
) -> GameRecord:
    """The record of a game played from `start_fen` (None: the usual start) along `edges`.

    Result and termination are what python-chess finds after the last move. Raises ValueError, in
    one sentence, if a move is illegal.
    """
    start_fen = game.start_fen if start_fen is None else start_fen
    board, moves = board_from_fen(game, start_fen), []
    for edge in edges:
        moves.append(edge_to_uci(game, board, edge))
        board.push(_parse_move(board, moves[-1], len(moves)))
    occurrences = REPETITION_LIMIT if board.is_repetition(REPETITION_LIMIT) else 1
    result, reason = ending(game, board, occurrences)
    return GameRecord(game.name, start_fen, tuple(moves), result, reason, dict(headers or {}), tuple(notes))


def _parse_move(board: chess.Board, uci: str, number: int) -> chess.Move:
    try:
        move = board.parse_uci(uci)
    except ValueError:
        move = chess.Move.null()
    if not move:
        raise ValueError(f"move {number}, {uci!r}: expected a legal move of {board.fen()}")
    return move


def to_pgn(record: GameRecord) -> str:
    """One game as PGN in SAN, ending in an empty line; games of small boards carry Variant, SetUp and FEN tags.

    Raises ValueError, in one sentence, for an illegal move or a result not in RESULTS.
    """
    _check_result(record.result)
    board = board_class(record.game)(record.start_fen)
    node = pgn = chess.pgn.Game()
    for name, value in record.headers.items():
        pgn.headers[name] = " ".join(value.split()).replace('"', "'")
    pgn.setup(board)
    if "FEN" in pgn.headers:
        pgn.headers["SetUp"] = "1"
    pgn.headers["Result"] = record.result
    if record.termination:
        pgn.headers["Termination"] = record.termination
    notes = itertools.chain(record.notes, itertools.repeat(MoveNote()))
    for number, (uci, note) in enumerate(zip(record.moves, notes, strict=False), start=1):
        move = _parse_move(board, uci, number)
        board.push(move)
        node = node.add_variation(move)
        _annotate(node, note)
    return f"{pgn}\n\n"


def _annotate(node: chess.pgn.ChildNode, note: MoveNote) -> None:
    if note.score is not None:
        node.set_eval(chess.engine.PovScore(note.score, chess.WHITE))
    node.set_emt(note.seconds)
    if comment := " ".join(note.comment.split()):
        node.comment = f"{node.comment} {comment}".strip()
    if note.nag:
        node.nags.add(note.nag)


def _check_result(result: str) -> None:
    if result not in RESULTS:
        raise ValueError(f"result {result[:20]!r}: expected one of {', '.join(RESULTS)}")


class _QuietBuilder(chess.pgn.GameBuilder):
    """Collects errors without also logging them."""

    def handle_error(self, error: Exception) -> None:
        self.game.errors.append(error)


def read_pgn(text: str) -> list[GameRecord]:
    """The games of a PGN file, main lines only, each of the board that its Variant tag names.

    Raises ValueError, in one sentence with the game's number from 1, for an unknown variant, a
    wrong FEN, an illegal move, an unknown result, or text that is no game.
    """
    handle, records = io.StringIO(text), []
    while True:
        try:
            pgn = chess.pgn.read_game(handle, Visitor=_QuietBuilder)
            if pgn is None:
                return records
            records.append(_read_game(pgn))
        except ValueError as error:
            raise ValueError(f"PGN game {len(records) + 1}: {error}") from None


def _read_game(pgn: chess.pgn.Game) -> GameRecord:
    headers = dict(pgn.headers)
    variant = headers.get("Variant", "Standard").lower()
    names = [n for n, entry in GAMES.items() if variant in map(str.lower, entry.variant_names)]
    if not names:
        known = " or ".join(repr(entry.variant_names[0]) for entry in GAMES.values())
        raise ValueError(f"variant {variant[:20]!r}: expected {known}")
    (name,) = names
    start_fen = headers.get("FEN", get_game(name).start_fen)
    board_from_fen(get_game(name), start_fen)
    if pgn.errors:
        raise ValueError(f"{pgn.errors[0]}: expected a legal move")
    moves = tuple(move.uci() for move in pgn.mainline_moves())
    if "0000" in moves:
        raise ValueError(f"move {moves.index('0000') + 1} is a null move: expected a legal move")
    if not moves and set(headers.values()) <= {"?", "*", "????.??.??"}:
        raise ValueError("it has neither tags nor moves: expected a game")
    _check_result(headers["Result"])
    others = {tag: value for tag, value in headers.items() if tag not in OWN_TAGS}
    return GameRecord(name, start_fen, moves, headers["Result"], headers.get("Termination", ""), others)
