"""Which players are checkpoints of one run: names in, the steps between neighbours of each curve out."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

Curves = Mapping[str, Sequence[tuple[str, int]]]  # player -> (curve, iteration), of each curve that it stands on
# As a ladder names a checkpoint; one that plays by another search than its own with that and a hash of its weights.
NAME = re.compile(r"(?P<run>.*\S)/(?P<iteration>[0-9]{1,9})(?:-stopped)?(?: \((?P<search>.*), [0-9a-f]{6}\))?")


class Steps(NamedTuple):
    """The M steps from one player of a curve to the next: before, after, curve, length [M], length in iterations."""

    before: np.ndarray
    after: np.ndarray
    curve: np.ndarray  # numbers of `names`
    length: np.ndarray
    names: tuple[str, ...]


def curves_by_name(players: Sequence[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """The places of players that are called RUN/ITERATION, as in a ladder's tables."""
    return {name: (place,) for name in players if (place := place_of(name))}


def place_of(player: str) -> tuple[str, int] | None:
    """The curve of a player that is called RUN/ITERATION, which is its run under its search, and its iteration."""
    match = NAME.fullmatch(player)
    if match is None:
        return None
    return match["run"] + (f" ({match['search']})" if match["search"] else ""), int(match["iteration"])


def make_steps(players: Sequence[str], curves: Curves) -> Steps:
    """The steps of all curves that have two of the players or more."""
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


def step_design(steps: Steps, num_players: int) -> scipy.sparse.csr_array:
    """[M, K] sparse: +1 at the player after each step, -1 at the one before."""
    rows = np.arange(len(steps.before))
    values = np.repeat([1.0, -1.0], len(rows))
    places = (np.tile(rows, 2), np.concatenate([steps.after, steps.before]))
    return scipy.sparse.csr_array((values, places), shape=(len(rows), num_players))
