"""Time: whole games by simulated clock, on machines idle and loaded, that stand still, over lines that lag."""

import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.play.clock import (
    FEW,
    UNMEASURED,
    Budget,
    Clock,
    Cost,
    budget,
    fixed,
    forget,
    learn,
    may_evaluate,
    may_grow,
)

BLIND = 0.001  # seconds that a move without an evaluation takes
LAG = 0.003  # seconds of a move that no evaluation takes
OVERHEAD = 0.05  # seconds of a move that are feared to be lost
LOOK = 0.1  # of a batch
NEVER = 1e9


@dataclass
class Machine:
    """A simulated clock and a machine: `batch` seconds for each batch, times up to `load`, and one pause in a game."""

    batch: float
    load: float = 1.0
    pause_at: float = NEVER
    now: float = 0.0
    root_cost: Cost = UNMEASURED
    batch_cost: Cost = UNMEASURED
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        self.root_cost, self.batch_cost = learn(UNMEASURED, LOOK * self.batch), learn(UNMEASURED, self.batch)

    def work(self, seconds: float) -> float:
        """Time passes; the pause comes as soon as its time has. Returns how much."""
        took = seconds * self.rng.uniform(1.0, self.load) + (self.now <= self.pause_at < self.now + seconds)
        self.now += took
        return took

    def move(self, given: Budget) -> int | None:
        """One move as the engine makes it; the batches it had time for, None if not even for a look."""
        started, batches = self.now, 0
        if not may_evaluate(given, 0.0, self.root_cost):
            self.root_cost, self.batch_cost = forget(self.root_cost), forget(self.batch_cost)
            self.work(BLIND)
            return None
        self.root_cost = learn(self.root_cost, self.work(LOOK * self.batch))
        while may_grow(given, self.now - started, self.batch_cost, not batches):
            self.batch_cost = learn(self.batch_cost, self.work(self.batch))
            batches += 1
        if not batches:
            self.batch_cost = forget(self.batch_cost)
        self.work(LAG)
        return batches


@dataclass
class Played:
    """A game: the least time left, what is left at its end, and its batches a move."""

    least: float
    left: float
    batches: list[int | None] = field(default_factory=list)
    unlooked_at: int = 0  # although a few looks fitted


def play(machine: Machine, base: float, increment: float, num_moves: int, overhead: float = OVERHEAD) -> Played:
    played = Played(base, base)
    for _ in range(num_moves):
        started, usable = machine.now, played.left - overhead
        played.batches.append(machine.move(budget(Clock(played.left, increment), overhead)))
        is_blind = played.batches[-1] is None
        played.unlooked_at += is_blind and usable > FEW * machine.load * LOOK * machine.batch
        played.left -= machine.now - started
        played.least = min(played.least, played.left)
        played.left += increment
    return played


def share_used(played: Played, base: float, increment: float) -> float:
    return 1 - played.left / (base + increment * len(played.batches))


MACHINES = pytest.mark.parametrize("load", [1.0, 3.0, 6.0])
BATCHES = pytest.mark.parametrize("batch", [0.002, 0.01, 0.04, 0.1, 0.3])


@MACHINES
@BATCHES
@pytest.mark.parametrize(("base", "increment", "num_moves"), [(60, 0, 100), (10, 0.1, 256), (2.5, 0, 40)])
def test_no_flag_falls_and_each_move_is_looked_at_while_a_look_fits(
    base: float, increment: float, num_moves: int, batch: float, load: float
):
    played = play(Machine(batch, load), base, increment, num_moves)
    assert played.least > 0 and not played.unlooked_at


@MACHINES
@pytest.mark.parametrize("batch", [0.002, 0.01, 0.04, 0.1])
def test_four_fifths_of_ten_seconds_and_increments_are_used_in_forty_moves(batch: float, load: float):
    assert share_used(play(Machine(batch, load), 10, 0.1, 40), 10, 0.1) > 0.8


@BATCHES
def test_of_a_minute_most_is_used_in_forty_moves_and_some_is_left_after_eighty(batch: float):
    assert share_used(play(Machine(batch), 60, 0, 40), 60, 0) > 0.65
    assert play(Machine(batch), 60, 0, 80).left > 1


@pytest.mark.parametrize("batch", [0.01, 0.04, 0.08])
def test_the_last_seconds_are_not_hoarded(batch: float):
    """With 2.5 s left a won ending was played by its first legal moves, 2.48 s unused."""
    played = play(Machine(batch), 2.5, 0, 40)
    assert share_used(played, 2.5, 0) > 0.4 and sum(bool(number) for number in played.batches) > 8


@pytest.mark.parametrize("pause_at", [0.1, 5, 20, 40, 50])
@BATCHES
@pytest.mark.parametrize(("base", "increment"), [(60, 0), (10, 0.1)])
def test_a_machine_may_stand_still_for_a_second(base: float, increment: float, batch: float, pause_at: float):
    assert play(Machine(batch, pause_at=pause_at), base, increment, 100).least > 0


@pytest.mark.parametrize("load", [4.0, 10.0])
def test_a_load_that_goes_is_forgotten(load: float):
    """The slowest batch was believed for as long as it forbade others, so for ever."""
    machine = Machine(0.04, load)
    play(machine, 10, 0, 30)
    machine.load = 1.0
    assert sum(bool(number) for number in play(machine, 2.5, 0, 20).batches[10:]) > 4


def test_a_load_while_costs_are_first_measured_is_forgotten():
    machine = Machine(0.04)
    machine.root_cost, machine.batch_cost = learn(UNMEASURED, 0.02), learn(UNMEASURED, 0.2)
    assert sum(bool(number) for number in play(machine, 2.5, 0, 20).batches[10:]) > 4


def test_a_machine_that_stood_still_once_goes_on():
    cost = learn(Cost(0.04, 0.04), 30.0)
    assert cost.slow == 30.0 and cost.usual == 0.05
    given_time = budget(Clock(10, 0.1), 0.05)
    assert not may_grow(given_time, 0.0, cost, True)
    for _ in range(12):
        cost = forget(cost)
    assert may_grow(given_time, 0.0, cost, True) and learn(cost, 0.04).trust == 1


def test_doubt_lets_no_flag_fall():
    """Batches of 3 s are not tried with 5 s left, however long ago the last one was."""
    look = batch = Cost(3.0, 3.0, trust=0.0)
    assert not may_grow(budget(Clock(5), 0.05), 0.0, batch, True) and not may_evaluate(
        budget(Clock(3), 0.05), 0.0, look
    )


def test_costs_are_learnt():
    assert learn(UNMEASURED, 0.2) == Cost(0.2, 0.2)
    assert learn(Cost(0.1, 0.1), 0.2) == pytest.approx((0.125, 0.2, 1.0))
    assert learn(Cost(0.1, 0.1), 0.06) == pytest.approx((0.08, 0.09, 1.0))


def test_an_increment_lasts_for_ever():
    played = play(Machine(0.01), 10, 0.1, 1000)
    assert played.least > 0.9 and min(number or 0 for number in played.batches) >= 3


def test_moves_to_go_are_counted():
    few, many = (budget(Clock(60, 0, moves), 0.05).target for moves in (2, 30))
    assert few > 20 and 1 < many < 2.5
    assert 20 < budget(Clock(60, 0, 1), 0.05).target <= 30
    assert budget(Clock(60, 0, 1000), 0.05) == budget(Clock(60, 0), 0.05)


def test_a_tenth_of_a_second_is_time_for_a_look_alone():
    given_time = budget(Clock(0.1), 0.05)
    assert not may_grow(given_time, 0.0, Cost(0.002, 0.002), True)
    assert may_evaluate(given_time, 0.0, Cost(0.01, 0.01)) and not may_evaluate(given_time, 0.0, Cost(0.03, 0.03))


def test_fixed_time():
    assert fixed(1.0, 0.05) == Budget(0.95, 0.95, 0.95, math.inf) and fixed(0.01, 0.05) == Budget(0, 0, 0, math.inf)
    batch = Cost(0.05, 0.05)
    assert may_evaluate(fixed(0.01, 0.05), 1.0, batch) and not may_grow(fixed(0.01, 0.05), 0.0, batch, True)
    assert may_grow(fixed(1.0, 0.05), 0.89, batch, False) and not may_grow(fixed(1.0, 0.05), 0.91, batch, False)


@given(st.floats(-1000, 1e6), st.floats(0, 1000), st.none() | st.integers(-5, 10_000), st.floats(0, 5))
def test_no_budget_is_more_than_what_is_left(remaining, increment, moves, overhead):
    given_time = budget(Clock(remaining, increment, moves), overhead)
    assert 0 <= given_time.target <= given_time.first <= given_time.left and given_time.target <= given_time.limit
    assert given_time.limit <= given_time.left <= max(0, remaining - overhead)
