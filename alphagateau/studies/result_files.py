"""What a study has found, to study.json and back: its page can be made again where the runs are not."""

import json
import math
from pathlib import Path
from typing import Any

from alphagateau.ratings.over_seeds import Estimate
from alphagateau.runs.costs import Cost
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.results import Curve, CurvePoint, Measure, Measured, RunResult, StudyResult

OF_MACHINE = ("devices", "commits")  # of a run, besides its seconds
SIMPLE = ("name", "base", "reference", "seeds", "experiments", "budgets", "changed", "num_games", "notes")


def as_json(result: StudyResult) -> dict[str, Any]:
    """The result for other programs. What depends on the machine stands under "machine", all else repeats with it."""
    curves: dict[str, Any] = {}
    seconds: dict[str, Any] = {}
    for curve in result.curves:
        points = [{**_cost(p.cost), "elo": p.rating._asdict(), "low": p.low, "high": p.high} for p in curve.points]
        curves.setdefault(curve.board, {})[curve.variant] = points
        seconds.setdefault(curve.board, {})[curve.variant] = [p.cost.seconds for p in curve.points]
    runs = {r.name: {k: v for k, v in r._asdict().items() if k not in ("cost", *OF_MACHINE)} for r in result.runs}
    machine = {r.name: {"seconds": r.cost.seconds, **{k: getattr(r, k) for k in OF_MACHINE}} for r in result.runs}
    return {
        **{name: getattr(result, name) for name in SIMPLE},
        "runs": {r.name: runs[r.name] | _cost(r.cost) for r in result.runs},
        "measures": {
            m.name: {"form": m.form, "variants": {row.variant: _row(row) for row in m.rows}} for m in result.measures
        },
        "curves": curves,
        "machine": {"runs": machine, "curves": seconds},
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {name: value for name, value in cost._asdict().items() if name != "seconds"}


def _row(row: Measured) -> dict[str, Any]:
    difference = row.difference._asdict() if row.difference else None
    return row._asdict() | {"mean": row.mean._asdict(), "difference": difference}


def read_result(path: Path) -> StudyResult:
    """The result that `as_json` wrote into a file. Raises RunError."""
    try:
        return _from_json(json.loads(path.read_text(encoding="utf-8"), object_hook=_with_estimates))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{path} is damaged or of another version: {type(error).__name__} {error}") from None


def _with_estimates(table: dict[str, Any]) -> Any:
    if not {*Estimate._fields} >= table.keys() >= {*Estimate._fields} - {*Estimate._field_defaults}:
        return table
    known: dict[str, Any] = {name: math.nan if value is None else value for name, value in table.items()}
    return Estimate(**known)


def _from_json(table: dict[str, Any]) -> StudyResult:
    table = {"notes": {}} | table  # which earlier versions had not
    simple: dict[str, Any] = {name: table[name] for name in SIMPLE} | {"seeds": tuple(table["seeds"])}
    machine = table["machine"]
    return StudyResult(
        **simple,
        runs=[_run_from(run, **machine["runs"][name]) for name, run in table["runs"].items()],
        measures=[
            Measure(name, m["form"], [_row_from(**row) for row in m["variants"].values()])
            for name, m in table["measures"].items()
        ],
        curves=[
            Curve(board, variant, list(map(_point_from, points, machine["curves"][board][variant])))
            for board, variants in table["curves"].items()
            for variant, points in variants.items()
        ],
    )


def _run_from(run: dict[str, Any], seconds: float, devices: str, commits: list[str]) -> RunResult:
    rest = {k: v for k, v in run.items() if k not in Cost._fields}
    return RunResult(cost=_cost_from(run, seconds), devices=devices, commits=tuple(commits), **rest)


def _row_from(values: dict[str, float], differences: dict[str, float], **row: Any) -> Measured:
    by_seed = [{int(seed): value for seed, value in x.items()} for x in (values, differences)]
    return Measured(values=by_seed[0], differences=by_seed[1], **row)


def _point_from(point: dict[str, Any], seconds: float) -> CurvePoint:
    return CurvePoint(_cost_from(point, seconds), point["elo"], point["low"], point["high"])


def _cost_from(table: dict[str, Any], seconds: float) -> Cost:
    return Cost(**{k: v for k, v in table.items() if k in Cost._fields}, seconds=seconds)
