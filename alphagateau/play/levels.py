"""Reads the measured levels of a checkpoint: its rating on each board by simulations a move."""

from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, TypeAdapter

from alphagateau.runs.checkpoint import Checkpoint, CheckpointError

FILE = "levels.json"
MOST_BYTES = 1 << 16
Simulations = Annotated[int, Field(ge=1, le=10_000_000)]
Elo = Annotated[float, Field(ge=-10_000, le=10_000, allow_inf_nan=False)]


class Levels(NamedTuple):
    """Ratings on a board's scale, both rising."""

    simulations: Annotated[list[Simulations], Field(min_length=2)]
    elo: Annotated[list[Elo], Field(min_length=2)]

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest level, Elo."""
        return round(self.elo[0]), round(self.elo[-1])

    def simulations_of(self, elo: float) -> int:
        """Simulations a move for a rating, by straight lines through the logarithms of those measured."""
        return round(float(np.exp(np.interp(elo, self.elo, np.log(self.simulations)))))


class LevelsFile(NamedTuple):
    """What levels.json has: whose levels they are, and the levels by board."""

    weights_hash: str
    boards: dict[str, Levels]


def read_levels(found: Checkpoint) -> dict[str, Levels]:
    """The levels by board; none without a levels.json. Raises CheckpointError for one that is not of these weights."""
    path = found.path / FILE
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            text = TypeAdapter(LevelsFile).validate_json(file.read(MOST_BYTES))
    except (OSError, ValueError):
        raise CheckpointError(f"{path} has no levels: expected simulations and Elo by board") from None
    if text.weights_hash != found.manifest["weights_hash"]:
        raise CheckpointError(f"{path} has the levels of other weights ({text.weights_hash[:16]!r})")
    for board, levels in text.boards.items():
        rising = all(a < b for column in levels for a, b in pairwise(column))
        if len(levels.simulations) != len(levels.elo) or not rising:
            raise CheckpointError(f"{path}: simulations and Elo of {board!r:.40} must be as many, and rise")
    return text.boards
