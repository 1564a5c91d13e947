"""Trains the runs of a plan: each in a process of `alphagateau train`, one after the other, in pieces that resume.

A process of its own, for a run takes its devices' memory and may be killed with it; several studies of one folder, on
one machine or more, share the runs, for a run in another process is passed over. `describe_progress` lists how far each
run is, and the time that is left.
"""

import ctypes
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from alphagateau import config
from alphagateau.runs import checkpoint
from alphagateau.runs.files import write_result
from alphagateau.runs.programs import python_environment
from alphagateau.runs.run_record import read_record
from alphagateau.runs.stop import StopRequest
from alphagateau.studies.plan import Plan, PlannedRun
from alphagateau.studies.status import Status, is_busy, read_status

POLL_SECONDS = 5.0  # between two checks of runs in other processes
MOST_FAILURES = 2  # of a run in a row; another process may have taken it just then


class Study(NamedTuple):
    """A plan at work in its folder."""

    plan: Plan
    folder: Path  # of the runs
    flops: Mapping[str, Mapping[str, float]]  # by variant, of a forward pass on each board; none where not counted
    report: Callable[[str], None]


def statuses(study: Study) -> dict[str, Status]:
    """By run."""
    runs, folder, flops = study.plan.runs, study.folder, study.flops
    return {r.name: read_status(folder / r.name, r.experiment, r.variant.budget, flops[r.variant.name]) for r in runs}


def source_of(study: Study, run: PlannedRun, known: Mapping[str, Status]) -> str:
    """The value of `--init-from` of a run to begin, "" for none: of a run that went on, where its budget ended."""
    if not run.needs:
        return run.variant.init_from
    source, end = study.folder / run.needs, (known[run.needs].iteration, 0, 0)
    return str(next((c.path for c in checkpoint.find(source / "checkpoints")[0][1:] if c.order == end), source))


def train_runs(study: Study, stop: StopRequest) -> dict[str, str]:
    """Trains until all runs have ended or a request to stop; why each run that failed did, by its name."""
    failures: dict[str, int] = {}
    is_reported = False
    while stop.reason is None:
        known = statuses(study)
        lost = _lost(study.plan, failures)
        left = [run for run in study.plan.runs if not known[run.name].ended and run.name not in lost]
        if not left:
            break
        run = _choose(study, left, known)
        if run is None:
            if not is_reported:
                names = ", ".join(run.name for run in left)
                study.report(f"waiting for other processes, which hold or must end {names}")
            is_reported = True
            _wait(stop, POLL_SECONDS)
            continue
        is_reported = False
        code = train_piece(study, run, known, stop)
        if code and is_busy(study.folder / run.name):  # another process took it just then
            continue
        is_further = stop.reason is not None or statuses(study)[run.name].iteration > known[run.name].iteration
        failures[run.name] = failures.get(run.name, 0) + 1 if code or not is_further else 0
        if failures[run.name]:
            study.report(f"{run.name} ended with exit code {code}" + ("" if is_further else " and came no further"))
    return _lost(study.plan, failures)


def _lost(plan: Plan, failures: Mapping[str, int]) -> dict[str, str]:
    """The runs that failed or need one that did, and why."""
    needs = {run.name: run.needs for run in plan.runs}
    why = f"its process failed {MOST_FAILURES} times"
    found = {name: why for name in needs if failures.get(name, 0) >= MOST_FAILURES}
    while new := {name: f"it needs {s}" for name, s in needs.items() if s in found and name not in found}:
        found |= new
    return found


def _choose(study: Study, left: list[PlannedRun], known: Mapping[str, Status]) -> PlannedRun | None:
    """The run whose turn it is: of those that are free, the one with the fewest pieces done."""
    piece = study.plan.study.piece
    for run in sorted(left, key=lambda run: known[run.name].iteration // piece if piece else 0):
        is_ready = not run.needs or known[run.needs].ended
        if is_ready and not is_busy(study.folder / run.name):
            return run
    return None


def train_piece(study: Study, run: PlannedRun, known: Mapping[str, Status], stop: StopRequest) -> int:
    """The exit code of `alphagateau train` on the run's next piece; stopped, it writes a checkpoint first."""
    file = study.folder / f"{run.name}.toml"
    write_result(file, f"# {run.name} of study {study.plan.study.name}\n\n{config.dumps(run.experiment)}")
    words = ["train", str(file), "--runs", str(study.folder), "--until", _until(study, run, known[run.name])]
    source = "" if read_record(study.folder / run.name)["starts"] else source_of(study, run, known)
    words += ["--init-from", source] if source else []
    study.report(f"alphagateau {' '.join(words)}")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "alphagateau.commands.main", *words],
        env=python_environment(SLURM_NTASKS="1", OMPI_COMM_WORLD_SIZE="1"),  # the study's processes share no run
        start_new_session=True,  # what is typed at the terminal is for the study, which passes it on once
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )
    is_sent = False
    while True:
        try:
            return process.wait(0.2)
        except subprocess.TimeoutExpired:
            if stop.reason is not None and not is_sent:
                process.send_signal(signal.SIGTERM)
                is_sent = True


def _until(study: Study, run: PlannedRun, status: Status) -> str:
    """The run's budget, or the end of its next piece if that comes first."""
    limits = {unit: limit for unit, limit in vars(run.variant.budget).items() if limit}
    if piece := study.plan.study.piece:
        end = (status.iteration // piece + 1) * piece
        limits["iterations"] = min(limits.get("iterations", end), end)
    return ",".join(f"{unit}={limit!r}" for unit, limit in limits.items())


def _end_with_parent() -> None:
    """Makes the kernel stop this process when the study is killed, so that no run goes on unseen."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # 1: PR_SET_PDEATHSIG


def _wait(stop: StopRequest, seconds: float) -> None:
    end = time.monotonic() + seconds
    while stop.reason is None and time.monotonic() < end:
        time.sleep(0.2)


def describe_progress(study: Study) -> tuple[list[tuple[str, ...]], str]:
    """(run, iterations, frames, steps, seconds, state, time left) of each, and the time left of all."""
    known, rows, total = statuses(study), [], 0.0
    for run in study.plan.runs:
        status = known[run.name]
        left = 0.0 if status.ended else seconds_left(run, status, pace(study, run, known))
        total += left
        cost = status.cost
        numbers = (f"{cost.iterations} of {run.experiment.num_iterations}", f"{cost.frames:,}", f"{cost.steps:,}")
        rows.append((run.name, *numbers, f"{cost.seconds:,.0f}", state_of(study, run, known), duration(left)))
    return rows, duration(total)


def state_of(study: Study, run: PlannedRun, known: Mapping[str, Status]) -> str:
    """In a few words."""
    status = known[run.name]
    if status.ended:
        return status.ended
    if is_busy(study.folder / run.name):
        return "in progress"
    if run.needs and not known[run.needs].ended:
        return f"needs {run.needs}"
    return "to go on" if status.iteration else "to begin"


def pace(study: Study, run: PlannedRun, known: Mapping[str, Status]) -> float:
    """Seconds an iteration: of the run, else of its variant, else of all; NaN if nothing has run."""
    for name in (run.name, run.variant.name, None):
        costs = [known[other.name].cost for other in study.plan.runs if name in (other.name, other.variant.name, None)]
        if iterations := sum(cost.iterations for cost in costs):
            return sum(cost.seconds for cost in costs) / iterations
    return math.nan


def seconds_left(run: PlannedRun, status: Status, seconds: float) -> float:
    """At `seconds` an iteration, until the first limit; steps and FLOPs at the mean of an iteration so far."""
    cost = status.cost
    left = [float(run.experiment.num_iterations - cost.iterations)]
    for unit, limit in vars(run.variant.budget).items():
        each = seconds if unit == "seconds" else getattr(cost, unit) / max(cost.iterations, 1)
        if limit and each > 0:
            left.append((limit - getattr(cost, unit)) / each)
    return max(min(left), 0.0) * seconds


def duration(seconds: float) -> str:
    """Such as 1:02:03; "unknown" for NaN."""
    if math.isnan(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
