"""What a run says of itself: metrics.jsonl always, Aim on top, progress on the terminal.

`metrics.jsonl` holds one JSON object an iteration, with `iteration` and slash names (`train/policy_loss`). Names under
`time/` and per-second rates depend on the machine; all others are the same on every run of the same experiment.
"""

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau.runs.files import write_text
from alphagateau.runs.progress import warn

# A name's meaning and unit, for logs and reports.
MEANING = {
    "train/loss": "policy loss + value loss",
    "train/policy_loss": "cross-entropy to the search's policy, nats",
    "train/value_loss": "squared error of the value; a frame without a result counts 0",
    "train/policy_entropy": "entropy of the network's policy, nats",
    "train/target_entropy": "entropy of the search's policy, nats",
    "train/policy_kl": "policy loss - target entropy, nats: what the network still has to learn of the search",
    "train/value_accuracy": "decisive frames whose winner the value names",
    "train/value_error": "mean |value - result| of frames with a result",
    "train/gradient_norm": "global L2 norm, mean over the steps",
    "train/update_norm": "global L2 norm of a step, mean over the steps",
    "train/weight_norm": "global L2 norm, mean over the steps",
    "selfplay/games": "games finished",
    "selfplay/draw_rate": "draws / games finished",
    "selfplay/game_length": "plies, mean of the games finished",
}


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a metrics.jsonl, their numbers and lists; a last line cut short by a kill is left out."""
    rows = []
    if path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict) and type(row.get("iteration")) is int:
                rows.append({k: v for k, v in row.items() if isinstance(v, int | float | list)})
    return rows


class MetricsLog(NamedTuple):
    """Where an iteration's figures go."""

    path: Path
    aim_run: Any  # aim.Run, or None

    def write(self, iteration: int, values: Mapping[str, Any]) -> None:
        """Appends one line and has it on disk before it returns."""
        row = {"iteration": iteration, **{k: _rounded(v) for k, v in values.items()}}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if self.aim_run is not None:
            for name, value in row.items():
                if name != "iteration" and not isinstance(value, list):
                    group, _, key = name.partition("/")
                    self.aim_run.track(value, name=key, step=iteration, context={"part": group})

    def write_games(self, iteration: int, pgn: str) -> None:
        """Sample games as text in Aim; the PGN file is the run's."""
        if self.aim_run is not None and pgn:
            from aim import Text

            self.aim_run.track(Text(pgn), name="sample_games", step=iteration)

    def close(self) -> None:
        if self.aim_run is not None:
            self.aim_run.close()


def open_log(run: Path, iteration: int, aim_run: Any = None) -> MetricsLog:
    """The log of a run that goes on after `iteration`: what was written past it will be written again."""
    path = run / "metrics.jsonl"
    rows = [row for row in read_metrics(path) if row["iteration"] <= iteration]
    if path.exists():
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
    return MetricsLog(path, aim_run)


def open_aim(run: Path, run_hash: str | None, hyper_parameters: Mapping[str, Any]) -> Any:
    """An aim.Run in the Aim repository of the working folder; `run_hash` continues one, if it is there.

    A step that is tracked again takes the place of the one before it.
    """
    import aim
    from aim.sdk.errors import MissingRunError

    open_run = partial(
        aim.Run,
        experiment=run.name,
        system_tracking_interval=None,
        log_system_params=False,
        capture_terminal_logs=False,
    )
    try:
        aim_run = open_run(run_hash=run_hash)
    except MissingRunError:
        warn(f"the Aim repository of this folder does not hold the run's Aim run {run_hash}: a new one begins")
        aim_run = open_run()
    aim_run["hparams"] = dict(hyper_parameters)
    aim_run["run"] = str(run)
    return aim_run


def _rounded(value: Any) -> Any:
    """Six digits, as many as float32 has; lists too."""
    return [_rounded(v) for v in value] if isinstance(value, list) else float(f"{float(value):.6g}")
