"""Budgets of a study's runs, and how far each is."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from alphagateau import config
from alphagateau.config import BudgetConfig, ConfigError, Experiment
from alphagateau.runs import checkpoint, run_folder, run_record
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.costs import Cost, Prices, costs, make_prices, reached
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.programs import python_environment
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.plan import PlannedRun


class Status(NamedTuple):
    """How far a run is.

    iteration: the last one that counts, with a checkpoint. spent: the cost after each iteration up to it. ended: why
    nothing is left to do; "" if something is.
    """

    iteration: int
    spent: list[Cost]
    ended: str

    @property
    def cost(self) -> Cost:
        return self.spent[-1] if self.spent else Cost()


def read_status(folder: Path, experiment: Experiment, budget: BudgetConfig, prices: Prices) -> Status:
    """Of the run in `folder`, which may not have begun. Raises RunError if its record is damaged."""
    spent = costs(read_metrics(folder / "metrics.jsonl"), prices)
    whole = [c.order[0] for c in whole_checkpoints(folder)]
    last = next((i for i, cost in enumerate(spent) if reached(cost, budget)), None)
    ended = f"{reached(spent[last], budget)} reached" if last is not None else ""
    if last is None and spent and spent[-1].iterations >= experiment.num_iterations:
        last, ended = len(spent) - 1, f"all of its {experiment.num_iterations} iterations done"
    if last is not None and max(whole, default=0) < spent[last].iterations:  # killed before its checkpoint was whole
        last, ended = None, ""
    unhealthy = run_record.read_record(folder).get("unhealthy")
    if unhealthy and not ended:
        ended = f"its health ended it: {unhealthy['why']}"
    limit = spent[last].iterations if last is not None else max(whole, default=0)
    iteration = max((i for i in whole if i <= limit), default=0)
    return Status(iteration, [cost for cost in spent if cost.iterations <= iteration], ended)


def whole_checkpoints(folder: Path) -> list[Checkpoint]:
    """Those between two iterations, the oldest first."""
    found = checkpoint.find(folder / "checkpoints")[0]
    return sorted((c for c in found if c.order[1:] == (0, 0)), key=lambda c: c.order)


def last_iterations(iterations: Iterable[int], count: int) -> list[int]:
    """The last `count` of a run's iterations, which its rating is the mean of; 0, untrained, only if it is alone."""
    return sorted(set(iterations) - {0})[-count:] or [0]


def is_busy(folder: Path) -> bool:
    """Whether a process, here or on another machine, has locked the run."""
    if not folder.exists():
        return False
    try:
        with run_folder.locked(folder):
            return False
    except RunError:
        return True


def check_unchanged(run: PlannedRun, folder: Path, source: str | None, path: str) -> None:
    """Raises ConfigError, which `path` opens, if the run was begun with another experiment or other weights."""
    where = f"{path}: variants.{run.variant.name}"
    try:
        run_folder.check_folder(folder, run.experiment)
    except ConfigError as error:
        raise ConfigError(f"{where} was changed after its run began: {error}") from None
    record = run_record.read_record(folder)
    began = record.get("init_from")
    if record["starts"] and not run_record.is_same_origin(began, source):
        words = (text or "no weights" for text in (began, source))
        raise ConfigError(f"{where}: {folder} began from {', not from '.join(words)}: give the variant another name")


def describe_devices(folder: Path) -> str:
    """The devices of all starts of a run, such as "2 x gpu NVIDIA H100"; a CPU's kind adds nothing to its name."""
    found = [start["devices"] for start in run_record.read_record(folder)["starts"]]
    kinds = [", ".join(sorted(set(devices))).replace("cpu cpu", "cpu") for devices in found]
    return "; ".join(dict.fromkeys(f"{len(devices)} x {kind}" for devices, kind in zip(found, kinds, strict=True)))


def commits_of(folder: Path) -> tuple[str, ...]:
    """The commits of the code that the starts of a run ran."""
    starts = run_record.read_record(folder)["starts"]
    return tuple(dict.fromkeys(start.get("commit") or "unknown" for start in starts))


def count_flops(experiments: Sequence[Experiment]) -> list[dict[str, float]]:
    """FLOPs of a forward pass on a position of each board, of each experiment. RuntimeError if they cannot be counted.

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
        raise RuntimeError(f"the FLOPs of the networks cannot be counted: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def make_budget_check(run: Path, budget: BudgetConfig, experiment: Experiment) -> Callable[[], str | None]:
    """A function that returns why the run has to stop, once its metrics.jsonl reaches the budget.

    After the last iteration, where the run ends by itself, it returns None. Raises ConfigError.
    """
    if budget.frames and experiment.selfplay is None:
        raise ConfigError("a budget of frames needs [selfplay], which plays them")
    prices = make_prices(experiment, count_flops([experiment])[0] if budget.flops else {})
    path = run / "metrics.jsonl"
    known: dict[tuple[int, int] | None, str | None] = {None: None}

    def check() -> str | None:
        stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
        if stamp not in known:  # called before every device call
            spent = costs(read_metrics(path), prices)
            is_over = not spent or spent[-1].iterations >= experiment.num_iterations
            limit = None if is_over else reached(spent[-1], budget)
            known[stamp] = f"the budget of {limit} is reached" if limit else None
        return known[stamp]

    return check
