"""What a study has found, to study.json and back: its page can be made again where the runs are not."""

import json
import math
from pathlib import Path
from typing import Any

from alphagateau.ratings.over_seeds import Estimate
from alphagateau.runs.costs import Cost
from alphagateau.runs.files import reason
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.results import Curve, CurvePoint, Measure, Measured, RunResult, StudyResult

OF_MACHINE = ("seconds", "devices", "commits")  # of a run and its cost
SIMPLE = ("name", "base", "reference", "seeds", "experiments", "budgets", "changed", "num_games", "rating_notes")


def as_json(result: StudyResult) -> dict[str, Any]:
    """The result for other programs, as `to_json` takes it.

    What depends on the machine stands under "machine", all else repeats with it.
    """
    runs = {r.name: r._asdict() | r.cost._asdict() for r in result.runs}
    repeated = [key for key in RunResult._fields + Cost._fields if key not in ("cost", *OF_MACHINE)]
    curves: dict[str, Any] = {}
    seconds: dict[str, Any] = {}
    for board, variant, points in result.curves:
        costs = [p.cost._asdict() for p in points]
        seconds.setdefault(board, {})[variant] = [cost.pop("seconds") for cost in costs]
        ratings = [{"elo": p.rating, "low": p.low, "high": p.high} for p in points]
        curves.setdefault(board, {})[variant] = [a | b for a, b in zip(costs, ratings, strict=True)]
    return {
        **{name: getattr(result, name) for name in SIMPLE},
        "runs": {name: {key: run[key] for key in repeated} for name, run in runs.items()},
        "last": result.last,
        "measures": {
            name: {"form": form, "variants": {row.variant: row for row in rows}, "effects": effects}
            for name, form, rows, effects in result.measures
        },
        "curves": curves,
        "machine": {
            "runs": {name: {key: run[key] for key in OF_MACHINE} for name, run in runs.items()},
            "curves": seconds,
        },
    }


def read_result(path: Path) -> StudyResult:
    """The result that `as_json` wrote into a file. Raises RunError."""
    try:
        return _from_json(**json.loads(path.read_text(encoding="utf-8"), object_hook=_with_estimates))
    except OSError as error:
        raise RunError(f"{path} cannot be read: {reason(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is damaged or of another version: {type(error).__name__} {error}") from None


def _with_estimates(table: dict[str, Any]) -> Any:
    if not {*Estimate._fields} >= table.keys() >= {*Estimate._fields} - {*Estimate._field_defaults}:
        return table
    known: dict[str, Any] = {name: math.nan if value is None else value for name, value in table.items()}
    return Estimate(**known)


def _from_json(runs: dict, measures: dict, curves: dict, machine: dict, seeds: list[int], **rest: Any) -> StudyResult:
    return StudyResult(
        **rest,  # of an earlier version without `last` and `rating_notes`
        seeds=tuple(seeds),
        runs=[RunResult(**_with_cost(**run, **machine["runs"][name])) for name, run in runs.items()],
        measures=[
            Measure(name, m["form"], [_row(**row) for row in m["variants"].values()], m.get("effects", {}))
            for name, m in measures.items()
        ],
        curves=[
            Curve(board, variant, [CurvePoint(rating=x.pop("elo"), **_with_cost(**x, seconds=s)) for x, s in pairs])
            for board, variants in curves.items()
            for variant, points in variants.items()
            for pairs in [zip(points, machine["curves"][board][variant], strict=True)]
        ],
    )


def _row(values: dict[str, float], differences: dict[str, float], **rest: Any) -> Measured:
    by_seed = [{int(seed): value for seed, value in x.items()} for x in (values, differences)]
    return Measured(values=by_seed[0], differences=by_seed[1], **rest)


def _with_cost(**fields: Any) -> dict[str, Any]:
    """The fields of a record with a cost, from those of both."""
    return {"cost": Cost(*map(fields.pop, Cost._fields)), **fields}
