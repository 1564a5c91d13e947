"""Budgets of a study: the FLOPs of its runs, and when each has reached its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from alphagateau import config
from alphagateau.config import BudgetConfig, ConfigError, Experiment
from alphagateau.runs.costs import costs, reached
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.programs import python_environment
from alphagateau.runs.run_folder import RunError


def count_flops(experiments: Sequence[Experiment]) -> list[dict[str, float]]:
    """FLOPs of a forward pass on a position of each board, of each experiment. Raises RunError.

    Counted in a process of its own that sees no accelerator: the same number on every machine, and the caller, which
    may be about to start a run, takes no memory of one.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.toml" for number in range(len(experiments))]
        for file, experiment in zip(files, experiments, strict=True):
            file.write_text(config.dumps(experiment), encoding="utf-8")
        command = [sys.executable, "-P", "-m", "alphagateau.training.flops", *map(str, files)]
        done = subprocess.run(command, env=python_environment(JAX_PLATFORMS="cpu"), capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise RunError(f"the FLOPs of the networks cannot be counted: {why[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def make_budget_check(run: Path, budget: BudgetConfig, experiment: Experiment) -> Callable[[], str | None]:
    """A function that returns why the run has to stop, once its metrics.jsonl reaches the budget.

    After the last iteration, where the run ends by itself, it returns None. Raises ConfigError.
    """
    if budget.frames and experiment.selfplay is None:
        raise ConfigError("a budget of frames needs [selfplay], which plays them")
    flops = count_flops([experiment])[0] if budget.flops else {}
    path = run / "metrics.jsonl"
    known: dict[tuple[int, int] | None, str | None] = {None: None}

    def check() -> str | None:
        stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
        if stamp not in known:  # called before every device call
            spent = costs(read_metrics(path), experiment, flops)
            is_over = not spent or spent[-1].iterations >= experiment.num_iterations
            limit = None if is_over else reached(spent[-1], budget)
            known[stamp] = f"the budget of {limit} is reached" if limit else None
        return known[stamp]

    return check
