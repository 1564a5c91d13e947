"""Turns series of numbers into charts as inline SVG, colored and sized by page.css."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from alphagateau.reports.parts import MAX_NUMBER, Html, number, text

SIZES = {"small": (400, 270), "wide": (800, 400), "square": (420, 400)}  # width, height in the units of the SVG
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 24, 46  # margins
MAX_MARKERS = 40  # of a series; more are seen only under the pointer
MAX_POINTS = 120  # of a series that say their value under the pointer
NUM_COLORS = 8  # in page.css
MARKERS = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.6-3.6h7.2v7.2h-7.2z",
    "M0-5.2L5.2 0 0 5.2-5.2 0z",
    "M0-5L4.8 3.8h-9.6z",
)


class Series(NamedTuple):
    """A named line; values that are not finite are gaps. Bars reach 2 standard errors up and down."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    standard_error: Sequence[float] = ()


class CalibrationBin(NamedTuple):
    """Positions whose predicted value is about the same: both means, their number, the error of `observed`."""

    predicted: float
    observed: float
    count: int
    standard_error: float = math.nan


class Axis(NamedTuple):
    """Which values lie between which two places of the drawing."""

    low: float
    high: float
    start: float
    stop: float
    is_log: bool = False
    least_step: float = 0.0  # between ticks

    def place(self, value: float) -> float:
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)


def make_axis(values: Iterable[float], start: float, stop: float, is_log: bool = False) -> Axis:
    """An axis with room around the values; from 0 to 1 if there are none. No ticks between whole numbers."""
    shown = [v for v in values if is_shown(v, is_log)]
    low, high = (min(shown), max(shown)) if shown else (1.0, 10.0) if is_log else (0.0, 1.0)
    if is_log:
        room = max((high / low) ** 0.04, 1.05)
        return Axis(low / room, high * room, start, stop, True)
    room = 0.04 * (high - low) or abs(high) * 0.05 or 0.5
    is_whole = all(float(v).is_integer() for v in shown)
    return Axis(low - room, high + room, start, stop, least_step=float(is_whole))


def is_shown(value: float | None, is_log: bool) -> bool:
    return value is not None and abs(value) < MAX_NUMBER and (value > 1 / MAX_NUMBER or not is_log)


def ticks(axis: Axis) -> list[float]:
    """Round values along an axis, about five; on a log axis powers of ten, or 1, 2, 5 times them."""
    if axis.is_log:
        first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
        powers = [10.0**k for k in range(first, last + 1)]
        for factors in ((1,), (1, 2, 5)):
            found = [f * p for p in powers for f in factors if axis.low <= f * p <= axis.high]
            if len(found) > 2:
                return found[:: math.ceil(len(found) / 7)]
    rough = (axis.high - axis.low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((f * power for f in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    step = max(step, axis.least_step)
    first, last = math.ceil(axis.low / step), math.floor(axis.high / step)
    return [k * step for k in range(first, last + 1)]


def tick_label(value: float) -> str:
    """12, 0.25, 15k, 3.4M, 1e-05."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.6g}{unit}"
    return f"{value:.6g}"


def line_chart(
    series: Sequence[Series],
    *,
    title: str = "",
    x_label: str = "iteration",
    y_label: str = "",
    is_log: bool = False,
    levels: Sequence[tuple[str, float]] = (),
    marks: Sequence[tuple[float, str]] = (),
    kind: str = "small",
) -> Html:
    """Lines over one pair of axes. On a log y axis (`is_log`) values that are not positive are gaps.

    levels: names and heights of horizontal lines. marks: places and meanings of vertical ones. kind: of SIZES.
    """
    spans = [y + k * e for s in series for y, e in _with_errors(s) for k in (-2, 0, 2) if is_shown(y, is_log)]
    x_axis, y_axis = _axes([x for s in series for x in s.x], [*spans, *(y for _, y in levels)], kind, is_log)
    body = [_grid(x_axis, y_axis, x_label, y_label)]
    for name, y in levels:
        if is_shown(y, is_log):
            place = y_axis.place(y)
            body.append(f'<path class="level" d="M{x_axis.start} {place:.1f}H{x_axis.stop}"/>')
            at = f'x="{x_axis.stop - 4}" y="{place - 4:.1f}"'
            body.append(f'<text class="level" {at}>{text(name[:60])}</text>')
    for x, meaning in marks:
        if x_axis.low <= x <= x_axis.high:
            line = f'<path d="M{x_axis.place(x):.1f} {y_axis.stop}V{y_axis.start}"/>'
            body.append(f'<g class="mark point"><title>{text(meaning)}</title>{line}</g>')
    body += [_line(i, one, x_axis, y_axis) for i, one in enumerate(series)]
    return _figure(title, [one.name for one in series], body, kind)


def _with_errors(series: Series) -> list[tuple[float, float]]:
    """(y, standard error, 0 where there is none) of each point."""
    errors = series.standard_error or [0.0] * len(series.y)
    return [(y, e if is_shown(e, False) else 0.0) for y, e in zip(series.y, errors, strict=True)]


def _axes(x: Iterable[float], y: Iterable[float], kind: str, is_log: bool = False) -> tuple[Axis, Axis]:
    width, height = SIZES[kind]
    return make_axis(x, LEFT, width - RIGHT), make_axis(y, height - BOTTOM, TOP, is_log)


def _grid(x_axis: Axis, y_axis: Axis, x_label: str, y_label: str) -> str:
    """Lines and labels of both axes."""
    left, right, bottom, top = x_axis.start, x_axis.stop, y_axis.start, y_axis.stop
    parts = []
    for value in ticks(y_axis):
        place = y_axis.place(value)
        parts.append(f'<path class="grid" d="M{left} {place:.1f}H{right}"/>')
        parts.append(f'<text class="y" x="{left - 7}" y="{place:.1f}" dy=".32em">{tick_label(value)}</text>')
    for value in ticks(x_axis):
        place = x_axis.place(value)
        parts.append(f'<path class="tick" d="M{place:.1f} {bottom}v5"/>')
        parts.append(f'<text x="{place:.1f}" y="{bottom + 8}" dy=".8em">{tick_label(value)}</text>')
    parts.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(left + right) / 2:.0f}" y="{bottom + BOTTOM - 6}">{text(x_label)}</text>')
    parts.append(f'<text class="over" x="{left - 7}" y="{top - 10}">{text(y_label)}</text>')
    return "".join(parts)


def _line(index: int, series: Series, x_axis: Axis, y_axis: Axis) -> str:
    """A series: its line with gaps, bars, and points that say their value under the pointer."""
    places, points, pen = [], [], "M"
    rows = list(zip(series.x, _with_errors(series), strict=True))
    every = math.ceil(len(rows) / MAX_POINTS)
    quiet = " quiet" if len(rows) > MAX_MARKERS else ""
    for i, (x, (y, error)) in enumerate(rows):
        if not (is_shown(x, False) and is_shown(y, y_axis.is_log)):
            pen = "M"
            continue
        px, py = x_axis.place(x), y_axis.place(y)
        places.append(f"{pen}{px:.1f} {py:.1f}")
        pen = "L"
        bar, said = "", f"{series.name}: {number(y)} at {number(x)}"
        if error:
            low, high = (y_axis.place(max(y + k * error, y_axis.low)) for k in (-2, 2))
            bar = f'<path class="bar" d="M{px - 3:.1f} {low:.1f}h6m-3 0V{high:.1f}m-3 0h6"/>'
            said = f"{series.name}: {number(y)} ± {number(2 * error)} at {number(x)}"
        if error or i % every == 0 or i == len(rows) - 1:
            marker = f'<path transform="translate({px:.1f} {py:.1f})" d="{_marker(index)}"/>'
            if quiet:
                marker = f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5"/>'
            points.append(f'<g class="point{quiet}"><title>{text(said)}</title>{bar}{marker}</g>')
    return f'<g class="c{index % NUM_COLORS}"><path class="line" d="{"".join(places)}"/>{"".join(points)}</g>'


def _marker(index: int) -> str:
    return MARKERS[(index + index // NUM_COLORS) % len(MARKERS)]


def _figure(title: str, names: Sequence[str], body: Sequence[str], kind: str) -> Html:
    width, height = SIZES[kind]
    legend = "".join(
        f'<li class="c{i % NUM_COLORS}"><svg viewBox="-6 -6 12 12"><path d="{_marker(i)}"/></svg>{text(name)}</li>'
        for i, name in enumerate(names if names != [title] else [])
    )
    return Html(
        f'<figure class="chart {kind}"><figcaption>{text(title)}</figcaption><ul class="legend">{legend}</ul>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{text(title)}">{"".join(body)}</svg>'
        '<p class="readout" aria-live="polite"></p></figure>'
    )


def charts(figures: Iterable[Html]) -> Html:
    """Small charts side by side where there is room."""
    return Html(f'<div class="charts">{"".join(figures)}</div>')


def calibration_chart(bins: Sequence[CalibrationBin], *, title: str = "", low: float = -1.0, high: float = 1.0) -> Html:
    """Observed against predicted value, both from `low` to `high`; grey bars: how many positions a bin has."""
    x_axis, y_axis = _axes([low, high], [low, high], "square")
    body = [_grid(x_axis, y_axis, "predicted value", "observed value")]
    most = max((b.count for b in bins), default=0)
    width = 0.7 * (x_axis.stop - x_axis.start) / max(len(bins), 1)
    for one in bins:
        if is_shown(one.predicted, False) and one.count:
            height = 0.25 * (y_axis.start - y_axis.stop) * one.count / most
            left, top = x_axis.place(one.predicted) - width / 2, y_axis.start - height
            said = f"{one.count} positions predicted {number(one.predicted)}"
            shape = f'<path d="M{left:.1f} {y_axis.start}h{width:.1f}V{top:.1f}h{-width:.1f}z"/>'
            body.append(f'<g class="count point"><title>{said}</title>{shape}</g>')
    corner = [f"{axis.place(value):.1f}" for value in (low, high) for axis in (x_axis, y_axis)]
    body.append(f'<path class="level" d="M{corner[0]} {corner[1]}L{corner[2]} {corner[3]}"/>')
    columns = zip(*[(b.predicted, b.observed, b.standard_error) for b in bins], strict=True)
    x, y, errors = list(columns) or [(), (), ()]
    body.append(_line(0, Series("observed", x, y, errors), x_axis, y_axis))
    return _figure(title, [], body, "square")
