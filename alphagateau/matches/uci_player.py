"""UCI engines as players: a spec such as `uci:/usr/games/stockfish?nodes=50&Skill Level=3` to a HostPlayer.

What follows the ? is one of nodes, movetime (milliseconds) and depth, the length of a search (nodes=1000 if
none is given); timeout, the seconds after which an engine that does not answer is given up (60); processes,
how many of it run at once (1); and any option of the engine. Each move is searched from a clean hash table, so
that it depends on the game alone.
"""

import atexit
import difflib
import queue
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from alphagateau.games.rules import Game
from alphagateau.matches.players import HostPlayer, PlayerError

VARIANTS = {"chess": "chess", "gardner_chess": "gardner"}  # of UCI_Variant, as Fairy-Stockfish has it
LIMITS = ("nodes", "movetime", "depth")
OFFER = re.compile(r"\b(name|type|default|min|max|var) (.*?)(?= (?:type|default|min|max|var)\b|$)")


class EngineError(PlayerError):
    """An engine cannot be started, or cannot go on; one sentence naming it."""


class EngineSpec(NamedTuple):
    """What a spec asks for."""

    command: str
    limit: tuple[str, int]  # ("nodes", 50)
    options: dict[str, str]  # the engine's own
    timeout: float  # seconds
    processes: int


@dataclass
class Engine:
    """One running process of an engine."""

    command: str
    process: subprocess.Popen
    lines: "queue.Queue[str | None]"  # of its output; None: it has ended
    failure: str | None = None  # the first thing it did wrong: what follows from it is not worth saying


def parse_spec(spec: str) -> EngineSpec:
    """Raises EngineError for a spec that is none."""
    command, _, query = spec.removeprefix("uci:").partition("?")
    if not command.strip():
        raise EngineError(f"engine {spec!r} names no program, expected such as uci:/usr/games/stockfish?nodes=50")
    options = {}
    for part in query.split("&") if query else ():
        name, _, value = (text.strip() for text in part.partition("="))
        if not name or not value or name in options:
            raise EngineError(f"engine {spec!r}: {part!r} was given, expected options such as nodes=50, each once")
        options[name] = value
    limits = [(name, options.pop(name)) for name in LIMITS if name in options] or [("nodes", "1000")]
    counts = {"processes": options.pop("processes", "1"), **dict(limits)}
    for name, value in counts.items():
        if not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
            raise EngineError(f"engine {spec!r}: {name} is {value!r}, expected a whole number above 0")
    timeout = options.pop("timeout", "60")
    if not _is_seconds(timeout):
        raise EngineError(f"engine {spec!r}: timeout is {timeout!r}, expected seconds above 0")
    if len(limits) > 1:
        raise EngineError(f"engine {spec!r}: expected one of nodes, movetime and depth")
    (name, value), processes = limits[0], int(counts["processes"])
    return EngineSpec(command, (name, int(value)), options, float(timeout), processes)


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < threading.TIMEOUT_MAX
    except ValueError:
        return False


def load_engine(spec: str, game: Game) -> HostPlayer:
    """Starts an engine; its player's name is what the engine calls itself, the limit and its options.

    Its processes end with `close`, or with this program. Raises EngineError if it cannot be started,
    does not play the game, or has no such option.
    """
    asked, engines = parse_spec(spec), []
    atexit.register(close := lambda: _close(engines))
    try:
        for _ in range(asked.processes):
            engines.append(_start(asked.command))
            name = _set_up(engines[-1], asked, game)
    except EngineError:
        close()
        raise
    settings = " ".join(f"{key}={value}" for key, value in [asked.limit, *sorted(asked.options.items())])
    return HostPlayer(f"{name} {settings}", _make_move(engines, asked), asked.processes, close)


def _make_move(engines: list[Engine], asked: EngineSpec) -> Callable[[str, Sequence[str]], str]:
    idle: queue.Queue[Engine] = queue.Queue()
    for engine in engines:
        idle.put(engine)

    def move(start_fen: str, moves: Sequence[str]) -> str:
        engine = idle.get()
        try:
            if engine.failure is not None:
                raise EngineError(engine.failure)
            return _search(engine, asked, start_fen, moves)
        except EngineError as error:
            engine.failure = str(error)
            raise
        finally:
            idle.put(engine)

    return move


def _start(command: str) -> Engine:
    try:
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is ours
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise EngineError(f"engine {command!r} cannot be started: {why}") from None
    engine = Engine(command, process, queue.Queue())
    threading.Thread(target=_listen, args=(engine,), daemon=True).start()
    return engine


def _listen(engine: Engine) -> None:
    assert engine.process.stdout
    for line in engine.process.stdout:
        engine.lines.put(line.decode(errors="replace").strip())
    engine.lines.put(None)


def _say(engine: Engine, *commands: str) -> None:
    assert engine.process.stdin
    try:
        engine.process.stdin.write("".join(f"{command}\n" for command in commands).encode())
        engine.process.stdin.flush()
    except (OSError, ValueError):
        raise _ended(engine) from None


def _ended(engine: Engine) -> EngineError:
    try:
        code = engine.process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return EngineError(f"engine {engine.command!r} closed its input or output")
    how = f"exit code {code}" if code >= 0 else f"signal {-code}"
    return EngineError(f"engine {engine.command!r} ended by itself ({how})")


def _hear(engine: Engine, last_word: str, seconds: float, question: str) -> list[str]:
    """The lines up to the one that begins with `last_word`, if it comes within `seconds`."""
    lines, deadline = [], time.monotonic() + seconds
    while not lines or lines[-1].split()[:1] != [last_word]:
        try:
            line = engine.lines.get(timeout=max(deadline - time.monotonic(), 0))
        except queue.Empty:
            engine.process.kill()
            raise EngineError(f"engine {engine.command!r} did not answer {question!r} within {seconds:g} s") from None
        if line is None:
            engine.lines.put(None)
            raise _ended(engine)
        lines.append(line)
    return lines


def _set_up(engine: Engine, asked: EngineSpec, game: Game) -> str:
    """Greets the engine and sets its options; its name."""
    _say(engine, "uci")
    greeting = _hear(engine, "uciok", asked.timeout, "uci")
    names = [line.removeprefix("id name ") for line in greeting if line.startswith("id name ")]
    offers = [_read_offer(line) for line in greeting if line.startswith("option name ")]
    wanted = dict(asked.options)
    if "UCI_Variant" in [offer["name"] for offer in offers]:
        wanted["UCI_Variant"] = VARIANTS[game.name]
    elif game.name != "chess":
        raise EngineError(f"engine {engine.command!r} plays only chess (no option UCI_Variant), not {game.name}")
    for option, value in wanted.items():
        _check_option(engine, option, value, offers)
        _say(engine, f"setoption name {option} value {value}")
    _say(engine, "isready")
    _hear(engine, "readyok", asked.timeout, "isready")
    return " ".join([*names, engine.command][0].split())


def _read_offer(line: str) -> dict[str, Any]:
    """{"name": "Hash", "type": "spin", "default": "16", "min": "1", "max": "512", "var": []}."""
    pairs = OFFER.findall(line)
    return {"type": "string", **dict(pairs), "var": [value for key, value in pairs if key == "var"]}


def _check_option(engine: Engine, name: str, value: str, offers: list[dict[str, Any]]) -> None:
    """Raises EngineError unless the engine offers the option and the value: many would just ignore it."""
    by_name = {offer["name"].lower(): offer for offer in offers}
    offer = by_name.get(name.lower())
    if offer is None:
        near = difflib.get_close_matches(name.lower(), list(by_name), 1)
        hint = f"; did you mean {by_name[near[0]]['name']!r}?" if near else ""
        raise EngineError(f"engine {engine.command!r} has no option {name!r}{hint}")
    kind, choices, expected = offer["type"], offer["var"], ""
    if kind == "spin" and not _is_within(value, offer):
        expected = f"a whole number from {offer['min']} to {offer['max']}"
    if kind == "check" and value not in ("true", "false"):
        expected = "true or false"
    if kind == "combo" and value not in choices:
        near = difflib.get_close_matches(value, choices, 3)
        expected = f"one of its choices, such as {', '.join(near or choices[:3])}"
    if expected:
        raise EngineError(f"engine {engine.command!r}: option {name!r} is {value!r}, expected {expected}")


def _is_within(value: str, offer: dict[str, Any]) -> bool:
    return bool(re.fullmatch(r"-?\d{1,15}", value)) and int(offer["min"]) <= int(value) <= int(offer["max"])


def _search(engine: Engine, asked: EngineSpec, start_fen: str, moves: Sequence[str]) -> str:
    """The engine's move in UCI, legal or not."""
    _say(engine, "ucinewgame", "isready")
    _hear(engine, "readyok", asked.timeout, "isready")
    name, value = asked.limit
    go, seconds = f"go {name} {value}", asked.timeout + (value / 1000 if name == "movetime" else 0)
    _say(engine, " ".join(["position fen", start_fen, *(["moves", *moves] if moves else [])]), go)
    return " ".join(_hear(engine, "bestmove", seconds, go)[-1].split()[1:2])


def _close(engines: list[Engine]) -> None:
    """Asks the processes to end, and ends those that do not."""
    for engine in engines:
        try:
            _say(engine, "quit")
            engine.process.wait(timeout=1)
        except (EngineError, subprocess.TimeoutExpired):
            engine.process.kill()
            engine.process.wait()
    engines.clear()
