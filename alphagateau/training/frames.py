"""The records of training: a Frame is one example, a Trajectory one recorded ply of self-play."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxtyping import Bool, Float16, Float32, Int8, Int16

from alphagateau.games.state import Array, Position

# Labels in `Frame.extra`: probabilities of winning for the player to move, and where there is one.
STATE_VALUE, STATE_KNOWN = "state_value", "state_known"  # float32 and bool
ACTION_VALUE, ACTION_KNOWN = "action_value", "action_known"  # float32 and bool [S], of the legal edges in rising order
ACTION_SLOT = "action_slot"  # int32 [1], the slot of a frame of one move; the two above are then [1]


class Frame(NamedTuple):
    """One training example, from self-play or labels. Fields that a producer does not use hold no arrays."""

    position: Position
    policy_target: Float16[Array, "*B S"]  # probabilities of the legal edges in rising order
    value_target: Float32[Array, "*B"]  # for the player to move
    value_mask: Bool[Array, "*B"]  # False: the value is unknown
    policy_mask: Bool[Array, "*B"] | None = None  # False: the policy is not to be learnt; None: all are
    extra: Mapping[str, Array] = {}  # further targets by name; `*_edge` holds edges


class Trajectory(NamedTuple):
    """One ply of one game of self-play."""

    position: Position
    policy_target: Float16[Array, "*B S"]  # the search's improved policy over the legal edges
    edge: Int16[Array, "*B"]  # the move played; -1: the player resigned instead
    reward: Float32[Array, "*B"]  # for the player who moved
    discount: Float32[Array, "*B"]  # 0 if the game ended, else -1 if the opponent moves next, else 1
    prior_entropy: Float32[Array, "*B"]  # nats, of the network's policy over the legal moves
    root_value: Float32[Array, "*B"]  # the network's value before search, for the player to move
    search_value: Float32[Array, "*B"]  # the search's value of the position, for the player to move
    is_full: Bool[Array, "*B"] | None = None  # False: a cheap search, whose policy is not learnt; None: all are full
    leaf: Position | None = None  # the last position of the search's line; None: not recorded
    leaf_is_over: Bool[Array, "*B"] | None = None  # the game is over in it
    resignation: Int8[Array, "*B"] | None = None  # `resignation.outcome`; None: nobody may resign
