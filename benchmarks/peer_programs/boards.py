"""The boards and sizes at which peers are compared, and the record of what a peer can do there."""

from collections.abc import Callable
from typing import Any, NamedTuple

from throughput.games import PLAY_CASES, PlayCase

from alphagateau.games.actions import random_positions
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig

BATCH = 64  # positions of a forward pass and of an optimizer step
Call = Callable[[], Any]  # what is timed


class Board(NamedTuple):
    """A board and the size of all networks on it."""

    case: PlayCase  # of a ply of self-play, with the game and the size
    step_kinds: tuple[str, ...]  # our normalizations in training
    rounds: int

    @property
    def game(self) -> Game:
        return get_game(self.case.game)

    @property
    def config(self) -> GateauConfig:
        return self.case.config

    @property
    def positions(self) -> Position:
        """BATCH positions after random moves."""
        return random_positions(self.game, BATCH)


BOARDS = (Board(PLAY_CASES[0], ("ghost", "rms"), 15), Board(PLAY_CASES[2], ("rms", "batch"), 5))


class Peer(NamedTuple):
    """Makers of a peer's calls on a Board; None where it has none."""

    forward: Callable[[Board], Call] | None = None  # of BATCH positions
    step: Callable[[Board], Call] | None = None  # of an optimizer on BATCH positions
    ply: Callable[[Board], Call] | None = None  # of self-play
    step_kind: str | None = None  # our normalization that is compared with its step; None: each of ours
