"""One UCI engine that scores positions: a FEN and moves in, what its search says out.

By hand because python-chess's protocol costs about as much processor time a search as a search of 1000 nodes itself.
"""

import re
import subprocess
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from alphagateau.data.scores import encode
from alphagateau.data.tables import DataError
from alphagateau.runs.programs import split_command

OWN_OPTIONS = {"Threads": "1", "Hash": "1", "Contempt": "0"}  # where the engine has them and the user says nothing
SCORE = re.compile(
    rb"^info (?:.* )?depth (\d+) .*\bscore (cp|mate) (-?\d+)\b(?!(?: wdl \d+ \d+ \d+)? (?:lower|upper)bound)"
)
MOVE_SCORE = re.compile(SCORE.pattern + rb".* pv (\S+)")  # the first move of the line that the score is of
OURS = ("uci_variant", "uci_chess960", "multipv", "ponder")  # options that say what is asked, not how
OPTION = re.compile(r"option name (.*?) type (\w+)(.*)")  # name, type, and what it may be
MOST_DOUBLINGS = 8  # of the nodes, while a search gives no score


class EngineError(DataError):
    """The engine ended or hung in a search; another process of it may do better."""


class Found(NamedTuple):
    """What a search says."""

    score: int  # `scores.encode`, for the player to move
    depth: int
    move: str  # UCI, its best


def read_found(line: re.Match[bytes], move: bytes = b"") -> Found:
    """What a line that SCORE matches says of a move."""
    return Found(encode(line[2].decode(), int(line[3])), min(int(line[1]), 255), move.decode("utf-8", "replace"))


class Engine:
    """A running engine. `deadline` is the time.monotonic() at which whoever watches over it may kill it."""

    def __init__(self, command: str, options: Mapping[str, str], variant: str, timeout: float) -> None:
        """Raises DataError if it cannot be started, lacks an option or its value, or does not play the variant.

        EngineError if it ends or says nothing for `timeout` seconds instead.
        """
        self.command, self._timeout, self._rest = command, timeout, b""
        self.deadline = float("inf")
        try:
            self.process = subprocess.Popen(
                split_command(command) or [""],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # what is typed at the terminal is for us
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"engine {command!r} cannot be started: {why}") from None
        self.name, self.options = command, {}
        self._num_lines = self.most_lines = 1  # MultiPV, and what it may be
        watch = threading.Timer(timeout, self._give_up)
        watch.start()
        try:
            self._greet(options, variant)
        except BaseException:
            self.close()
            raise
        finally:
            watch.cancel()

    def _give_up(self) -> None:
        self.deadline = 0.0
        self.process.kill()

    def _greet(self, options: Mapping[str, str], variant: str) -> None:
        lines = self._ask("uci\n", b"uciok")
        names = [line[8:].strip().decode("utf-8", "replace") for line in lines if line.startswith(b"id name ")]
        self.name = " ".join(names[0].split()) if names else self.command
        offered = [OPTION.match(line.decode("utf-8", "replace").strip()) for line in lines]
        known = {found[1].lower(): found[1] for found in offered if found}
        kinds = {found[1].lower(): (found[2], found[3]) for found in offered if found}
        for name, value in options.items():
            if name.lower() not in known:
                raise DataError(f"engine {self.command!r} has no option {name!r}")
            expected = "to be left to the labelling" if name.lower() in OURS else _expected(*kinds[name.lower()], value)
            if expected:
                raise DataError(f"engine {self.command!r}: option {name!r} is {value!r}, expected {expected}")
        wanted = {name: value for name, value in OWN_OPTIONS.items() if name.lower() in known}
        if variant != "chess":
            line = next((line for line in lines if line.startswith(b"option name UCI_Variant ")), b"")
            if variant.encode() not in line.split():
                raise DataError(f"engine {self.command!r} does not play {variant}: it knows no such UCI_Variant")
            wanted["UCI_Variant"] = variant
        self.most_lines = _limits(kinds.get("multipv", ("", ""))[1])[1] or 1
        wanted |= {known[name.lower()]: value for name, value in options.items()}
        commands = "".join(f"setoption name {name} value {value}\n" for name, value in wanted.items())
        answers = self._ask(f"{commands}isready\n", b"readyok")
        refused = [line for line in answers if line.lower().startswith((b"no such option", b"error"))]
        if refused:
            raise DataError(f"engine {self.command!r} refuses an option that it offers: {refused[0].decode().strip()}")
        self.options = dict(sorted(wanted.items()))

    def search(self, fen: str, nodes: int, move: str | None = None, is_fresh: bool = True) -> Found:
        """What `nodes` nodes say of a position, or of one move there.

        A fresh search begins from an empty hash table, another one with what the last left there. A search without a
        score, as small ones may be, is made again with twice the nodes. Raises EngineError if the engine ends or hangs,
        DataError if it does not keep to the protocol.
        """
        clear = "ucinewgame\n" if is_fresh else ""
        for doubling in range(MOST_DOUBLINGS + 1):
            asked = f" searchmoves {move}" if move else ""
            go = f"{self._show(1)}{clear}position fen {fen}\ngo nodes {nodes << doubling}{asked}\n"
            lines = self._ask(go, b"bestmove")
            best = lines[-1].split()[1:2]
            if move and best != [move.encode()]:
                answer = best[0].decode("utf-8", "replace") if best else "nothing"
                raise DataError(f"engine {self.command!r} answered {answer} to searchmoves {move} in {fen}")
            for line in reversed(lines):
                if found := SCORE.match(line):
                    return read_found(found, *best)
        raise EngineError(f"engine {self.command!r} gave no score of {fen}")

    def search_moves(self, fen: str, nodes: int, moves: Collection[str]) -> dict[str, Found]:
        """What one search from an empty hash table, of `nodes` nodes a move, says of all legal moves (UCI's MultiPV).

        Each move has the score of the last depth to which it was searched; while some have none, the search is made
        again with twice the nodes. Raises as `search`.
        """
        for doubling in range(MOST_DOUBLINGS + 1):
            go = f"position fen {fen}\ngo nodes {(nodes << doubling) * len(moves)}\n"
            lines = self._ask(f"{self._show(len(moves))}ucinewgame\n{go}", b"bestmove")
            scored = [read_found(found, found[4]) for line in lines if (found := MOVE_SCORE.match(line))]
            by_move = {found.move: found for found in scored}
            if strange := by_move.keys() - set(moves):
                raise DataError(f"engine {self.command!r} showed {min(strange)}, which is no legal move of {fen}")
            if len(by_move) == len(moves):
                return by_move
        raise EngineError(f"engine {self.command!r} gave no score of some moves of {fen}")

    def _show(self, num_lines: int) -> str:
        """What tells the engine to show so many lines, where it does not yet."""
        is_told, self._num_lines = num_lines == self._num_lines, num_lines
        return "" if is_told else f"setoption name MultiPV value {num_lines}\n"

    def _ask(self, text: str, answer: bytes) -> list[bytes]:
        """The lines up to one that begins with `answer`; what follows it at once is dropped."""
        self.deadline = time.monotonic() + self._timeout
        lines: list[bytes] = []
        try:
            assert self.process.stdin and self.process.stdout
            self.process.stdin.write(text.encode())
            while True:
                read = self.process.stdout.read(1 << 16)
                if not read:
                    raise EngineError(f"engine {self.command!r} {self._ending()}")
                *whole, self._rest = (self._rest + read).split(b"\n")
                lines += whole
                if any(line.startswith(answer) for line in whole):
                    return lines[: next(i for i, line in enumerate(lines) if line.startswith(answer)) + 1]
        except OSError:
            raise EngineError(f"engine {self.command!r} {self._ending()}") from None
        finally:
            self.deadline = float("inf")

    def _ending(self) -> str:
        code = self.process.wait()
        if self.deadline < time.monotonic():
            return f"did not answer within {self._timeout:g} s"
        return f"ended by itself ({f'exit code {code}' if code >= 0 else f'signal {-code}'})"

    def close(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe:
                    pipe.close()


def _limits(limits: str) -> tuple[int | None, int | None]:
    """The least and the most of a number among an engine's options."""
    least, most = (re.search(rf" {x} (-?\d+)", limits) for x in ("min", "max"))
    return int(least[1]) if least else None, int(most[1]) if most else None


def _expected(kind: str, limits: str, value: str) -> str:
    """What an option of this type must be, "" if the value is; engines take others without a word."""
    if kind == "check":
        return "" if value in ("true", "false") else "true or false"
    if kind == "spin":
        least, most = _limits(limits)
        is_number = re.fullmatch(r"-?\d+", value) is not None
        is_within = is_number and (least is None or int(value) >= least) and (most is None or int(value) <= most)
        return "" if is_within else f"a whole number from {least} to {most}"
    if kind == "combo":
        values = re.findall(r" var (.*?)(?= var |$)", limits)
        return "" if value.lower() in map(str.lower, values) else f"one of {', '.join(values)}"
    return ""
