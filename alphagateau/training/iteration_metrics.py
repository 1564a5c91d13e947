"""Makes an iteration's metrics, by slash names, from sums and seconds."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from alphagateau.runs.logging.log import ENERGY
from alphagateau.runs.logging.progress import JOULES
from alphagateau.training.losses.terms import AMONG

# Metrics of training that a run of several boards has for each board too.
PER_BOARD = ("loss", "policy_loss", "value_loss", "target_entropy", "policy_entropy", "value_error", "value_accuracy")
PER_BOARD += ("value_known",)
SUMMED = ("selfplay/games", "selfplay/plies", "window/frames", "window/new_frames", "window/waiting")
# Means over games, by the sum that each is made from.
MEANS = {"draw_rate": "draws", "white_win_rate": "white_wins", "truncation_rate": "at_ply_limit"}
MEANS |= {"game_length": "finished_plies", "resignation_rate": "resigned"}
OF_GAMES = (*MEANS, "duplicate_rate", "false_resignations")


def as_summed(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """A step's metrics as an iteration sums them: a mean among some of the frames by the share that they are."""
    return {name: x * metrics.get(AMONG + name, 1) for name, x in metrics.items()}


def training_metrics(totals: Mapping[str, Any], num_steps: int) -> dict[str, Any]:
    """Means over the iteration's steps, or over its frames in a mask, from sums, if there are any; calibration."""
    sums = {name: np.asarray(total, float) for name, total in totals.items()}
    calibration = sums.pop("calibration", None)
    steps = {name.partition("/")[2]: float(sums.pop(name)) for name in list(sums) if name.startswith("steps/")}
    shares = {name.removeprefix(AMONG): float(sums.pop(name)) for name in list(sums) if name.startswith(AMONG)}
    values: dict[str, Any] = {f"train/board_steps/{board}": n for board, n in steps.items()}
    counts = {name: shares.get(name, steps.get(name.partition("/")[2], num_steps)) for name in sums}
    values |= {f"train/{name}": (total / counts[name]).tolist() for name, total in sums.items() if counts[name]}
    if calibration is not None and calibration[0].any():
        count, predicted, observed = calibration
        values["train/calibration_error"] = float(np.abs(predicted - observed).sum() / count.sum())
        values["train/calibration"] = [
            [float(n), float(p / n), float(o / n)] for n, p, o in zip(count, predicted, observed, strict=True) if n
        ]
    if {"train/policy_loss", "train/target_entropy"} <= values.keys():  # a plug-in's loss need not know the latter
        values["train/policy_kl"] = values["train/policy_loss"] - values["train/target_entropy"]
    return values


def selfplay_metrics(sums: Mapping[str, float]) -> dict[str, float]:
    """Rates of the iteration's games, from the sums of `selfplay.game_statistics`; none of games if none ended."""
    games, plies = sums["games"], sums["plies"]
    optional = {"window/waiting": sums["waiting"]} if "waiting" in sums else {}
    if "full_searches" in sums:
        optional["selfplay/full_search_rate"] = sums["full_searches"] / plies
    if games:
        optional |= {f"selfplay/{name}": sums[total] / games for name, total in MEANS.items() if total in sums}
    if given_up := sums.get("rightly_given_up", 0) + sums.get("wrongly_given_up", 0):
        optional["selfplay/false_resignations"] = sums["wrongly_given_up"] / given_up
    return {
        "selfplay/games": games,
        "selfplay/plies": plies,
        "selfplay/prior_entropy": sums["prior_entropy"] / plies,
        "selfplay/value_saturation": sums["saturated_values"] / plies,
        "window/frames": sums["frames"],
        "window/new_frames": sums.get("new_frames", plies),
        **optional,
    }


def selfplay_pace(num_plies: float, num_simulations: float, seconds: Mapping[str, float]) -> dict[str, float]:
    """Moves and simulations a second of `num_plies` plies with `num_simulations` each on average."""
    moves = num_plies / seconds.get("selfplay", math.nan)
    return {"selfplay/moves_per_second": moves, "selfplay/simulations_per_second": moves * num_simulations}


def over_boards(found: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The metrics of a run of several boards, and those of each board as `<name>/<board>`.

    Counts are summed; rates are means, of games by finished games, others by plies; paces are of boards in turn.
    """
    values = {f"{name}/{board}": x for board, metrics in found.items() for name, x in metrics.items()}
    for name in dict.fromkeys(name for metrics in found.values() for name in metrics):
        rows = [metrics for metrics in found.values() if name in metrics]
        is_of_games = name.removeprefix("selfplay/") in OF_GAMES
        weights = [row["selfplay/games" if is_of_games else "selfplay/plies"] for row in rows]
        if name in SUMMED:
            values[name] = sum(row[name] for row in rows)
        elif name.endswith("_per_second"):
            seconds = [row["selfplay/plies"] / (row["selfplay/moves_per_second"] or math.nan) for row in rows]
            values[name] = sum(row[name] * t for row, t in zip(rows, seconds, strict=True)) / sum(seconds)
        else:
            total = sum(weight * row[name] for weight, row in zip(weights, rows, strict=True))
            values[name] = total / max(sum(weights), 1)
    return values


def training_pace(num_frames: int, seconds: Mapping[str, float]) -> dict[str, float]:
    """Frames a second of `num_frames` in all epochs, the seconds of each phase, and the joules if they are counted."""
    paces = {"train/frames_per_second": num_frames / seconds.get("train", math.nan)}
    joules = {ENERGY: seconds[JOULES]} if JOULES in seconds else {}
    return paces | {f"time/{name}": value for name, value in seconds.items() if name != JOULES} | joules
