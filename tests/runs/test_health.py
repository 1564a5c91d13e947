"""Health by its figures; tests/test_run.py reproduces the failures in real runs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from alphagateau import config
from alphagateau.runs import health
from alphagateau.runs.health import not_finite, symptoms
from alphagateau.training.selfplay.sample_games import FinishedGames, duplicate_rate

HEALTHY = {
    "train/loss": 3.0,
    "train/policy_loss": 2.0,
    "train/value_loss": 1.0,
    "train/policy_entropy": 1.5,
    "train/calibration_error": 0.1,
    "train/gradient_norm": 1.0,
    "train/weight_norm": 10.0,
    "train/value_known": 0.5,
    "train/frame_reuse": 4.0,
    "search/target_noise": 0.7,
    "network/mirror_value_gap": 0.2,
    "selfplay/games": 64.0,
    "selfplay/draw_rate": 0.4,
    "selfplay/truncation_rate": 0.1,
    "selfplay/duplicate_rate": 0.0,
    "selfplay/value_saturation": 0.1,
    "selfplay/game_length": 60.0,
}
LIMITS = config.HealthConfig(
    max_draw_rate=0.9, max_truncation_rate=0.5, max_duplicate_rate=0.2, max_game_length=200.0, max_weight_norm=100.0
)


def test_healthy_figures_have_no_symptom():
    assert symptoms(HEALTHY, LIMITS) == [] and not_finite(HEALTHY, 1) is None


@pytest.mark.parametrize(
    ("name", "sick", "limit", "said"),
    [
        ("train/policy_entropy", 0.005, 0.01, "below health.min_policy_entropy"),
        ("train/calibration_error", 0.51, 0.5, "above health.max_value_calibration_error"),
        ("train/gradient_norm", 10_001.0, 1e4, "above health.max_gradient_norm"),
        ("train/weight_norm", 101.0, 100.0, "above health.max_weight_norm"),
        ("selfplay/draw_rate", 0.91, 0.9, "above health.max_draw_rate"),
        ("selfplay/truncation_rate", 0.51, 0.5, "above health.max_truncation_rate"),
        ("selfplay/duplicate_rate", 0.21, 0.2, "above health.max_duplicate_rate"),
        ("selfplay/value_saturation", 0.96, 0.95, "above health.max_value_saturation"),
        ("selfplay/game_length", 201.0, 200.0, "above health.max_game_length"),
        ("selfplay/game_length", 3.9, 4.0, "below health.min_game_length"),
        ("train/value_known", 0.09, 0.1, "below health.min_value_known"),
        ("train/frame_reuse", 65.0, 64.0, "above health.max_frame_reuse"),
        ("search/target_noise", 3.1, 3.0, "above health.max_target_noise"),
        ("network/mirror_value_gap", 0.51, 0.5, "above health.max_mirror_value_gap"),
    ],
)
def test_each_sick_figure_is_named_and_its_limit_is_not(name, sick, limit, said):
    assert symptoms({**HEALTHY, name: limit}, LIMITS) == []
    (found,) = symptoms({**HEALTHY, name: sick}, LIMITS)
    assert found.endswith(f": {name} is {sick:.4g}, {said} = {limit:g}")


def test_a_gradient_of_nothing_is_told_of_where_steps_were_made():
    still = {**HEALTHY, "train/gradient_norm": 0.0}
    (said,) = symptoms(still, LIMITS)
    assert said.startswith("nothing is learnt: train/gradient_norm is 0")
    assert symptoms({**still, "train/frame_reuse": 0.0}, LIMITS) == []


def test_without_games_plies_are_judged():
    of_games = ("draw_rate", "truncation_rate", "duplicate_rate", "game_length")
    none = {name: x for name, x in HEALTHY.items() if name.partition("/")[2] not in of_games} | {"selfplay/games": 0.0}
    assert symptoms(none, LIMITS) == []
    (said,) = symptoms({**none, "selfplay/value_saturation": 1.0}, LIMITS)
    assert said.startswith("the value head is saturated")


def test_shares_of_few_games_say_nothing():
    few = {**HEALTHY, "selfplay/games": 31.0, "selfplay/draw_rate": 1.0, "selfplay/duplicate_rate": 1.0}
    few["train/calibration_error"] = 1.1
    assert symptoms(few, LIMITS) == []
    assert len(symptoms({**few, "selfplay/games": 32.0}, LIMITS)) == 3
    labelled = {name: x for name, x in few.items() if not name.startswith("selfplay/")}
    assert len(symptoms(labelled, LIMITS)) == 1


def test_by_default_every_limit_can_be_passed():
    """By a metric at the far end of its range."""
    far = {"min": 0.0, "max": 1e9}
    ends = {"draw_rate": 1.0, "truncation_rate": 1.0, "duplicate_rate": 1.0, "value_saturation": 1.0}
    ends |= {"false_resignations": 1.0, "calibration_error": 2.0, "mirror_value_gap": 2.0, "game_length": 512.0}
    for name, key, is_minimum, _ in health._CHECKS:
        metric = name.partition("/")[2]
        value = far["min"] if is_minimum else ends.get(metric, far["max"])
        (found,) = symptoms({**HEALTHY, name: value}, config.HealthConfig())
        assert f"health.{key} = " in found


def test_means_of_no_steps_say_nothing():
    """An iteration all of whose games go on may have no frames yet."""
    none = {name: 0.0 if name.startswith("train/") else value for name, value in HEALTHY.items()}
    assert symptoms(none, LIMITS) == []
    assert symptoms({**none, "train/frame_reuse": 1.0}, LIMITS) != []


@pytest.mark.parametrize("name", ["loss", "policy_loss", "value_loss", "gradient_norm", "weight_norm"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite(name, value):
    losses = dict.fromkeys(("train/loss", "train/gradient_norm", "train/weight_norm"), 1.0)
    said = not_finite({**HEALTHY, **losses, f"train/{name}": value, "train/mine": value}, 7) or ""
    assert "went wrong in iteration 7: " in said and f"train/{name} {value}" in said and f"train/mine {value}" in said


def test_games_that_repeat_one_another_are_counted():
    """Rows 0, 1 and 3 play edges 5, 6; row 2 plays 5, 7. Row 3 is no repetition if its game began elsewhere."""
    edges = np.array([[5, 5, 5, 5], [6, 6, 7, 6]], np.int16)
    games = FinishedGames(edges, np.arange(4), np.zeros(4, int), np.ones(4, int))
    boards = np.zeros((2, 4, 8, 25), np.int8)
    trajectory = SimpleNamespace(position=SimpleNamespace(boards=boards))
    assert duplicate_rate(trajectory, games) == 0.5
    boards[1, 3, 0, 7] = boards[0, 3, 1, 7] = 1  # a later board, and one before the first
    assert duplicate_rate(trajectory, games) == 0.5
    boards[0, 3, 0, 7] = 1
    assert duplicate_rate(trajectory, games) == 0.25
