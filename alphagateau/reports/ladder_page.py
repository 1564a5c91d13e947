"""Turns a ladder's ratings, results and games into its page (templates/ladder.html) and its drawing."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from alphagateau.ratings.results import Row
from alphagateau.reports.board import GameView, viewer_data
from alphagateau.reports.charts import Chart, Labels, Series, dot_chart, line_chart, standalone
from alphagateau.reports.pages import render
from alphagateau.reports.tables import Table, cross_table, key_values, number_cell, table

if TYPE_CHECKING:  # it brings scipy, which no page needs
    from alphagateau.ratings.rate import Residual

MAX_MISFITS = 20
MAX_LEVELS = 6  # players without an iteration that the chart shows as horizontal lines
MAX_ROWS = 60  # players of a drawing without iterations
Z_MISFIT = 3.0


class RatedPlayer(NamedTuple):
    """A rated player: Elo and its standard error (NaN: not rated), games, points a game.

    Players of the same `run` with an `iteration` are one line of the chart.
    """

    name: str
    rating: float
    standard_error: float
    games: int
    score: float = math.nan
    run: str = ""
    iteration: int | None = None


class LadderPage(NamedTuple):
    """What the page of a ladder shows. method: in a sentence; rows: of the results; notes: what was left out."""

    title: str
    method: str
    players: Sequence[RatedPlayer]
    rows: Sequence[Row]
    residuals: Sequence["Residual"] = ()
    notes: Sequence[str] = ()
    protocol: Mapping[str, Any] = {}
    games: Sequence[GameView] = ()


def ladder_page(page: LadderPage) -> str:
    """The page as HTML."""
    ranked = rank(page.players)
    return render(
        "ladder.html",
        title=page.title,
        subtitle=page.method,
        ratings=rating_table(ranked),
        rating_chart=rating_chart(ranked),
        notes=page.notes,
        cross_table=cross_table([p.name for p in ranked] if page.rows else [], page.rows),
        misfits=misfit_table(page.residuals),
        num_pairs=len(page.residuals),
        games=viewer_data(page.games),
        protocol=key_values(page.protocol),
    )


def rank(players: Sequence[RatedPlayer]) -> list[RatedPlayer]:
    """The strongest first, those not rated last."""
    return sorted(players, key=lambda p: -p.rating if math.isfinite(p.rating) else math.inf)


def rating_table(players: Sequence[RatedPlayer]) -> Table:
    """One row a player, in the order given; intervals are 2 standard errors."""
    rows = []
    for place, p in enumerate(players, 1):
        elo = [number_cell(value, ".0f") for value in (p.rating, 2 * p.standard_error)]
        shown_place = place if math.isfinite(p.rating) else None
        rows.append([shown_place, p.name, *elo, p.games, number_cell(p.score, ".1%")])
    return table(["#", "Player", "Elo", "± 2σ", "Games", "Score"], rows)


def rating_chart(players: Sequence[RatedPlayer]) -> Chart | None:
    """Rating against iteration, a line a run; None if no player has an iteration."""
    rated = [p for p in players if math.isfinite(p.rating)]
    runs: dict[str, list[tuple[int, float, float]]] = {}
    for p in rated:
        if p.iteration is not None:
            runs.setdefault(p.run, []).append((p.iteration, p.rating, p.standard_error))
    if not runs:
        return None
    series = [Series(run, *zip(*sorted(rows), strict=True)) for run, rows in runs.items()]
    levels = [(p.name, p.rating) for p in rated if p.iteration is None][:MAX_LEVELS]
    title = "Elo with bars of 2 standard errors" + ("; dashed: players without iterations" if levels else "")
    return line_chart(series, Labels(title, y="Elo"), levels=levels, kind="wide")


def rating_drawing(players: Sequence[RatedPlayer], title: str = "") -> str:
    """The rating chart as an SVG file; without iterations the MAX_ROWS strongest one above the other."""
    ranked = rank(players)
    rated = [(p.name, p.rating, p.standard_error) for p in ranked if math.isfinite(p.rating)]
    labels = Labels("Elo with bars of 2 standard errors", x="Elo")
    return standalone(title, [rating_chart(ranked) or dot_chart(rated[:MAX_ROWS], labels)])


def misfit_table(residuals: Sequence["Residual"]) -> Table:
    """The MAX_MISFITS pairs farthest from the model, |z| above Z_MISFIT marked."""
    worst = sorted(residuals, key=lambda r: -abs(r.z) if math.isfinite(r.z) else 0.0)[:MAX_MISFITS]
    rows = []
    for r in worst:
        z = number_cell(r.z, "+.1f", "bad" if abs(r.z) > Z_MISFIT else "")
        rows.append([r.player, r.opponent, r.games, number_cell(r.score, "g"), number_cell(r.expected, ".1f"), z])
    return table(["Player", "Opponent", "Games", "Points", "Expected", "z"], rows)
