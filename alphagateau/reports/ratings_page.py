"""Turns a ladder's ratings, results and games into its page and its plot."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.reports import parts
from alphagateau.reports.board import GameView, game_viewer
from alphagateau.reports.charts import Series, line_chart
from alphagateau.reports.parts import Cell, Html, Section

MAX_MISFITS = 20
MAX_LEVELS = 6  # players without an iteration that the plot shows as horizontal lines
MAX_ROWS = 60  # players of a plot without iterations
Z_MISFIT = 3.0


class Player(NamedTuple):
    """A rated player: Elo and its standard error (NaN: not rated), games, points a game.

    Players of the same `run` with an `iteration` are one line of the plot.
    """

    name: str
    rating: float
    standard_error: float
    games: int
    score: float = math.nan
    run: str = ""
    iteration: int | None = None


class Pair(NamedTuple):
    """Games of one pair, from `player`'s side."""

    player: str
    opponent: str
    wins: int
    draws: int
    losses: int


class Misfit(NamedTuple):
    """A pair's points against the model's, from `player`'s side; z in standard deviations."""

    player: str
    opponent: str
    games: int
    score: float
    expected: float
    z: float


def ladder_page(
    title: str,
    method: str,
    players: Sequence[Player],
    pairs: Sequence[Pair],
    *,
    misfits: Sequence[Misfit] = (),
    notes: Sequence[str] = (),
    protocol: Mapping[str, Any] | None = None,
    games: Sequence[GameView] = (),
) -> str:
    """The page of a ladder. `method` names the rating method in a sentence; `notes` say what was left out."""
    ranked = rank(players)
    return parts.page(
        title,
        [
            Section("Ratings", rating_table(ranked)),
            Section("Rating against iteration", rating_chart(ranked)),
            Section("Notes", parts.notes(notes)),
            Section("Cross-table", parts.cross_table([p.name for p in ranked], pairs) if pairs else Html("")),
            Section("Where the model misfits", misfit_table(misfits)),
            Section("Games", game_viewer(games)),
            Section("Protocol", parts.key_values(protocol or {})),
        ],
        subtitle=method,
    )


def rank(players: Sequence[Player]) -> list[Player]:
    """The strongest first, those not rated last."""
    return sorted(players, key=lambda p: -p.rating if math.isfinite(p.rating) else math.inf)


def rating_table(players: Sequence[Player]) -> Html:
    """One row a player, in the order given; intervals are 2 standard errors."""
    rows = []
    for place, p in enumerate(players, 1):
        elo = [_cell(value, ".0f") for value in (p.rating, 2 * p.standard_error)]
        shown_place = place if math.isfinite(p.rating) else None
        rows.append([shown_place, p.name, *elo, p.games, _cell(p.score, ".1%")])
    return parts.table(["#", "Player", "Elo", "± 2σ", "Games", "Score"], rows) if rows else Html("")


def _cell(value: float, form: str, tone: str = "") -> Cell:
    return Cell(f"{value:{form}}" if math.isfinite(value) else parts.UNKNOWN, value, tone=tone)


def _lines(players: Sequence[Player]) -> tuple[list[Series], list[tuple[str, float]]]:
    """One series a run over its iterations, and the other players as (name, rating)."""
    rated = [p for p in players if math.isfinite(p.rating)]
    runs: dict[str, list[tuple[int, float, float]]] = {}
    for p in rated:
        if p.iteration is not None:
            runs.setdefault(p.run, []).append((p.iteration, p.rating, p.standard_error))
    series = [Series(run, *zip(*sorted(rows), strict=True)) for run, rows in runs.items()]
    return series, [(p.name, p.rating) for p in rated if p.iteration is None][:MAX_LEVELS]


def rating_chart(players: Sequence[Player]) -> Html:
    """Rating against iteration, a line a run; nothing if no player has an iteration."""
    series, levels = _lines(players)
    title = "Elo with bars of 2 standard errors; dashed: players without iterations"
    return line_chart(series, title=title, y_label="Elo", levels=levels, kind="wide") if series else Html("")


def misfit_table(misfits: Sequence[Misfit]) -> Html:
    """The MAX_MISFITS pairs farthest from the model, |z| above Z_MISFIT marked."""
    worst = sorted(misfits, key=lambda m: -abs(m.z) if math.isfinite(m.z) else 0.0)[:MAX_MISFITS]
    rows = []
    for m in worst:
        z = _cell(m.z, "+.1f", "bad" if abs(m.z) > Z_MISFIT else "")
        rows.append([m.player, m.opponent, m.games, _cell(m.score, "g"), _cell(m.expected, ".1f"), z])
    said = f"Pairs whose points lie farthest from what the ratings expect: {len(rows)} of {len(misfits)}."
    header = ["Player", "Opponent", "Games", "Points", "Expected", "z"]
    return parts.join(parts.paragraph(said), parts.table(header, rows)) if rows else Html("")


def rating_plot(players: Sequence[Player], path: Path, title: str = "") -> None:
    """Writes rating against iteration with bars of 2 standard errors as PNG or SVG, by the suffix of `path`.

    If no player has an iteration: the ratings of the MAX_ROWS strongest, one above the other.
    """
    from matplotlib.figure import Figure  # its import takes half a second

    ranked = [p for p in rank(players) if math.isfinite(p.rating)]
    series, levels = _lines(ranked)
    rows = [] if series else ranked[:MAX_ROWS][::-1]
    figure = Figure(figsize=(7, max(4, 0.25 * len(rows) + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(_plain(title), parse_math=False)
    axes.grid(alpha=0.3)
    if series:
        _plot_runs(axes, series, levels)
    else:
        _plot_rows(axes, rows)
    figure.savefig(path, dpi=150)


def _plot_runs(axes: Any, series: Sequence[Series], levels: Sequence[tuple[str, float]]) -> None:
    axes.set(xlabel="iteration", ylabel="Elo")
    drawn = [axes.errorbar(s.x, s.y, yerr=_bars(s.standard_error), marker="o", capsize=3) for s in series]
    legend = axes.legend(drawn, ["-"] * len(drawn), loc="upper left")
    for label, one in zip(legend.get_texts(), series, strict=True):
        label.set(text=_plain(one.name), parse_math=False)
    style = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "bottom", "color": "grey"}
    for name, y in levels:
        axes.axhline(y, color="grey", linestyle="--", linewidth=1)
        axes.text(0.99, y, _plain(name), parse_math=False, **style)


def _plot_rows(axes: Any, rows: Sequence[Player]) -> None:
    axes.set(xlabel="Elo")
    bars = _bars([p.standard_error for p in rows])
    axes.errorbar([p.rating for p in rows], range(len(rows)), xerr=bars, fmt="o", capsize=3)
    axes.set_yticks(range(len(rows)), [_plain(p.name) for p in rows], parse_math=False)


def _bars(standard_errors: Sequence[float]) -> list[float]:
    return [2 * e if math.isfinite(e) else 0.0 for e in standard_errors]


def _plain(name: str) -> str:
    """A name that fits beside a plot, without characters that SVG forbids."""
    return parts.UNSHOWABLE.sub("\ufffd", name if len(name) <= 60 else name[:59] + "…")
