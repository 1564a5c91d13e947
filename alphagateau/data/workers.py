"""Labels boards by threads with an engine each, which is replaced when it fails."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, NamedTuple

import psutil

from alphagateau.data.label_files import LabelJob, Unit, part_path, write_parts
from alphagateau.data.tables import DataError, LabellingError
from alphagateau.engines.engine import Engine, EngineError, EngineFault, EngineSetup, ScoredLine
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.scores import NO_SCORE, encode
from alphagateau.runs.files import reason

MOST_DOUBLINGS = 8  # of the nodes, while a search gives no score


class SearchResult(NamedTuple):
    """The best move of a search and its score."""

    score: int  # `scores.encode`, for the player to move
    depth: int
    move: str  # UCI


def search(engine: Engine, fen: str, nodes: int, move: str | None = None, is_fresh: bool = True) -> SearchResult:
    """The result of `nodes` nodes on a position, or on one move there.

    A fresh search begins from an empty hash table, another one from that of the last. A search without a score, as
    small ones may be, is made again with twice the nodes. Raises EngineFault, and DataError for another move.
    """
    for doubling in range(MOST_DOUBLINGS + 1):
        answer = engine.go(f"fen {fen}", f"nodes {nodes << doubling}", [move] if move else (), is_fresh=is_fresh)
        if move and answer.move != move:
            answered = answer.move or "nothing"
            raise DataError(f"engine {engine.command!r} answered {answered} to searchmoves {move} in {fen}")
        if answer.line:
            return _result(answer.line, answer.move)
    raise EngineFault(f"engine {engine.command!r} gave no score of {fen}")


def search_moves(engine: Engine, fen: str, nodes: int, moves: Collection[str]) -> dict[str, SearchResult]:
    """The results of one search of all legal moves (UCI's MultiPV), from an empty hash table, of `nodes` nodes a move.

    Each move has the score of the last depth to which it was searched; while some have none, the search is made again
    with twice the nodes. Raises as `search`.
    """
    for doubling in range(MOST_DOUBLINGS + 1):
        limit = f"nodes {(nodes << doubling) * len(moves)}"
        by_move = engine.go(f"fen {fen}", limit, num_lines=len(moves)).by_move
        if strange := by_move.keys() - set(moves):
            raise DataError(f"engine {engine.command!r} showed {min(strange)}, which is no legal move of {fen}")
        if len(by_move) == len(moves):
            return {move: _result(line, move) for move, line in by_move.items()}
    raise EngineFault(f"engine {engine.command!r} gave no score of some moves of {fen}")


def _result(line: ScoredLine, move: str) -> SearchResult:
    return SearchResult(encode(line.kind, line.number), min(line.depth, 255), move)


KnownLabels = Callable[[str], dict[str, Any] | None]  # FEN -> labels found before, if any

REPORT_SECONDS = 0.5
MOST_STARTS = 3  # of an engine that ends or hangs as it starts
MOST_FAILURES = 5  # boards one after another on which the engine fails, before it is given up
OWN_OPTIONS = {"Threads": "1", "Hash": "1", "Contempt": "0"}  # where the engine has them and the user gives none
FLAGS = ("--nodes", "--timeout", "--multipv", "--workers")  # that are written as an engine's options by mistake


class Pace(NamedTuple):
    """Progress of a labelling."""

    done: int  # boards, of all
    total: int
    labelled: int  # boards, since this start
    seconds: float  # since this start
    engine_seconds: float  # of processor time of all engines


def open_engine(job: LabelJob, should_stop: Callable[[], bool] = lambda: False) -> Engine:
    """The engine of a job. Raises EngineError."""
    return Engine(EngineSetup(job.command, job.options, job.timeout, OWN_OPTIONS, FLAGS), job.game, should_stop)


def count_done(job: LabelJob, units: list[Unit]) -> int:
    """Boards whose parts are written."""
    written = {path.name for path in job.output.glob("*.parquet")}  # at once, as the folder may be far away
    return sum(len(unit.boards) for unit in units if part_path(job.output, unit).name in written)


class Workers:
    """Threads with an engine each that take units until none is left."""

    def __init__(
        self, job: LabelJob, identity: str, units: list[Unit], known: KnownLabels, should_stop: Callable[[], bool]
    ) -> None:
        self.job, self.identity, self.units, self._known = job, identity, units, known
        self._should_stop = should_stop
        self.failure: DataError | None = None
        self._engines: list[Engine] = []
        self._idle: list[Engine] = []  # those that no thread uses
        self._lock, self._began = threading.Lock(), time.monotonic()
        self._labelled, self._engine_seconds, self._before = 0, 0.0, count_done(job, units)
        self._failures = 0  # boards one after another on which the engine failed

    def run(self, first: Engine, report: Callable[[Pace], None]) -> None:
        """Labels the units, beginning with the engine `first`; `report` is called regularly and at the end."""
        self._engines.append(first)
        self._idle.append(first)
        self._engine_seconds -= _processor_seconds(first)  # of its start, before these threads'
        try:
            with ThreadPoolExecutor(self.job.workers) as pool:
                left = {pool.submit(self._work) for _ in range(self.job.workers)}
                while left:
                    done, left = wait(left, REPORT_SECONDS)
                    for worker in done:
                        worker.result()
                    report(self._pace())
        finally:
            for engine in self._engines.copy():
                self._close(engine)
            report(self._pace())

    def is_stopped(self) -> bool:
        return self.failure is not None or self._should_stop()

    def _work(self) -> None:
        """Takes units; a failure ends the other workers too."""
        try:
            write_parts(self.job, self.identity, self.units, self.is_stopped, self._label_unit)
        except DataError as error:
            self.failure = self.failure or error
        except OSError as error:
            self.failure = self.failure or LabellingError(f"{self.job.output}: {reason(error)}")

    def _label_unit(self, unit: Unit) -> list[dict[str, Any]] | None:
        """The rows of a unit's part; None: stopped. Raises DataError."""
        labelled: list[dict[str, Any]] = []
        for row, board in enumerate(unit.boards, unit.first):
            try:
                labels = self._known(board["fen"]) or self._label(board["fen"])
            except (DataError, EngineError, ValueError) as error:
                if self.is_stopped():
                    return None
                kind = DataError if isinstance(error, ValueError) else LabellingError
                raise kind(f"{unit.source}, row {row}: {error}") from None
            if self.is_stopped() and (labels["failed"] or row < unit.first + len(unit.boards) - 1):
                return None
            labelled.append({**labels, **board})
            with self._lock:
                self._labelled += 1
        return labelled

    def _label(self, fen: str) -> dict[str, Any]:
        """The labels of a board, or the reason that it has none.

        A board on which the engine fails is tried once more, unless the one before was in vain too. Raises DataError,
        EngineError, ValueError.
        """
        why = ""
        for _ in range(1 if self._failures else 2):
            engine = self._engine()
            try:
                labels = label_board(self.job, engine, fen)
                self._failures = 0
                self._idle.append(engine)
                return labels
            except EngineFault as error:
                why = str(error)
                self._close(engine)
        with self._lock:
            self._failures += 1
        if self._failures >= min(MOST_FAILURES, max(len(unit.boards) for unit in self.units)):
            raise DataError(f"the engine is given up: it failed on {self._failures} boards one after another, {why}")
        return {"state_score": NO_SCORE, "edges": [], "scores": [], "depths": [], "failed": why}

    def _engine(self) -> Engine:
        """An engine that nobody uses, or a new one, of which MOST_STARTS may end or hang. Raises EngineError."""
        with suppress(IndexError):
            return self._idle.pop()
        left = MOST_STARTS
        while True:
            try:
                engine = open_engine(self.job, self.is_stopped)
                with self._lock:
                    self._engines.append(engine)
                return engine
            except EngineFault:
                left -= 1
                if not left or self.is_stopped():
                    raise

    def _close(self, engine: Engine) -> None:
        with self._lock:
            self._engine_seconds += _processor_seconds(engine)
            self._engines.remove(engine)
        engine.close()

    def _pace(self) -> Pace:
        with self._lock:
            seconds = self._engine_seconds + sum(map(_processor_seconds, self._engines))
        done = max(self._before + self._labelled, count_done(self.job, self.units))  # of others too, once in parts
        total = sum(len(unit.boards) for unit in self.units)
        return Pace(min(done, total), total, self._labelled, time.monotonic() - self._began, seconds)


def _processor_seconds(engine: Engine) -> float:
    with suppress(psutil.Error):
        times = psutil.Process(engine.process.pid).cpu_times()
        return times.user + times.system
    return 0.0


def label_board(job: LabelJob, engine: Engine, fen: str) -> dict[str, Any]:
    """The labels of a board. Raises EngineFault, DataError, and ValueError for a FEN of no legal move."""
    moves = board_edges(job.game, board_from_fen(job.game, fen))
    if not moves:
        raise ValueError(f"the game is over in {fen}, expected a legal move")
    if job.multipv:
        by_move = search_moves(engine, fen, job.nodes, moves.values())
        best = max(by_move.values(), key=lambda result: result.score)
        return labels_of(best, {edge: by_move[move] for edge, move in moves.items()})
    state = search(engine, fen, job.nodes)
    if state.move not in moves.values():
        raise DataError(f"engine {job.command!r} answered {state.move}, which is no legal move of {fen}")
    by_edge = {}
    if job.target == "actions":
        by_edge = {edge: search(engine, fen, job.nodes, move, job.clear == "move") for edge, move in moves.items()}
    elif job.target == "best":
        by_edge = {edge: state for edge, move in moves.items() if move == state.move}
    return labels_of(state, by_edge)


def labels_of(state: SearchResult, by_edge: Mapping[int, SearchResult]) -> dict[str, Any]:
    """The columns of LABELS for a board, by the searches of it and of some of its moves."""
    return {
        "state_score": state.score,
        "edges": list(by_edge),
        "scores": [result.score for result in by_edge.values()],
        "depths": [result.depth for result in by_edge.values()],
        "failed": "",
    }
