"""Forecasts of a study before it runs: games, core-hours, and the differences that it will tell."""

import csv
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from alphagateau.config import PilotConfig
from alphagateau.ratings.over_seeds import detectable_errors, dunnett_quantile, sidak_quantile
from alphagateau.runs.run_folder import RunError
from alphagateau.studies.plan import Plan
from alphagateau.studies.result_files import read_result
from alphagateau.studies.results import StudyResult

POWERS = (0.5, 0.8, 0.95)


def forecast(plan: Plan, pilot: PilotConfig, num_games: int) -> tuple[float, dict[float, float]]:
    """(core-hours, by the chance to find it a true difference, Elo) of a study, by the numbers of a pilot.

    `num_games` of its ladder, direct games included; no differences without seeds to compare. A rating scatters by
    seeds and games, and a difference is found if it exceeds its interval that holds with all others at once, as the
    study's page reads it: of differences to the reference Dunnett's bound, of main effects Sidak's.
    """
    num_runs, num_seeds, num_factors = len(plan.runs), len(plan.study.seeds), len(plan.study.factors)
    if plan.levels:
        size, freedom = 4 / num_runs, num_runs - 1 - num_factors
        quantile, count = sidak_quantile, num_factors
    else:
        size, freedom = 2 / num_seeds, (len(plan.variants) - 1) * (num_seeds - 1)
        quantile, count = dunnett_quantile, len(plan.variants) - 1
    error, detectable = math.sqrt(size * (pilot.seed_sd**2 + pilot.game_sd**2)), {}
    if freedom:
        bound = quantile(count, freedom)
        detectable = {power: error * detectable_errors(freedom, bound, power) for power in POWERS}
    seconds = sum(run.variant.budget.seconds * pilot.cores or pilot.run_seconds for run in plan.runs)
    return (seconds + num_games * pilot.game_seconds) / 3600, detectable


def read_pilot(pilot: PilotConfig, games_a_run: float, game_sd: float) -> PilotConfig:
    """The pilot with what its study measured: the seconds of a run, and the scatter of ratings by seeds and games.

    Where games explain all of the scatter, and where seeds were not compared, `seed_sd` stands. Raises RunError.

    Args:
        games_a_run: of the study to be planned, to which the error by games is scaled.
        game_sd: in the place of an error by games that neither the pilot nor its study has.
    """
    known = {"game_sd": pilot.game_sd or game_sd}
    if pilot.study:
        result = read_result(Path(pilot.study) / "study.json")
        if seconds := [run.cost.seconds for run in result.runs if run.ended]:
            known["run_seconds"] = fmean(seconds) * pilot.cores
        elo = next((m for m in result.measures if m.name.startswith("Elo on ")), None)
        compared = [*elo.effects.values(), *(r.difference for r in elo.rows if r.difference)] if elo else []
        if compared:
            by_games = fmean(d.measured**2 * d.num_seeds / 2 for d in compared)  # a difference has two runs a seed
            if games_a_run and (games := _games_of_runs(Path(pilot.study) / "ladder", result)):
                known["game_sd"] = math.sqrt(by_games * fmean(games) * result.last / games_a_run)
            scatter = [d.spread**2 / 2 for d in compared if math.isfinite(d.spread)]
            if scatter and fmean(scatter) > by_games:
                known["seed_sd"] = math.sqrt(fmean(scatter) - by_games)
    return dataclasses.replace(pilot, **known)


def _games_of_runs(folder: Path, result: StudyResult) -> Sequence[int]:
    """Games of each run's last checkpoint on the ladder of the first board; none if its ratings are gone."""
    paths = [folder / "ratings.csv", *(folder / board / "ratings.csv" for board in result.num_games)]
    path = next((path for path in paths if path.is_file()), None)
    last = {f"{run.name}/{run.cost.iterations}" for run in result.runs}
    if path is None:
        return []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [int(row["games"]) for row in csv.DictReader(file) if row["player"] in last]
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise RunError(f"{path} is no ratings.csv of a ladder: {error!r}") from None
