"""Reads the players of a ladder's ratings.csv and draws their curves; no other file is read."""

import csv
from pathlib import Path

from alphagateau.config import ConfigError
from alphagateau.ratings.curves import place_of
from alphagateau.reports.drawing.charts import standalone
from alphagateau.reports.ladder_page import COST_AXES, RatedPlayer, cost_charts, rating_chart
from alphagateau.runs.files import write_text


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a ratings.csv, as texts. Raises ConfigError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            player_of(row)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or f"{type(error).__name__} {error}"
        raise ConfigError(f"{path} is no ratings.csv of a ladder: {why}") from None
    return rows


def player_of(row: dict[str, str]) -> RatedPlayer:
    """A row's player. Raises ValueError, KeyError, TypeError."""
    run, iteration = place_of(row["player"]) or ("", None)
    costs = {unit: float(row[unit]) for unit in COST_AXES if row.get(unit)}
    numbers = float(row["rating"]), float(row["standard_error"]), int(row["games"]), float(row["score"])
    return RatedPlayer(row["player"], *numbers, run, iteration, costs=costs)


def draw_curves(folder: Path, out: Path | None = None) -> Path:
    """Draws Elo against iterations and each known cost, of a ladder's folder, as an SVG; returns its path.

    Raises ConfigError if there is no ratings.csv of runs.
    """
    rows = read_rows(folder / "ratings.csv")
    players = [player_of(row) for row in rows]
    known = {unit for unit in COST_AXES if any(player.costs.get(unit) for player in players)}
    players = [p._replace(costs={unit: x for unit, x in p.costs.items() if unit in known}) for p in players]
    has_band = bool(rows) and rows[0].get("method") == "history"
    first = rating_chart(players, has_band)
    if first is None:
        raise ConfigError(f"{folder / 'ratings.csv'} rates no checkpoints of runs, so it has no curves")
    out = out or folder / "curves.svg"
    write_text(out, standalone(folder.name, [first, *cost_charts(players, has_band)]))
    return out
