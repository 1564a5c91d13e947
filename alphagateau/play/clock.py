"""The time left on a clock in, the time to spend on a move out; pure functions, so that tests simulate whole games.

A batch of evaluations in progress is not interrupted, so a batch is begun only if it should end in time. `RESERVE` is
kept for what nobody foresees, such as a machine that stands still for a second. Once that is all there is left, a
move is made of what is known already, without an evaluation.
"""

import math
from typing import NamedTuple

RESERVE = 1.5  # seconds, of a clock that has them
HORIZON = 40  # moves that the time left must last for, where the control does not say
INCREMENT_SHARE = 0.8  # of the increment, to be spent at once


class Clock(NamedTuple):
    """The clock of the player to move, in seconds."""

    remaining: float
    increment: float = 0.0
    moves_to_go: int | None = None  # to the next time control


class Budget(NamedTuple):
    """Seconds since the search was asked for; no batch should end later."""

    target: float
    first: float  # of the first batch, without which nothing is known of the position; at least the target


def budget(clock: Clock, overhead: float) -> Budget:
    """What one move may take; `overhead` seconds of each are lost on the way, those of the moves to come are kept."""
    usable = max(0.0, clock.remaining - overhead)
    moves = min(HORIZON, max(1, clock.moves_to_go or HORIZON))
    kept = RESERVE + HORIZON * max(0.0, overhead - clock.increment)
    share = (usable - min(kept, usable / 2)) / moves
    target = min(max(0.0, share + INCREMENT_SHARE * clock.increment - overhead), usable / 2)
    return Budget(target, max(target, (usable - kept) / 4, usable / HORIZON))


def fixed(seconds: float, overhead: float) -> Budget:
    """What a move of fixed time may take; there is no clock to lose, so its first batch is begun in any case."""
    return Budget(max(0.0, seconds - overhead), math.inf)


def may_begin(given: Budget, elapsed: float, batch_seconds: float, is_first: bool) -> bool:
    """Whether there is time for a batch that takes about `batch_seconds`."""
    return elapsed + batch_seconds <= (given.first if is_first else given.target)
