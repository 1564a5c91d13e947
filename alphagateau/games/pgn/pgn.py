"""Writes records of games as PGN, and replays written games by python-chess, on every board.

Beside the Seven Tag Roster, games say what is known of a player, each tag after White or Black:

    WhiteType        program or human
    WhiteRun         the run that its network is of
    WhiteIteration   the iteration of that run
    WhiteWeights     the hash of its weights, as `alphagateau info` shows it
    WhiteSearch      its search, such as "gumbel 64 simulations, 16 considered"

Variant, SetUp and FEN are written where board or start need them. The comment of a move has its player's evaluation of
the position after it, `[%eval 0.23]` in pawns from White's side or `[%eval #-3]`, and its time, `[%emt 0:00:01.5]`.
"""

import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import chess
import chess.engine
import chess.pgn

from alphagateau.config.records import ConfigError
from alphagateau.games.entries import GAMES, spelling
from alphagateau.games.notation import board_from_fen, board_outcome, edge_to_uci, normalize_fen
from alphagateau.games.pgn.san import read_move
from alphagateau.games.pgn.text import RESULTS, WrittenGame, read_games, result_of
from alphagateau.games.rules import Game
from alphagateau.games.small_boards import board_class
from alphagateau.games.state import State
from alphagateau.games.variants import get_game

MOVE = re.compile(r"(?i)[nbkrqp]?[a-h]?[1-8]?[-x:]?[a-h][1-8].*|[o0]-[o0].*|--|Z0|0000|@@@@")
LINE_END = re.compile(r"\r\n?|\n")
OWN_TAGS = ("Result", "Termination", "Variant", "FEN", "SetUp")  # fields of a GameRecord


class MoveNote(NamedTuple):
    """An annotation of a move."""

    score: chess.engine.Score | None = None  # of the position after it, for White
    seconds: float | None = None  # that it took
    nag: int = 0  # of chess.pgn, such as NAG_BLUNDER; 0: none
    comment: str = ""  # what else is said of it


class Identity(NamedTuple):
    """What is known of a player."""

    run: str = ""
    iteration: int | None = None
    weights: str = ""  # hash
    search: str = ""
    type: str = "program"  # or "human"


def player_tags(color: str, name: str, identity: Identity) -> dict[str, str]:
    """The tags of a player; `color` is White or Black."""
    known = {"type": identity.type} | identity._asdict()  # in the order of the tags
    tags = {f"{color}{key.title()}": str(value) for key, value in known.items() if value not in ("", None)}
    return {color: name} | tags


@dataclass(frozen=True)
class GameRecord:
    """A game as it was played, finished or not."""

    game: str  # name of the Game
    start_fen: str
    moves: tuple[str, ...]  # UCI
    result: str  # one of RESULTS; "*": not finished
    termination: str = ""  # why it ended, as `notation.board_outcome` has it, or its PGN's tag
    headers: Mapping[str, str] = field(default_factory=dict)  # other tags: White, Black, Round, ...
    notes: tuple[MoveNote, ...] = ()  # of the first moves, in their order; of those without nothing is known

    @property
    def white_begins(self) -> bool:
        return self.start_fen.split()[1] == "w"


def record_game(
    game: Game,
    edges: Iterable[Any],
    start_fen: str | None = None,
    headers: Mapping[str, str] | None = None,
    notes: Iterable[MoveNote] = (),
) -> GameRecord:
    """The record of a game played from `start_fen` (None: the usual start) along `edges`.

    Result and termination are what python-chess finds after the last move. Raises ValueError, in one sentence, if a
    move is illegal or there are more than the game's `max_legal_moves`.
    """
    start_fen = game.start_fen if start_fen is None else start_fen
    board, moves = board_from_fen(game, start_fen), []
    for edge in edges:
        if (count := board.legal_moves.count()) > game.max_legal_moves:
            raise ConfigError(f"max_legal_moves of {game.name} is {game.max_legal_moves}: {board.fen()} has {count}")
        moves.append(edge_to_uci(game, board, edge))
        board.push(_parse_move(board, moves[-1], len(moves)))
    result, reason = board_outcome(game, board)
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
    if record.result not in RESULTS:
        raise ValueError(f"result {record.result[:20]!r}: expected one of {', '.join(RESULTS)}")
    board = board_class(record.game)(record.start_fen)
    node = pgn = chess.pgn.Game()
    for name, value in record.headers.items():
        pgn.headers[name] = plain_tag(value)
    pgn.setup(board)
    if "FEN" in pgn.headers:
        pgn.headers["SetUp"] = "1"
    pgn.headers["Result"] = record.result
    if record.termination:
        pgn.headers["Termination"] = plain_tag(record.termination)
    notes = itertools.chain(record.notes, itertools.repeat(MoveNote()))
    for number, (uci, note) in enumerate(zip(record.moves, notes, strict=False), start=1):
        move = _parse_move(board, uci, number)
        board.push(move)
        node = node.add_variation(move, comment=write_note(note), nags={note.nag} - {0})
    return pgn.accept(chess.pgn.StringExporter(columns=80)) + "\n\n"


def plain_tag(value: str) -> str:
    """A tag's value without what would have to be escaped, on one line."""
    return " ".join(value.split()).replace('"', "'").replace("\\", "/")


def write_note(note: MoveNote) -> str:
    """The comment of a move: [%eval], [%emt], then its text."""
    node = chess.pgn.Game()
    if note.score is not None:
        node.set_eval(chess.engine.PovScore(note.score, chess.WHITE))
    node.set_emt(note.seconds)
    return " ".join(f"{node.comment} {note.comment}".replace("}", " ").split())


def read_note(comment: str, nag: int = 0) -> MoveNote:
    """Parses the comment after a move; with numbers beyond any game's all of it is text."""
    node = chess.pgn.Game()
    node.comment = comment
    try:
        score, seconds = node.eval(), node.emt()
    except (ValueError, OverflowError):
        return MoveNote(nag=nag, comment=comment)
    if seconds is not None and not math.isfinite(seconds):
        return MoveNote(nag=nag, comment=comment)
    node.set_eval(None)
    node.set_emt(None)
    return MoveNote(score and score.white(), None if seconds is None else round(seconds, 3), nag, node.comment)


def read_pgn(text: str) -> list[GameRecord]:
    """The games of a PGN file, main lines only, each of the board that its Variant tag names.

    Raises ValueError, in one sentence with the game's number from 1, for an unknown variant, a
    wrong FEN, an illegal move, an unknown result, or text that is no game.
    """
    records = []
    for written in read_games(LINE_END.split(text)):
        replayed = replay(written)
        if replayed.record is None:
            raise ValueError(f"PGN game {written.number}: {replayed.fault}")
        records.append(replayed.record)
    return records


class RuleCheck(NamedTuple):
    """The verdict of the rules on a game."""

    illegal: int  # the first illegal move, from 1; 0: there is none
    over: int  # the first move after which the game is over, from 1; 0: it is not
    states: State | None  # numpy [plies + 1], from the start to the last position, if asked for


class Replayed(NamedTuple):
    """A written game after its replay on its board."""

    written: WrittenGame
    record: GameRecord | None  # None: it breaks the rules, or its variant is unknown
    fault: str = ""  # the rule that it breaks, in one sentence; "": none
    ply: int = 0  # of the move at fault, from 1; 0: none is
    is_known: bool = True  # False: its variant is not one of the games
    check: RuleCheck | None = None  # of a record that `rule_checks.check_games` has played too


def replay(written: WrittenGame) -> Replayed:
    """Plays a game's moves by python-chess, whose boards the rules of `rules.py` are tested against."""
    tags = written.tags
    if not tags and (not written.moves or not MOVE.fullmatch(written.moves[0].text)):
        return Replayed(written, None, "it has neither tags nor moves: expected a game")
    variant = tags.get("Variant", "").strip(" ?-") or "Standard"
    name = next((name for name, entry in GAMES.items() if spelling(variant) in entry.spellings), None)
    if name is None:
        known = " or ".join(repr(entry.variant_names[0]) for entry in GAMES.values())
        return Replayed(written, None, f"variant {variant.lower()[:20]!r}: expected {known}", is_known=False)
    fen = tags.get("FEN", "")
    start_fen = GAMES[name].start_fen if fen.strip() in ("", "?", "-", "startpos") else normalize_fen(fen)
    try:
        return _play(written, name, start_fen, result_of(written))
    except ValueError as error:
        return Replayed(written, None, str(error))


def _play(written: WrittenGame, name: str, start_fen: str, result: str) -> Replayed:
    game, moves, notes = get_game(name), [], []
    board = board_from_fen(game, start_fen)
    for ply, move in enumerate(written.moves, 1):
        try:
            found = read_move(board, move.text)
        except ValueError as error:
            return Replayed(written, None, str(error), ply)
        moves.append(found.uci())
        board.push(found)
        notes.append(read_note(move.comment, move.nag) if move.comment or move.nag else MoveNote())
    if written.fault:
        return Replayed(written, None, written.fault)
    others = {tag: value for tag, value in written.tags.items() if tag not in OWN_TAGS}
    while notes and notes[-1] == MoveNote():
        notes.pop()
    why = written.tags.get("Termination", "")
    record = GameRecord(name, start_fen, tuple(moves), result, why, others, tuple(notes))
    expected, how = board_outcome(game, board, 1)
    is_told_otherwise = how in ("checkmate", "stalemate") and result not in ("*", expected)
    fault = f"result {result!r} after {how}: expected {expected!r}" if is_told_otherwise else ""
    return Replayed(written, record, fault, len(moves))
