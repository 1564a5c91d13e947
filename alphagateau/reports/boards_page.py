"""Turns the ratings on several boards into one page (templates/boards.html): what was learnt on one, seen on each."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, number_cell, table
from alphagateau.reports.ladder_page import LearntOn, RatedPlayer, transfer_chart
from alphagateau.reports.ratings import RatingsReport, is_band, rated_players
from alphagateau.runs.files import write_text


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
