"""Answers a `go`: lines of information during the search, then the best move."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from alphagateau.games.notation import edge_to_uci, legal_moves, normalize_uci, to_board
from alphagateau.play.clock import Budget, Clock, budget, fixed
from alphagateau.play.signals import Signals
from alphagateau.play.thinking import Limits, Played, Thinker, Watch, choose, think
from alphagateau.play.uci.text import Go, Value, info_text, shown, simulations_of
from alphagateau.search.growing.tree_lines import hashfull, lines

REPORT_SECONDS = 0.5  # between lines of information

Write = Callable[[str], None]


@dataclass
class Request:
    """What to search, and the lines of information on it."""

    thinker: Thinker
    played: Played
    options: Mapping[str, Value]
    write: Write
    started: float  # by time.monotonic()
    signals: Signals
    most_simulations: int | None = None  # a move, of a level of strength
    reported: float | None = None  # when the last lines were written

    def milliseconds(self) -> int:
        return int(1000 * (time.monotonic() - self.started))

    def report_now_and_then(self, done: int) -> None:
        """After a batch: the first one, and then every `REPORT_SECONDS`."""
        if self.reported is None or time.monotonic() - self.reported >= REPORT_SECONDS:
            self.report(done)

    def report(self, done: int) -> None:
        """One line for each of the moves of MultiPV."""
        elapsed, tree = self.milliseconds(), self.thinker.tree
        self.reported, nodes = time.monotonic(), max(1, done)  # the root, where there was time for no more
        for number, line in enumerate(lines(tree, int(self.options["MultiPV"])), 1):
            counts = {"seldepth": max(tree.deepest, len(line.edges)), "multipv": number, "nodes": nodes}
            counts |= {"nps": 1000 * nodes // max(1, elapsed), "hashfull": hashfull(tree), "time": elapsed}
            moves = _in_uci(self.thinker, self.played, line.edges)
            self.write(info_text(line, moves, bool(self.options["UCI_ShowWDL"]), counts))


def search(request: Request, go: Go) -> str:
    """The best move, in UCI, and the one to ponder on: (none) if there is none, any if there was no time."""
    game, state = request.thinker.game, request.played.state
    moves = legal_moves(game, state)
    allowed = _allowed(request, go, moves)
    is_known, done = _think(request, go, allowed) if moves else _await(request)
    if is_known:
        request.report(done)
        return _best(request)
    score = "mate 0" if to_board(game, state).is_checkmate() else "cp 0"
    request.write(f"info depth 0 score {score} nodes 0 time {request.milliseconds()}")
    return next((move for move, edge in moves.items() if edge in (allowed or [edge])), "(none)")


def _allowed(request: Request, go: Go, moves: Mapping[str, int]) -> tuple[int, ...] | None:
    """The edges of `searchmoves`, None for all; what is wrong with a `go` becomes lines of information."""
    board = to_board(request.thinker.game, request.played.state)
    given = [normalize_uci(board, move) for move in go.moves]
    illegal = [f"searchmoves {shown(move)} is no legal move: it is left out" for move in given if move not in moves]
    for complaint in [*go.complaints, *illegal]:
        request.write(f"info string {complaint}")
    return tuple(moves[move] for move in given if move in moves) or None


def _await(request: Request) -> tuple[bool, int]:
    """Nothing to search, but an endless search has its answer when it is due."""
    if request.signals.is_endless:
        request.signals.woken.wait()
    return False, 0


def _think(request: Request, go: Go, allowed: tuple[int, ...] | None) -> tuple[bool, int]:
    """Searches without limits until woken, if it is endless, and then, unless stopped, by the limits of a `go`."""
    thinker, played, signals = request.thinker, request.played, request.signals
    if signals.is_endless:
        watch = Watch(request.started, signals.woken.is_set, request.report_now_and_then)
        found = think(thinker, played, Limits(allowed=allowed), watch)
        request.report(found[1])  # it may be done long before it is stopped
        _await(request)
        if signals.stopped.is_set():
            return found
        request.started = max(request.started, signals.hit_at)
    watch = Watch(request.started, signals.stopped.is_set, request.report_now_and_then)
    return think(thinker, played, _limits(request, go, allowed), watch)


def _best(request: Request) -> str:
    """The move chosen, and what the tree expects after it."""
    thinker, played = request.thinker, request.played
    temperature, seed = int(request.options["Temperature"]) / 100, int(request.options["Seed"])
    line = choose(thinker, played, temperature, seed)
    return " ponder ".join(_in_uci(thinker, played, line.edges[:2] if line else ()))


def _limits(request: Request, go: Go, allowed: tuple[int, ...] | None) -> Limits:
    """The limits of a `go`; without any they are the simulations of the option."""
    overhead, is_white = int(request.options["Move Overhead"]) / 1000, int(request.played.state.color) == 0
    given, simulations = time_of(go, is_white, overhead), simulations_of(go)
    if simulations is None and given is None:
        simulations = int(request.options["Simulations"])
    simulations = min((x for x in (simulations, request.most_simulations) if x is not None), default=None)
    return Limits(simulations, given, allowed)


def time_of(go: Go, is_white: bool, overhead: float) -> Budget | None:
    """The time for one move; None if the time of the player to move is not given."""
    numbers, of_player = go.numbers, ("wtime", "winc") if is_white else ("btime", "binc")
    if "movetime" in numbers:
        return fixed(numbers["movetime"] / 1000, overhead)
    if of_player[0] not in numbers:
        return None
    remaining, increment = (numbers.get(name, 0) / 1000 for name in of_player)
    return budget(Clock(remaining, max(0.0, increment), numbers.get("movestogo")), overhead)


def _in_uci(thinker: Thinker, played: Played, edges: tuple[int, ...]) -> list[str]:
    board, moves = to_board(thinker.game, played.state), []
    for edge in edges:
        moves.append(edge_to_uci(thinker.game, board, edge))
        board.push_uci(moves[-1])
    return moves
