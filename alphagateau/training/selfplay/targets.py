"""Targets from rewards, discounts and the search's values: returns, and TD-Leaf(lambda).

TD-Leaf (Baxter, Tridgell and Weaver 1998; Lai 2015, section 4.4) learns the last positions of successive searches'
lines: a search's value moves towards those of later searches, and the leaf of its line, whose value was backed up,
learns it.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from alphagateau.config import TargetsConfig
from alphagateau.config.losses import Head
from alphagateau.config.records import ConfigError, show
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
    """Frames [T, B] of a Trajectory [T, B], with the targets of `heads`; the options are those of `value_targets`.

    Raises ConfigError for a head whose target has not a row a frame.
    """
    target, known = value_targets(trajectory.reward, trajectory.discount, trajectory.search_value, **options)
    extra = {head.name: head.target(trajectory) for head in heads if head.target}
    for name, made in extra.items():
        if getattr(made, "shape", ())[:2] != target.shape:
            got = list(made.shape) if hasattr(made, "shape") else type(made).__name__
            raise ConfigError(f"head {show(name)}: target must be [T, B], here {list(target.shape)}, got {got}")
    return Frame(trajectory.position, trajectory.policy_target, target, known, trajectory.is_full, extra)


def td_errors(reward: Array, discount: Array, value: Array, targets: TargetsConfig) -> tuple[Array, Array]:
    """(difference of later values from each ply's value, whether there are any); arrays [T, B].

    d_t = r_t + g_t V_(t+1) - V_t,  e_t = d_t + td_lambda g_t e_(t+1), for the player to move at t.

    g_t is the discount of `reward_and_discount`, -1 or 0 where the game ends, times `score_decay`. With `td_stride` 2 a
    value is compared with the same player's next one, and r and g are of both plies. e is 0 after the last difference.
    """
    discount = discount * targets.score_decay
    num_plies, stride = len(value), targets.td_stride
    rewards, discounts, ends = reward, discount, discount == 0
    for _ in range(stride - 1):  # of one more ply
        rewards, discounts = reward + discount * _later(rewards, 1), discount * _later(discounts, 1)
        ends = (discount == 0) | _later(ends, 1)
    is_known = ends | (jnp.arange(num_plies) < num_plies - stride)[:, None]
    difference = jnp.where(is_known, rewards + discounts * _later(value, stride) - value, 0.0)

    def back(later: tuple[Array, ...], ply: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        difference, discount = ply
        error = difference + targets.td_lambda * discount * later[-1]
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
    error, is_known = td_errors(trajectory.reward, trajectory.discount, trajectory.search_value, targets)
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
