"""Labels boards by an engine or a player, for networks to learn from."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from alphagateau.cli.arguments import DURATION, UsageError, number
from alphagateau.cli.outputs import LABELS
from alphagateau.cli.streams import REPORT_SECONDS, report
from alphagateau.runs.stop import StopRequest

if TYPE_CHECKING:
    from alphagateau.data.label_files import LabelJob
    from alphagateau.data.workers import Pace

ENGINE = "stockfish"


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Label the boards of `alphagateau positions` with an engine's or a player's scores.

    The labels do not depend on stops, kills, the number of workers or the machines that share the folder: each search
    has a fixed number of nodes, and no search sees the hash table of another board. The same command continues.

    Example: alphagateau label data/club --engine stockfish --nodes 1000
    """

    boards: tyro.conf.Positional[Path]
    """the folder that `alphagateau positions` wrote"""
    engine: Annotated[str, tyro.conf.arg(metavar="COMMAND")] = ENGINE
    """a UCI engine, its options after a question mark: "stockfish?Hash=4" """
    player: Annotated[str | None, tyro.conf.arg(metavar="CKPT")] = None
    """a run or a checkpoint instead of an engine: "CKPT?search=probability&nodes=4000", with --target best"""
    nodes: Annotated[int, number(int, 1)] = 1000
    """nodes of each search of an engine"""
    target: Literal["actions", "states", "best"] = "actions"
    """what is scored: every legal move and the state, the state alone, or the state and its best move"""
    clear: Literal["move", "board"] = "move"
    """when the hash table is emptied: before each move, or once a board, which is faster where nodes are few"""
    multipv: bool = False
    """one search scores all moves of a board, with --nodes a move: in equal time more exact than --clear board"""
    output: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER"), LABELS] = None
    """where the labels go; None: BOARDS/labels"""
    known: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """labels of the same engine and nodes, taken over for boards that are in both"""
    workers: int = 0
    """engines that run at once; 0: one a core"""
    timeout: Annotated[float, number(float, 1e-3, 1e9)] = 60.0
    """seconds of a search after which an engine counts as hung"""
    stop_after: Annotated[float | None, DURATION] = None
    """stop after this time, such as 30m or 3h"""


def run(arguments: Arguments) -> int:
    """Labels what is not labelled yet; progress goes to standard error."""
    from alphagateau.data.tables import DataError, LabellingError

    check(arguments)
    stop = StopRequest(arguments.stop_after)
    try:
        job = make_job(arguments)
        reporter = Reporter(job.workers)
        with stop.listening():
            is_done = run_job(job, arguments.player, lambda: stop.reason is not None, reporter.report)
    except LabellingError:
        raise
    except (DataError, ValueError) as error:
        raise UsageError(str(error)) from None
    reporter.conclude(is_done, stop.reason, job.output)
    return 0


def check(arguments: Arguments) -> None:
    """Raises UsageError for options that exclude one another."""
    if arguments.multipv and (arguments.target != "actions" or arguments.clear != "move"):
        raise UsageError(
            "--multipv was given with --target or --clear: its one search is of all moves, from an empty table"
        )
    if arguments.player and arguments.engine != ENGINE:
        raise UsageError(f"--engine {arguments.engine} and --player {arguments.player} were given: expected one")
    if arguments.player and arguments.nodes != Arguments.nodes:
        raise UsageError(f"--nodes is of an engine: --player takes its own, as in {arguments.player}?nodes=4000")
    if arguments.player and arguments.known:
        raise UsageError("--known was given with --player: only labels of engines can be taken over")
    if arguments.player and arguments.target == "actions":
        raise UsageError("--target must be best or states with --player, got actions: a search plays one move")


def make_job(arguments: Arguments) -> "LabelJob":
    """The labelling of the command line. Raises DataError, PlayerError, ValueError."""
    from alphagateau.data.label_files import LabelJob
    from alphagateau.data.positions import board_name
    from alphagateau.games.variants import get_game
    from alphagateau.matches.specs import parse_spec
    from alphagateau.networks.chunks import num_cores

    engine = parse_spec(arguments.engine)
    return LabelJob(
        game=get_game(board_name(arguments.boards)),
        boards=arguments.boards,
        output=arguments.output or arguments.boards / "labels",
        command=engine.path.removeprefix("uci:"),
        options=dict(engine.options),
        nodes=arguments.nodes,
        target=arguments.target,
        clear=arguments.clear,
        workers=arguments.workers or num_cores(),
        timeout=arguments.timeout,
        known=arguments.known,
        multipv=arguments.multipv,
    )


def run_job(job: "LabelJob", player: str | None, should_stop: Callable[[], bool], on_pace: Callable) -> bool:
    """Labels boards; True once all are labelled. Raises DataError, PlayerError, CheckpointError."""
    if player is None:
        from alphagateau.data.labelling import label

        return label(job, should_stop, on_pace)
    from alphagateau.cli.compilation import use_compilation_cache
    from alphagateau.matches.player_specs import load_player
    from alphagateau.matches.specs import read_spec
    from alphagateau.suites.player_labels import label_by_player

    use_compilation_cache()
    return label_by_player(job, load_player(read_spec(player), job.game.name), should_stop, on_pace)


class Reporter:
    """Progress of the labelling, and how it ended."""

    def __init__(self, workers: int) -> None:
        self._workers, self._last, self._pace = workers, 0.0, None

    def report(self, pace: "Pace") -> None:
        """Prints the pace, at most every REPORT_SECONDS."""
        self._pace = pace
        if pace.seconds - self._last >= REPORT_SECONDS:
            self._last, rate = pace.seconds, pace.labelled / pace.seconds
            left = (pace.total - pace.done) / rate / 60 if rate else float("inf")
            report(f"{pace.done:,} of {pace.total:,} boards, {rate:.1f} a second, {left:,.0f} minutes left")

    def conclude(self, is_done: bool, reason: str | None, output: Path) -> None:
        """Prints the result, and how much of the processor time the engines used."""
        if self._pace and self._pace.labelled and self._pace.engine_seconds:
            share = self._pace.engine_seconds / self._pace.seconds / self._workers
            report(f"the engines' cores were {share:.0%} busy with searching")
        if is_done:
            failed = len((output / "failed.jsonl").read_text(encoding="utf-8").splitlines())
            print(f"{output}: all boards are labelled" + (f", but {failed} of failed.jsonl" if failed else ""))
        else:
            report(f"stopped ({reason or 'others work on the rest'}); the same command goes on")
