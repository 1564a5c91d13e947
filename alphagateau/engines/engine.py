"""Runs a UCI engine and reads its answers: bounded in memory, each with a deadline, whatever the engine writes.

By hand because python-chess's protocol costs about as much processor time a search as a search of 1000 nodes itself.
"""

import io
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from alphagateau.engines.options import Option, fault_of_option, read_option
from alphagateau.games.rules import Game
from alphagateau.runs.files import reason
from alphagateau.runs.programs import split_command

WATCH_SECONDS = 0.1
QUIT_SECONDS = 1.0
MOST_LINE, MOST_TEXT = 1 << 14, 200  # bytes of a line; characters of a name or a move
MOST_OPTIONS, MOST_MOVES = 1000, 1000
SCORE = re.compile(rb" score (cp|mate) (-?[0-9]{1,18})(?: |$)")  # one of more digits is none
DEPTH, NODES = re.compile(rb" depth ([0-9]{1,18}) "), re.compile(rb" nodes ([0-9]{1,18})(?: |$)")
MOVE = re.compile(rb"[A-Za-z0-9@]{1,10}(?= |$)")
INSTALL = "install it (Debian: apt install stockfish fairy-stockfish, into /usr/games), or give its path"


class EngineError(RuntimeError):
    """An engine cannot be started or used as it is wanted; one sentence naming it."""


class EngineFault(EngineError):
    """An engine ended, hung or broke the protocol; another process of it may do better."""


class EngineSetup(NamedTuple):
    """An engine that a user wants."""

    command: str
    options: Mapping[str, str] = {}  # the engine's own
    timeout: float = 60.0  # seconds, from a question to its answer
    defaults: Mapping[str, str] = {}  # of options that it may have, where the user gives none
    words: Sequence[str] = ()  # that a user may have meant by an option's name


class ScoredLine(NamedTuple):
    """An exact score that a search shows, for the player to move."""

    kind: str  # "cp", centipawns, or "mate", moves
    number: int
    depth: int
    move: str  # UCI, the first of the principal variation; "" if none is shown


class EngineAnswer(NamedTuple):
    """What a search found."""

    move: str  # UCI; "" for none
    line: ScoredLine | None  # the last
    by_move: Mapping[str, ScoredLine]  # the last of each move that was shown
    nodes: int | None


class Engine:
    """A running engine that is ready to search positions of a game, used by one thread at a time."""

    def __init__(self, setup: EngineSetup, game: Game, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Starts it; `should_stop` is whether to give up what it does, at once.

        Raises EngineError if it cannot be started, lacks an option or its value, or does not play the game.
        """
        self.command, self.timeout, self._should_stop = setup.command, setup.timeout, should_stop
        self.name, self.options = setup.command, {}
        self.offered: dict[str, Option] = {}  # by name in lower case
        self._num_lines = 1  # the engine's MultiPV
        self._question, self._allowed, self._deadline = "", setup.timeout, float("inf")
        self._why, self._is_idle, self._is_closed = "", True, threading.Event()
        try:
            self.process = subprocess.Popen(
                split_command(setup.command) or [""],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # what is typed at the terminal is for us
            )
        except (OSError, ValueError) as error:
            hint = f"; {INSTALL}" if isinstance(error, FileNotFoundError) else ""
            raise EngineError(f"engine {setup.command!r} cannot be started: {reason(error)}{hint}") from None
        assert self.process.stdout
        self._output = io.BufferedReader(self.process.stdout)  # pyright: ignore[reportArgumentType]
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            self._greet()
            self._configure(setup, game)
        except BaseException:
            self.close()
            raise

    @property
    def most_lines(self) -> int:
        """Of MultiPV."""
        return self.offered["multipv"].most or 1 if "multipv" in self.offered else 1

    def _greet(self) -> None:
        """Reads name and options. Raises EngineFault."""
        with self._asking("uci", self.timeout, "uci\n"):
            for line in map(_text, self._until(b"uciok")):
                if line.startswith("id name "):
                    self.name = line[8:][:MOST_TEXT]
                elif option := read_option(line):
                    self.offered[option.name.lower()] = option
                if len(self.offered) > MOST_OPTIONS:
                    raise EngineFault(f"engine {self.command!r} offers more than {MOST_OPTIONS} options")

    def _configure(self, setup: EngineSetup, game: Game) -> None:
        """Sets the options. Raises EngineError."""
        for name, value in setup.options.items():
            if fault := fault_of_option(self.offered, name, value, setup.words):
                raise EngineError(f"engine {self.command!r}{fault}")
        variant = self.offered.get("uci_variant", Option("UCI_Variant", "combo", values=("chess",)))
        chess960 = self.offered.get("uci_chess960") if game.is_fischer_random else None
        name = "chess" if chess960 else game.uci_variant
        if name not in variant.values:
            raise EngineError(
                f"engine {self.command!r} does not play {game.name}: it knows no UCI_Variant {game.uci_variant}"
            )
        wanted = {name: value for name, value in setup.defaults.items() if name.lower() in self.offered}
        wanted |= {variant.name: name} if name != "chess" else {}
        wanted |= {chess960.name: "true"} if chess960 else {}
        wanted |= {self.offered[name.lower()].name: value for name, value in setup.options.items()}
        commands = "".join(f"setoption name {name} value {value}\n" for name, value in wanted.items())
        with self._asking("isready", self.timeout, f"{commands}isready\n"):
            for line in map(_text, self._until(b"readyok")):
                if wanted and line.lower().startswith(("no such option", "error")):
                    raise EngineError(f"engine {self.command!r} refuses an option that it offers: {line[:MOST_TEXT]}")
        self.options = dict(sorted(wanted.items()))

    def go(
        self,
        position: str,
        limit: str,
        moves: Sequence[str] = (),
        num_lines: int = 1,
        is_fresh: bool = True,
        seconds: float = 0.0,
    ) -> EngineAnswer:
        """What a search finds.

        Args:
            position: such as "fen FEN moves e2e4".
            limit: such as "nodes 50".
            moves: those searched; all if none is given.
            num_lines: principal variations to show (MultiPV).
            is_fresh: whether it begins from an empty hash table, else with what the last search left there.
            seconds: that it may take beside the timeout.

        Raises:
            EngineFault: it ends, hangs or breaks the protocol.
        """
        lines = f"setoption name MultiPV value {num_lines}\n" if num_lines != self._num_lines else ""
        self._num_lines = num_lines
        only = f" searchmoves {' '.join(moves)}" if moves else ""
        lines += "ucinewgame\n" if is_fresh else ""
        lines += "isready\n"  # its answer parts the output of this search from late output of others
        commands = f"{lines}position {' '.join(position.split())}\ngo {limit}{only}\n"
        with self._asking(f"go {limit}", self.timeout + seconds, commands):
            deque(self._until(b"readyok"), maxlen=0)
            return self._read_answer()

    def _read_answer(self) -> EngineAnswer:
        last, by_move, counted, line = None, {}, b"", b""
        for line in self._until(b"bestmove"):
            if not line.startswith(b"info ") or line.startswith(b"info string "):
                continue
            counted = line if b" nodes " in line else counted
            if found := read_line(line):
                last = found
                by_move |= {found.move: found} if found.move else {}
            if len(by_move) > MOST_MOVES:
                raise EngineFault(f"engine {self.command!r} shows more than {MOST_MOVES} moves of one position")
        nodes, move = NODES.search(counted), _text(line)[:MOST_TEXT].split()[1:2]
        return EngineAnswer(
            "" if move in ([], ["(none)"]) else move[0], last, by_move, int(nodes[1]) if nodes else None
        )

    @contextmanager
    def _asking(self, question: str, seconds: float, text: str) -> Iterator[None]:
        """Writes; within the block lines may be read, until the deadline."""
        self._question, self._allowed = question, seconds
        self._is_idle, self._deadline = False, time.monotonic() + seconds
        try:
            assert self.process.stdin
            self.process.stdin.write(text.encode())
            yield
            self._is_idle = True
        except (OSError, ValueError):  # ValueError: closed meanwhile
            raise self._ending() from None
        finally:
            self._deadline = float("inf")

    def _until(self, answer: bytes) -> Iterator[bytes]:
        """The lines up to the answer, with it. Raises EngineFault."""
        while (line := self._output.readline(MOST_LINE + 1)).endswith(b"\n"):
            yield (line := line.strip())
            if line.startswith(answer):
                return
        if len(line) > MOST_LINE:
            raise EngineFault(f"engine {self.command!r} wrote a line of more than {MOST_LINE} bytes")
        raise self._ending()

    def _ending(self) -> EngineFault:
        code = self.process.wait()
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return EngineFault(f"engine {self.command!r} {self._why or f'ended by itself ({how})'}")

    def _watch(self) -> None:
        """Kills the engine once its answer is overdue, or nobody waits for it any longer."""
        while not self._is_closed.wait(WATCH_SECONDS):
            if time.monotonic() > self._deadline:
                self._why = f"did not answer {self._question!r} within {self._allowed:g} s"
            elif self._deadline < float("inf") and self._should_stop():
                self._why = "was stopped"
            if self._why:
                self._kill()

    def _kill(self) -> None:
        """Ends the process, and those that it started where there are groups; an overdue answer is of one of them."""
        with suppress(OSError):
            if hasattr(os, "killpg") and (self.process.poll() is None or not self._is_closed.is_set()):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def close(self) -> None:
        """Has the engine quit, and ends one that does not."""
        self._is_closed.set()
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            if self._is_idle and self.process.stdin:
                self.process.stdin.write(b"quit\n")
                self.process.wait(QUIT_SECONDS)
        self._kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()


def read_line(line: bytes) -> ScoredLine | None:
    """The exact score of an info line; None if it has none, or only a bound."""
    head, _, shown = line.partition(b" pv ")
    if (score := SCORE.search(head)) is None or b"erbound" in head:  # lowerbound, upperbound
        return None
    depth, move = DEPTH.search(head), MOVE.match(shown)
    return ScoredLine(score[1].decode(), int(score[2]), int(depth[1]) if depth else 0, move[0].decode() if move else "")


def _text(line: bytes) -> str:
    """What an engine wrote, on one line that is harmless to a terminal."""
    text = " ".join(line.decode("utf-8", "replace").split())
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
