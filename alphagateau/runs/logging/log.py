"""Writes and reads metrics.jsonl, and wakes the process that brings it to Aim.

`metrics.jsonl` holds one JSON object an iteration, with `iteration` and slash names (`train/policy_loss`). Names under
`time/` and per-second rates depend on the machine; all others are the same on every run of the same experiment.
"""

import contextlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.runs.files import append_text, reason, write_text
from alphagateau.runs.logging.aim_process import AimProcess
from alphagateau.runs.logging.progress import warn

ENERGY = "energy/joules"

# Meaning and unit of metrics, for reports.
MEANING = {
    "train/loss": "the sum of all losses below that the experiment has",
    "train/policy_loss": "cross-entropy to the search's policy, nats",
    "train/value_loss": "of the value, as training.loss says; a frame whose value is not known counts 0",
    "train/action_value_loss": "of the labelled moves' values, as training.loss says; mean of the boards' means",
    "train/action_value_excess": "by how much the action value loss is above the least there is",
    "train/action_value_error": "mean |q - label| of labelled moves, q the probability of winning",
    "train/action_accuracy": "boards whose highest action value is a labelled best move's",
    "train/state_value_loss": "of the labelled boards' values, as training.loss says; others count 0",
    "train/state_value_excess": "by how much the state value loss is above the least there is",
    "train/state_value_error": "mean |q - label| of labelled boards, q the probability of winning",
    "train/reply_loss": "0.15 times the cross-entropy to the opponent's reply, nats",
    "train/reply_accuracy": "plies whose reply is the one thought likeliest",
    "train/moves_left_loss": "Huber loss of the plies left, in units of 20 plies",
    "train/moves_left_error": "mean |plies left - target|, plies",
    "train/soft_policy_loss": "8 times the cross-entropy to the search's policy to the power 1/4, nats",
    "train/search_value_loss": "squared error of the head that learns the search's value",
    "train/search_value_error_loss": "squared error of that head's own estimate of its squared error",
    "train/search_value_bins_loss": "0.1 times the cross-entropy of the search's value over bins, nats",
    "train/short_term_loss": "squared error of the head that learns the searches' values of the next plies",
    "train/short_term_error_loss": "squared error of that head's own estimate of its squared error",
    "train/short_term_bins_loss": "0.1 times the cross-entropy of that value over bins, nats",
    "train/policy_accuracy": "boards whose most likely move is the labelled one",
    "train/policy_entropy": "entropy of the network's policy, nats",
    "train/target_entropy": "entropy of the search's policy, nats; where the policy is not learnt it counts 0",
    "train/policy_kl": "policy loss - target entropy, nats: what the network still has to learn of the search",
    "train/value_accuracy": "decisive frames whose winner the value names",
    "train/value_error": "mean |value - target| of frames whose value is known",
    "train/calibration_error": "mean |predicted - observed| value",
    "train/gradient_norm": "global L2 norm, mean over the steps",
    "train/update_norm": "global L2 norm of a step, mean over the steps",
    "train/weight_norm": "global L2 norm, mean over the steps",
    "train/board_steps": "optimizer steps of the iteration, on one of several boards",
    "train/value_known": "frames trained on whose value is known",
    "train/frame_reuse": "frames trained on for each new one",
    "energy/joules": "of the host's processors, memory and GPUs while the iteration ran, whoever used them",
    "window/new_frames": "frames made for the window",
    "window/waiting": "frames that wait for their game's result",
    "search/target_noise": "KL of the policy targets of two searches of a position, nats, over a sample",
    "network/mirror_disagreement": "positions of the sample whose best move changes when they are mirrored",
    "network/mirror_value_gap": "mean |value - value of the mirror image| over the sample",
    "selfplay/games": "games finished",
    "selfplay/plies": "positions played",
    "selfplay/draw_rate": "draws / games finished",
    "selfplay/game_length": "plies at the end of a game, counted from its usual start, mean of the games finished",
}


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of a metrics.jsonl with their numbers and lists, without a last line cut short by a kill."""
    return parse_rows(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else []


def parse_rows(text: str) -> list[dict[str, Any]]:
    """The rows in a metrics.jsonl's text."""
    rows = []
    for line in text.split("\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and type(number := row.get("iteration")) is int and _is_value("iteration", number):
            rows.append({name: value for name, value in row.items() if _is_value(name, value)})
    return rows


def _is_value(name: str, value: Any) -> bool:
    """Whether a metric may have this value, in a file that anybody may have written."""
    if name == "train/calibration":
        rows = value if isinstance(value, list) else [()]
        return all(isinstance(row, list) and [*map(_is_number, row)] == [True] * 3 for row in rows)
    if isinstance(value, list):  # of a plug-in's loss
        ours = ("time/", "energy/", "selfplay/", "train/steps", "train/board_steps")
        return name not in MEANING and not name.startswith(ours)
    return _is_number(value) and (name != "train/steps" or math.isfinite(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)


class MetricsLog(NamedTuple):
    """The metrics log of a run."""

    path: Path
    pending: list[str]  # lines that could not be written yet
    aim: AimProcess | None = None

    def write(self, iteration: int, values: Mapping[str, Any]) -> None:
        """Appends one line and syncs it; if the disk is full the line is written with the next."""
        self.pending.append(json.dumps({"iteration": iteration, **{k: _rounded(v) for k, v in values.items()}}) + "\n")
        self._write_pending()
        if self.aim is not None:
            self.aim.poke()

    def close(self, is_waiting: bool = True) -> None:
        """Tries pending lines once more and ends Aim's process, with or without waiting for it."""
        if self.pending:
            self._write_pending()
        if self.pending:
            warn(
                f"{self.path} lacks the metrics of the last {len(self.pending)} iterations, which could not be written"
            )
        if self.aim is not None:
            self.aim.close(is_waiting)

    def _write_pending(self) -> None:
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            append_text(self.path, "".join(self.pending))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.truncate(self.path, size)  # a line half written would spoil the next
            if len(self.pending) == 1:
                warn(f"cannot write {self.path} ({reason(error)}): its lines wait for the next iteration")
        else:
            self.pending.clear()


def open_log(run: Path, iteration: int) -> MetricsLog:
    """The log of a run that goes on after `iteration`, without the rows past it, which will be written again."""
    path = run / "metrics.jsonl"
    rows = [row for row in read_metrics(path) if row["iteration"] <= iteration]
    if path.exists():
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return MetricsLog(path, [])


def _rounded(value: Any) -> Any:
    """A number, or a list of them, to the six digits of float32; whole numbers in full."""
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(value) if float(value).is_integer() else float(f"{float(value):.6g}")
