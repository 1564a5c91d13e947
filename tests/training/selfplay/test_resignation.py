"""Who resigns, and what is said of those who had to play on; by hand."""

import jax
import jax.numpy as jnp
import pytest

from alphagateau.config import HealthConfig, SelfPlayConfig
from alphagateau.runs.health import symptoms
from alphagateau.training.iteration_metrics import selfplay_metrics
from alphagateau.training.selfplay.resignation import (
    LOST,
    NOT_LOST,
    NOTHING,
    RESIGNED,
    Resigning,
    begin_resigning,
    outcome,
    update_resigning,
)

RULE = SelfPlayConfig(num_games=1, num_plies=1, resign_plies=2, resign_value=0.9, resign_played_out=0.25)


def test_only_own_plies_in_a_row_count():
    """White moves at even plies: low at 0, 4 and 6, which are two in a row only at 6. Black's do not count."""
    resigning = Resigning(jnp.zeros((1, 2), jnp.int16), jnp.zeros(1, bool), jnp.full(1, -1, jnp.int8))
    values, resigned = [-0.95, -0.5, -0.9, -0.95, -0.91, 0.95, -1.0], []
    for ply, value in enumerate(values):  # -0.9 is not below -0.9
        now, resigning = update_resigning(RULE, resigning, jnp.int8([ply % 2]), jnp.float32([value]))
        resigned.append(bool(now[0]))
    assert resigned == [False] * 6 + [True]
    assert resigning.low_plies.tolist() == [[2, 0]] and resigning.first.tolist() == [0]


def test_a_game_played_out_remembers_who_would_have_resigned_first():
    resigning = Resigning(jnp.int16([[1, 1]]), jnp.ones(1, bool), jnp.full(1, -1, jnp.int8))
    for color in (1, 0):
        now, resigning = update_resigning(RULE, resigning, jnp.int8([color]), jnp.float32([-0.95]))
        assert not now[0] and resigning.first.tolist() == [1]
    assert resigning.low_plies.tolist() == [[2, 2]]


@pytest.mark.parametrize(
    ("first", "is_resigned", "color", "reward", "discount", "expected"),
    [
        (0, True, 0, -1.0, 0.0, RESIGNED),
        (-1, False, 0, 1.0, 0.0, NOTHING),  # nobody would have
        (1, False, 0, 0.0, -1.0, NOTHING),  # the game goes on
        (1, False, 0, 1.0, 0.0, LOST),  # white mates
        (0, False, 0, 1.0, 0.0, NOT_LOST),  # white mates, who would have resigned
        (0, False, 1, 1.0, 0.0, LOST),
        (0, False, 1, 0.0, 0.0, NOT_LOST),  # a draw
    ],
)
def test_what_became_of_it(first, is_resigned, color, reward, discount, expected):
    resigning = Resigning(jnp.zeros((1, 2), jnp.int16), jnp.ones(1, bool), jnp.int8([first]))
    given = jnp.array([is_resigned]), jnp.int8([color]), jnp.float32([reward]), jnp.float32([discount])
    assert outcome(resigning, *given).tolist() == [expected]


def test_a_share_of_the_games_is_played_out():
    key, rows = jax.random.key(0), jnp.arange(400)
    begun = begin_resigning(RULE, key, rows, 0)
    assert 70 < int(begun.is_played_out.sum()) < 130
    assert (begin_resigning(RULE, key, rows[200:], 0).is_played_out == begun.is_played_out[200:]).all()
    assert (begin_resigning(RULE, key, rows, 1).is_played_out != begun.is_played_out).any()
    assert (begun.first == -1).all() and not begun.low_plies.any()


def test_the_rate_of_false_resignations_and_its_limit():
    """10 games: 4 resigned, 3 of those played out would have been: 1 was not lost."""
    names = ("draws", "white_wins", "at_ply_limit", "finished_plies", "prior_entropy", "saturated_values", "frames")
    sums = dict.fromkeys(names, 0.0) | {"games": 10.0, "plies": 100.0, "resigned": 4.0}
    rates = selfplay_metrics(sums | {"rightly_given_up": 2.0, "wrongly_given_up": 1.0})
    assert (rates["selfplay/resignation_rate"], rates["selfplay/false_resignations"]) == (0.4, 1 / 3)
    health = HealthConfig(min_game_length=0.0)
    (found,) = symptoms(rates, health)
    assert ": selfplay/false_resignations is 0.3333, " in found
    assert "selfplay/false_resignations" not in selfplay_metrics(
        sums | {"rightly_given_up": 0.0, "wrongly_given_up": 0.0}
    )


def test_without_a_finished_game_there_are_no_rates_of_games():
    """They read 0: no game drawn, each of no plies."""
    names = ("draws", "white_wins", "at_ply_limit", "finished_plies", "resigned", "prior_entropy", "saturated_values")
    sums = dict.fromkeys((*names, "games", "rightly_given_up", "wrongly_given_up"), 0.0)
    found = selfplay_metrics(sums | {"plies": 64.0, "frames": 64.0})
    assert found.pop("selfplay/games") == 0 and found.pop("selfplay/plies") == 64
    assert {*found} == {f"selfplay/{name}" for name in ("prior_entropy", "value_saturation")} | {
        "window/frames",
        "window/new_frames",
    }
