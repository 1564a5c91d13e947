"""Turns series of numbers into charts: where each line, tick and label stands; templates/charts.html draws them.

Ours rather than a plotting library's, because the same drawing is themed with a page, says its values under the
pointer without a script from elsewhere, and stands in a file of its own.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from alphagateau.reports.drawing.axes import Axis, is_shown, labeled_ticks, make_axis
from alphagateau.reports.drawing.pages import render
from alphagateau.reports.drawing.tables import number

SIZES = {"small": (400, 270), "wide": (800, 400), "square": (420, 400)}  # width, height in the units of the SVG
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 24, 46  # margins
MAX_MARKERS = 40  # of a series; more are seen only under the pointer
MAX_POINTS = 120  # of a series, with their values under the pointer
MAX_NAME = 60  # letters of a name within a drawing
ROW_HEIGHT, LETTER_WIDTH = 20, 7  # of a dot chart
NUM_COLORS = 8  # in page.css
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-5.2L5.2 0 0 5.2-5.2 0z",
    "M0-5L4.8 3.8h-9.6z",
)


class Series(NamedTuple):
    """A named line; values that are not finite are gaps. Bars reach 2 standard errors up and down.

    band: the lowest and the highest value at each x, shaded.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    standard_error: Sequence[float] = ()
    band: Sequence[tuple[float, float]] = ()


class Labels(NamedTuple):
    """The title of a chart and the names of its axes."""

    title: str = ""
    x: str = "iteration"
    y: str = ""


class Point(NamedTuple):
    """A value at its place, its text under the pointer, and the path of its bar, if it has one."""

    x: float
    y: float
    meaning: str
    bar: str


class PlacedSeries(NamedTuple):
    """A series at its place: the path of its line; quiet: its points are seen only under the pointer."""

    name: str
    color: int
    marker: str
    path: str
    points: Sequence[Point]
    is_quiet: bool
    band: str = ""


class Level(NamedTuple):
    """A dashed line and its name."""

    path: str
    name: str = ""
    text_y: float = 0.0


class Chart(NamedTuple):
    """The data of templates/charts.html; ticks are (place, label), columns (path, meaning), marks (place, meaning)."""

    labels: Labels
    kind: str
    width: float
    height: float
    x_axis: Axis
    y_axis: Axis
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    series: Sequence[PlacedSeries]
    legend: Sequence[PlacedSeries] = ()
    levels: Sequence[Level] = ()
    marks: Sequence[tuple[float, str]] = ()
    columns: Sequence[tuple[str, str]] = ()


def line_chart(
    series: Sequence[Series],
    labels: Labels,
    *,
    is_log: bool = False,
    levels: Sequence[tuple[str, float]] = (),
    marks: Sequence[tuple[float, str]] = (),
    kind: str = "small",
) -> Chart:
    """Lines over one pair of axes. On a log y axis (`is_log`) values that are not positive are gaps.

    levels: names and heights of horizontal lines. marks: places and meanings of vertical ones. kind: of SIZES.
    """
    width, height = SIZES[kind]
    spans = [y + k * e for s in series for y, e in _with_errors(s) for k in (-2, 0, 2) if is_shown(y, is_log)]
    spans += [y for s in series for ends in s.band for y in ends]
    x_axis = make_axis([x for s in series for x in s.x], LEFT, width - RIGHT)
    y_axis = make_axis([*spans, *(y for _, y in levels)], height - BOTTOM, TOP, is_log)
    drawings = [_line(i, one, x_axis, y_axis) for i, one in enumerate(series)]
    return _chart(
        labels,
        kind,
        x_axis,
        y_axis,
        drawings,
        legend=drawings if [s.name for s in series] != [labels.title] else (),
        levels=[
            Level(f"M{x_axis.start} {place}H{x_axis.stop}", shortened(name), round(place - 4, 1))
            for name, place in [(name, round(y_axis.place(y), 1)) for name, y in levels if is_shown(y, is_log)]
        ],
        marks=[(round(x_axis.place(x), 1), said) for x, said in marks if x_axis.low <= x <= x_axis.high],
    )


def calibration_chart(bins: Sequence[tuple[float, float, float]], title: str = "") -> Chart:
    """Observed against predicted value, both in [-1, 1]; grey columns count the positions of a bin.

    bins: (positions, mean predicted value, mean observed value) of those predicted about the same.
    """
    width, height = SIZES["square"]
    x_axis, y_axis = make_axis([-1, 1], LEFT, width - RIGHT), make_axis([-1, 1], height - BOTTOM, TOP)
    corners = [f"{x_axis.place(value):.1f} {y_axis.place(value):.1f}" for value in (-1, 1)]
    observed = Series("observed", [predicted for _, predicted, _ in bins], [value for *_, value in bins])
    return _chart(
        Labels(title, "predicted value", "observed value"),
        "square",
        x_axis,
        y_axis,
        [_line(0, observed, x_axis, y_axis)],
        levels=[Level("M" + "L".join(corners))],
        columns=_count_columns(bins, x_axis, y_axis),
    )


def _chart(labels: Labels, kind: str, x_axis: Axis, y_axis: Axis, series: Sequence[PlacedSeries], **more: Any) -> Chart:
    """A chart of a kind's size, with ticks along both axes."""
    ticks = labeled_ticks(x_axis), labeled_ticks(y_axis)
    return Chart(labels, kind, *SIZES[kind], x_axis, y_axis, *ticks, series, **more)


def dot_chart(rows: Sequence[tuple[str, float, float]], labels: Labels, kind: str = "wide") -> Chart:
    """Values one above the other, each (name, value, standard error), the first at the top."""
    left = LETTER_WIDTH * max((min(len(name), MAX_NAME) for name, *_ in rows), default=0) + 2 * RIGHT
    width, height = max(SIZES[kind][0], left + SIZES[kind][0] // 2), TOP + ROW_HEIGHT * (len(rows) + 1) + BOTTOM
    errors = [e if is_shown(e, False) else 0.0 for *_, e in rows]
    spans = [x + k * e for (_, x, _), e in zip(rows, errors, strict=True) for k in (-2, 0, 2)]
    x_axis, y_axis = make_axis(spans, left, width - RIGHT), make_axis((), height - BOTTOM, TOP)
    points, y_ticks = [], []
    for (name, x, _), error in zip(rows, errors, strict=True):
        px, py = round(x_axis.place(x), 1), TOP + ROW_HEIGHT * (len(points) + 1)
        bar, value = "", number(x)
        if error:
            low, high = (x_axis.place(x + k * error) for k in (-2, 2))
            bar, value = f"M{low:.1f} {py - 3}v6m0-3H{high:.1f}m0-3v6", f"{value} ± {number(2 * error)}"
        points.append(Point(px, py, f"{name}: {value}", bar))
        y_ticks.append((py, shortened(name)))
    dots = PlacedSeries("", 0, MARKERS[0], "", points, False)
    return Chart(labels, kind, width, height, x_axis, y_axis, labeled_ticks(x_axis), y_ticks, [dots])


def standalone(heading: str, charts: Sequence[Chart]) -> str:
    """Charts side by side as an SVG file, on white, for every viewer."""
    top, gap = 40, 10
    lefts = [sum(c.width for c in charts[:i]) for i in range(len(charts))]
    height = top + max(18 * len(c.legend) + 22 + c.height for c in charts) + gap
    panels = [(left, top, chart) for left, chart in zip(lefts, charts, strict=True)]
    width = sum(c.width for c in charts)
    return render("chart.svg", heading=heading, panels=panels, width=width, height=height)


def shortened(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _with_errors(series: Series) -> list[tuple[float, float]]:
    """(y, standard error, 0 where there is none) of each point."""
    errors = series.standard_error or [0.0] * len(series.y)
    return [(y, e if is_shown(e, False) else 0.0) for y, e in zip(series.y, errors, strict=True)]


def _count_columns(bins: Sequence[tuple[float, float, float]], x_axis: Axis, y_axis: Axis) -> list[tuple[str, str]]:
    """One for each bin with positions, the highest a quarter of the drawing."""
    most = max((count for count, *_ in bins), default=0)
    width = 0.7 * (x_axis.stop - x_axis.start) / max(len(bins), 1)
    columns = []
    for count, predicted, _ in bins:
        if is_shown(predicted, False) and count:
            height = 0.25 * (y_axis.start - y_axis.stop) * count / most
            left, top = x_axis.place(predicted) - width / 2, y_axis.start - height
            path = f"M{left:.1f} {y_axis.start}h{width:.1f}V{top:.1f}h{-width:.1f}z"
            columns.append((path, f"{count:.0f} positions predicted {number(predicted)}"))
    return columns


def _line(index: int, series: Series, x_axis: Axis, y_axis: Axis) -> PlacedSeries:
    """A series: its line with gaps, its bars, and its points with texts under the pointer."""
    places, points, pen = [], [], "M"
    rows = list(zip(series.x, _with_errors(series), strict=True))
    every = math.ceil(len(rows) / MAX_POINTS)
    for i, (x, (y, error)) in enumerate(rows):
        if not (is_shown(x, False) and is_shown(y, y_axis.is_log)):
            pen = "M"
            continue
        px, py = x_axis.place(x), y_axis.place(y)
        places.append(f"{pen}{px:.1f} {py:.1f}")
        pen = "L"
        bar, value = "", number(y)
        if error:
            low, high = (y_axis.place(max(y + k * error, y_axis.low)) for k in (-2, 2))
            bar, value = f"M{px - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6", f"{value} ± {number(2 * error)}"
        if error or i % every == 0 or i == len(rows) - 1:
            points.append(Point(round(px, 1), round(py, 1), f"{series.name}: {value} at {number(x)}", bar))
    marker = MARKERS[(index + index // NUM_COLORS) % len(MARKERS)]
    path, band = "".join(places), _band(series, x_axis, y_axis)
    return PlacedSeries(series.name, index % NUM_COLORS, marker, path, points, len(rows) > MAX_MARKERS, band)


def _band(series: Series, x_axis: Axis, y_axis: Axis) -> str:
    """The outline of a series' band: along its highest values, and back along its lowest."""
    ends = [(x, *y) for x, y in zip(series.x, series.band, strict=False) if is_shown(sum(y), False)]
    edge = [(x, high) for x, _, high in ends] + [(x, low) for x, low, _ in reversed(ends)]
    return "M" + "L".join(f"{x_axis.place(x):.1f} {y_axis.place(y):.1f}" for x, y in edge) + "z" if edge else ""
