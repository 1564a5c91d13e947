"""UCI engines as players, by a spec such as `uci:/usr/games/stockfish?nodes=50&Skill Level=3` (docs/play.md).

Each move is searched from a clean hash table, so that it depends on the game alone.

An engine also breaks ties of players of values in won positions. To such a player every move that keeps a won game won
is worth the same, and it may never mate. As in Ruoss et al. (2024): where its best moves are all as good as won and the
engine agrees, the engine's choice among them is played. It searches on the host, from the midst of a device call.
"""

import atexit
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import chess
import chess.engine
import numpy as np

from alphagateau.engines.engine import Engine, EngineAnswer, EngineError, EngineSetup, ScoredLine
from alphagateau.games.notation import edge_to_uci, to_board
from alphagateau.games.pgn.pgn import Identity, MoveNote
from alphagateau.games.rules import Game
from alphagateau.games.scores import win_chance
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.matches.players import Player, Reply
from alphagateau.matches.specs import PlayerError, PlayerSpec, SpecError
from alphagateau.runs.programs import split_command
from alphagateau.search.move_values import TieBreak

LIMITS = ("nodes", "movetime", "depth")
TIE_BREAK_NODES = 10_000
WON = 0.99  # chance of winning, by the engine, from which it agrees on a tie break
TIMEOUT = 60.0  # seconds
MOST_COUNT = 10**9  # of nodes, milliseconds, plies or processes
WORDS = (*LIMITS, "timeout", "processes")  # of a spec, beside the engine's options
T = TypeVar("T", int, float)


class EngineSearch(NamedTuple):
    """An engine and the length of its searches."""

    command: str
    limit: tuple[str, int]  # ("nodes", 50)
    options: dict[str, str]  # the engine's own
    timeout: float  # seconds
    processes: int


def engine_search(spec: PlayerSpec) -> EngineSearch:
    """The engine of a spec. Raises SpecError."""
    command, options, text = spec.path.removeprefix("uci:"), dict(spec.options), spec.text
    if not command.strip():
        raise SpecError(f"player {text!r} names no program, expected such as uci:/usr/games/stockfish?nodes=50")
    limits = [(name, _parse(text, name, options.pop(name), int, MOST_COUNT)) for name in LIMITS if name in options]
    if len(limits) > 1:
        raise SpecError(f"player {text!r}: expected one of nodes, movetime and depth")
    processes = _parse(text, "processes", options.pop("processes", "1"), int, MOST_COUNT)
    timeout = _parse(text, "timeout", options.pop("timeout", str(TIMEOUT)), float, threading.TIMEOUT_MAX)
    return EngineSearch(command, limits[0] if limits else ("nodes", 1000), options, timeout, processes)


def _parse(spec: str, name: str, text: str, kind: Callable[[str], T], most: float) -> T:
    with suppress(ValueError):
        if 0 < (value := kind(text)) < most:
            return value
    noun = "a whole number" if kind is int else "seconds"
    raise SpecError(f"player {spec!r}: {name} is {text!r}, expected {noun} above 0 and below {most:,.0f}")


def load_uci_player(spec: PlayerSpec, game: Game) -> Player:
    """Starts an engine, named as it calls itself, with its arguments, without folders, the limit and its options.

    Its processes end with `close`, or with this program. Raises SpecError if it cannot be started,
    does not play the game, or has no such option.
    """
    wanted = engine_search(spec)
    with ExitStack() as started:
        engines = [started.enter_context(closing(_start(wanted, game))) for _ in range(wanted.processes)]
        close = started.pop_all().close
    atexit.register(close)
    called = engines[0].name.split()
    name = " ".join([*called, *(Path(argument).name for argument in split_command(wanted.command)[1:])])
    options = sorted((engines[0].offered[key.lower()].name, value) for key, value in wanted.options.items())
    settings = " ".join(f"{key}={value}" for key, value in [wanted.limit, *options])
    return Player(
        f"{name} {settings}",
        identity=Identity(search=settings),
        move=_make_move(engines, wanted, game),
        num_workers=wanted.processes,
        close=close,
    )


def analyse(engine: Engine, wanted: EngineSearch, board: chess.Board, moves: Sequence[chess.Move] = ()) -> EngineAnswer:
    """What the engine's search finds, of all moves or of some, from an empty hash table. Raises PlayerError."""
    name, value = wanted.limit
    seconds = value / 1000 if name == "movetime" else 0.0
    played = f" moves {' '.join(move.uci() for move in board.move_stack)}" if board.move_stack else ""
    position = f"fen {board.root().fen(en_passant='fen')}{played}"
    try:
        return engine.go(position, f"{name} {value}", [move.uci() for move in moves], seconds=seconds)
    except EngineError as error:
        raise PlayerError(str(error)) from None


def _start(wanted: EngineSearch, game: Game) -> Engine:
    try:
        return Engine(EngineSetup(wanted.command, wanted.options, wanted.timeout, words=WORDS), game)
    except EngineError as error:
        raise SpecError(str(error)) from None


def _make_move(engines: list[Engine], wanted: EngineSearch, game: Game) -> Callable[[str, Sequence[str]], Reply]:
    idle: queue.Queue[Engine] = queue.Queue()
    for engine in engines:
        idle.put(engine)

    def move(start_fen: str, moves: Sequence[str]) -> Reply:
        engine = idle.get()
        try:
            board = game.board_class(start_fen)
            for uci in moves:
                board.push_uci(uci)
            return _search(engine, wanted, board)
        finally:
            idle.put(engine)

    return move


def _search(engine: Engine, wanted: EngineSearch, board: chess.Board) -> Reply:
    """The engine's move, with its last score and the time that it took."""
    begun = time.perf_counter()
    found = analyse(engine, wanted, board)
    note = MoveNote(score_after(found.line, board.turn), time.perf_counter() - begun)
    if not found.move:
        raise PlayerError(f"engine {engine.command!r} broke the rules: it gave no move in {board.fen()}")
    try:
        return Reply(board.parse_uci(found.move).uci(), note, found.nodes)
    except ValueError as error:
        raise PlayerError(f"engine {engine.command!r} broke the rules: {error}") from None


def score_after(line: ScoredLine | None, color: chess.Color) -> chess.engine.Score | None:
    """White's score after the best move, of the mover's before it; None if there is none, or the move mates."""
    if line is None:
        return None
    moves = line.number - 1 if line.number > 0 else line.number
    if line.kind == "mate" and line.number > 0 and not moves:
        return None
    score = chess.engine.Mate(moves) if line.kind == "mate" else chess.engine.Cp(line.number)
    return score if color else -score


@lru_cache
def make_finish(game_name: str, command: str) -> TieBreak:
    """A tie break by an engine, which runs until this program ends. Raises SpecError if it cannot be started."""
    game, wanted = get_game(game_name), EngineSearch(command, ("nodes", TIE_BREAK_NODES), {}, TIMEOUT, 1)
    engine, lock = _start(wanted, game), threading.Lock()
    atexit.register(engine.close)

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
