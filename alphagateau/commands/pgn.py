"""`alphagateau pgn`: judges anybody's games by the rules, and writes what a network thinks of them."""

import dataclasses
import json
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau.cli.arguments import MaxMegabytes, UsageError, parse
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import HTML, JSON, PGN
from alphagateau.config.records import counted
from alphagateau.games.pgn.text_files import MEGABYTES, bounds_of

if TYPE_CHECKING:
    from alphagateau.games.pgn.rule_checks import CheckedGame
    from alphagateau.games.pgn.text import WrittenGame


MAX_FAULTS = 10_000  # in the JSON; the counts have all


@dataclasses.dataclass(frozen=True)
class Arguments:
    """Replay the games of a PGN file by the rules, and analyse them with a network.

    Each game that breaks the rules is named with its line and move: exit code 1. Boards go by the Variant tag, and what
    is neither chess, Gardner nor Los Alamos chess cannot be judged. A file may be packed: .gz,
    .bz2, .xz, .zst.

    Example: alphagateau pgn games.pgn --analyse checkpoints/quickstart --output games.html
    """

    file: tyro.conf.Positional[str]
    """a PGN file; -: standard input"""
    each: bool = False
    """print a line for every game"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """write the counts and what is wrong"""
    analyse: Annotated[str | None, tyro.conf.arg(metavar="CKPT")] = None
    """a run or a checkpoint that says what it thinks of every position"""
    simulations: int = 64
    """of its search of each position; 0: none"""
    output: Annotated[Path | None, tyro.conf.arg(metavar="PAGE.html"), HTML] = None
    """write its evaluations, both sides' accuracy and the moves that lost much as a page"""
    annotate: Annotated[Path | None, tyro.conf.arg(metavar="OUT.pgn"), PGN] = None
    """write all games there, those that keep to the rules with its evaluations as [%eval] comments"""
    max_megabytes: MaxMegabytes = MEGABYTES
    """read a file up to this size, unpacked; a line or a game may be a 64th of it"""


@dataclasses.dataclass
class Tally:
    """What has been found so far."""

    games: int = 0
    plies: int = 0
    broken: int = 0
    unknown: int = 0  # of a variant without rules here
    went_on: int = 0  # after the rules had ended them
    boards: Counter[str] = dataclasses.field(default_factory=Counter)
    results: Counter[str] = dataclasses.field(default_factory=Counter)
    faults: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    texts: list[str] = dataclasses.field(default_factory=list)  # of the games, to be annotated

    @property
    def counts(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "texts"}


def run(words: Sequence[str]) -> int:
    """1 if a game breaks the rules."""
    arguments = parse(Arguments, words, "pgn")
    if (arguments.output or arguments.annotate) and not arguments.analyse:
        raise UsageError("--output and --annotate need --analyse CKPT, the network whose evaluations they show")
    if arguments.analyse and not (arguments.output or arguments.annotate):
        raise UsageError("--analyse needs --output PAGE.html or --annotate OUT.pgn, to write to")
    use_compilation_cache()
    from alphagateau.games.pgn.rule_checks import check_games
    from alphagateau.games.pgn.text import read_games
    from alphagateau.games.pgn.text_files import TextFileError, read_lines
    from alphagateau.runs import files

    tally, name = Tally(), "standard input" if arguments.file == "-" else arguments.file
    bounds = bounds_of(arguments.max_megabytes)
    games = read_games(read_lines(arguments.file, bounds), bounds, keep_text=bool(arguments.annotate))
    judged = check_games(games, with_states=bool(arguments.analyse))
    try:
        found = _said(judged, arguments, name, tally)
        if arguments.analyse:
            _analyse(arguments, name, found, tally)
        else:
            for _ in found:
                pass
    except TextFileError as error:
        raise UsageError(str(error)) from None
    if not tally.games:
        raise UsageError(f"{name} holds no games: expected PGN")
    print(describe(tally))
    if arguments.json:
        files.write_result(arguments.json, json.dumps({"name": name, **tally.counts}, indent=1) + "\n")
    return 1 if tally.broken else 2 if tally.unknown else 0


def _said(judged: "Iterator[CheckedGame]", arguments: Arguments, name: str, tally: Tally) -> "Iterator[CheckedGame]":
    """The games that keep to the rules, as all are counted and those that do not are said."""
    for one in judged:
        count(tally, one)
        tally.texts += [one.game.written.text] if arguments.annotate else []
        written, record, fault, _, is_known = one.game
        if fault:
            entry = fault_of(one)
            tally.faults += [entry] if len(tally.faults) < MAX_FAULTS else []
            print(f"{name}: {describe_fault(entry)}", flush=True)
        elif arguments.each and record:
            players = " - ".join(record.headers.get(side, "?") for side in ("White", "Black"))
            over = f", over by the rules after {one.check.over} plies" if one.check and one.check.over else ""
            print(
                f"{name}: game {written.number}, line {written.line}: {players} {record.result}, {len(record.moves)} "
                f"plies of {record.game}{over}",
                flush=True,
            )
        if record and is_known and not fault:
            yield one


def count(tally: Tally, one: "CheckedGame") -> None:
    """Adds a game."""
    record = one.game.record
    tally.games += 1
    tally.plies += len(one.game.written.moves)
    tally.broken += bool(one.game.fault) and one.game.is_known
    tally.unknown += not one.game.is_known
    if record:
        tally.boards[record.game] += 1
        tally.results[record.result] += 1
    tally.went_on += bool(record and one.check and 0 < one.check.over < len(record.moves))


def fault_of(one: "CheckedGame") -> dict[str, Any]:
    """What is wrong with a game, and where."""
    written, ply = one.game.written, one.game.ply
    move = written.moves[ply - 1] if ply else None
    return {
        "game": written.number,
        "line": move.line if move else written.line,
        "ply": ply,
        "move": move.text if move else "",
        "sentence": one.game.fault,
    }


def describe_fault(fault: dict[str, Any]) -> str:
    """Such as "game 3, line 40, ply 17, Qxd5: illegal san: ...: expected a legal move"."""
    where = f", ply {fault['ply']}, {fault['move'][:20]}" if fault["ply"] else ""
    return f"game {fault['game']}, line {fault['line']}{where}: {fault['sentence']}"


def describe(tally: Tally) -> str:
    """The summary."""
    boards = ", ".join(f"{count} of {name}" for name, count in tally.boards.most_common())
    kept = tally.games - tally.broken - tally.unknown
    plies = "1 ply" if tally.plies == 1 else f"{tally.plies:,} plies"
    text = f"{counted(tally.games, 'game')}, {plies}: {kept} keep to the rules, {tally.broken} break them"
    text += f", {tally.unknown} of unknown variants" if tally.unknown else ""
    text += f"; boards: {boards}" if boards else ""
    text += f"; {tally.went_on} went on where the rules here end a game as a draw" if tally.went_on else ""
    return text


def _analyse(arguments: Arguments, name: str, found: "Iterator[CheckedGame]", tally: Tally) -> None:
    """Writes the page and the annotated games. Raises CheckpointError, PlayerError."""
    from alphagateau.games.pgn.annotation import annotated_text
    from alphagateau.matches.players import PlayerError
    from alphagateau.play.analysis import analyse_games
    from alphagateau.reports.analysis_page import MAX_GAMES, analysis_page
    from alphagateau.runs import files

    written: deque[WrittenGame] = deque()  # of the games that are being analysed
    shown, num_games = [], 0
    try:
        for game in analyse_games(str(arguments.analyse), arguments.simulations, _noted(found, written)):
            num_games += 1
            shown += [game] if len(shown) < MAX_GAMES else []
            one = written.popleft()
            if arguments.annotate:
                tally.texts[one.number - 1] = annotated_text(one, game)
    except PlayerError as error:
        raise UsageError(str(error)) from None
    if not num_games:
        return
    if arguments.annotate:
        files.write_result(arguments.annotate, "".join(tally.texts))
        print(arguments.annotate)
        if left := tally.games - num_games:
            print(f"{left} games stand there as they were: they cannot be played by the rules", file=sys.stderr)
    if arguments.output:
        files.write_result(arguments.output, analysis_page(Path(name).name, shown, num_games))
        print(arguments.output)


def _noted(found: "Iterator[CheckedGame]", written: "deque[WrittenGame]") -> "Iterator[CheckedGame]":
    for one in found:
        written.append(one.game.written)
        yield one
