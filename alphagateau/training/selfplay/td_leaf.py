"""TD-Leaf(lambda): targets for the last positions of successive searches' lines.

Baxter, Tridgell and Weaver 1998; Lai 2015, section 4.4: a search's value moves towards those of later searches. The
leaf of the search's line learns it, as the leaf's value is what was backed up.
"""

import jax
import jax.numpy as jnp

from alphagateau.config import TargetsConfig
from alphagateau.games.state import Array
from alphagateau.training.frames import Frame, Trajectory


def td_errors(
    reward: Array, discount: Array, value: Array, *, td_lambda: float, stride: int = 1, score_decay: float = 1.0
) -> tuple[Array, Array]:
    """(difference of later values from each ply's value, whether there are any); arrays [T, B].

    d_t = r_t + g_t V_(t+1) - V_t,  e_t = d_t + td_lambda g_t e_(t+1), for the player to move at t.

    g_t is the discount of `reward_and_discount`, -1 or 0 where the game ends, times `score_decay`. With `stride` 2 a
    value is compared with the same player's next one, and r and g are of both plies. e is 0 after the last difference.
    """
    discount = discount * score_decay
    num_plies = len(value)
    rewards, discounts, ends = reward, discount, discount == 0
    for _ in range(stride - 1):  # of one more ply
        rewards, discounts, ends = (
            reward + discount * _later(rewards, 1),
            discount * _later(discounts, 1),
            (discount == 0) | _later(ends, 1),
        )
    is_known = ends | (jnp.arange(num_plies) < num_plies - stride)[:, None]
    difference = jnp.where(is_known, rewards + discounts * _later(value, stride) - value, 0.0)

    def back(later: tuple[Array, ...], ply: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        difference, discount = ply
        error = difference + td_lambda * discount * later[-1]
        return (error, *later[:-1]), error

    start = (jnp.zeros_like(value[0]),) * stride
    _, error = jax.lax.scan(back, start, (difference, jnp.where(is_known, discounts, 0.0)), reverse=True)
    return error, is_known


def _later(x: Array, num_plies: int) -> Array:
    """The values of x [T, B] `num_plies` later; 0 past the end."""
    return jnp.concatenate([x[num_plies:], jnp.zeros_like(x[:num_plies])])


def td_leaf_frames(trajectory: Trajectory, targets: TargetsConfig) -> Frame:
    """Frames [t, B] of the leaves of a Trajectory [T, B]: of all plies or the first, by `learn_from`.

    Their policy target is 0 and trains nothing. A leaf in which the game is over has its value by the rules, and trains
    nothing either. With `root_policies`, T more frames train the policy of the searched positions alone.
    """
    position, leaf = trajectory.position, trajectory.leaf
    if leaf is None or trajectory.leaf_is_over is None:
        raise ValueError("TD-Leaf needs searches with the position in which their line ends")
    error, is_known = td_errors(
        trajectory.reward,
        trajectory.discount,
        trajectory.search_value,
        td_lambda=targets.td_lambda,
        stride=targets.td_stride,
        score_decay=targets.score_decay,
    )
    if targets.max_error:
        error = jnp.clip(error, -targets.max_error, targets.max_error)
    target = jnp.clip(trajectory.search_value + error, -1.0, 1.0)
    target = jnp.where(leaf.color == position.color, target, -target)
    no_policy = jnp.zeros_like(trajectory.policy_target)
    frames = Frame(leaf, no_policy, target, is_known & ~trajectory.leaf_is_over)
    if targets.learn_from == "start":
        frames = jax.tree.map(lambda x: x[:1], frames)
    if targets.root_policies:
        roots = Frame(position, trajectory.policy_target, jnp.zeros_like(target), jnp.zeros_like(is_known))
        frames = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), frames, roots)
    return frames
