"""What a run says of itself: metrics.jsonl always, Aim on top, progress on the terminal.

`metrics.jsonl` holds one JSON object an iteration, with `iteration` and slash names (`train/policy_loss`). Names under
`time/` and per-second rates depend on the machine; all others are the same on every run of the same experiment.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from alphagateau.checkpoint import write_text

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


class Reporter:
    """Progress for a person: a live bar with the time left on a terminal, plain lines elsewhere."""

    def __init__(self, is_quiet: bool = False) -> None:
        self.console = Console(stderr=True, quiet=is_quiet)
        self._progress: Progress | None = None
        self._task: Any = None

    @contextmanager
    def running(self, done: int, total: int) -> Iterator[None]:
        """Shows `done` of `total` iterations until the block ends."""
        if self.console.quiet or not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console) as progress:
            self._progress = progress
            self._task = progress.add_task("starting", total=total, completed=done)
            yield
        self._progress = None

    def phase(self, text: str, done: float) -> None:
        """What the run is doing; `done` iterations, in fractions."""
        if self._progress is not None:
            self._progress.update(self._task, description=text, completed=done)

    def say(self, text: str) -> None:
        """One line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def iteration(self, iteration: int, total: int, values: Mapping[str, float], left: float) -> None:
        """One line on a finished iteration; `left`: seconds still to go, by the pace so far."""
        self.say(
            f"iteration {iteration}/{total}  policy {values['train/policy_loss']:.3f}  "
            f"value {values['train/value_loss']:.3f}  entropy {values['train/policy_entropy']:.2f}  "
            f"games {values['selfplay/games']:.0f} ({values['selfplay/draw_rate']:.0%} drawn)  "
            f"{values['selfplay/moves_per_second']:.0f} moves/s  {_clock(left)} left"
        )


def warn(text: str) -> None:
    """One line on standard error, before any run has a Reporter."""
    print(text, file=sys.stderr)


class Timer:
    """Seconds spent under each name since the last `take`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        taken, self._seconds = self._seconds, {}
        return taken


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"


def _rounded(value: Any) -> Any:
    """Six digits, as many as float32 has; lists too."""
    return [_rounded(v) for v in value] if isinstance(value, list) else float(f"{float(value):.6g}")
