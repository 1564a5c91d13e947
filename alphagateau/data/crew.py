"""Units of boards in, their parts on disk out: threads with an engine each, which are watched and replaced."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from filelock import FileLock, Timeout

from alphagateau.data.engine import Engine, EngineError, Found
from alphagateau.data.scores import NO_SCORE
from alphagateau.data.tables import LABELS, DataError, write_table
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.rules import Game

Known = Callable[[str], dict[str, Any] | None]  # FEN -> labels found before, if any

WATCH_SECONDS = 0.5
MOST_STARTS = 3  # of an engine in the place of one that failed
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


def start_engine(order: Order) -> Engine:
    return Engine(order.command, order.options, order.game.uci_variant, order.timeout)


class Crew:
    """Threads with an engine each that take units until none is left."""

    def __init__(self, order: Order, identity: str, units: list[Unit], known: Known, should_stop, tell) -> None:
        self.order, self.identity, self.units, self._known = order, identity, units, known
        self._should_stop, self._tell = should_stop, tell
        self.failure: DataError | None = None
        self._engines: list[Engine] = []
        self._lock, self._began = threading.Lock(), time.monotonic()
        self._labelled, self._engine_seconds, self._before = 0, 0.0, self._in_parts()
        self._is_over = threading.Event()

    def work(self, first: Engine) -> None:
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        locks = self.order.output / ".locks"
        locks.mkdir(exist_ok=True)
        try:
            with ThreadPoolExecutor(self.order.workers) as pool:
                engines = [first, *[None] * (self.order.workers - 1)]
                for worker in [pool.submit(self._take_units, engine) for engine in engines]:
                    worker.result()
        finally:
            self._is_over.set()
            watch.join()
            first.close()
            self._tell(self._pace())

    def _stopped(self) -> bool:
        return self.failure is not None or self._should_stop()

    def _take_units(self, engine: Engine | None) -> None:
        """The life of a worker; one that fails ends the others."""
        try:
            for unit in self.units:
                path = part_path(self.order.output, unit)
                if self._stopped():
                    break
                with suppress(Timeout), FileLock(self.order.output / ".locks" / unit.name, timeout=0):
                    if not path.exists():
                        engine = self._label_unit(self._join(engine), unit)
        except DataError as error:
            self.failure = self.failure or error
        except OSError as error:
            self.failure = self.failure or DataError(f"{self.order.output}: {error.strerror or error}")
        finally:
            if engine:
                self._leave(engine)

    def _join(self, engine: Engine | None) -> Engine:
        engine = engine or start_engine(self.order)
        with self._lock:
            if engine not in self._engines:
                self._engines.append(engine)
        return engine

    def _leave(self, engine: Engine) -> None:
        with self._lock:
            self._engine_seconds += _processor_seconds(engine)
            if engine in self._engines:
                self._engines.remove(engine)
        engine.close()

    def _label_unit(self, engine: Engine, unit: Unit) -> Engine:
        """Writes the part of a unit, unless it is stopped; an engine that fails makes room for another."""
        found: list[dict[str, Any]] = []
        for row, board in enumerate(unit.boards, unit.first):
            if self._stopped():
                return engine
            try:
                if (labels := self._known(board["fen"])) is None:
                    engine, labels = self._label_twice(engine, board["fen"])
            except (DataError, ValueError) as error:
                raise DataError(f"{unit.source}, row {row}: {error}") from None
            found.append({**labels, **board})
            with self._lock:
                self._labelled += 1
        is_long = len(found) == max(len(unit.boards) for unit in self.units)
        if is_long and all(row["failed"] for row in found):  # of a split's few last ones each board may be at fault
            raise DataError(f"none of the {len(found)} boards of {unit.name} could be labelled: {found[0]['failed']}")
        write_part(self.order, self.identity, unit, found)
        return engine

    def _label_twice(self, engine: Engine, fen: str) -> tuple[Engine, dict[str, Any]]:
        """An engine that runs, and the labels of a board, or why it has none. Raises DataError, ValueError."""
        why = ""
        for _ in range(2):
            try:
                return engine, label_board(self.order, engine, fen)
            except EngineError as error:
                why = str(error)
                self._leave(engine)
                engine = self._replacement()
        return engine, no_labels(why)

    def _replacement(self) -> Engine:
        """Another engine; one that ends or hangs as it starts is tried again. Raises DataError."""
        for _ in range(MOST_STARTS - 1):
            with suppress(EngineError):
                return self._join(None)
        return self._join(None)

    def _watch(self) -> None:
        """Kills engines that hang, and says how it goes."""
        while not self._is_over.wait(WATCH_SECONDS):
            with self._lock:
                hung = [engine for engine in self._engines if engine.deadline < time.monotonic()]
            for engine in hung:
                engine.process.kill()
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
    """The labels of a board. Raises EngineError, DataError, and ValueError for a FEN that is none of the game's."""
    board = board_from_fen(order.game, fen)
    moves = board_edges(order.game, board)
    if order.multipv:
        by_move = engine.search_moves(fen, order.nodes, moves.values())
        best = max(by_move.values(), key=lambda found: found.score)
        return labels_of(best, {edge: by_move[move] for edge, move in moves.items()})
    state = engine.search(fen, order.nodes)
    if state.move not in moves.values():
        raise DataError(f"engine {order.command!r} answered {state.move}, which is no legal move of {fen}")
    found = {}
    if order.target == "actions":
        is_fresh = order.clear == "move"
        found = {edge: engine.search(fen, order.nodes, move, is_fresh) for edge, move in moves.items()}
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
