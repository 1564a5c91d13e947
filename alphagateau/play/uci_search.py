"""A position and a `go` in; lines of information while it is searched and the best move out."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from alphagateau.games.notation import edge_to_uci, legal_moves, to_board
from alphagateau.play.clock import Budget, Clock, budget, fixed
from alphagateau.play.thinking import Limits, Played, Thinker, Watch, choose, think
from alphagateau.play.uci_text import Go, Value, info_text, shown, simulations_of
from alphagateau.search.tree_lines import hashfull, lines

REPORT_SECONDS = 0.5  # between lines of information

Write = Callable[[str], None]


class Request(NamedTuple):
    """What to search, and whom to tell."""

    thinker: Thinker
    played: Played
    options: Mapping[str, Value]
    write: Write
    started: float  # by time.monotonic()
    is_stopped: threading.Event
    is_endless: bool  # answered only once it is stopped


def search(request: Request, go: Go) -> str:
    """The best move, in UCI: (none) if there is none, any move if there was no time to look at one."""
    thinker, played = request.thinker, request.played
    moves = legal_moves(thinker.game, played.state)
    illegal = [move for move in go.moves if move not in moves]
    complaints = [*go.complaints, *(f"searchmoves {shown(move)} is no legal move: it is left out" for move in illegal)]
    if "ponder" in go.flags:
        complaints.append("there is no pondering: this is searched until stop")
    for complaint in complaints:
        request.write(f"info string {complaint}")
    limits, teller = _limits(request, go, moves), Teller(request)
    watch = Watch(request.started, request.is_stopped.is_set, teller.now_and_then)
    is_known, done = think(thinker, played, limits, watch) if moves else (False, 0)
    if request.is_endless:
        request.is_stopped.wait()
    if is_known:
        teller(done)
        temperature, seed = int(request.options["Temperature"]) / 100, int(request.options["Seed"])
        best = edge_to_uci(thinker.game, played.state, choose(thinker, played, temperature, seed))
    else:
        best = next((move for move, edge in moves.items() if edge in (limits.allowed or [edge])), "(none)")
        score = "mate 0" if to_board(thinker.game, played.state).is_checkmate() else "cp 0"
        request.write(f"info depth 0 score {score} nodes 0 time {teller.milliseconds()}")
    return best


def _limits(request: Request, go: Go, moves: Mapping[str, int]) -> Limits:
    """What a `go` asks for; without any limit it is so many simulations as the option says."""
    overhead, is_white = int(request.options["Move Overhead"]) / 1000, int(request.played.state.color) == 0
    allowed = tuple(moves[move] for move in go.moves if move in moves) or None
    if request.is_endless:
        return Limits(allowed=allowed)
    given, simulations = time_of(go, is_white, overhead), simulations_of(go)
    if simulations is None and given is None:
        simulations = int(request.options["Simulations"])
    return Limits(simulations, given, allowed)


def time_of(go: Go, is_white: bool, overhead: float) -> Budget | None:
    """The time for one move; None if nothing is said of the time of the player to move."""
    numbers, of_player = go.numbers, ("wtime", "winc") if is_white else ("btime", "binc")
    if "movetime" in numbers:
        return fixed(numbers["movetime"] / 1000, overhead)
    if of_player[0] not in numbers:
        return None
    remaining, increment = (numbers.get(name, 0) / 1000 for name in of_player)
    return budget(Clock(remaining, max(0.0, increment), numbers.get("movestogo")), overhead)


@dataclass
class Teller:
    """Writes lines of information on a search in progress."""

    request: Request
    last: float | None = None

    def milliseconds(self) -> int:
        return int(1000 * (time.monotonic() - self.request.started))

    def now_and_then(self, done: int) -> None:
        """After a batch: the first one, and then as often as `REPORT_SECONDS` says."""
        if self.last is None or time.monotonic() - self.last >= REPORT_SECONDS:
            self(done)

    def __call__(self, done: int) -> None:
        """One line for each of the moves that MultiPV asks for."""
        request, elapsed, tree = self.request, self.milliseconds(), self.request.thinker.tree
        self.last = time.monotonic()
        for number, line in enumerate(lines(tree, int(request.options["MultiPV"])), 1):
            counts = {"seldepth": max(tree.deepest, len(line.edges)), "multipv": number, "nodes": done}
            counts |= {"nps": 1000 * done // max(1, elapsed), "hashfull": hashfull(tree), "time": elapsed}
            moves = _in_uci(request.thinker, request.played, line.edges)
            request.write(info_text(line, moves, bool(request.options["UCI_ShowWDL"]), counts))


def _in_uci(thinker: Thinker, played: Played, edges: tuple[int, ...]) -> list[str]:
    board, moves = to_board(thinker.game, played.state), []
    for edge in edges:
        moves.append(edge_to_uci(thinker.game, board, edge))
        board.push_uci(moves[-1])
    return moves
