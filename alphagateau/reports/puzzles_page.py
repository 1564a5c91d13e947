"""Turns players' shares of puzzles solved into a page (templates/puzzles.html), a chart and JSON."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from alphagateau.ratings.intervals import Estimate
from alphagateau.reports.drawing.charts import Chart, Labels, Series, line_chart
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import Cell, Table, key_values, number_cell, table

MAX_THEMES = 30  # on the page, the most frequent ones


class Band(NamedTuple):
    """Puzzles of ratings from `low` up to, and not with, `high`."""

    low: int
    high: int
    share: Estimate


class PuzzleResult(NamedTuple):
    """Shares of puzzles solved by a player; all players have the same bands."""

    name: str
    whole: Estimate
    bands: Sequence[Band]
    themes: Mapping[str, Estimate]


def puzzles_page(title: str, results: Sequence[PuzzleResult], notes: Sequence[str], protocol: Mapping[str, Any]) -> str:
    """The page as HTML; notes: what was left out."""
    ranked = sorted(results, key=lambda result: -result.whole.value)
    return render(
        "puzzles.html",
        title=title,
        subtitle="a puzzle is solved by all moves of its line, or by any mate at once; intervals: Wilson, 2σ",
        players=player_table(ranked),
        chart=band_chart(ranked),
        bands=band_table(ranked),
        themes=theme_table(ranked),
        notes=notes,
        protocol=key_values(protocol),
    )


def player_table(results: Sequence[PuzzleResult]) -> Table:
    """One row a player, in the order given."""
    rows = []
    for place, result in enumerate(results, 1):
        whole = result.whole
        numbers = (number_cell(x, ".1%") for x in whole[:3])
        rows.append([place, result.name, whole.successes, whole.count, *numbers])
    return table(["#", "Player", "Solved", "Puzzles", "Share", "from", "to"], rows)


def band_chart(results: Sequence[PuzzleResult]) -> Chart:
    """The share solved against the puzzles' rating, a line a player in the band of its interval."""
    series = []
    for result in results:
        middles = [(band.low + band.high) / 2 for band in result.bands]
        shares = [band.share for band in result.bands]
        edges = [(100 * x.lower, 100 * x.upper) for x in shares]
        series.append(Series(result.name, middles, [100 * x.value for x in shares], band=edges))
    labels = Labels("Puzzles solved, shaded: 2 standard errors", x="rating of the puzzle", y="%")
    return line_chart(series, labels, levels=[("", 0.0), ("", 100.0)], kind="wide")


def band_table(results: Sequence[PuzzleResult]) -> Table:
    """One row a band of ratings, a column a player."""
    rows = []
    for number, band in enumerate(results[0].bands if results else ()):
        cells = [_cell(result.bands[number].share) for result in results]
        rows.append([Cell(f"{band.low} - {band.high - 1}", band.low), band.share.count, *cells])
    return table(["Rating", "Puzzles", *(result.name for result in results)], rows)


def theme_table(results: Sequence[PuzzleResult]) -> Table:
    """One row a theme, the most frequent first, a column a player."""
    totals = Counter({name: share.count for name, share in results[0].themes.items()} if results else {})
    rows = [
        [name, total, *(_cell(result.themes[name]) for result in results)]
        for name, total in totals.most_common(MAX_THEMES)
    ]
    return table(["Theme", "Puzzles", *(result.name for result in results)], rows)


def _cell(share: Estimate) -> Cell:
    return Cell(f"{share.value:.0%} ({share.lower:.0%} - {share.upper:.0%})", share.value)


def puzzles_json(results: Sequence[PuzzleResult], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One object a player: name, score, total, bands, themes, and what all have in common."""
    return [
        {
            "name": result.name,
            **_numbers(result.whole),
            "bands": [{"low": band.low, "high": band.high, **_numbers(band.share)} for band in result.bands],
            "themes": {name: _numbers(share) for name, share in result.themes.items()},
            **about,
        }
        for result in results
    ]


def _numbers(share: Estimate) -> dict[str, Any]:
    return {"score": share.successes, "total": share.count, "lower": share.lower, "upper": share.upper}
