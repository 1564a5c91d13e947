"""Scores players on the Strategic Test Suite, by theme."""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from alphagateau.cli.arguments import FileOptions, PlayerOptions, usage_errors
from alphagateau.cli.compilation import use_compilation_cache
from alphagateau.cli.outputs import JSON, SVG
from alphagateau.cli.streams import make_reporter
from alphagateau.reports.drawing.charts import Labels, dot_chart, standalone
from alphagateau.runs import files
from alphagateau.runs.logging.progress import print_results

if TYPE_CHECKING:
    from alphagateau.suites.sts import ThemeScore


@dataclasses.dataclass(frozen=True)
class Arguments(PlayerOptions, FileOptions):
    """Score a player on a Strategic Test Suite: the points of the moves that it plays.

    Any EPD will do whose moves have points: operation c9 has the moves in UCI, or c7 in SAN, and c8 their
    points, or c0 has both in SAN. A
    player is a run, a checkpoint, `random` or an engine, as in `alphagateau match --help`, with options such as
    `?search=probability&nodes=500`. A score means little without its nodes, which stand beside it, and what a random
    mover is expected to score.

    Example: alphagateau sts "checkpoints/giraffe?nodes=1000" STS1-STS15_LAN_v3.epd --plot sts.svg
    """

    player: tyro.conf.Positional[str]
    """a run, a checkpoint, `random` or `uci:COMMAND?nodes=50`"""
    file: tyro.conf.Positional[Path]
    """EPD, a position a line, plain or packed"""
    game: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """the board; None: chess, or what the checkpoint learnt on"""
    first: int = 0
    """only so many positions of each theme; 0: all"""
    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), JSON] = None
    """also write the scores as JSON"""
    plot: Annotated[Path | None, tyro.conf.arg(metavar="FILE"), SVG] = None
    """also draw the share of points of each theme, an SVG file"""


@usage_errors()  # of the file, and of boards that cannot be
def run(arguments: Arguments) -> int:
    """Plays, prints the table and writes. Raises CheckpointError."""
    use_compilation_cache()
    from alphagateau.games.variants import get_game
    from alphagateau.matches.player_specs import load_player
    from alphagateau.matches.specs import board_of, read_spec
    from alphagateau.suites.sts import answer, first_of_each_theme, read_epd, scores

    spec = read_spec(arguments.player)
    game = get_game(board_of([spec], arguments.game or (None if spec.has_network else "chess")))
    positions = read_epd(game, arguments.file, arguments.bounds)
    positions = first_of_each_theme(positions, arguments.first)
    player = load_player(spec, game.name, arguments.simulations or None)
    try:
        answers = answer(game, player, positions, arguments.seed, make_reporter(len(positions), "positions"))
    finally:
        player.close()
    found = scores(positions, answers)
    search = player.identity.search
    if arguments.json:
        points = [one.points for one in answers]
        files.write_json(arguments.json, as_table(player.name, search, found, points), None)
    if arguments.plot:
        rows = [(one.theme, one.score / one.total, one.standard_error / one.total) for one in found]
        drawn = dot_chart(rows, Labels(x="share of points, 2 standard errors"))
        files.write_result(arguments.plot, standalone(f"Strategic tests: {player.name}", [drawn]))
    beside = f", {search}" if search and search not in player.name else ""
    print_scores(found, f"{player.name}{beside}: {arguments.file.name}")
    return 0


def print_scores(found: Sequence["ThemeScore"], title: str) -> None:
    """A table on standard output."""
    rows = []
    for one in found:
        nodes = "-" if math.isnan(one.nodes) else f"{one.nodes:,.0f}"
        rows.append((*one[:4], f"{one.score / one.total:.1%}", one.best_moves, nodes, f"{one.random:.0f}"))
    columns = ("theme", "positions", "points", "of", "share", "best moves", "nodes", "random")
    print_results(title, columns, [*rows[:-1], None, rows[-1]])


def as_table(name: str, search: str, found: Sequence["ThemeScore"], points: list[int]) -> dict:
    """The table of --json; `points` in the file's order, so that two players can be compared by pairs."""
    *themes, total = (one._asdict() for one in found)
    head = {"name": name, "search": search, "score": total["score"], "total": total["total"]}
    rest = {key: total[key] for key in ("positions", "best_moves", "nodes", "random")}
    return {**head, **rest, "themes": themes, "points": points}
