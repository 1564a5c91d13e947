"""Results of a study: costs, measures, differences and curves of its variants."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alphagateau import config
from alphagateau.config.records import show
from alphagateau.ratings.over_seeds import Estimate, compare_over_seeds, main_effects
from alphagateau.ratings.rate import Ratings
from alphagateau.ratings.results import Results
from alphagateau.runs.costs import Cost
from alphagateau.runs.logging.log import read_metrics
from alphagateau.studies.plan import Plan, PlannedRun, changed_keys, run_name
from alphagateau.studies.status import Status, commits_of, describe_devices, last_iterations, whole_checkpoints

Names = Mapping[tuple[str, int], str]  # (run, iteration) -> the player of a ladder


class Rated(NamedTuple):
    """The ladder of a board."""

    ratings: Ratings
    results: Results
    names: Names


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
    commits: list[str]
    metrics: dict[str, float]


class Measured(NamedTuple):
    """A variant by one measure: its values by seed, their mean, and the difference to the reference on equal seeds."""

    variant: str
    values: dict[int, float]
    mean: Estimate
    differences: dict[int, float]
    difference: Estimate | None


class Measure(NamedTuple):
    """A measure, such as Elo on a board, of all variants that have it.

    effects: in a factorial design, the mean at the high level of a factor less that at the low one.
    """

    name: str
    form: str  # of its numbers, as format() takes it
    rows: list[Measured]
    effects: Mapping[str, Estimate] = {}


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
    """All that a page of a study shows; experiments, budgets and changed keys by variant, as in their files.

    reference: "" in a factorial design.
    """

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
    last: int = 1  # checkpoints of a run whose mean rating is the run's
    rating_notes: Mapping[str, Sequence[str]] = {}  # caveats of the ladder's ratings, by board

    @property
    def variants(self) -> list[str]:
        return list(self.experiments)


def gather(
    plan: Plan, folder: Path, known: Mapping[str, Status], failures: Mapping[str, str], rated: Mapping[str, Rated]
) -> StudyResult:
    """The result of a study whose runs lie in `folder`; its ladders by board."""
    runs = [_run_result(plan, run, folder, known[run.name], failures.get(run.name, "")) for run in plan.runs]
    measures = [_rating_measure(plan, runs, board, found) for board, found in rated.items()]
    if plan.study.direct_games:
        measures += [_direct_measure(plan, runs, board, found) for board, found in rated.items()]
    measures += [_metric_measure(plan, runs, name) for name in plan.study.metrics]
    places = [(board, v.name, found) for board, found in rated.items() for v in plan.variants]
    curves = [Curve(board, variant, _curve(plan, variant, known, found)) for board, variant, found in places]
    games = {board: int(found.ratings.games.sum()) // 2 for board, found in rated.items()}
    return StudyResult(
        name=plan.study.name,
        base=plan.study.base,
        reference="" if plan.levels else plan.reference.name,
        seeds=plan.study.seeds,
        experiments={v.name: config.to_dict(v.experiment) for v in plan.variants},
        budgets={v.name: {unit: n for unit, n in vars(v.budget).items() if n} for v in plan.variants},
        changed=changed_keys(plan),
        runs=runs,
        measures=measures,
        curves=[curve for curve in curves if len(curve.points) > 1],
        num_games=games,
        last=plan.study.last,
        rating_notes={board: found.ratings.notes for board, found in rated.items()},
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
        "" if status.ended else failure or "it has not ended",
        status.cost,
        last.manifest["parameters"] if last else 0,
        last.manifest["weights_hash"] if last else "",
        describe_devices(folder / run.name),
        commits_of(folder / run.name),
        {name: x for name in plan.study.metrics if isinstance(x := row.get(name), int | float) and np.isfinite(x)},
    )


def _rating_measure(plan: Plan, runs: Sequence[RunResult], board: str, rated: Rated) -> Measure:
    """Elo of the runs that were rated, but for those of a pool that never met the one that most are in."""
    ratings, chosen = rated.ratings, {}
    for run in (run for run in runs if run.ended):
        iterations = [i for name, i in rated.names if name == run.name and i <= run.cost.iterations]
        names = [rated.names.get((run.name, i)) for i in last_iterations(iterations, plan.study.last)]
        players = [ratings.players.index(name) for name in names if name in ratings.players]
        is_rated = np.isfinite(ratings.rating[players]).all()  # a bound is no rating
        chosen[run.variant, run.seed] = players if is_rated else []
    pools = Counter(ratings.component[k] for players in chosen.values() for k in players).most_common(1)
    chosen = {place: [k for k in players if ratings.component[k] == pools[0][0]] for place, players in chosen.items()}
    return _compare(plan, f"Elo on {board}", ".0f", *_mean_ratings(ratings, chosen))


def _mean_ratings(
    ratings: Ratings, chosen: Mapping[tuple[str, int], Sequence[int]]
) -> tuple[dict[tuple[str, int], float], np.ndarray]:
    """Mean ratings of players, by (variant, seed), and their covariance; of nobody there is none."""
    chosen = {place: players for place, players in chosen.items() if players}
    weights = np.zeros((len(chosen), len(ratings.players)))
    for row, players in zip(weights, chosen.values(), strict=True):
        np.add.at(row, players, 1 / len(players))
    own = np.flatnonzero(weights.any(axis=0))  # others may be of no pool, and their ratings unknown
    means = weights[:, own] @ ratings.rating[own]
    covariance = weights[:, own] @ ratings.covariance[np.ix_(own, own)] @ weights[:, own].T
    return dict(zip(chosen, means.tolist(), strict=True)), covariance


def _direct_measure(plan: Plan, runs: Sequence[RunResult], board: str, rated: Rated) -> Measure:
    """Points a game of each run in its games against the reference's run of the same seed, one half if they are equal.

    The variance of a run's score counts half a game more won and half a game more lost.
    """
    last = {(r.variant, r.seed): rated.names.get((r.name, r.cost.iterations), "") for r in runs if r.ended}
    games = {place: np.zeros(3) for place in last if place[0] != plan.reference.name}
    for (variant, seed), counts in games.items():
        ours, theirs = last[variant, seed], last.get((plan.reference.name, seed), "")
        for row in rated.results.rows:
            if ours != theirs and (row[0], row[1]) in ((ours, theirs), (theirs, ours)):
                counts += np.array([row.wins, row.draws, row.losses])[:: 1 if row.player == ours else -1]
    games = {place: counts for place, counts in games.items() if counts.any()}
    points = np.array([1, 0.5, 0])
    scores = {place: float(points @ counts / counts.sum()) for place, counts in games.items()}
    padded = np.add([*games.values()] or np.empty((0, 3)), [0.5, 0, 0.5])
    num_games = padded.sum(axis=1)
    variances = (padded @ points**2 / num_games - (padded @ points / num_games) ** 2) / num_games
    rows = []
    for variant, (mean, _) in compare_over_seeds(scores, np.diag(variances)).items():
        by_seed = {seed: score for (v, seed), score in scores.items() if v == variant}
        rows.append(Measured(variant, by_seed, mean, {}, None))
    return Measure(f"score against {plan.reference.name} on {board}", ".3f", rows)


def _metric_measure(plan: Plan, runs: Sequence[RunResult], name: str) -> Measure:
    """The last values of a metric, which have no error of measurement that is known."""
    values = {(r.variant, r.seed): r.metrics[name] for r in runs if r.ended and name in r.metrics}
    return _compare(plan, name, ".4g", values)


def _compare(
    plan: Plan, measure: str, form: str, values: Mapping[tuple[str, int], float], covariance: Any = 0.0
) -> Measure:
    """Each variant over its seeds, and against the reference over the seeds of both; of a design, its factors."""
    reference, rows = "" if plan.levels else plan.reference.name, []
    found = compare_over_seeds(values, covariance, reference)
    for variant in [v.name for v in plan.variants if v.name in found]:
        mean, difference = found[variant]
        ours, theirs = ({s: value for (v, s), value in values.items() if v == name} for name in (variant, reference))
        by_seed = {seed: value - theirs[seed] for seed, value in ours.items() if seed in theirs and difference}
        rows.append(Measured(variant, ours, mean, by_seed, difference))
    effects = main_effects(values, covariance, plan.levels) if plan.levels else []
    names = [  # a name alone of tables of keys, which the page lists by row
        name if isinstance(low, Mapping) else f"{name}: {show(low)} to {show(high)}"
        for name, (low, high) in plan.study.factors.items()
    ]
    return Measure(measure, form, rows, dict(zip(names, effects, strict=False)))


def _curve(plan: Plan, variant: str, known: Mapping[str, Status], rated: Rated) -> list[CurvePoint]:
    """At the iterations of which all seeds that have ended were rated, none by a bound alone."""
    ratings, _, names = rated
    rated_players = {name for name, x in zip(ratings.players, ratings.rating, strict=True) if np.isfinite(x)}
    runs = [run_name(variant, seed) for seed in plan.study.seeds if known[run_name(variant, seed)].ended]
    sets = [{i for name, i in names if name == run and names[name, i] in rated_players} for run in runs]
    points = []
    for iteration in sorted(set.intersection(*sets)) if sets else ():
        players = [ratings.players.index(names[run, iteration]) for run in runs]
        spent = [next((c for c in known[run].spent if c.iterations == iteration), Cost()) for run in runs]
        _, frames, steps, *rest = (sum(column) / len(spent) for column in zip(*spent, strict=True))
        cost = Cost(iteration, round(frames), round(steps), *rest)
        values, covariance = _mean_ratings(ratings, {(variant, place): [k] for place, k in enumerate(players)})
        rating, _ = compare_over_seeds(values, covariance)[variant]
        points.append(CurvePoint(cost, rating, min(values.values()), max(values.values())))
    return points
