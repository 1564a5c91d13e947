"""Value targets from rewards, discounts and the search's values."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.config.losses import Head
from alphagateau.games.state import Array
from alphagateau.training.frames import Frame, Trajectory


def value_targets(
    reward: Array,
    discount: Array,
    search_value: Array,
    *,
    td_lambda: float = 1.0,
    search_value_weight: float = 0.0,
    bootstrap: bool = False,
) -> tuple[Array, Array]:
    """(value target for the player to move, whether it is known) of each ply; arrays [T, B].

    return_t = reward_t + discount_t * ((1 - td_lambda) * search_value_{t+1} + td_lambda * return_{t+1})
    target_t = (1 - search_value_weight) * return_t + search_value_weight * search_value_t

    The return is the lambda-return (Sutton and Barto 2018, 12.2) between two players, for whom a discount of -1
    negates the next player's value; with td_lambda 1 it is the game's result. Targets are known up to the last ply of
    the row's last finished game; with `bootstrap` everywhere, from the last search's value. Unknown ones are 0.
    """

    def back(carry, ply):
        after, value_after, known = carry
        reward, discount, value = ply
        known = known | (discount == 0)
        after = reward + discount * ((1 - td_lambda) * value_after + td_lambda * after)
        after = jnp.where(known, after, 0.0)
        target = (1 - search_value_weight) * after + search_value_weight * value
        return (after, value, known), (jnp.where(known, target, 0.0), known)

    last = discount[-1] * search_value[-1]  # for the player to move after the last ply
    start = (last, last, jnp.full(last.shape, bootstrap))
    _, (target, known) = jax.lax.scan(back, start, (reward, discount, search_value), reverse=True)
    return target, known


def frames_from(trajectory: Trajectory, heads: Sequence[Head] = (), **options: Any) -> Frame:
    """Frames [T, B] of a Trajectory [T, B], with the targets of `heads`; the options are those of `value_targets`."""
    target, known = value_targets(trajectory.reward, trajectory.discount, trajectory.search_value, **options)
    extra = {head.name: head.target(trajectory) for head in heads if head.target}
    return Frame(trajectory.position, trajectory.policy_target, target, known, trajectory.is_full, extra)
