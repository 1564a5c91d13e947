"""Writes rated results as a folder of tables, games, a drawing and a page, or of several boards, and prints them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Column

from alphagateau.ratings.pairs import residuals, table_columns
from alphagateau.ratings.rate import Ratings, ranked
from alphagateau.ratings.results import Results, without_colors
from alphagateau.ratings.results_files import write_ratings, write_results
from alphagateau.reports.drawing.game_viewer import view_record
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, in_markdown, latex_table, markdown_table, number_cell, table
from alphagateau.reports.ladder_page import (
    BESIDE,
    COST_AXES,
    LearntOn,
    RatedPlayer,
    ladder_page,
    rating_drawing,
    rating_table,
    transfer_chart,
)
from alphagateau.runs.files import to_json, write_result, write_text
from alphagateau.runs.logging.progress import print_results, say, warn

if TYPE_CHECKING:  # imported with JAX, which ratings without games do not need
    from alphagateau.games.pgn.pgn import GameRecord

MAX_PAGE_GAMES = 500  # shown on the page; games.pgn has all
ADVICE = {
    "bradley-terry": "Publish these ratings, or those by history where most players are checkpoints of runs.",
    "history": "Publish these ratings: a checkpoint leans on its neighbours in the run, which predicts games as well "
    "as bradley-terry or better.",
    "wls": "Compare these ratings with the paper's, and publish bradley-terry: the draw added to each pair pulls the "
    "ends of a wide pool in, by hundreds of Elo.",
}  # docs/ratings.md has the measurement


class RatingsReport(NamedTuple):
    """The ratings of a pool of players, and what is shown beside them.

    curves: (run, iteration) of each place that a player has on the chart; players without are drawn as levels.
    columns: more of ratings.csv, by name and player. records, board: of the games. notes: what was left out.
    learnt_on: the boards on which the run of each curve learnt.
    """

    title: str
    results: Results
    ratings: Ratings
    curves: Mapping[str, Sequence[tuple[str, int]]] = {}
    columns: Mapping[str, Mapping[str, Any]] = {}
    records: "Sequence[GameRecord]" = ()
    notes: Sequence[str] = ()
    protocol: Mapping[str, Any] = {}
    board: str = ""
    learnt_on: Mapping[str, LearntOn] = {}


def write_ratings_report(folder: Path, report: RatingsReport) -> None:
    """Writes ratings.csv, results.csv, games.pgn, ratings.svg and index.html, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = table_columns(report.results, report.ratings)
    shown = {key: {name: f"{x:.4f}" for name, x in column.items()} for key, column in beside.items()}
    write_ratings(report.ratings, folder / "ratings.csv", {**shown, **report.columns})
    write_results(report.results, folder / "results.csv")
    if report.records:
        from alphagateau.games.pgn.pgn import to_pgn

        write_text(folder / "games.pgn", "".join(map(to_pgn, report.records)))
    players = rated_players(report)
    write_text(folder / "ratings.svg", rating_drawing(players, report.title, is_band(report.ratings)))
    shown, num_games, notes = report.records[-MAX_PAGE_GAMES:], len(report.records), report.notes
    if len(shown) < num_games:
        notes = [*notes, f"the page shows the last {len(shown)} of {num_games} games; games.pgn has all"]
    page = ladder_page(
        report.title,
        describe_method(report.ratings),
        players,
        without_colors(report.results).rows,
        residuals=residuals(report.results, report.ratings),
        notes=[*report.ratings.notes, *notes],
        protocol=report.protocol,
        has_band=is_band(report.ratings),
        board=report.board,
        learnt_on=report.learnt_on,
        reading=describe_table(report.ratings),
        games=[view_record(record, number) for number, record in enumerate(shown, num_games - len(shown) + 1)],
    )
    write_text(folder / "index.html", page)


def rated_players(report: RatingsReport) -> list[RatedPlayer]:
    """The players for a table, with what is known of their costs and of BESIDE."""
    players, ratings = [], report.ratings
    columns = table_columns(report.results, ratings)
    for k in ranked(ratings):
        name = ratings.players[k]
        numbers = float(ratings.rating[k]), float(ratings.standard_error[k])
        shown = int(ratings.games[k]), float(ratings.score[k])
        cells = {unit: report.columns.get(unit, {}).get(name, "") for unit in COST_AXES}
        costs = {unit: float(cell) for unit, cell in cells.items() if cell != ""}
        beside = {key: columns[key][name] for key in BESIDE if name in columns[key]}
        players.append(RatedPlayer(name, *numbers, *shown, report.curves.get(name, ()), costs, beside))
    return players


def is_band(ratings: Ratings) -> bool:
    """Whether standard errors are of a whole curve, not of each of its players by itself."""
    return ratings.method == "history"


def describe_method(ratings: Ratings) -> str:
    """The method in a reader's words, with its source."""
    if ratings.method == "wls":
        return "weighted least squares on pair scores with one added draw (AlphaGateau, equations 11 and 15)"
    text = "Bradley-Terry maximum likelihood, a draw as half a win (spread of draws: Davidson 1970)"
    if ratings.method == "history":
        text += ", iterations of a run near one another (Coulom's whole-history rating, heavy-tailed steps)"
    if ratings.pair_correlation:
        scatter = 1 + ratings.pair_correlation
        text += f"; two games of an opening scatter {scatter:.2f} times as much as independent ones"
    if ratings.dispersion > 1:
        text += f"; variances times {ratings.dispersion:.2f} for over-dispersion"
    if ratings.white_advantage:
        text += f"; white advantage {ratings.white_advantage:z.0f} +- {2 * ratings.white_advantage_error:.0f} Elo"
    return text


def describe_table(ratings: Ratings) -> tuple[str, str]:
    """Sentences on the columns, and on what to publish."""
    origin = f"above {ratings.anchor}" if ratings.anchor else "relative to the pool's mean"
    return (
        f"± is 2 standard errors, of a rating {origin}. Two players are told apart by their own difference: To next is "
        "Elo above the next player, with ± of that, LOS the likelihood to be the stronger of the two.",
        ADVICE[ratings.method],
    )


def print_ratings(report: RatingsReport, form: str = "text") -> None:
    """A table on standard output, and sentences on it: below it, or on standard error if it is of another form."""
    players, ratings = rated_players(report), report.ratings
    if form == "text":
        (_, *names), rows = rating_table(players)
        columns = ["#", Column(names[0]), *(name.replace(" ", "\n") for name in names[1:])]
        print_results(report.title, columns, [[cell.text for cell in row] for row in rows], is_narrow=True)
    else:
        print(table_text(report, players, form))
    tell = say if form == "text" else warn
    notes = [f"note: {note}" for note in ratings.notes]
    for line in (f"method: {describe_method(ratings)}", *describe_table(ratings), *notes):
        tell(line)


def table_text(report: RatingsReport, players: Sequence[RatedPlayer], form: str) -> str:
    """The table of ratings in `markdown`, `latex` or `json`, an object a player."""
    if form == "json":
        fields = ("rating", "standard_error", "games", "score")
        notes, ratings = (*report.ratings.notes, *report.notes), report.ratings
        part = dict(zip(ratings.players, ratings.component.tolist(), strict=True))
        rows = [
            {"player": p.name, **{key: getattr(p, key) for key in fields}, **p.beside, "component": part[p.name]}
            | {"bounds": ratings.bounds.get(p.name), "flags": ratings.flags.get(p.name, ())}
            for p in players
        ]
        return to_json({"method": ratings.method, "anchor": ratings.anchor, "notes": notes, "players": rows})
    header, rows = rating_table(players)
    texts = [[cell.text for cell in row] for row in rows]
    if form == "markdown":
        return markdown_table([header, *([*map(in_markdown, row)] for row in texts)])
    return latex_table([header, *texts])


def write_boards_page(folder: Path, reports: Mapping[str, RatingsReport]) -> None:
    """Writes index.html beside the folders of the boards, whose own pages it names; reports by board."""
    players = {board: rated_players(report) for board, report in reports.items()}
    charts = {
        board: transfer_chart(players[board], board, report.learnt_on, is_band(report.ratings))
        for board, report in reports.items()
    }
    runs = {run: known for report in reports.values() for run, known in report.learnt_on.items()}
    page = render(
        "boards.html",
        title=f"{folder.resolve().name}: {', '.join(reports)}",
        subtitle="the same players, rated on each board by the games played there; each board has a scale of its own",
        boards=[(board, f"{board}/index.html") for board in reports],
        charts_of_boards=[(board, chart) for board, chart in charts.items() if chart],
        runs=run_table(players, runs),
        notes=[f"{board}: {note}" for board, report in reports.items() for note in report.notes],
    )
    write_result(folder / "index.html", page)


def run_table(players: Mapping[str, list[RatedPlayer]], runs: Mapping[str, LearntOn]) -> Table:
    """A row a run: where it learnt, and for each board the first and the last of its iterations that were rated."""
    header = ["Run", "Learnt on"]
    for board in players:
        header += [f"{board}: first", f"{board}: last", "± 2σ"]
    rows = []
    for run, known in runs.items():
        row: list[Any] = [run, ", then ".join([*known.boards_before, known.board])]
        for board in players:
            places = [(i, p) for p in players[board] for name, i in p.places if name == run and math.isfinite(p.rating)]
            ends = [min(places, key=lambda one: one[0])[1], max(places, key=lambda one: one[0])[1]] if places else []
            row += [number_cell(p.rating, ".0f") for p in ends] or [None, None]
            row.append(number_cell(2 * ends[1].standard_error, ".0f") if ends else None)
        rows.append(row)
    return table(header, rows)
