"""Turns a ladder's ratings, results and games into its page (templates/ladder.html) and its drawings."""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from alphagateau.config import ConfigError
from alphagateau.ratings.curves import place_of
from alphagateau.ratings.results import Row
from alphagateau.reports.drawing.charts import Chart, Labels, Series, dot_chart, line_chart, standalone
from alphagateau.reports.drawing.game_viewer import GameView, viewer_data
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Table, cross_table, key_values, number_cell, table
from alphagateau.runs.files import write_text

if TYPE_CHECKING:  # it brings scipy, which no page needs
    from alphagateau.ratings.pairs import Residual

MAX_MISFITS = 20
MAX_LEVELS = 6  # players without an iteration that the chart shows as horizontal lines
LEAST_GAP = 1 / 24  # of the height of a chart, between two levels
MAX_ROWS = 60  # players of a drawing without iterations
Z_MISFIT = 3.0
COST_AXES = {
    "frames": ("frames played", 1.0),
    "device_seconds": ("device-hours", 1 / 3600),
    "flops": ("FLOPs", 1.0),
    "joules": ("joules", 1.0),
}  # its name on an axis, and the factor to the axis' unit
BESIDE = {
    "draws": ("Drawn", ".0%", 1),
    "white_score": ("White", ".1%", 1),
    "black_score": ("Black", ".1%", 1),
    "to_next": ("To next", "+.0f", 1),
    "to_next_error": ("±", ".0f", 2),
    "superiority": ("LOS", ".1%", 1),
}  # of ratings.csv, what a table shows if it is known: its header, form and factor


class RatedPlayer(NamedTuple):
    """A rated player: Elo and its standard error (NaN: not rated), games, points a game.

    places: (run, iteration) on the chart, whose lines are the runs. costs, beside: of COST_AXES and BESIDE, what is
    known of them.
    """

    name: str
    rating: float
    standard_error: float
    games: int
    score: float = math.nan
    places: Sequence[tuple[str, int]] = ()
    costs: Mapping[str, float] = {}
    beside: Mapping[str, float] = {}


class LearntOn(NamedTuple):
    """The board of a run, and the iterations and other boards before it, of the weights that it began from."""

    board: str
    iterations_before: int = 0
    boards_before: tuple[str, ...] = ()


def ladder_page(
    title: str,
    method: str,
    players: Sequence[RatedPlayer],
    rows: Sequence[Row],
    *,
    reading: Sequence[str] = (),
    residuals: Sequence["Residual"] = (),
    notes: Sequence[str] = (),
    protocol: Mapping[str, Any] = {},
    games: Sequence[GameView] = (),
    has_band: bool = False,
    board: str = "",
    learnt_on: Mapping[str, LearntOn] = {},
) -> str:
    """The page as HTML; `has_band`: errors are drawn as one band along each line.

    method, reading, notes: sentences, on the table of ratings and on what was left out. board: of the games.
    """
    is_transfer = any(run.board != board or run.iterations_before for run in learnt_on.values())
    return render(
        "ladder.html",
        title=title,
        subtitle=method,
        ratings=rating_table(players),
        reading=reading,
        rating_chart=rating_chart(players, has_band),
        transfer_chart=transfer_chart(players, board, learnt_on, has_band) if is_transfer else None,
        cost_charts=cost_charts(players, has_band),
        notes=notes,
        cross_table=cross_table([p.name for p in players] if rows else [], rows),
        misfits=misfit_table(residuals),
        num_pairs=len(residuals),
        games=viewer_data(games),
        protocol=key_values(protocol),
    )


def rank(players: Sequence[RatedPlayer]) -> list[RatedPlayer]:
    """The strongest first, those not rated last."""
    return sorted(players, key=lambda p: -p.rating if math.isfinite(p.rating) else math.inf)


def rating_table(players: Sequence[RatedPlayer]) -> Table:
    """One row a player, in the order given; intervals are 2 standard errors. What nobody has of BESIDE is left out."""
    rows, beside = [], {key: shown for key, shown in BESIDE.items() if any(key in p.beside for p in players)}
    for place, p in enumerate(players, 1):
        elo = [number_cell(value, ".0f") for value in (p.rating, 2 * p.standard_error)]
        shown_place = place if math.isfinite(p.rating) else None
        more = [number_cell(x * p.beside.get(key, math.nan), form) for key, (_, form, x) in beside.items()]
        rows.append([shown_place, p.name, *elo, p.games, number_cell(p.score, ".1%"), *more])
    return table(["#", "Player", "Elo", "±", "Games", "Score", *(name for name, *_ in beside.values())], rows)


def rating_chart(players: Sequence[RatedPlayer], has_band: bool = False) -> Chart | None:
    """Rating against iteration, a line a run; None if no player has an iteration."""
    rated = [p for p in players if math.isfinite(p.rating)]
    series = rating_series(rated, lambda p, iteration: iteration, has_band)
    if not series:
        return None
    levels = rating_levels(rated)
    title = f"Elo with {'bands' if has_band else 'bars'} of 2 standard errors"
    title += "; dashed: players without iterations" if levels else ""
    return line_chart(series, Labels(title, y="Elo"), levels=levels, kind="wide")


def transfer_chart(
    players: Sequence[RatedPlayer], board: str, learnt_on: Mapping[str, LearntOn], has_band: bool = False
) -> Chart | None:
    """Rating on a board against all iterations since the first weights, also those on other boards."""
    rated = [p for p in players if math.isfinite(p.rating)]
    series = []
    for run, known in learnt_on.items():
        own = [p._replace(places=[(run, i)]) for p in rated for name, i in p.places if name == run]
        before = known.iterations_before
        boards = [*known.boards_before, known.board]
        said = f"{run}, learnt on {', then '.join(boards)}" + ("" if board in boards else ": zero-shot")
        found = rating_series(own, lambda _, iteration, before=before: before + iteration, has_band)
        series += [one._replace(name=said) for one in found]
    labels = Labels(f"Elo on {board}", x="iterations since the first weights, on any board", y="Elo")
    return line_chart(series, labels, levels=rating_levels(rated), kind="wide") if series else None


def cost_charts(players: Sequence[RatedPlayer], has_band: bool = False) -> list[Chart]:
    """Rating against each cost that two players or more of a run have, and somebody more than nothing of."""
    rated, charts = [p for p in players if math.isfinite(p.rating)], []
    for unit, (name, factor) in COST_AXES.items():
        known = [p for p in rated if unit in p.costs]
        series = rating_series(known, lambda p, _, unit=unit, factor=factor: factor * p.costs[unit], has_band)
        if any(len(one.x) > 1 for one in series) and any(p.costs[unit] for p in known):
            charts.append(line_chart(series, Labels(f"Elo by {name}", x=name, y="Elo"), levels=rating_levels(rated)))
    return charts


def rating_levels(players: Sequence[RatedPlayer]) -> list[tuple[str, float]]:
    """Names and ratings of the anchor and the strongest players without iterations whose names fit, by rating."""
    levels, ratings = [], [p.rating for p in players]
    least = LEAST_GAP * (max(ratings, default=0) - min(ratings, default=0))
    for p in sorted(players, key=lambda p: (p.standard_error > 0 and p.name != "random", -p.rating)):
        if not p.places and all(abs(p.rating - rating) >= least for _, rating in levels):
            levels.append((p.name, p.rating))
    return sorted(levels[:MAX_LEVELS], key=lambda level: -level[1])


def rating_series(
    players: Sequence[RatedPlayer], place: Callable[[RatedPlayer, int], float], has_band: bool = False
) -> list[Series]:
    """A line a run through its players, each at `place(player, iteration)`."""
    runs: dict[str, list[tuple[float, float, float]]] = {}
    for p in players:
        for run, iteration in p.places:
            runs.setdefault(run, []).append((place(p, iteration), p.rating, p.standard_error))
    series = []
    for run, rows in runs.items():
        x, y, errors = zip(*sorted(rows), strict=True)
        band = [(r - 2 * e, r + 2 * e) for r, e in zip(y, errors, strict=True)]
        series.append(Series(run, x, y, band=band) if has_band else Series(run, x, y, errors))
    return series


def rating_drawing(players: Sequence[RatedPlayer], title: str = "", has_band: bool = False) -> str:
    """The rating chart as an SVG file; without iterations the MAX_ROWS strongest one above the other."""
    ranked = rank(players)
    rated = [(p.name, p.rating, p.standard_error) for p in ranked if math.isfinite(p.rating)]
    labels = Labels("Elo with bars of 2 standard errors", x="Elo")
    return standalone(title, [rating_chart(ranked, has_band) or dot_chart(rated[:MAX_ROWS], labels)])


def misfit_table(residuals: Sequence["Residual"]) -> Table:
    """The MAX_MISFITS pairs farthest from the model, |z| above Z_MISFIT marked."""
    worst = sorted(residuals, key=lambda r: -abs(r.z) if math.isfinite(r.z) else 0.0)[:MAX_MISFITS]
    rows = []
    for r in worst:
        z = number_cell(r.z, "+.1f", "bad" if abs(r.z) > Z_MISFIT else "")
        rows.append([r.player, r.opponent, r.games, number_cell(r.score, "g"), number_cell(r.expected, ".1f"), z])
    return table(["Player", "Opponent", "Games", "Points", "Expected", "z"], rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a ratings.csv, as texts. Raises ConfigError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            player_of(row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or f"{type(error).__name__} {error}"
        raise ConfigError(f"{path} is no ratings.csv of a ladder: {why}") from None
    return rows


def player_of(row: dict[str, str]) -> RatedPlayer:
    """A row's player. Raises ValueError, KeyError, TypeError."""
    place = place_of(row["player"])
    costs, beside = ({key: float(row[key]) for key in keys if row.get(key)} for keys in (COST_AXES, BESIDE))
    numbers = float(row["rating"]), float(row["standard_error"]), int(row["games"]), float(row["score"])
    return RatedPlayer(row["player"], *numbers, [place] if place else [], costs, beside)


def draw_curves(folder: Path, out: Path | None = None) -> Path:
    """Draws Elo against iterations and each known cost, of a ladder's folder, as an SVG; returns its path.

    Raises ConfigError if there is no ratings.csv of runs.
    """
    rows = read_rows(folder / "ratings.csv")
    players = [player_of(row) for row in rows]
    has_band = bool(rows) and rows[0].get("method") == "history"
    first = rating_chart(players, has_band)
    if first is None:
        raise ConfigError(f"{folder / 'ratings.csv'} rates no checkpoints of runs, so it has no curves")
    out = out or folder / "curves.svg"
    write_text(out, standalone(folder.resolve().name, [first, *cost_charts(players, has_band)]))
    return out
