"""`alphagateau label`: boards and an engine or a player in, labels to learn from out."""

import dataclasses
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from alphagateau.cli.arguments import UsageError, parse
from alphagateau.cli.outputs import FOLDER

if TYPE_CHECKING:
    from alphagateau.data.label_files import LabelJob

REPORT_SECONDS = 10
ENGINE = "stockfish"


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Have a UCI engine, or a player of ours, label the boards that `alphagateau positions` gathered.

    Each search has a fixed number of nodes and begins from an empty hash table, or from what the searches of the same
    board left there, so the labels are the same however often this is stopped, killed and started again, with whatever
    number of workers, on however many machines that share the folder.

    Example: alphagateau label data/club --engine stockfish --nodes 1000
    """

    boards: tyro.conf.Positional[Path]
    """folder that `alphagateau positions` wrote"""
    engine: Annotated[str, tyro.conf.arg(metavar="COMMAND")] = ENGINE
    """a UCI engine, with options of its own after a question mark: "stockfish?Hash=4" """
    player: Annotated[str | None, tyro.conf.arg(metavar="CKPT")] = None
    """in place of an engine a run or a checkpoint: "CKPT?search=probability&nodes=4000", with --target best"""
    nodes: int = 1000
    """of each search of an engine"""
    target: Literal["actions", "states", "best"] = "actions"
    """every legal move and the state, the state alone, or the state and its best move"""
    clear: Literal["move", "board"] = "move"
    """the hash table is emptied before each move of a board, or once for all of them: faster where nodes are few"""
    multipv: bool = False
    """all moves of a board by one search, of --nodes a move: for equal time nearer to long ones than --clear board"""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), FOLDER] = None
    """where the labels go; None: the folder labels in that of the boards"""
    known: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """labels of the same engine and nodes, from which those of boards that it has too are taken"""
    workers: int = 0
    """engines at once; 0: one a core"""
    timeout: float = 60.0
    """seconds after which an engine is given up"""
    stop_after: Annotated[str | None, tyro.conf.arg(metavar="DURATION")] = None
    """stop by itself after so long, such as 30m or 3h"""


def run(words: Sequence[str]) -> int:
    """Labels what is not labelled yet, and says how it goes on standard error."""
    arguments = parse(Arguments, words, "label")
    from alphagateau.data.tables import DataError
    from alphagateau.matches.players import PlayerError
    from alphagateau.runs.checkpoint import CheckpointError
    from alphagateau.runs.stop import StopRequest, parse_duration

    check(arguments)
    try:
        stop = StopRequest(parse_duration(arguments.stop_after) if arguments.stop_after else None)
        job = make_job(arguments)
        reporter = LabelReporter(job.workers)
        with stop.listening():
            is_done = run_job(job, arguments.player, lambda: stop.reason is not None, reporter.report)
    except (DataError, PlayerError, CheckpointError, ValueError) as error:
        raise UsageError(str(error)) from None
    reporter.conclude(is_done, stop.reason, job.output)
    return 0


def check(arguments: Arguments) -> None:
    """Raises UsageError for what cannot be meant."""
    if not arguments.nodes:
        raise UsageError("--nodes must be 1 or more, got 0")
    if not 0 < arguments.timeout <= threading.TIMEOUT_MAX:
        raise UsageError(f"--timeout must be above 0 and at most {threading.TIMEOUT_MAX:g}, got {arguments.timeout:g}")
    if arguments.multipv and (arguments.target != "actions" or arguments.clear != "move"):
        raise UsageError(
            "--multipv was given with --target or --clear: its one search is of all moves, from an empty table"
        )
    if arguments.player and arguments.engine != ENGINE:
        raise UsageError(
            f"--engine {arguments.engine} and --player {arguments.player} were given: expected one of them"
        )
    if arguments.player and arguments.known:
        raise UsageError("--known was given with --player: only labels of engines can be taken over")
    if arguments.player and arguments.target == "actions":
        raise UsageError("--target must be best or states with --player, got actions: a search plays one move")


def make_job(arguments: Arguments) -> "LabelJob":
    """What is to be labelled and how. Raises DataError, PlayerError, ValueError."""
    from alphagateau.data.label_files import LabelJob
    from alphagateau.data.positions import board_name
    from alphagateau.games.variants import get_game
    from alphagateau.matches.players import split_spec
    from alphagateau.networks.chunks import num_cores

    command, options = split_spec(arguments.engine)
    return LabelJob(
        game=get_game(board_name(arguments.boards)),
        boards=arguments.boards,
        output=arguments.output or arguments.boards / "labels",
        command=command.removeprefix("uci:"),
        options=options,
        nodes=arguments.nodes,
        target=arguments.target,
        clear=arguments.clear,
        workers=arguments.workers or num_cores(),
        timeout=arguments.timeout,
        known=arguments.known,
        multipv=arguments.multipv,
    )


def run_job(job: "LabelJob", player: str | None, should_stop: Callable[[], bool], report: Callable) -> bool:
    """True once all is labelled. Raises DataError, PlayerError, CheckpointError."""
    from alphagateau.data.labelling import label, label_by_player

    if player is None:
        return label(job, should_stop, report)
    from alphagateau.cli.compilation import use_compilation_cache
    from alphagateau.matches.player_specs import load_player
    from alphagateau.suites.player_labels import make_labeller

    use_compilation_cache()
    labeller = make_labeller(job.game, load_player(player, job.game.name))
    return label_by_player(job, labeller, should_stop, report)


class LabelReporter:
    """Reports the labelling on standard error."""

    def __init__(self, workers: int) -> None:
        self._workers, self._last, self._pace = workers, 0.0, None

    def report(self, pace) -> None:
        self._pace = pace
        if pace.seconds - self._last >= REPORT_SECONDS:
            self._last = pace.seconds
            rate = pace.labelled / pace.seconds
            left = (pace.total - pace.done) / rate / 60 if rate else float("inf")
            print(
                f"{pace.done:,} of {pace.total:,} boards, {rate:.1f} a second, {left:,.0f} minutes left",
                file=sys.stderr,
            )

    def conclude(self, is_done: bool, reason: str | None, output: Path) -> None:
        if self._pace and self._pace.engine_seconds:
            share = self._pace.engine_seconds / self._pace.seconds / self._workers
            print(f"the engines' cores were {share:.0%} busy with searching", file=sys.stderr)
        if is_done:
            failed = len((output / "failed.jsonl").read_text(encoding="utf-8").splitlines())
            print(f"{output}: all boards are labelled" + (f", but {failed} of failed.jsonl" if failed else ""))
        else:
            print(f"stopped ({reason or 'others work on the rest'}); the same command goes on", file=sys.stderr)
