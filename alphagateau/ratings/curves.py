"""Training curves: the players that are checkpoints of one run, and the steps between neighbours."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Curves = Mapping[str, Sequence[tuple[str, int]]]  # player -> (curve, iteration), of each curve that it stands on
# A checkpoint's name on a ladder; another search than its own follows, with a hash of its weights.
NAME = re.compile(r"(?P<run>.*\S)/(?P<iteration>[0-9]{1,9})(?:-stopped)?(?: \((?P<search>.*), [0-9a-f]{6}\))?")


class Steps(NamedTuple):
    """The M steps from one player of a curve to the next."""

    before: np.ndarray  # [M], indices of players
    after: np.ndarray  # [M]
    curve: np.ndarray  # [M], indices of `names`
    length: np.ndarray  # [M], iterations
    names: tuple[str, ...]  # of the curves

    @property
    def links(self) -> np.ndarray:
        """[M, 2], as `Games` has them."""
        return np.stack([self.before, self.after], axis=1)


def curves_by_name(players: Sequence[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """The places on curves of players named RUN/ITERATION."""
    return {name: (place,) for name in players if (place := place_of(name))}


def place_of(player: str) -> tuple[str, int] | None:
    """(curve, iteration) of a player named RUN/ITERATION, or None; a curve is a run under one search."""
    match = NAME.fullmatch(player)
    if match is None:
        return None
    return match["run"] + (f" ({match['search']})" if match["search"] else ""), int(match["iteration"])


def make_steps(players: Sequence[str], curves: Curves) -> Steps:
    """The steps of all curves with two players or more."""
    index = {name: k for k, name in enumerate(players)}
    on: dict[str, list[tuple[int, int]]] = {}
    for name in players:
        for curve, iteration in curves.get(name, ()):
            on.setdefault(curve, []).append((iteration, index[name]))
    names, rows = [], []
    for curve, places in on.items():
        places = sorted(set(places))
        pairs = [(i, j, len(names), t - s) for (s, i), (t, j) in itertools.pairwise(places) if i != j]
        if pairs:
            names.append(curve)
            rows += pairs
    before, after, number, length = np.array(rows, dtype=int).reshape(-1, 4).T
    return Steps(before, after, number, np.maximum(length, 1e-3), tuple(names))
