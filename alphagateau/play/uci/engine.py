"""The UCI engine: one thread reads, another searches.

The thread that reads answers `uci`, `stop`, `ponderhit` and `quit` at once, and `isready` while a search is in
progress; all else is done in order by the other.
"""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from alphagateau.games.entries import GAMES
from alphagateau.matches.specs import PlayerSpec
from alphagateau.play.levels import Levels, read_levels
from alphagateau.play.opponents import plays
from alphagateau.play.signals import Signals
from alphagateau.play.uci.text import (
    LIMIT_STRENGTH,
    UCI_ELO,
    Option,
    Value,
    describe_option,
    options,
    read_go,
    read_option,
    read_position,
    shown,
    variants,
)
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.programs import own_version

if TYPE_CHECKING:  # imported by the thread that searches, so that a GUI need not wait for `uciok`
    from alphagateau.play.thinking import Played, Thinker

LONGEST_GAME = 10_000  # plies

Write = Callable[[str], None]


@dataclass
class Session:
    """One conversation with a GUI; its fields are changed by the thread that searches only."""

    player: PlayerSpec
    output: Write
    options: dict[str, Value]
    levels: Mapping[str, Levels] = field(default_factory=dict)  # measured, by board
    thinker: "Thinker | None" = None  # of the variant, memory and device that the options name, once it is needed
    played: "Played | None" = None
    fault: str = ""  # of the last position, if it was refused
    idle_since: float = 0.0  # when the last search or compilation ended
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, text: str) -> None:
        """Both threads do, one at a time."""
        with self.lock:
            self.output(text)


class Job(NamedTuple):
    """A command for the thread that searches."""

    name: str
    words: list[str]
    signals: Signals
    read_at: float


@dataclass
class Worker:
    """The thread that searches, and what the one that reads must know of it."""

    jobs: queue.SimpleQueue = field(default_factory=queue.SimpleQueue)
    searches: deque[Signals] = field(default_factory=deque)  # of those not yet answered

    def stop(self, only_endless: bool = False) -> None:
        for signals in tuple(self.searches):
            if signals.is_endless or not only_endless:
                signals.stop()

    def hit(self) -> None:
        for signals in tuple(self.searches):
            signals.hit()


def default_variant(found: Checkpoint) -> str:
    """Chess if the weights play it, else the board that they learnt on."""
    return GAMES["chess" if plays(found, "chess") else found.manifest["game"]].uci_variant


def serve(player: PlayerSpec, lines_in: Iterable[str], write: Write) -> threading.Thread:
    """Answers until `quit` or the end of input. Returns the thread that searched, which may still be compiling.

    At the end of input, searches that end by themselves are finished; `quit` waits for none.
    """
    defaults = {name: option.default for name, option in options().items()}
    defaults["UCI_Variant"] = default_variant(player.found)
    levels = {} if player.search else read_levels(player.found)  # of the growing tree's simulations
    session, worker = Session(player, write, defaults, levels), Worker()
    thread = threading.Thread(target=_work, args=(session, worker), daemon=True)
    thread.start()
    for line in lines_in:
        name, words = _command(line)
        if name == "quit":
            worker.stop()
            worker.jobs.put(None)
            thread.join(timeout=1)
            return thread
        _dispatch(session, worker, name, words)
    worker.stop(only_endless=True)
    worker.jobs.put(None)
    thread.join()
    return thread


def _command(line: str) -> tuple[str, list[str]]:
    """(command, what follows) of a line; words before the first command are skipped, as in the protocol."""
    words = line.split()
    start = next((i for i, word in enumerate(words[:100]) if word in (*NOW, *IN_ORDER, "go", "quit")), None)
    if start is None:
        return "", words[:1]
    return words[start], words[start + 1 :]


def _dispatch(session: Session, worker: Worker, name: str, words: list[str]) -> None:
    if not name:
        if words:
            session.write(f"info string unknown command {shown(words[0])}")
    elif name in NOW:
        NOW[name](session, worker)
    elif name == "isready" and worker.searches:
        session.write("readyok")
    else:
        signals = Signals(bool({"infinite", "ponder"} & set(words)), "ponder" in words and "infinite" not in words)
        if name == "go":
            worker.stop(only_endless=True)
            worker.searches.append(signals)
        worker.jobs.put(Job(name, words, signals, time.monotonic()))


def _greet(session: Session, worker: Worker) -> None:
    manifest, variant = session.player.found.manifest, default_variant(session.player.found)
    greeting = [f"id name AlphaGateau {own_version()} {manifest['weights_hash']}", "id author AlphaGateau"]
    played = tuple(variant for variant, name in variants().items() if plays(session.player.found, name))
    changed = {"UCI_Variant": Option(variant, choices=played)}
    if session.levels:  # of this board or of another that UCI_Variant names
        lowest, highest = zip(*(levels.range for levels in session.levels.values()), strict=True)
        low, high = min(lowest), max(highest)
        changed |= {LIMIT_STRENGTH: Option(False), UCI_ELO: Option(high, low, high)}
    for name, option in options().items():
        if name in changed or name not in (LIMIT_STRENGTH, UCI_ELO):
            greeting.append(describe_option(name, changed.get(name, option)))
    own = GAMES[manifest["game"]].uci_variant
    if own != variant:
        greeting.append(f"info string this network learnt {manifest['game']}: choose it by UCI_Variant {own}")
    session.write("\n".join([*greeting, "uciok"]))


def _work(session: Session, worker: Worker) -> None:
    """Does the jobs in order; what goes wrong in one is reported, and the next is done."""
    with contextlib.suppress(OSError):  # nobody reads the answers any more
        while job := worker.jobs.get():
            best = "(none)"  # where something goes wrong: an engine that ends without a word loses the game
            try:
                if job.name == "go":
                    best = _go(session, job)
                else:
                    IN_ORDER[job.name](session, job)
            except Exception as error:  # of `write` too, which fails again here
                session.write(f"info string {' '.join(str(error).split())}")
            if job.name == "go":
                worker.searches.popleft()  # first: whoever reads the move may send `isready`
                session.idle_since = time.monotonic()
                session.write(f"bestmove {best}")


def _ready(session: Session, job: Job) -> None:
    try:
        _thinker(session)
    finally:
        session.write("readyok")


def _thinker(session: Session) -> "Thinker":
    """The network on the board that the options name; compiled, where it is not yet. Raises CheckpointError."""
    if session.thinker is None:
        name = _board_of(session)
        session.write(f"info string compiling for {name}")
        from alphagateau.play.thinking import find_device, make_thinker

        device = find_device(str(session.options["Device"]))
        session.thinker = make_thinker(session.player, name, int(session.options["Hash"]), device)
        session.idle_since = time.monotonic()  # no clock runs for who has not waited for `readyok`
        session.write("info string compiled")
    return session.thinker


def _new_game(session: Session, job: Job) -> None:
    session.played, session.fault = None, ""
    _thinker(session).root = None


def _set_option(session: Session, job: Job) -> None:
    name, value = read_option(" ".join(job.words))
    if name == "Device":
        from alphagateau.play.thinking import find_device

        find_device(str(value))
    is_level = value is not False and name in (LIMIT_STRENGTH, UCI_ELO)
    if is_level and _board_of(session) in session.levels:
        _check_level(session, value)
    if name in ("UCI_Variant", "UCI_Chess960", "Hash", "Device") and value != session.options[name]:
        session.thinker = None
        if name in ("UCI_Variant", "UCI_Chess960") and session.played:
            session.played, session.fault = None, "the last position is of another board"
    session.options[name] = value
    if is_level or (name in ("UCI_Variant", "UCI_Chess960") and session.options[LIMIT_STRENGTH]):
        _check_level(session, True)  # of a board without levels it says so; the next board may have some


def _board_of(session: Session) -> str:
    """The board that the options name."""
    name = variants()[str(session.options["UCI_Variant"])]
    return "chess960" if name == "chess" and session.options["UCI_Chess960"] else name


def _check_level(session: Session, value: Value) -> None:
    """Raises ValueError where no level is measured, or not this one."""
    board = _board_of(session)
    if board not in session.levels:
        raise ValueError(f"no level of this player is measured on {board}: it plays at its full strength")
    low, high = session.levels[board].range
    if value is not True and not low <= int(value) <= high:
        raise ValueError(f"option {UCI_ELO} is {value}: expected {low} to {high}, the levels measured on {board}")


def _most_simulations(session: Session) -> int | None:
    """Simulations a move of the level asked for; None: no limit."""
    levels = session.levels.get(_board_of(session))  # None on other boards: full strength
    if not (session.options[LIMIT_STRENGTH] and levels):
        return None
    return levels.simulations_of(float(session.options[UCI_ELO]))


def _position(session: Session, job: Job) -> None:
    """A move that is none ends the game given before it; after any other fault there is none to search."""
    from alphagateau.play.thinking import IllegalMove, replay

    known, session.played, session.fault = session.played, None, "the last position was refused"
    fen, moves = read_position(job.words)
    if len(moves) > LONGEST_GAME:
        raise ValueError(f"position has {len(moves)} moves: expected at most {LONGEST_GAME}")
    thinker = _thinker(session)
    try:
        session.played, session.fault = replay(thinker, fen or thinker.game.start_fen, moves, known), ""
    except IllegalMove as error:
        session.played, session.fault = error.before, ""
        raise


def _go(session: Session, job: Job) -> str:
    from alphagateau.play.thinking import replay
    from alphagateau.play.uci.search import Request, search

    if session.fault:
        raise ValueError(session.fault)
    thinker = _thinker(session)
    played = session.played or replay(thinker, thinker.game.start_fen, ())
    started = max(job.read_at, session.idle_since)
    most = _most_simulations(session)
    request = Request(thinker, played, session.options, session.write, started, job.signals, most)
    return search(request, read_go(job.words))


NOW: dict[str, Callable[[Session, Worker], None]] = {
    "uci": _greet,
    "stop": lambda session, worker: worker.stop(),
    "ponderhit": lambda session, worker: worker.hit(),
    "debug": lambda session, worker: None,
    "register": lambda session, worker: None,
}
IN_ORDER = {"isready": _ready, "setoption": _set_option, "ucinewgame": _new_game, "position": _position}
