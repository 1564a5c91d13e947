"""Results of a study: costs, measures, differences and curves of its variants."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alphagateau import config
from alphagateau.ratings.over_seeds import Estimate, compare_over_seeds
from alphagateau.ratings.rate import Ratings
from alphagateau.runs.costs import Cost
from alphagateau.runs.logging.log import read_metrics
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
    """All that a page of a study shows; experiments, budgets and changed keys by variant, as in their files."""

    name: str
    base: str
    reference: str
    seeds: tuple[int, ...]
    experiments: dict[str, dict[str, Any]]
    budgets: dict[str, dict[str, float]]
    changed: dict[str, dict[str, Any]]  # key -> variant -> value
    runs: list[RunResult]
    measures: list[Measure]
    curves: list[Curve]
    num_games: dict[str, int]  # of the ladder, by board
    notes: Mapping[str, Sequence[str]] = {}  # of the ladder, by board

    @property
    def variants(self) -> list[str]:
        return list(self.experiments)


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
    return StudyResult(
        name=plan.study.name,
        base=plan.study.base,
        reference=plan.reference.name,
        seeds=plan.study.seeds,
        experiments={v.name: config.to_dict(v.experiment) for v in plan.variants},
        budgets={v.name: {unit: n for unit, n in vars(v.budget).items() if n} for v in plan.variants},
        changed=changed_keys(plan),
        runs=runs,
        measures=measures,
        curves=[curve for curve in curves if len(curve.points) > 1],
        num_games=games,
        notes={board: list(found[0].notes) for board, found in ratings.items()},
    )


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
    """Elo of the runs that were rated, but for those of a pool that never met the one that most are in."""
    chosen = {(r.variant, r.seed): names.get((r.name, r.cost.iterations), "") for r in runs if r.ended}
    chosen = {place: ratings.players.index(name) for place, name in chosen.items() if name in ratings.players}
    pools = Counter(ratings.component[list(chosen.values())].tolist()).most_common(1)
    chosen = {place: k for place, k in chosen.items() if ratings.component[k] == pools[0][0]}
    return Measure(f"Elo on {board}", ".0f", _compare(plan, *_rated(ratings, chosen)))


def _rated(ratings: Ratings, chosen: Mapping[tuple[str, int], int]) -> tuple[dict[tuple[str, int], float], Any]:
    """Ratings of players, by (variant, seed), and their covariance."""
    index = list(chosen.values())
    return dict(zip(chosen, ratings.rating[index].tolist(), strict=True)), ratings.covariance[np.ix_(index, index)]


def _metric_measure(plan: Plan, runs: Sequence[RunResult], name: str) -> Measure:
    """The last values of a metric, which have no error of measurement that is known."""
    values = {(r.variant, r.seed): r.metrics[name] for r in runs if r.ended and name in r.metrics}
    return Measure(name, ".4g", _compare(plan, values))


def _compare(plan: Plan, values: Mapping[tuple[str, int], float], covariance: Any = 0.0) -> list[Measured]:
    """Each variant over its seeds, and against the reference over the seeds that both have."""
    reference, rows = plan.reference.name, []
    found = compare_over_seeds(values, covariance, reference)
    for variant in [v.name for v in plan.variants if v.name in found]:
        mean, difference = found[variant]
        ours, theirs = ({s: value for (v, s), value in values.items() if v == name} for name in (variant, reference))
        by_seed = {seed: value - theirs[seed] for seed, value in ours.items() if seed in theirs and difference}
        rows.append(Measured(variant, ours, mean, by_seed, difference))
    return rows


def _curve(plan: Plan, variant: str, known: Mapping[str, Status], ratings: Ratings, names: Names) -> list[CurvePoint]:
    """At the iterations of which all seeds that have ended were rated."""
    runs = [run_name(variant, seed) for seed in plan.study.seeds if known[run_name(variant, seed)].ended]
    sets = [{i for name, i in names if name == run and names[name, i] in ratings.players} for run in runs]
    points = []
    for iteration in sorted(set.intersection(*sets)) if sets else ():
        players = [ratings.players.index(names[run, iteration]) for run in runs]
        spent = [next((c for c in known[run].spent if c.iterations == iteration), Cost()) for run in runs]
        _, frames, steps, *rest = (sum(column) / len(spent) for column in zip(*spent, strict=True))
        cost = Cost(iteration, round(frames), round(steps), *rest)
        values, covariance = _rated(ratings, {(variant, place): k for place, k in enumerate(players)})
        rating, _ = compare_over_seeds(values, covariance)[variant]
        points.append(CurvePoint(cost, rating, min(values.values()), max(values.values())))
    return points
