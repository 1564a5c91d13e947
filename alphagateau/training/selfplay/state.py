"""The state of self-play on the devices."""

from typing import Any, NamedTuple

from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED
from alphagateau.games.state import Array, State
from alphagateau.training.frames import Trajectory
from alphagateau.training.selfplay.pending_frames import Pending
from alphagateau.training.selfplay.replay import Window
from alphagateau.training.selfplay.resignation import Resigning


class SelfPlayState(NamedTuple):
    """Arrays of self-play; checkpoints save them under these names."""

    games: State  # [B]
    window: Window  # [num_shares, ...]
    trajectory: Trajectory  # [T, B], of the iteration in progress
    statistics: dict[str, Array]  # sums over the trajectory, once its frames are in the window
    waiting: Pending | None = None  # [P, B], pending plies before the trajectory; None: frames need no result
    resigning: Resigning | None = None  # [B]; None: nobody may resign


# How the fields of a SelfPlayState lie on the devices.
SPECS: Any = SelfPlayState(*(BY_FIRST, BY_FIRST, BY_SECOND, REPLICATED, BY_SECOND, BY_FIRST))  # pyright: ignore
