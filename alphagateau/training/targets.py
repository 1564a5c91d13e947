"""What a position should have been worth: rewards and discounts of a game in, value targets out."""

import jax
import jax.numpy as jnp

from alphagateau.games.state import Array
from alphagateau.training.frames import Frame, Trajectory


def value_targets(reward: Array, discount: Array) -> tuple[Array, Array]:
    """The result of each ply's game for the player to move, and whether it is known; arrays [T, B].

    target_t = reward_t + discount_t * target_{t+1}; known from the last ply of the row's last finished game back.
    """

    def back(carry, ply):
        target, known = carry
        reward, discount = ply
        known = known | (discount == 0)
        target = jnp.where(known, reward + discount * target, 0.0)
        return (target, known), (target, known)

    start = (jnp.zeros_like(reward[0]), jnp.zeros(reward.shape[1:], bool))
    _, (target, known) = jax.lax.scan(back, start, (reward, discount), reverse=True)
    return target, known


def frames_from(trajectory: Trajectory) -> Frame:
    """Frames [T, B] of a Trajectory [T, B]."""
    target, known = value_targets(trajectory.reward, trajectory.discount)
    return Frame(trajectory.position, trajectory.policy_target, target, known)
