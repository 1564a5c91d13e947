"""Labels units of boards into parts on disk, by threads with an engine each that is replaced when it fails."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from filelock import FileLock, Timeout

from alphagateau.data.scores import NO_SCORE
from alphagateau.data.searches import Found, search, search_moves
from alphagateau.data.tables import LABELS, DataError, LabellingError, write_table
from alphagateau.engines.engine import Engine, EngineError, EngineFault, EngineSetup, start_engine
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.rules import Game

Known = Callable[[str], dict[str, Any] | None]  # FEN -> labels found before, if any

WATCH_SECONDS = 0.5  # between two looks at how it goes
MOST_STARTS = 3  # of an engine that ends or hangs as it starts
MOST_FAILURES = 5  # boards one after another on which the engine fails, before it is given up
OWN_OPTIONS = {"Threads": "1", "Hash": "1", "Contempt": "0"}  # where the engine has them and the user says nothing
FLAGS = ("--nodes", "--timeout", "--multipv", "--workers")  # that are written as an engine's options by mistake
TARGETS = ("actions", "states", "best")


class Order(NamedTuple):
    """What is to be labelled, how, and by how many."""

    game: Game
    boards: Path  # folder of train.parquet and test.parquet
    output: Path
    command: str
    options: Mapping[str, str]
    nodes: int
    target: str  # one of TARGETS: all legal moves and the state, the state, or the state and its best move
    clear: str  # "move" or "board": before what the hash table is emptied
    workers: int
    timeout: float  # seconds of one search
    known: Path | None = None  # folder of labels that are taken for the boards that it has
    multipv: bool = False  # one search, of so many nodes a move, scores all moves of a board


class Unit(NamedTuple):
    """Boards whose labels are one file."""

    name: str  # such as train-00012
    boards: list[dict[str, Any]]
    source: str = ""  # the file that they are from
    first: int = 0  # the row of the first of them there


class Pace(NamedTuple):
    """How the labelling goes, since this start."""

    done: int  # boards, of all
    total: int
    labelled: int  # since this start
    seconds: float
    engine_seconds: float  # of processor time of all engines


def part_path(folder: Path, unit: Unit) -> Path:
    return folder / f"{unit.name}.parquet"


def start(order: Order, should_stop: Callable[[], bool] = lambda: False) -> Engine:
    """The engine of an order. Raises EngineError."""
    return start_engine(
        EngineSetup(order.command, order.options, order.timeout, OWN_OPTIONS, FLAGS), order.game, should_stop
    )


class Crew:
    """Threads with an engine each that take units until none is left."""

    def __init__(self, order: Order, identity: str, units: list[Unit], known: Known, should_stop, tell) -> None:
        self.order, self.identity, self.units, self._known = order, identity, units, known
        self._should_stop, self._tell = should_stop, tell
        self.failure: DataError | None = None
        self._engines: list[Engine] = []
        self._lock, self._began = threading.Lock(), time.monotonic()
        self._labelled, self._engine_seconds, self._before = 0, 0.0, self._in_parts()
        self._failures = 0  # boards one after another on which the engine failed
        self._is_over = threading.Event()

    def work(self, first: Engine) -> None:
        teller = threading.Thread(target=self._tell_regularly, daemon=True)
        teller.start()
        locks = self.order.output / ".locks"
        locks.mkdir(exist_ok=True)
        self._engines.append(first)
        try:
            with ThreadPoolExecutor(self.order.workers) as pool:
                engines = [first, *[None] * (self.order.workers - 1)]
                for worker in [pool.submit(self._take_units, engine) for engine in engines]:
                    worker.result()
        finally:
            self._is_over.set()
            teller.join()
            for engine in self._engines.copy():
                self._leave(engine)
            self._tell(self._pace())

    def is_stopped(self) -> bool:
        return self.failure is not None or self._should_stop()

    def _take_units(self, engine: Engine | None) -> None:
        """The life of a worker; one that fails ends the others."""
        try:
            for unit in self.units:
                path = part_path(self.order.output, unit)
                if self.is_stopped():
                    break
                with suppress(Timeout), FileLock(self.order.output / ".locks" / unit.name, timeout=0):
                    if not path.exists():
                        engine = self._label_unit(engine, unit)
        except DataError as error:
            self.failure = self.failure or error
        except OSError as error:
            self.failure = self.failure or LabellingError(f"{self.order.output}: {error.strerror or error}")

    def _label_unit(self, engine: Engine | None, unit: Unit) -> Engine | None:
        """Writes the part of a unit, unless it is stopped; the engine that runs then."""
        found: list[dict[str, Any]] = []
        for row, board in enumerate(unit.boards, unit.first):
            try:
                if (labels := self._known(board["fen"])) is None:
                    engine, labels = self._label(engine, board["fen"])
            except (DataError, EngineError, ValueError) as error:
                if self.is_stopped():
                    return engine
                kind = DataError if isinstance(error, ValueError) else LabellingError
                raise kind(f"{unit.source}, row {row}: {error}") from None
            if self.is_stopped() and (labels["failed"] or row < unit.first + len(unit.boards) - 1):
                return engine
            found.append({**labels, **board})
            with self._lock:
                self._labelled += 1
        write_part(self.order, self.identity, unit, found)
        return engine

    def _label(self, engine: Engine | None, fen: str) -> tuple[Engine | None, dict[str, Any]]:
        """The labels of a board, or why it has none, and the engine if it runs.

        A board on which the engine fails is tried once more, unless the one before was in vain too. Raises DataError,
        EngineError, ValueError.
        """
        why = ""
        for _ in range(1 if self._failures else 2):
            engine = engine or self._start()
            try:
                labels = label_board(self.order, engine, fen)
                self._failures = 0
                return engine, labels
            except EngineFault as error:
                why = str(error)
                self._leave(engine)
                engine = None
        with self._lock:
            self._failures += 1
        if self._failures >= min(MOST_FAILURES, max(len(unit.boards) for unit in self.units)):
            raise DataError(f"the engine is given up: it failed on {self._failures} boards one after another, {why}")
        return engine, no_labels(why)

    def _start(self) -> Engine:
        """An engine; one that ends or hangs as it starts is tried again. Raises EngineError."""
        for left in reversed(range(MOST_STARTS)):
            try:
                engine = start(self.order, self.is_stopped)
                break
            except EngineFault:
                if not left or self.is_stopped():
                    raise
        with self._lock:
            self._engines.append(engine)
        return engine

    def _leave(self, engine: Engine) -> None:
        with self._lock:
            self._engine_seconds += _processor_seconds(engine)
            self._engines.remove(engine)
        engine.close()

    def _tell_regularly(self) -> None:
        while not self._is_over.wait(WATCH_SECONDS):
            self._tell(self._pace())

    def _in_parts(self) -> int:
        return sum(len(unit.boards) for unit in self.units if part_path(self.order.output, unit).exists())

    def _pace(self) -> Pace:
        with self._lock:
            seconds = self._engine_seconds + sum(map(_processor_seconds, self._engines))
        done = max(self._before + self._labelled, self._in_parts())  # of others too, once their parts are whole
        total = sum(len(unit.boards) for unit in self.units)
        return Pace(min(done, total), total, self._labelled, time.monotonic() - self._began, seconds)


def _processor_seconds(engine: Engine) -> float:
    with suppress(psutil.Error):
        times = psutil.Process(engine.process.pid).cpu_times()
        return times.user + times.system
    return 0.0


def label_board(order: Order, engine: Engine, fen: str) -> dict[str, Any]:
    """The labels of a board. Raises EngineFault, DataError, and ValueError for a FEN that is none of the game's."""
    board = board_from_fen(order.game, fen)
    moves = board_edges(order.game, board)
    if order.multipv:
        by_move = search_moves(engine, fen, order.nodes, moves.values())
        best = max(by_move.values(), key=lambda found: found.score)
        return labels_of(best, {edge: by_move[move] for edge, move in moves.items()})
    state = search(engine, fen, order.nodes)
    if state.move not in moves.values():
        raise DataError(f"engine {order.command!r} answered {state.move}, which is no legal move of {fen}")
    found = {}
    if order.target == "actions":
        is_fresh = order.clear == "move"
        found = {edge: search(engine, fen, order.nodes, move, is_fresh) for edge, move in moves.items()}
    elif order.target == "best":
        found = {edge: state for edge, move in moves.items() if move == state.move}
    return labels_of(state, found)


def write_part(order: Order, identity: str, unit: Unit, found: list[dict[str, Any]]) -> None:
    """Writes the rows of a unit."""
    columns = {name: [row[name] for row in found] for name in LABELS.names}
    write_table(part_path(order.output, unit), columns, LABELS, {"board": order.game.name, "labels": identity})


def labels_of(state: Found, found: Mapping[int, Found]) -> dict[str, Any]:
    """The labels of a board: what was found of it, and of some of its moves."""
    return {
        "state_score": state.score,
        "edges": list(found),
        "scores": [x.score for x in found.values()],
        "depths": [x.depth for x in found.values()],
        "failed": "",
    }


def no_labels(why: str) -> dict[str, Any]:
    """Of a board on which the engine failed twice."""
    return {"state_score": NO_SCORE, "edges": [], "scores": [], "depths": [], "failed": why}
