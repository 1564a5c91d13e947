"""Times functions in turns in one process, and prints the table of `benchmarks/bench.py`.

Times on a shared CPU vary from minute to minute; the ratio of two programs that take turns hardly does.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.runs.files import write_json
from alphagateau.runs.logging.progress import print_results
from alphagateau.training.frames import Frame

PAPER = GateauConfig()  # 128 features, 5 blocks
QUICKSTART = GateauConfig(hidden_size=32, num_blocks=2)


class Row(NamedTuple):
    """A value and its reference, the median of their ratio, its least and greatest value, and its target."""

    name: str
    value: float
    reference: float
    ratio: float
    target: float  # the lowest ratio; negative: minus the highest
    spread: tuple[float, float]
    unit: str

    @property
    def is_met(self) -> bool:
        return self.ratio <= -self.target if self.target < 0 else self.ratio >= self.target


def board_name(game: Game) -> str:
    """Such as "5x5"."""
    return f"{game.size}x{game.size}"


def in_turns(
    calls: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each call in each round, by name: a warm-up, then round by round in the order given."""
    for call in calls.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            jax.block_until_ready(call())
            seconds[name].append(clock() - start)
    return seconds


def compare(name: str, seconds: dict[str, list[float]], target: float) -> Row:
    """The Row of how many times faster "fast" is than "plain"; to a negative target, "fast" as a multiple of it."""
    pairs = zip(seconds["fast"], seconds["plain"], strict=True)
    ratios = [a / b if target < 0 else b / a for a, b in pairs]
    return make_row(name, (seconds["fast"], seconds["plain"]), ratios, target, "s")


def make_row(
    name: str, pair: tuple[Sequence[float], Sequence[float]], ratios: Sequence[float], target: float, unit: str
) -> Row:
    """The Row of medians over rounds; `pair`: the figures and their references."""
    value, reference = map(statistics.median, pair)
    return Row(name, value, reference, statistics.median(ratios), target, (min(ratios), max(ratios)), unit)


def frames_of(game: Game, positions: Position) -> Frame:
    """Frames with a uniform policy and value 0, for timing."""
    batch = positions.color.shape[0]
    policy = jnp.full((batch, game.max_legal_moves), 0.05, jnp.float16)
    return Frame(positions, policy, jnp.zeros(batch), jnp.ones(batch, bool))


def print_rows(rows: list[Row]) -> None:
    """Prints a table on standard output."""
    cells = []
    for row in rows:
        target = f"at most {-row.target:.3g}" if row.target < 0 else f"at least {row.target:.3g}"
        spread = f"{row.spread[0]:.2f} - {row.spread[1]:.2f}"
        cells.append((row.name, f"{row.ratio:.2f}", spread, target, "met" if row.is_met else "missed"))
    title = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"
    print_results(title, ("what", "ratio", "spread", "target", ""), cells, 140)


def write_rows(rows: list[Row], path: Path) -> None:
    """Writes the rows as a JSON list of {name, value, reference, ratio, target, ...}."""
    write_json(path, [row._asdict() for row in rows])
