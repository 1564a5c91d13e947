"""Value targets by hand: lambda-returns between two players, the search's share, games cut off."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.config import TargetsConfig
from alphagateau.training.frames import Trajectory
from alphagateau.training.selfplay.targets import value_targets
from alphagateau.training.selfplay.window_phase import make_to_frames

# One game of three plies, won by its last mover: the first and the third ply are the same player's.
REWARD, DISCOUNT = [0.0, 0.0, 1.0], [-1.0, -1.0, 0.0]
SEARCH = [0.2, -0.4, 0.6]


def targets_of(reward, discount, search_value, **options) -> tuple[list[float], list[bool]]:
    """`value_targets` of one row."""
    columns = (jnp.float32(x)[:, None] for x in (reward, discount, search_value))
    target, known = value_targets(*columns, **options)
    return np.asarray(target)[:, 0].tolist(), np.asarray(known)[:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, -1, 1]),  # the result
        ({"td_lambda": 0.0}, [0.4, -0.6, 1]),  # what the opponent's next search says, turned round
        # back: 1; -(0.6 + 1) / 2 = -0.8; -(-0.4 - 0.8) / 2 = 0.6
        ({"td_lambda": 0.5}, [0.6, -0.8, 1]),
        # three quarters of the result, a quarter of the ply's own search
        ({"search_value_weight": 0.25}, [0.75 + 0.05, -0.75 - 0.1, 0.75 + 0.15]),
        ({"search_value_weight": 1.0}, SEARCH),
        ({"td_lambda": 0.5, "search_value_weight": 0.5}, [0.4, -0.6, 0.8]),
    ],
)
def test_a_finished_game_by_hand(options, expected):
    target, known = targets_of(REWARD, DISCOUNT, SEARCH, **options)
    np.testing.assert_allclose(target, expected, rtol=1e-6)
    assert all(known)


def test_a_player_who_moves_twice_keeps_the_sign():
    target, _ = targets_of([0, 0, 1], [-1, 1, 0], SEARCH, td_lambda=0.5)
    np.testing.assert_allclose(target, [-(-0.4 + 0.8) / 2, (0.6 + 1) / 2, 1], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.6, -0.6, 0.6]),  # the last ply is worth what its search says
        ({"td_lambda": 0.5}, [0.5, -0.6, 0.6]),  # -(-0.4 - 0.6) / 2
        ({"td_lambda": 0.0}, [0.4, -0.6, 0.6]),
        ({"search_value_weight": 0.5}, [0.4, -0.5, 0.6]),
    ],
)
def test_a_game_cut_off_is_worth_what_its_last_search_says(options, expected):
    cut = [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0], SEARCH
    target, known = targets_of(*cut, bootstrap=True, **options)
    np.testing.assert_allclose(target, expected, rtol=1e-6)
    assert all(known)
    assert targets_of(*cut, **options) == ([0, 0, 0], [False] * 3)


def test_the_targets_of_an_experiment_are_what_its_keys_say():
    columns = {
        name: jnp.float32(x)[:, None] for name, x in zip(("reward", "discount"), (REWARD, DISCOUNT), strict=True)
    }
    columns["discount"] = columns["discount"].at[2].set(-1)  # cut off
    others: dict[str, Any] = dict.fromkeys(Trajectory._fields)
    trajectory = Trajectory(**(others | columns | {"search_value": jnp.float32(SEARCH)[:, None]}))
    for options in ({}, {"bootstrap": True, "td_lambda": 0.5, "search_value_weight": 0.25}):
        frames = make_to_frames(TargetsConfig(**options))(trajectory)
        target, known = value_targets(columns["reward"], columns["discount"], trajectory.search_value, **options)
        assert (frames.value_target == target).all() and (frames.value_mask == known).all()
        assert known.all() == bool(options)


def test_only_what_follows_the_last_end_is_bootstrapped():
    """A lost game, then two plies of the next: their search says nothing of the game before."""
    game = [0, -1, 0, 0], [-1, 0, -1, -1], [0.5, 0.5, 0.5, -0.2]
    assert targets_of(*game, td_lambda=1.0) == ([1, -1, 0, 0], [True, True, False, False])
    target, known = targets_of(*game, bootstrap=True)
    np.testing.assert_allclose(target, [1, -1, 0.2, -0.2], rtol=1e-6)
    assert all(known)
