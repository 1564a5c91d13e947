"""Time: whole games by simulated clock, on machines fast and slow, that stand still, over lines that lag."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.play.clock import Budget, Clock, budget, fixed, may_begin

BLIND = 0.005  # seconds that a move without an evaluation takes


class Machine:
    """A simulated clock and a machine: `batch` seconds for each batch, and one pause in a game."""

    def __init__(self, batch: float, pause_at: float, lag: float) -> None:
        self.batch, self.pause_at, self.lag, self.now = batch, pause_at, lag, 0.0

    def work(self, seconds: float) -> None:
        """Time passes; the pause comes as soon as its time has."""
        is_pause = self.now <= self.pause_at < self.now + seconds
        self.now += seconds + is_pause * 1.0

    def move(self, given: Budget) -> int:
        """One move as the engine makes it; how many batches it had time for."""
        started, batches = self.now, 0
        self.work(BLIND)
        while may_begin(given, self.now - started, self.batch, batches == 0):
            self.work(self.batch)
            batches += 1
        self.work(self.lag)
        return batches


def play(machine: Machine, base: float, increment: float, overhead: float, num_moves: int) -> tuple[float, list[int]]:
    """(the least time left after a move, batches of each move) of a game."""
    remaining, least, batches = base, base, []
    for _ in range(num_moves):
        started = machine.now
        batches.append(machine.move(budget(Clock(remaining, increment), overhead)))
        remaining -= machine.now - started
        least = min(least, remaining)
        remaining += increment
    return least, batches


@pytest.mark.parametrize("pause_at", [0.1, 5, 20, 40, 55, 58, 59, 1e9])
@pytest.mark.parametrize("batch", [0.002, 0.01, 0.05, 0.1, 0.3, 1.0, 3.0])
@pytest.mark.parametrize(("base", "increment", "num_moves"), [(60, 0, 256), (10, 0.1, 256)])
def test_never_flags(base: float, increment: float, num_moves: int, batch: float, pause_at: float):
    least, _ = play(Machine(batch, pause_at, lag=0.01), base, increment, 0.05, num_moves)
    assert least > 0


@pytest.mark.parametrize(("base", "increment"), [(60, 0), (10, 0.1)])
def test_time_is_used(base: float, increment: float):
    least, batches = play(Machine(0.01, 1e9, lag=0.01), base, increment, 0.05, 60)
    assert least < 0.6 * base
    assert min(batches) >= 1 and sum(batches[:40]) > 0.4 * base / 0.01


def test_an_increment_lasts_for_ever():
    least, batches = play(Machine(0.01, 1e9, lag=0.01), 10, 0.1, 0.02, 1000)
    assert least > 1 and min(batches) >= 3


def test_a_slow_machine_still_thinks_while_it_can():
    _, batches = play(Machine(0.3, 1e9, lag=0.01), 60, 0, 0.05, 60)
    assert min(batches[:40]) >= 1


def test_moves_to_go_are_counted():
    few, many = (budget(Clock(60, 0, moves), 0.05).target for moves in (2, 30))
    assert few > 20 and 1 < many < 2.5
    assert 20 < budget(Clock(60, 0, 1), 0.05).target <= 30
    assert budget(Clock(60, 0, 1000), 0.05) == budget(Clock(60, 0), 0.05)


def test_a_tenth_of_a_second_is_no_time_for_much():
    given_time = budget(Clock(0.1), 0.05)
    assert given_time.first < 0.01 and not may_begin(given_time, 0.0, 0.02, True)
    assert may_begin(given_time, 0.0, 0.001, True)


def test_fixed_time():
    assert fixed(1.0, 0.05) == Budget(0.95, math.inf) and fixed(0.01, 0.05) == Budget(0, math.inf)
    assert may_begin(fixed(0.01, 0.05), 0.0, 1.0, True) and not may_begin(fixed(0.01, 0.05), 1.0, 1.0, False)
    assert may_begin(fixed(1.0, 0.05), 0.89, 0.05, False) and not may_begin(fixed(1.0, 0.05), 0.91, 0.05, False)


@given(
    st.floats(-1000, 1e6), st.floats(0, 1000), st.none() | st.integers(-5, 10_000), st.floats(0, 5), st.floats(0, 100)
)
def test_no_budget_is_more_than_what_is_left(remaining, increment, moves, overhead, batch):
    given_time = budget(Clock(remaining, increment, moves), overhead)
    assert 0 <= given_time.target <= given_time.first <= max(0, remaining - overhead)
