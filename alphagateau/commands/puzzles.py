"""Measures how many puzzles players solve."""

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from alphagateau.cli.arguments import FileOptions, PlayerOptions, UsageError, number, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import JSON, PUZZLES
from alphagateau.cli.streams import make_reporter, report
from alphagateau.config.records import counted
from alphagateau.ratings.intervals import share
from alphagateau.reports.drawing.charts import standalone
from alphagateau.reports.puzzles_page import Band, PuzzleResult, band_chart, puzzles_json, puzzles_page
from alphagateau.runs.files import file_hash, write_json, write_result, write_text
from alphagateau.runs.logging.progress import print_results

if TYPE_CHECKING:
    from alphagateau.matches.players import Player
    from alphagateau.suites.puzzles import Puzzle
    from alphagateau.suites.solving import Solution


@dataclasses.dataclass(frozen=True)
class Arguments(PlayerOptions, FileOptions):
    """Have players solve puzzles: share solved by rating and theme, with intervals, a page and a plot.

    The file is Lichess's CSV (also compressed; columns FEN, Moves, Rating). The first move of a line is the opponent's;
    all moves of the player must be found, but any mate at once solves the puzzle too. A player is a run, a checkpoint
    (with `?search=action_value` or another search behind it), `random`, or an engine `uci:COMMAND?nodes=50`.

    Example: alphagateau puzzles checkpoints/chess random lichess_puzzles.csv --simulations 64
    """

    words: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PLAYER... FILE.csv")]
    """the players, and last the file"""
    game: Annotated[str, tyro.conf.arg(metavar="NAME")] = "chess"
    """the board"""
    band: Annotated[int, number(int, 1)] = 200
    """width of a band of ratings"""
    max_puzzles: int = 0
    """only the first so many; 0: all"""
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER"), PUZZLES] = Path("eval/puzzles")
    """where index.html, puzzles.svg and solutions.csv go"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """write name, score, total, bands and themes of each player"""


def run(arguments: Arguments) -> int:
    """1 if a player failed."""
    if len(arguments.words) < 2:
        raise UsageError("puzzles needs players and a file, as in: alphagateau puzzles random lichess_puzzles.csv")
    use_compilation_cache()
    from alphagateau.cli.players import measure_each
    from alphagateau.games.variants import get_game
    from alphagateau.suites.puzzles import read_puzzles
    from alphagateau.suites.solving import solve

    *specs, file = arguments.words
    if file == "-" or (Path(file).exists() and not Path(file).is_file()):  # a pipe is empty after its puzzles
        raise UsageError(f"puzzles names the hash of its file: expected a plain file, got {file}")
    with usage_errors():
        game = get_game(arguments.game)
        puzzles, left_out = read_puzzles(game, file, arguments.max_puzzles, arguments.bounds)
    about = {"file": Path(file).name, "sha256": file_hash(Path(file)), "game": game.name}  # before it can move
    if left_out:
        report(f"{counted(len(left_out), 'puzzle')} left out, the first: {left_out[0]}")

    def solve_all(player: "Player") -> "list[Solution]":
        reporter = make_reporter(len(puzzles), "puzzles", player.name)
        return solve(game, player, puzzles, arguments.seed, reporter)

    solutions, failures = measure_each(specs, game.name, arguments.simulations, solve_all)
    results = [summarize(name, puzzles, found, arguments.band) for name, found in solutions.items()]
    write(arguments, results, [*left_out, *failures], about)
    write_solutions(arguments.out / "solutions.csv", puzzles, solutions)
    print_shares(results, f"{counted(len(puzzles), 'puzzle')} of {about['file']}")
    print(arguments.out / "index.html")
    return 1 if failures else 0


def summarize(name: str, puzzles: "Sequence[Puzzle]", solutions: "Sequence[Solution]", width: int) -> PuzzleResult:
    """The shares of a player: in all, by band of ratings, by theme."""
    of_bands: dict[int, list[bool]] = {}
    of_themes: dict[str, list[bool]] = {}
    for puzzle, solution in zip(puzzles, solutions, strict=True):
        of_bands.setdefault(puzzle.rating // width * width, []).append(solution.is_solved)
        for theme in puzzle.themes:
            of_themes.setdefault(theme, []).append(solution.is_solved)
    bands = [Band(low, low + width, share(sum(x), len(x))) for low, x in sorted(of_bands.items())]
    themes = {theme: share(sum(solved), len(solved)) for theme, solved in sorted(of_themes.items())}
    whole = share(sum(solution.is_solved for solution in solutions), len(solutions))
    return PuzzleResult(name, whole, bands, themes)


def write(
    arguments: Arguments, results: Sequence[PuzzleResult], notes: Sequence[str], about: Mapping[str, Any]
) -> None:
    """The page, the drawing and, if wanted, JSON."""
    protocol = {**about, "simulations": arguments.simulations or "as in training", "seed": arguments.seed}
    title = f"Puzzles of {about['file']}"
    write_result(arguments.out / "index.html", puzzles_page(title, results, notes, protocol))
    write_text(arguments.out / "puzzles.svg", standalone(title, [band_chart(results)]))
    if arguments.json:
        write_json(arguments.json, puzzles_json(results, about))


def write_solutions(path: Path, puzzles: "Sequence[Puzzle]", solutions: "Mapping[str, Sequence[Solution]]") -> None:
    """One row a player and puzzle."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["player", "puzzle", "rating", "solved", "found", "answer"])
    for name, found in solutions.items():
        for puzzle, one in zip(puzzles, found, strict=True):
            writer.writerow([name, puzzle.name, puzzle.rating, int(one.is_solved), one.found, one.answer])
    write_text(path, text.getvalue())


def print_shares(results: Sequence[PuzzleResult], title: str) -> None:
    """A table on standard output: a row a player, its share in all and by band."""
    bands, rows = [f"{band.low}-" for band in results[0].bands], []
    for result in results:
        whole = result.whole
        shares = [f"{band.share.value:.0%}" for band in result.bands]
        span = f"{whole.lower:.1%} - {whole.upper:.1%}"
        rows.append((result.name, whole.successes, f"{whole.value:.1%}", span, *shares))
    print_results(title, ("player", "solved", "share", "2 sigma", *bands), rows, 160)
