"""UCI engines as players: a spec such as `uci:/usr/games/stockfish?nodes=50&Skill Level=3` to a HostPlayer.

What follows the ? is one of nodes, movetime (milliseconds) and depth, the length of a search (nodes=1000 if none is
given); timeout, the seconds after which an engine that does not answer is given up (60); processes, how many of it run
at once (1); and any option of the engine. Each move is searched from a clean hash table, so that it depends on the
game alone. python-chess speaks the protocol.
"""

import asyncio
import atexit
import contextlib
import difflib
import logging
import queue
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import chess.engine

from alphagateau.games.pgn import Identity, MoveNote
from alphagateau.games.rules import Game
from alphagateau.matches.players import HostPlayer, PlayerError, Reply, SpecError, parse_count, split_spec
from alphagateau.runs.programs import split_command

T = TypeVar("T")
LIMITS = ("nodes", "movetime", "depth")
chess.engine.LOGGER.addHandler(logging.NullHandler())  # what an engine did wrong is said once, by its failure,
chess.engine.LOGGER.propagate = False  # and what it says beside the protocol, as Fairy-Stockfish blank lines, never


class UciError(PlayerError):
    """An engine cannot go on; one sentence naming it."""


class UciSpecError(UciError, SpecError):
    """There is no engine as it was asked for, or it does not start; one sentence naming it."""


class UciSpec(NamedTuple):
    """What a spec asks for."""

    command: str
    limit: tuple[str, int]  # ("nodes", 50)
    options: dict[str, str]  # the engine's own
    timeout: float  # seconds
    processes: int


class Process(NamedTuple):
    """One running process of an engine."""

    command: str
    transport: asyncio.SubprocessTransport
    protocol: chess.engine.UciProtocol


def parse_spec(spec: str) -> UciSpec:
    """Raises UciSpecError for a spec that is none, SpecError for a number that is none."""
    path, options = split_spec(spec)
    command = path.removeprefix("uci:")
    if not command.strip():
        raise UciSpecError(f"player {spec!r} names no program, expected such as uci:/usr/games/stockfish?nodes=50")
    limits = [(name, parse_count(spec, name, options.pop(name))) for name in LIMITS if name in options]
    if len(limits) > 1:
        raise UciSpecError(f"player {spec!r}: expected one of nodes, movetime and depth")
    processes = parse_count(spec, "processes", options.pop("processes", "1"))
    timeout = _parse_seconds(spec, options.pop("timeout", "60"))
    return UciSpec(command, limits[0] if limits else ("nodes", 1000), options, timeout, processes)


def _parse_seconds(spec: str, text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < threading.TIMEOUT_MAX:
            return float(text)
    raise UciSpecError(f"player {spec!r}: timeout is {text!r}, expected seconds above 0")


def load_uci_player(spec: str, game: Game) -> HostPlayer:
    """Starts an engine, named as it calls itself, with its arguments, without folders, the limit and its options.

    Its processes end with `close`, or with this program. Raises SpecError if it cannot be started,
    does not play the game, or has no such option.
    """
    asked, processes = parse_spec(spec), []
    atexit.register(close := lambda: _run(_close(processes)))
    try:
        for _ in range(asked.processes):
            processes.append(_run(_start(asked.command)))
            _run(_set_up(processes[-1], asked, game))
    except UciError as error:
        close()
        raise UciSpecError(str(error)) from None
    called = processes[0].protocol.id.get("name", asked.command).split()
    name = " ".join([*called, *(Path(argument).name for argument in split_command(asked.command)[1:])])
    settings = " ".join(f"{key}={value}" for key, value in [asked.limit, *sorted(asked.options.items())])
    known = Identity(search=settings)
    return HostPlayer(f"{name} {settings}", _make_move(processes, asked, game), asked.processes, close, known)


def start_process(asked: UciSpec, game: Game) -> Process:
    """One process of an engine, which ends with this program. Raises UciSpecError."""
    try:
        process = _run(_start(asked.command))
        atexit.register(lambda: _run(_close([process])))
        _run(_set_up(process, asked, game))
    except UciError as error:
        raise UciSpecError(str(error)) from None
    return process


def analyse(process: Process, asked: UciSpec, board: chess.Board, moves: Sequence[chess.Move]) -> chess.engine.InfoDict:
    """What the engine's search of some moves says, from a clean hash table. Raises UciError."""
    name, value = asked.limit
    searching = process.protocol.analyse(
        board, chess.engine.Limit(**{name: value}), game=object(), root_moves=list(moves)
    )
    return _run(_answered(process, searching, f"go {name} {value}", asked.timeout))


def _make_move(processes: list[Process], asked: UciSpec, game: Game) -> Callable[[str, Sequence[str]], Reply]:
    idle: queue.Queue[Process | str] = queue.Queue()  # in the place of one that failed, what it did first
    for process in processes:
        idle.put(process)

    def move(start_fen: str, moves: Sequence[str]) -> Reply:
        process = idle.get()
        try:
            if isinstance(process, str):
                raise UciError(process)
            board = game.board_class(start_fen)
            for uci in moves:
                board.push_uci(uci)
            return _run(_search(process, asked, board))
        except UciError as error:
            process = str(error)
            raise
        finally:
            idle.put(process)

    return move


@lru_cache
def _event_loop() -> asyncio.AbstractEventLoop:
    """In a thread that ends with the program; that of chess.engine.SimpleEngine would not let it end."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="UCI engines", daemon=True).start()
    return loop


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(coroutine, _event_loop()).result()


async def _start(command: str) -> Process:
    """In a process group of its own, as an interrupt from the keyboard is ours."""
    try:
        started = chess.engine.UciProtocol.popen(split_command(command), setpgrp=True, stderr=subprocess.DEVNULL)
        return Process(command, *await started)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UciError(f"engine {command!r} cannot be started: {why}") from None


async def _set_up(process: Process, asked: UciSpec, game: Game) -> None:
    """Greets the engine and sets its options."""
    protocol, variant = process.protocol, game.uci_variant
    await _answered(process, protocol.initialize(), "uci", asked.timeout)
    variants = protocol.options["UCI_Variant"].var if "UCI_Variant" in protocol.options else ["chess"]
    if variant not in (variants or ()):
        raise UciError(f"engine {asked.command!r} does not play {game.name}: it knows no UCI_Variant {variant}")
    for name, value in asked.options.items():
        _check_option(asked.command, name, value, protocol.options)
    await protocol.configure(asked.options)
    await _answered(process, protocol.ping(), "isready", asked.timeout)


def _check_option(command: str, name: str, value: str, offered: Mapping[str, chess.engine.Option]) -> None:
    """Raises UciError unless the engine offers the option and the value."""
    if name not in offered:
        near = difflib.get_close_matches(name, list(offered), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UciError(f"engine {command!r} has no option {name!r}{hint}")
    if offered[name].is_managed():
        raise UciError(f"engine {command!r}: option {name!r} is {value!r}, expected to be left to the match")
    if offered[name].type == "check" and value not in ("true", "false"):
        raise UciError(f"engine {command!r}: option {name!r} is {value!r}, expected true or false")
    try:
        offered[name].parse(value)
    except chess.engine.EngineError as error:
        raise UciError(f"engine {command!r}: {error}") from None


async def _search(process: Process, asked: UciSpec, board: chess.Board) -> Reply:
    """The engine's move, with its last score and the time that it took."""
    name, value = asked.limit
    seconds = value / 1000 if name == "movetime" else None
    limit = chess.engine.Limit(time=seconds) if seconds else chess.engine.Limit(**{name: value})
    # Each search is a game of its own to the engine. A time in the limit would cut slow searches short unsaid.
    begun = time.perf_counter()
    playing = process.protocol.play(board, limit, game=object(), info=chess.engine.INFO_SCORE | chess.engine.INFO_BASIC)
    found = await _answered(process, playing, f"go {name} {value}", asked.timeout + (seconds or 0))
    if found.move is None:
        raise UciError(f"engine {process.command!r} broke the rules: it gave no move in {board.fen()}")
    note = MoveNote(score_after(found.info, board.turn), time.perf_counter() - begun)
    return Reply(found.move.uci(), note, found.info.get("nodes"))


def score_after(info: chess.engine.InfoDict, color: chess.Color) -> chess.engine.Score | None:
    """White's score after the best move, of an engine's score before it; None if it gave none, or the move mates."""
    score = info["score"].pov(color) if "score" in info else None
    mate = score.mate() if score else None
    if mate is not None and mate > 0:
        score = chess.engine.Mate(mate - 1) if mate > 1 else None
    return score if color or score is None else -score


async def _answered(process: Process, answer: Awaitable[T], question: str, seconds: float) -> T:
    """The answer, if one comes within `seconds`. Raises UciError, and ends an engine that is silent."""
    command = process.command
    try:
        return await asyncio.wait_for(answer, seconds)
    except TimeoutError:
        process.transport.close()
        raise UciError(f"engine {command!r} did not answer {question!r} within {seconds:g} s") from None
    except chess.engine.EngineTerminatedError:
        code = process.transport.get_returncode() or 0
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        raise UciError(f"engine {command!r} ended by itself ({how})") from None
    except chess.engine.EngineError as error:
        raise UciError(f"engine {command!r} broke the rules: {error}") from None


async def _close(processes: list[Process]) -> None:
    """Asks the processes to end, and ends those that do not."""
    for process in processes:
        with contextlib.suppress(TimeoutError, chess.engine.EngineError):
            await asyncio.wait_for(process.protocol.quit(), 1)
        process.transport.close()
        await process.protocol.returncode
    processes.clear()
