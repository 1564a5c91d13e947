"""Formats the progress of a study: a line a run, and the time that is left."""

import math
from collections.abc import Mapping

from alphagateau.studies.plan import PlannedRun
from alphagateau.studies.status import Status, is_busy
from alphagateau.studies.training import Study, statuses


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
