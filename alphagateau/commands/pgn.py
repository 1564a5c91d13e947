"""Replays PGN games by the rules, and writes a network's evaluations of them."""

import dataclasses
import sys
from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau.cli.arguments import FileOptions, UsageError, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import HTML, JSON, PGN, check_own_games
from alphagateau.cli.streams import report
from alphagateau.config.records import counted
from alphagateau.games.pgn.text import read_games
from alphagateau.games.pgn.text_files import read_lines
from alphagateau.runs.files import write_json, write_result

if TYPE_CHECKING:
    from alphagateau.games.pgn.pgn import GameRecord, Replayed

MAX_FAULTS = 10_000  # in the JSON; the counts have all


@dataclasses.dataclass(frozen=True)
class Arguments(FileOptions):
    """Replay the games of a PGN file by the rules, and analyse them with a network.

    Each game that breaks the rules is named with its line and move, and the exit code is 1. The Variant tag chooses the
    board: chess, chess960, Gardner or Los Alamos chess. The file may be packed: .gz, .bz2, .xz, .zst.

    Example: alphagateau pgn games.pgn --analyse checkpoints/quickstart --output games.html
    """

    file: tyro.conf.Positional[str]
    """a PGN file; -: standard input"""
    each: bool = False
    """print a line for every game"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """write the counts and the faults"""
    analyse: Annotated[str | None, tyro.conf.arg(metavar="CKPT")] = None
    """a run or a checkpoint that evaluates every position"""
    simulations: int = 64
    """simulations of its search of each position; 0: none"""
    output: Annotated[Path | None, tyro.conf.arg(metavar="PAGE.html"), HTML] = None
    """write a page: its evaluations, and the moves that lost much"""
    annotate: Annotated[Path | None, tyro.conf.arg(metavar="OUT.pgn"), PGN] = None
    """write all games there, with [%eval] comments in those without faults; of files of games only an earlier output
    by the same network and search is replaced"""
    book: Annotated[Path | None, tyro.conf.arg(metavar="PAGE.html"), HTML] = None
    """write a page: the most played line, and the tree of moves with their games and scores"""
    player: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """of the book: only the games of this player, with White and with Black apart"""
    least: int = 0
    """of the book: games of a move in its tree; 0: a hundredth of them, 2 at least"""


@dataclasses.dataclass
class Tally:
    """Counts and faults so far."""

    games: int = 0
    plies: int = 0
    broken: int = 0
    unknown: int = 0  # games of a variant without rules here
    went_on: int = 0  # games that continue after the rules end them
    boards: Counter[str] = dataclasses.field(default_factory=Counter)
    results: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    texts: list[str] = dataclasses.field(default_factory=list)  # of all games, if they are to be annotated
    records: "list[GameRecord]" = dataclasses.field(default_factory=list)  # of those without faults, for the book

    @property
    def counts(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in ("texts", "records")}


def run(arguments: Arguments) -> int:
    """1 if a game breaks the rules."""
    if (arguments.output or arguments.annotate) and not arguments.analyse:
        raise UsageError("--output and --annotate need --analyse CKPT, the network whose evaluations they show")
    if arguments.analyse and not (arguments.output or arguments.annotate):
        raise UsageError("--analyse needs --output PAGE.html or --annotate OUT.pgn, to write to")
    if (arguments.player is not None or arguments.least) and not arguments.book:
        raise UsageError("--player and --least need --book PAGE.html, whose games and moves they choose")
    tally, name = Tally(), "standard input" if arguments.file == "-" else arguments.file
    lines = read_lines(arguments.file, arguments.bounds)
    games = read_games(lines, arguments.bounds, keep_text=bool(arguments.annotate))
    first = next(games, None)
    if first is None:
        raise UsageError(f"{name} holds no games: expected PGN")
    from alphagateau.games.pgn.rule_checks import check_games  # imports JAX, which a file without games does not need

    use_compilation_cache()
    checked = check_games(chain([first], games), with_states=bool(arguments.analyse))
    sound = _sound_games(checked, arguments, name, tally)
    if arguments.analyse:
        _analyse(arguments, name, sound, tally)
    else:
        deque(sound, maxlen=0)
    print(summary(tally))
    if arguments.json:
        write_json(arguments.json, {"name": name, **tally.counts})
    if arguments.book and not tally.records:
        report(f"{name} has no game for the book: {arguments.book} is not written")
    elif arguments.book:
        from alphagateau.reports.book_page import book_page

        with usage_errors():  # of the player
            page = book_page(Path(name).name, tally.records, arguments.player, arguments.least)
        write_result(arguments.book, page)
        print(arguments.book)
    return 1 if tally.broken else 2 if tally.unknown else 0


def _sound_games(checked: "Iterator[Replayed]", arguments: Arguments, name: str, tally: Tally) -> "Iterator[Replayed]":
    """The games without faults; counts all of them and prints the faults."""
    for one in checked:
        count(tally, one)
        tally.texts += [one.written.text] if arguments.annotate else []
        written, record, fault, ply, _, check = one
        if fault:
            move = written.moves[ply - 1] if ply else None
            line, text = (move.line, move.text) if move else (written.line, "")
            entry = {"game": written.number, "line": line, "ply": ply, "move": text, "sentence": fault}
            tally.faults += [entry] if len(tally.faults) < MAX_FAULTS else []
            where = f", ply {ply}, {text[:20]}" if ply else ""
            print(f"{name}: game {written.number}, line {line}{where}: {fault}", flush=True)
        elif arguments.each and record:
            players = " - ".join(record.headers.get(side, "?") for side in ("White", "Black"))
            plies = counted(len(record.moves), "ply", "plies")
            over = f", over by the rules after {counted(check.over, 'ply', 'plies')}" if check and check.over else ""
            where = f"{name}: game {written.number}, line {written.line}"
            print(f"{where}: {players} {record.result}, {plies} of {record.game}{over}", flush=True)
        if record and not fault:
            if arguments.book:  # without what was thought at the moves
                moves = tuple(map(sys.intern, record.moves))
                tally.records.append(dataclasses.replace(record, notes=(), moves=moves))
            yield one


def count(tally: Tally, one: "Replayed") -> None:
    """Adds a game to the counts."""
    record = one.record
    tally.games += 1
    tally.plies += len(one.written.moves)
    tally.broken += bool(one.fault) and one.is_known
    tally.unknown += not one.is_known
    if record:
        tally.boards[record.game] += 1
        tally.results[record.result] += 1
    tally.went_on += bool(record and one.check and 0 < one.check.over < len(record.moves))


def summary(tally: Tally) -> str:
    """The counts in a sentence."""
    kept = tally.games - tally.broken - tally.unknown
    keeps, breaks = "keeps" if kept == 1 else "keep", "breaks" if tally.broken == 1 else "break"
    read = f"{counted(tally.games, 'game')}, {counted(tally.plies, 'ply', 'plies')}"
    text = f"{read}: {kept:,} {keeps} to the rules, {tally.broken:,} {breaks} them"
    if tally.unknown:
        text += f", {tally.unknown:,} of unknown variants"
    if tally.boards:
        text += f"; boards: {', '.join(f'{count:,} of {name}' for name, count in tally.boards.most_common())}"
    if tally.went_on:
        goes = "goes" if tally.went_on == 1 else "go"
        text += f"; {tally.went_on:,} {goes} on where the rules here end a game as a draw"
    return text


def _analyse(arguments: Arguments, name: str, sound: "Iterator[Replayed]", tally: Tally) -> None:
    """Writes the page and the annotated games. Raises CheckpointError, PlayerError."""
    from alphagateau.games.pgn.analysed import annotated_text
    from alphagateau.games.pgn.pgn import plain_tag
    from alphagateau.reports.analysis_page import MAX_GAMES, analysis_page
    from alphagateau.suites.analysis import analyse_games

    shown, num_games = [], 0
    for written, game in analyse_games(str(arguments.analyse), arguments.simulations, sound):
        if arguments.annotate and not num_games:
            own = "Annotator", plain_tag(game.analyst), arguments.bounds
            check_own_games("--annotate", arguments.annotate, *own, faulty=True)
        num_games += 1
        shown += [game] if len(shown) < MAX_GAMES else []
        if arguments.annotate:
            tally.texts[written.number - 1] = annotated_text(written, game)
    if not num_games:
        report(f"{name} has no game that the rules allow: nothing is analysed or written")
        return
    if arguments.annotate:
        write_result(arguments.annotate, "".join(tally.texts))
        print(arguments.annotate)
        if left := tally.games - num_games:
            report(f"{counted(left, 'game')} left as written: not played by the rules")
    if arguments.output:
        write_result(arguments.output, analysis_page(Path(name).name, shown, num_games))
        print(arguments.output)
