"""Checks an iteration's metrics against the limits of `[health]`."""

import math
from collections.abc import Mapping
from typing import Any

from alphagateau.config import HealthConfig

# metric, key of [health], whether it must not fall below the limit, what it means
_CHECKS = (
    ("train/policy_entropy", "min_policy_entropy", True, "the policy has collapsed onto single moves"),
    ("selfplay/value_saturation", "max_value_saturation", False, "the value head is saturated at +-1"),
    ("train/calibration_error", "max_value_calibration_error", False, "the value head is not calibrated"),
    ("selfplay/draw_rate", "max_draw_rate", False, "too many games are drawn"),
    ("selfplay/truncation_rate", "max_truncation_rate", False, "too many games reach the ply limit"),
    ("selfplay/false_resignations", "max_false_resignations", False, "games are resigned that would not be lost"),
    ("selfplay/duplicate_rate", "max_duplicate_rate", False, "too many games repeat another move by move"),
    ("selfplay/game_length", "max_game_length", False, "the games are absurdly long"),
    ("selfplay/game_length", "min_game_length", True, "the games are absurdly short"),
    ("train/gradient_norm", "max_gradient_norm", False, "the gradient is too large"),
    ("train/weight_norm", "max_weight_norm", False, "the weights are too large"),
    ("train/value_known", "min_value_known", True, "hardly a frame has a value to learn from"),
    ("train/frame_reuse", "max_frame_reuse", False, "the frames are trained on too often"),
    ("search/target_noise", "max_target_noise", False, "the policy targets are mostly noise"),
    ("network/mirror_value_gap", "max_mirror_value_gap", False, "positions and mirror images differ in value"),
)
LEAST_GAMES = 32  # below which a share of them is not judged
_OF_GAMES = ("selfplay/draw_rate", "selfplay/truncation_rate", "selfplay/duplicate_rate", "train/calibration_error")
_FINITE = tuple(f"train/{name}" for name in ("loss", "policy_loss", "value_loss", "gradient_norm", "weight_norm"))


def not_finite(values: Mapping[str, Any], iteration: int) -> str | None:
    """Why the run must stop whatever `[health]` allows; None: loss, gradient and weights are numbers."""
    if all(math.isfinite(values[name]) for name in _FINITE if name in values):
        return None
    learnt = {name: x for name, x in values.items() if name.startswith("train/") and isinstance(x, float)}
    broken = ", ".join(f"{name} {x}" for name, x in learnt.items() if not math.isfinite(x))
    return f"stopped: training went wrong in iteration {iteration}: {broken}"


def symptoms(values: Mapping[str, Any], health: HealthConfig) -> list[str]:
    """A sentence on each metric of an iteration beyond its limit; not on shares of few games, nor means of no steps."""
    found, games = [], values.get("selfplay/games", LEAST_GAMES)
    if values.get("train/gradient_norm") == 0 and values.get("train/frame_reuse"):
        found.append("nothing is learnt: train/gradient_norm is 0, so that no term of the loss reaches a weight")
    unjudged = _OF_GAMES if games < LEAST_GAMES else ()
    unjudged += ("train/",) if values.get("train/frame_reuse") == 0 else ()
    for name, key, is_minimum, meaning in _CHECKS:
        if name not in values or name.startswith(unjudged):
            continue
        value, limit = values[name], getattr(health, key)
        if value < limit if is_minimum else value > limit:
            side = "below" if is_minimum else "above"
            found.append(f"{meaning}: {name} is {value:.4g}, {side} health.{key} = {limit:g}")
    return found
