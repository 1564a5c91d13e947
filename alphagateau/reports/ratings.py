"""Writes rated results as a folder of tables, games, a drawing and a page, or of several boards, and prints them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from alphagateau.games.small_boards import board_class
from alphagateau.ratings.pairs import residuals
from alphagateau.ratings.rate import Ratings
from alphagateau.ratings.results import Results, without_colors
from alphagateau.ratings.results_files import write_ratings, write_results
from alphagateau.reports.drawing.game_viewer import GameView, view_game
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, number_cell, table
from alphagateau.reports.ladder_page import (
    COST_AXES,
    LadderPage,
    LearntOn,
    RatedPlayer,
    ladder_page,
    rating_drawing,
    transfer_chart,
)
from alphagateau.runs.files import write_text
from alphagateau.runs.logging.progress import print_results, say

if TYPE_CHECKING:  # imported with JAX, which ratings without games do not need
    from alphagateau.games.pgn.pgn import GameRecord

MAX_PAGE_GAMES = 500  # shown on the page; games.pgn has all


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
    write_ratings(report.ratings, folder / "ratings.csv", report.columns)
    write_results(report.results, folder / "results.csv")
    if report.records:
        from alphagateau.games.pgn.pgn import to_pgn

        write_text(folder / "games.pgn", "".join(map(to_pgn, report.records)))
    players = rated_players(report)
    write_text(folder / "ratings.svg", rating_drawing(players, report.title, is_band(report.ratings)))
    shown, num_games, notes = report.records[-MAX_PAGE_GAMES:], len(report.records), report.notes
    if len(shown) < num_games:
        notes = [*notes, f"the page shows the last {len(shown)} of {num_games} games; games.pgn has all"]
    page = LadderPage(
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
        games=[game_view(record, number) for number, record in enumerate(shown, num_games - len(shown) + 1)],
    )
    write_text(folder / "index.html", ladder_page(page))


def rated_players(report: RatingsReport) -> list[RatedPlayer]:
    """The players for a page, with the costs of COST_AXES that are more than nothing for somebody."""
    players, ratings = [], report.ratings
    known = {unit: report.columns[unit] for unit in COST_AXES if any(report.columns.get(unit, {}).values())}
    for k, name in enumerate(ratings.players):
        places = report.curves.get(name, ())
        run, iteration = places[0] if places else ("", None)
        numbers = float(ratings.rating[k]), float(ratings.standard_error[k])
        costs = {unit: float(by_name[name]) for unit, by_name in known.items() if by_name.get(name, "") != ""}
        shown = int(ratings.games[k]), float(ratings.score[k])
        players.append(RatedPlayer(name, *numbers, *shown, run, iteration, places[1:], costs))
    return players


def is_band(ratings: Ratings) -> bool:
    """Whether standard errors are of a whole curve, not of each of its players by itself."""
    return ratings.method == "history"


def game_view(record: "GameRecord", number: int) -> GameView:
    """A game for the page's board."""
    white, black = (record.headers.get(side, "?") for side in ("White", "Black"))
    board = board_class(record.game)(record.start_fen)
    title = f"{number}. {white} - {black}  {record.result}"
    return view_game(board, record.moves, record.result, title, dict(record.headers))


def describe_method(ratings: Ratings) -> str:
    """The method in a reader's words, with its source."""
    if ratings.method == "wls":
        return "weighted least squares on pair scores with one added draw (AlphaGateau, equations 11 and 15)"
    text = "Bradley-Terry maximum likelihood, a draw as half a win (spread of draws: Davidson 1970)"
    if ratings.method == "history":
        text += ", iterations of a run near one another (Coulom's whole-history rating, heavy-tailed steps)"
    if ratings.pair_correlation:
        text += (
            f"; two games of an opening scatter {1 + ratings.pair_correlation:.2f} times as much as independent ones"
        )
    if ratings.dispersion > 1:
        text += f"; variances times {ratings.dispersion:.2f} for over-dispersion"
    if ratings.white_advantage:
        text += f"; white advantage {ratings.white_advantage:z.0f} +- {2 * ratings.white_advantage_error:.0f} Elo"
    return text


def print_ratings(ratings: Ratings, title: str) -> None:
    """A table on standard output, the notes below it."""
    rows = []
    for k in sorted(range(len(ratings.players)), key=lambda k: -np.nan_to_num(ratings.rating[k], nan=-np.inf)):
        numbers = f"{ratings.rating[k]:z.0f}", f"{2 * ratings.standard_error[k]:z.0f}"
        rows.append((ratings.players[k], *numbers, ratings.games[k], f"{ratings.score[k]:.3f}"))
    print_results(title, ("player", "rating", "2 sigma", "games", "score"), rows)
    say(f"method: {describe_method(ratings)}")
    for note in ratings.notes:
        say(f"note: {note}")


def write_boards_page(folder: Path, reports: Mapping[str, RatingsReport]) -> None:
    """Writes index.html beside the folders of the boards, whose own pages it names; reports by board."""
    folder.mkdir(parents=True, exist_ok=True)
    players = {board: rated_players(report) for board, report in reports.items()}
    charts = {
        board: transfer_chart(players[board], board, report.learnt_on, is_band(report.ratings))
        for board, report in reports.items()
    }
    runs = {run: known for report in reports.values() for run, known in report.learnt_on.items()}
    page = render(
        "boards.html",
        title=f"{folder.name}: {', '.join(reports)}",
        subtitle="the same players, rated on each board by the games played there; each board has a scale of its own",
        boards=[(board, f"{board}/index.html") for board in reports],
        charts_of_boards=[(board, chart) for board, chart in charts.items() if chart],
        runs=run_table(players, runs),
        notes=[f"{board}: {note}" for board, report in reports.items() for note in report.notes],
    )
    write_text(folder / "index.html", page)


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
