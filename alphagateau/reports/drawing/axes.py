"""Turns the values of a chart into places along an axis, and finds its round ticks."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from alphagateau.reports.drawing.tables import MAX_NUMBER


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
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):.6g}{unit}"
    return f"{value:.6g}"


def labeled_ticks(axis: Axis) -> list[tuple[float, str]]:
    """(place, label) of each tick."""
    return [(round(axis.place(value), 1), tick_label(value)) for value in ticks(axis)]
