"""The state of self-play on the devices, with the plies of games in progress until their result is known.

Each game has room for one pending ply less than the longest game, newest last. New plies are appended, and the last
ones that fit are pending next.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from alphagateau.distributed.mesh import BY_FIRST, BY_SECOND, REPLICATED
from alphagateau.games.state import Array, State
from alphagateau.training.frames import Trajectory
from alphagateau.training.selfplay.replay import Window
from alphagateau.training.selfplay.resignation import Resigning


class Pending(NamedTuple):
    """Plies of B games whose results are not known yet."""

    trajectory: Trajectory  # [P, B], the newest last; only plies where `is_waiting` holds mean anything
    is_waiting: Array  # bool [P, B]


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


def no_pending(trajectory: Trajectory, num_plies: int) -> Pending:
    """Room for `num_plies` (P) of each game of a Trajectory [T, B], empty."""
    room = jax.tree.map(lambda x: jnp.zeros((num_plies, *x.shape[1:]), x.dtype), trajectory)
    return Pending(room, jnp.zeros(room.discount.shape, bool))


def settle(waiting: Pending, trajectory: Trajectory) -> tuple[Trajectory, Array, Pending]:
    """(plies [P + T, B], whether each has a result now, those that still wait) after a `trajectory` [T, B]."""
    joined = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), waiting.trajectory, trajectory)
    is_ply = jnp.concatenate([waiting.is_waiting, jnp.ones(trajectory.discount.shape, bool)])
    ends_to_come = jnp.cumsum((joined.discount == 0)[::-1], axis=0)[::-1]
    goes_on = is_ply & (ends_to_come == 0)
    room = len(waiting.is_waiting)
    left = jax.tree.map(lambda x: x[-room:], (joined, goes_on))
    return joined, is_ply & ~goes_on, Pending(*left)
