"""The records of training: a Frame is one example, a Trajectory one recorded ply of self-play."""

from collections.abc import Mapping
from typing import NamedTuple

from alphagateau.games.state import Array, Position

# Labels in `Frame.extra`: probabilities of winning for the player to move, and where there is one.
STATE_VALUE, STATE_KNOWN = "state_value", "state_known"  # float32 and bool
ACTION_VALUE, ACTION_KNOWN = "action_value", "action_known"  # float32 and bool [S], of the legal edges in rising order
ACTION_SLOT = "action_slot"  # int32 [1], the slot of a frame of one move; the two above are then [1]


class Frame(NamedTuple):
    """One training example, from self-play or labels. Fields that a producer does not use hold no arrays."""

    position: Position
    policy_target: Array  # float16 [S], probabilities of the legal edges in rising order
    value_target: Array  # float32, for the player to move
    value_mask: Array  # bool, False: the value is unknown
    policy_mask: Array | None = None  # bool, False: the policy is not to be learnt; None: all are
    extra: Mapping[str, Array] = {}  # further targets by name; `*_edge` holds edges


class Trajectory(NamedTuple):
    """One ply of one game of self-play."""

    position: Position
    policy_target: Array  # float16 [S], the search's improved policy over the legal edges
    edge: Array  # int16, the move played; -1: the player resigned instead
    reward: Array  # float32, for the player who moved
    discount: Array  # float32, 0 if the game ended, else -1 if the opponent moves next, else 1
    prior_entropy: Array  # float32, nats, of the network's policy over the legal moves
    root_value: Array  # float32, the network's value before search, for the player to move
    search_value: Array  # float32, the search's value of the position, for the player to move
    is_full: Array | None = None  # bool, False: a cheap search, whose policy is not to be learnt; None: all are full
    leaf: Position | None = None  # the last position of the search's line; None: not recorded
    leaf_is_over: Array | None = None  # bool, the game is over in it
    resignation: Array | None = None  # int8, `resignation.outcome`; None: nobody may resign
