"""The levels of sequential halving, and how a batch's leaves are packed into calls."""

import jax
import numpy as np
import pytest

from alphagateau.search.gumbel.levels import ROWS_A_GAME, make_levels, make_schedule, pack

# Legal moves in positions of self-play; a finished game has none.
NUM_LEGAL = {
    "5x5": [7, 9, 10, 8, 6, 11, 2, 8, 13, 5, 1, 9, 7, 12, 3, 8, 10, 6, 16, 4, 8, 9, 2, 11, 7, 5, 14, 8, 6, 10, 0, 9],
    "8x8": [20, 31, 28, 35, 4, 26, 40, 22, 30, 2, 33, 37, 24, 29, 1, 45, 18, 27, 32, 38, 3, 25, 34, 21, 30, 41, 12, 36],
}


@pytest.mark.parametrize(
    "num_simulations, widths",
    [(16, [16]), (64, [16] + [8] * 2 + [4] * 4 + [2] * 8), (128, [16] * 2 + [8] * 4 + [4] * 8 + [2] * 16)],
)
def test_sixteen_moves_are_halved(num_simulations, widths):
    levels = make_levels(16, num_simulations)
    assert levels.widths[16, : len(widths)].tolist() == widths
    assert levels.counts[16] == len(widths) and sum(widths) == num_simulations
    assert levels.visits[16, : len(widths)].tolist() == list(range(len(widths)))


@pytest.mark.parametrize(
    "num_legal, counts", [(16, (1, 15, 30)), (10, (3, 24, 43)), (4, (6, 24, 48)), (2, (8, 32, 64))]
)
def test_fewer_moves_have_more_levels(num_legal, counts):
    assert tuple(int(make_levels(16, n).counts[num_legal]) for n in (16, 64, 128)) == counts


def packed(num_legal: list[int], num_simulations: int) -> tuple[list[list[tuple[int, int]]], int]:
    """(of each game the (call, node) of its leaves in order, calls)."""
    step = jax.jit(pack, static_argnums=1)
    schedule = make_schedule(np.array(num_legal, np.int32), 16, num_simulations)
    found: list[list[tuple[int, int]]] = [[] for _ in num_legal]
    num_calls = 0
    while (np.asarray(schedule.waiting) > 0).any():
        rows, schedule, _ = jax.device_get(step(schedule, ROWS_A_GAME * len(num_legal)))
        for game, node in zip(rows.game, rows.node, strict=True):
            if game < len(num_legal):
                found[game].append((num_calls, int(node)))
        num_calls += 1
    return found, num_calls


@pytest.mark.parametrize("num_simulations", [16, 64])
@pytest.mark.parametrize("num_legal", NUM_LEGAL.values(), ids=NUM_LEGAL)
def test_calls_are_half_the_simulations_and_hardly_a_row_is_empty(num_legal, num_simulations):
    found, num_calls = packed(num_legal, num_simulations)
    assert [len(leaves) for leaves in found] == [num_simulations if n > 1 else 0 for n in num_legal]
    assert num_calls == num_simulations // 2
    assert num_calls * ROWS_A_GAME * len(num_legal) <= 1.1 * sum(map(len, found))


def test_a_level_begins_when_the_last_has_ended():
    """Whatever the others do; its leaves are numbered as if the game were alone."""
    num_simulations, table = 64, make_levels(16, 64)
    found, _ = packed(NUM_LEGAL["5x5"], num_simulations)
    for num_legal, leaves in zip(NUM_LEGAL["5x5"], found, strict=True):
        if num_legal < 2:
            continue
        assert sorted(node for _, node in leaves) == list(range(1, num_simulations + 1))
        call = {node: call for call, node in leaves}
        considered = min(num_legal, 16)
        firsts = table.firsts[considered, 1 : table.counts[considered]]
        assert all(call[first] < call[first + 1] for first in firsts)
