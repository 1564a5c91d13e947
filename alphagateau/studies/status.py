"""Reads how far a run is in its study."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from alphagateau.config import BudgetConfig, ConfigError, Experiment, load
from alphagateau.runs import checkpoint, run_folder, run_record
from alphagateau.runs.checkpoint import Checkpoint
from alphagateau.runs.costs import Cost, costs, reached
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.run_folder import InUseError
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


def read_status(folder: Path, experiment: Experiment, budget: BudgetConfig, flops: Mapping[str, float]) -> Status:
    """Of the run in `folder`, which may not have begun. Raises RunError if its record is damaged."""
    spent = costs(read_metrics(folder / "metrics.jsonl"), experiment, flops)
    whole = [c.order[0] for c in whole_checkpoints(folder)]
    last = next((i for i, cost in enumerate(spent) if reached(cost, budget)), None)
    ended = f"{reached(spent[last], budget)} reached" if last is not None else ""
    if last is None and spent and spent[-1].iterations >= experiment.num_iterations:
        last, ended = len(spent) - 1, f"all of its {experiment.num_iterations} iterations done"
    if last is not None and max(whole, default=0) < spent[last].iterations:  # killed before its checkpoint was whole
        last, ended = None, ""
    unhealthy = run_record.read_record(folder).get("unhealthy")
    if unhealthy and not ended and load(folder / "config.toml").health == experiment.health:
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
    """Whether a process, here or on another machine, has locked the run. Raises RunError if nobody could."""
    if not folder.exists():
        return False
    try:
        with run_folder.locked(folder):
            return False
    except InUseError:
        return True


def check_unchanged(run: PlannedRun, folder: Path, path: str) -> None:
    """Raises ConfigError, which `path` opens, if the run was begun with another experiment or other weights."""
    where = f"{path}: variants.{run.variant.name}"
    try:
        run_folder.check_folder(folder, run.experiment)
    except ConfigError as error:
        raise ConfigError(f"{where} was changed after its run began: {error}") from None
    record = run_record.read_record(folder)
    began, source = record.get("init_from"), run.needs or run.variant.init_from
    is_same = run.needs in Path(began or "").parts[-3:] if run.needs else run_record.is_same_origin(began, source)
    if record["starts"] and not is_same:
        words = (text or "no weights" for text in (began, source))
        raise ConfigError(f"{where}: {folder} began from {', not from '.join(words)}: give the variant another name")


def describe_devices(folder: Path) -> str:
    """The devices of all starts of a run, such as "2 x gpu NVIDIA H100"; a CPU's kind adds nothing to its name."""
    found = [start["devices"] for start in run_record.read_record(folder)["starts"]]
    kinds = [", ".join(sorted(set(devices))).replace("cpu cpu", "cpu") for devices in found]
    return "; ".join(dict.fromkeys(f"{len(devices)} x {kind}" for devices, kind in zip(found, kinds, strict=True)))


def commits_of(folder: Path) -> list[str]:
    """The commits of the code that the starts of a run ran."""
    starts = run_record.read_record(folder)["starts"]
    return list(dict.fromkeys(start.get("commit") or "unknown" for start in starts))
