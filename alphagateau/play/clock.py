"""Shares out a clock: the time for one move, and whether another evaluation still fits; pure functions.

Two kinds of evaluation have each a cost of their own. The root's gives the policy, without which a move is made
blindly, so it is made as long as a few more would fit. A batch grows the tree, and is begun if at least half of it
falls into the time for the move; the first one also if the clock could pay for fifteen such moves. A cost too high to
be tried would never be measured again, so each move without an evaluation lowers it.
"""

import math
from typing import NamedTuple

RESERVE = 0.6  # seconds, of a clock that has them, for a machine that stands still
HORIZON = 30  # moves that the time left must last for, where the control sets none
FED_HORIZON = 16  # the same, where the increment is more than what each move loses
SHORTEST_HORIZON = 15  # the same, of a clock so low that the overhead would eat the rest
FEW = 4  # evaluations of the root that must fit for one to be made
RISE, FALL = 0.25, 0.5  # of the way to the newest time, where it is longer and where it is shorter
DOUBT = 0.7  # what a move without an evaluation leaves of the trust in its cost


class Clock(NamedTuple):
    """The clock of the player to move, in seconds."""

    remaining: float
    increment: float = 0.0
    moves_to_go: int | None = None  # to the next time control


class Budget(NamedTuple):
    """Seconds since the request to search, for one move."""

    target: float  # to be used
    first: float  # for the first batch; at least the target
    limit: float  # not to be passed even by a slow batch
    left: float  # until the flag falls


class Cost(NamedTuple):
    """Seconds of one kind of evaluation on this machine, as they were measured, and the trust in them, up to 1."""

    usual: float = 0.0
    slow: float = 0.0
    trust: float = 1.0


UNMEASURED = Cost()


def budget(clock: Clock, overhead: float) -> Budget:
    """What one move may take; `overhead` seconds of each are lost on the way."""
    left = max(0.0, clock.remaining - overhead)
    spare = left - min(RESERVE, left / 2)
    share = spare / _moves(clock, spare, overhead)
    target = min(max(0.0, share + clock.increment - overhead), left / 2)
    return Budget(target, max(target, left / SHORTEST_HORIZON - overhead), target + left / 10, left)


def _moves(clock: Clock, spare: float, overhead: float) -> float:
    """Moves that the spare time is shared among; of a low clock so few that each has its overhead once more."""
    if clock.increment > overhead:
        moves = FED_HORIZON
    else:
        lost = max(overhead - clock.increment, 1e-6)
        moves = min(HORIZON, max(SHORTEST_HORIZON, spare / (2 * lost)))
    return min(moves, max(1, clock.moves_to_go)) if clock.moves_to_go else moves


def fixed(seconds: float, overhead: float) -> Budget:
    """What a move of fixed time may take; there is no clock to lose, so the root is evaluated in any case."""
    target = max(0.0, seconds - overhead)
    return Budget(target, target, target, math.inf)


def may_evaluate(given: Budget, elapsed: float, root: Cost) -> bool:
    """Whether there is time to evaluate the root."""
    return elapsed + max(1, FEW * root.trust) * root.usual <= given.left


def may_grow(given: Budget, elapsed: float, batch: Cost, is_first: bool) -> bool:
    """Whether there is time for another batch. Doubt spends time on a try, but does not risk the flag."""
    usual, slow = batch.trust * batch.usual, batch.usual + batch.trust * (batch.slow - batch.usual)
    fits = elapsed + usual / 2 <= given.target or (is_first and elapsed + usual <= given.first)
    return fits and elapsed + slow <= given.limit


def learn(cost: Cost, seconds: float) -> Cost:
    """The cost after one more evaluation; a single one that stood still moves `slow` alone by much."""
    if cost == UNMEASURED:
        return Cost(seconds, seconds)
    rate = FALL if seconds < cost.usual else RISE
    usual = cost.usual + rate * (min(seconds, 2 * cost.usual) - cost.usual)
    return Cost(usual, max(seconds, cost.slow + rate * (usual - cost.slow)))


def forget(cost: Cost) -> Cost:
    """The cost after a move without such an evaluation."""
    return cost._replace(trust=DOUBT * cost.trust)
