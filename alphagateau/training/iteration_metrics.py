"""The figures that metrics.jsonl has of an iteration: sums and seconds in, means and rates by slash names out."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from alphagateau.config import Experiment


def training_figures(totals: Mapping[str, Any], num_steps: int) -> dict[str, Any]:
    """Means over the iteration's optimizer steps, whose sums are `totals`; the value head's calibration."""
    sums = {name: np.asarray(total) for name, total in totals.items()}
    count, predicted, observed = sums.pop("calibration")
    figures: dict[str, Any] = {f"train/{name}": float(total) / max(num_steps, 1) for name, total in sums.items()}
    figures["train/calibration_error"] = float(np.abs(predicted - observed).sum() / max(count.sum(), 1.0))
    figures["train/calibration"] = [
        [float(n), float(p / n), float(o / n)] for n, p, o in zip(count, predicted, observed, strict=True) if n
    ]
    figures["train/policy_kl"] = figures["train/policy_loss"] - figures["train/target_entropy"]
    return figures


def selfplay_figures(sums: Mapping[str, float]) -> dict[str, float]:
    """Rates of the iteration's games, of the sums that `selfplay.game_statistics` makes."""
    games, plies = max(sums["games"], 1), sums["plies"]
    return {
        "selfplay/games": sums["games"],
        "selfplay/draw_rate": sums["draws"] / games,
        "selfplay/white_win_rate": sums["white_wins"] / games,
        "selfplay/truncation_rate": sums["at_ply_limit"] / games,
        "selfplay/game_length": sums["finished_plies"] / games,
        "selfplay/prior_entropy": sums["prior_entropy"] / plies,
        "selfplay/value_saturation": sums["saturated_values"] / plies,
        "window/frames": sums["frames"],
    }


def pace_figures(
    experiment: Experiment, num_plies: float, epoch_steps: int, seconds: Mapping[str, float]
) -> dict[str, float]:
    """Per second and in seconds: `num_plies` of all games, an epoch of `epoch_steps`, by the Timer's `seconds`."""
    moves = num_plies / seconds.get("selfplay", math.nan)
    frames = epoch_steps * experiment.training.num_epochs * experiment.training.batch_size
    return {
        "selfplay/moves_per_second": moves,
        "selfplay/simulations_per_second": moves * experiment.search.num_simulations,
        "train/frames_per_second": frames / seconds.get("train", math.nan),
        **{f"time/{name}": value for name, value in seconds.items()},
    }
