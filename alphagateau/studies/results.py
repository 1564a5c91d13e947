"""Runs that have ended and their ratings in, what a study has found out: costs, measures, differences, curves."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau import config
from alphagateau.ratings.over_seeds import Estimate, mean_over_seeds, mean_rating, paired_difference
from alphagateau.ratings.rate import Ratings
from alphagateau.runs.costs import Cost
from alphagateau.runs.log import read_metrics
from alphagateau.studies.plan import Plan, PlannedRun, changed_keys, run_name
from alphagateau.studies.status import Status, commits_of, describe_devices, whole_checkpoints

Names = Mapping[tuple[str, int], str]  # (run, iteration) -> the player of a ladder


class RunResult(NamedTuple):
    """What a run came to; `metrics`: of the study's metrics, the last values."""

    name: str
    variant: str
    seed: int
    ended: str
    failure: str
    cost: Cost
    parameters: int
    weights_hash: str
    devices: str
    commits: tuple[str, ...]
    metrics: dict[str, float]


class Measured(NamedTuple):
    """A variant by one measure: its values by seed, their mean, and the difference to the reference on equal seeds."""

    variant: str
    values: dict[int, float]
    mean: Estimate
    differences: dict[int, float]
    difference: Estimate | None


class Measure(NamedTuple):
    """A measure, such as Elo on a board, of all variants that have it."""

    name: str
    form: str  # of its numbers, as format() takes it
    rows: list[Measured]


class CurvePoint(NamedTuple):
    """The rating of a variant after an iteration, at the mean cost of its seeds; low, high: of single seeds."""

    cost: Cost
    rating: Estimate
    low: float
    high: float


class Curve(NamedTuple):
    """Elo of a variant as its cost grows, on a board."""

    board: str
    variant: str
    points: list[CurvePoint]


class StudyResult(NamedTuple):
    """All that a page of a study says."""

    plan: Plan
    changed: dict[str, dict[str, Any]]
    runs: list[RunResult]
    measures: list[Measure]
    curves: list[Curve]
    num_games: dict[str, int]  # of the ladder, by board


def gather(
    plan: Plan,
    folder: Path,
    known: Mapping[str, Status],
    failures: Mapping[str, str],
    ratings: Mapping[str, tuple[Ratings, Names]],
) -> StudyResult:
    """The result of a study whose runs lie in `folder`; ratings by board."""
    runs = [_run_result(plan, run, folder, known[run.name], failures.get(run.name, "")) for run in plan.runs]
    measures = [_rating_measure(plan, runs, board, *found) for board, found in ratings.items()]
    measures += [_metric_measure(plan, runs, name) for name in plan.study.metrics]
    places = [(board, v.name, found) for board, found in ratings.items() for v in plan.variants]
    curves = [Curve(board, variant, _curve(plan, variant, known, *found)) for board, variant, found in places]
    games = {board: int(found[0].games.sum()) // 2 for board, found in ratings.items()}
    return StudyResult(plan, changed_keys(plan), runs, measures, [c for c in curves if len(c.points) > 1], games)


def _run_result(plan: Plan, run: PlannedRun, folder: Path, status: Status, failure: str) -> RunResult:
    last = next((c for c in whole_checkpoints(folder / run.name) if c.order[0] == status.iteration), None)
    rows = {row["iteration"]: row for row in read_metrics(folder / run.name / "metrics.jsonl")}
    row = rows.get(status.iteration, {})
    return RunResult(
        run.name,
        run.variant.name,
        run.seed,
        status.ended,
        failure or ("" if status.ended else "it has not ended"),
        status.cost,
        last.manifest["parameters"] if last else 0,
        last.manifest["weights_hash"] if last else "",
        describe_devices(folder / run.name),
        commits_of(folder / run.name),
        {name: row[name] for name in plan.study.metrics if isinstance(row.get(name), int | float)},
    )


def _rating_measure(plan: Plan, runs: Sequence[RunResult], board: str, ratings: Ratings, names: Names) -> Measure:
    """Elo of the last weights."""
    players = {(r.variant, r.seed): names.get((r.name, r.cost.iterations), "") for r in runs if r.ended}
    players = {place: name for place, name in players.items() if name in ratings.players}

    def value(place: tuple[str, int]) -> float:
        return float(ratings.rating[ratings.players.index(players[place])])

    def mean(places: Sequence[tuple[str, int]]) -> Estimate:
        return mean_rating(ratings, [players[place] for place in places])

    def difference(places: Sequence[tuple[str, int]], others: Sequence[tuple[str, int]]) -> Estimate:
        return paired_difference(ratings, [players[p] for p in places], [players[p] for p in others])

    values = {place: value(place) for place in players}
    return Measure(f"Elo on {board}", ".0f", _compare(plan, values, mean, difference))


def _metric_measure(plan: Plan, runs: Sequence[RunResult], name: str) -> Measure:
    """The last values of a metric, which have no error of measurement that is known."""
    values = {(r.variant, r.seed): r.metrics[name] for r in runs if r.ended and name in r.metrics}

    def mean(places: Sequence[tuple[str, int]]) -> Estimate:
        return mean_over_seeds([values[place] for place in places])

    def difference(places: Sequence[tuple[str, int]], others: Sequence[tuple[str, int]]) -> Estimate:
        return mean_over_seeds([values[a] - values[b] for a, b in zip(places, others, strict=True)])

    return Measure(name, ".4g", _compare(plan, values, mean, difference))


def _compare(
    plan: Plan,
    values: Mapping[tuple[str, int], float],
    mean: Callable[..., Estimate],
    difference: Callable[..., Estimate],
) -> list[Measured]:
    """Each variant over its seeds, and against the reference over the seeds that both have."""
    rows, reference = [], plan.reference.name
    for variant in plan.variants:
        places = [(variant.name, seed) for seed in plan.study.seeds if (variant.name, seed) in values]
        common = [seed for name, seed in places if name != reference and (reference, seed) in values]
        if not places:
            continue
        by_seed = {seed: values[variant.name, seed] - values[reference, seed] for seed in common}
        pairs = [(variant.name, seed) for seed in common], [(reference, seed) for seed in common]
        one = {seed: values[name, seed] for name, seed in places}
        rows.append(Measured(variant.name, one, mean(places), by_seed, difference(*pairs) if common else None))
    return rows


def _curve(plan: Plan, variant: str, known: Mapping[str, Status], ratings: Ratings, names: Names) -> list[CurvePoint]:
    """At the iterations of which all seeds that have ended were rated."""
    runs = [run_name(variant, seed) for seed in plan.study.seeds if known[run_name(variant, seed)].ended]
    sets = [{i for name, i in names if name == run and names[name, i] in ratings.players} for run in runs]
    points = []
    for iteration in sorted(set.intersection(*sets)) if sets else ():
        players = [names[run, iteration] for run in runs]
        spent = [next((c for c in known[run].spent if c.iterations == iteration), Cost()) for run in runs]
        _, frames, steps, *rest = (sum(column) / len(spent) for column in zip(*spent, strict=True))
        cost = Cost(iteration, round(frames), round(steps), *rest)
        values = [float(ratings.rating[ratings.players.index(name)]) for name in players]
        points.append(CurvePoint(cost, mean_rating(ratings, players), min(values), max(values)))
    return points


def as_json(result: StudyResult) -> dict[str, Any]:
    """The result for other programs. What depends on the machine stands under "machine", all else repeats with it."""
    plan = result.plan
    study = {"name": plan.study.name, "base": plan.study.base, "reference": plan.reference.name}
    found: dict[str, Any] = {
        **study,
        "seeds": list(plan.study.seeds),
        "budget": {v.name: _given(v.budget) for v in plan.variants},
        "changed": result.changed,
        "experiments": {v.name: config.to_dict(v.experiment) for v in plan.variants},
        "runs": {r.name: _run_json(r) for r in result.runs},
        "measures": {m.name: {row.variant: _row_json(row) for row in m.rows} for m in result.measures},
        "curves": {},
        "games": result.num_games,
        "machine": {r.name: _machine_json(r) for r in result.runs},
    }
    for curve in result.curves:
        points = [{**p.cost._asdict(), "elo": p.rating._asdict(), "low": p.low, "high": p.high} for p in curve.points]
        for point in points:
            del point["seconds"]
        found["curves"].setdefault(curve.board, {})[curve.variant] = points
    return _finite(found)


def _given(budget: config.BudgetConfig) -> dict[str, float]:
    return {unit: limit for unit, limit in vars(budget).items() if limit}


def _run_json(run: RunResult) -> dict[str, Any]:
    cost = run.cost._asdict()
    del cost["seconds"]
    kept = ("variant", "seed", "ended", "failure", "parameters", "weights_hash", "metrics")
    return {**{name: getattr(run, name) for name in kept}, **cost}


def _machine_json(run: RunResult) -> dict[str, Any]:
    return {"seconds": round(run.cost.seconds, 3), "devices": run.devices, "commits": run.commits}


def _row_json(row: Measured) -> dict[str, Any]:
    return {
        "values": row.values,
        "mean": row.mean._asdict(),
        "differences": row.differences,
        "difference": row.difference._asdict() if row.difference else None,
    }


def _finite(value: Any) -> Any:
    """NaN as null, which JSON knows."""
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
