"""Results of a study: costs, measures, differences and curves of its variants."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphagateau import config
from alphagateau.ratings.over_seeds import Estimate, mean_over_seeds, mean_rating, paired_difference
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
    players = {(r.variant, r.seed): names.get((r.name, r.cost.iterations), "") for r in runs if r.ended}
    players = {place: name for place, name in players.items() if name in ratings.players}

    def named(places: Sequence[tuple[str, int]]) -> list[str]:
        return [players[place] for place in places]

    values = {place: float(ratings.rating[ratings.players.index(name)]) for place, name in players.items()}
    rows = _compare(
        plan,
        values,
        lambda places: mean_rating(ratings, named(places)),
        lambda places, others: paired_difference(ratings, named(places), named(others)),
    )
    return Measure(f"Elo on {board}", ".0f", rows)


def _metric_measure(plan: Plan, runs: Sequence[RunResult], name: str) -> Measure:
    """The last values of a metric, which have no error of measurement that is known."""
    values = {(r.variant, r.seed): r.metrics[name] for r in runs if r.ended and name in r.metrics}
    rows = _compare(
        plan,
        values,
        lambda places: mean_over_seeds([values[place] for place in places]),
        lambda places, others: mean_over_seeds([values[a] - values[b] for a, b in zip(places, others, strict=True)]),
    )
    return Measure(name, ".4g", rows)


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
