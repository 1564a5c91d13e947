"""Plans the runs that a study file needs."""

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from alphagateau import config
from alphagateau.config import MAX_INT, BudgetConfig, ConfigError, Experiment, StudyConfig, changes_of


class Variant(NamedTuple):
    """One side of a comparison; its experiment has the study's first seed."""

    name: str
    experiment: Experiment
    budget: BudgetConfig
    init_from: str  # "" or another variant or a path
    needs: str  # the variant whose runs must be done before, "" if there is none


class PlannedRun(NamedTuple):
    """An ordinary run, of a variant and a seed."""

    name: str
    variant: Variant
    seed: int
    experiment: Experiment

    @property
    def needs(self) -> str:
        """The run of the same seed that must be done before, "" if there is none."""
        return run_name(self.variant.needs, self.seed) if self.variant.needs else ""


class Plan(NamedTuple):
    """All runs of a study, the first seed's before the second's: a study cut short has whole comparisons.

    levels: of a factorial design, the level of each factor, -1 or 1, by variant; its runs have a seed each.
    """

    study: StudyConfig
    reference: Variant
    variants: tuple[Variant, ...]
    runs: tuple[PlannedRun, ...]
    levels: dict[str, tuple[int, ...]]


def run_name(variant: str, seed: int) -> str:
    """Also of the run's folder."""
    return f"{variant}-{seed}"


def make_plan(study: StudyConfig, path: str) -> Plan:
    """The plan of the study file `path`, which opens the message of a ConfigError."""
    rows = two_level_design(len(study.factors)) if study.factors else ()
    levels = {f"row{number:02}": tuple(row) for number, row in enumerate(rows, 1)}
    tables = {name: _at_levels(study.factors, row) for name, row in levels.items()} or study.variants
    variants = tuple(_make_variant(study, name, table, path) for name, table in tables.items())
    for one, other in itertools.combinations(variants, 2):
        if one._replace(name=other.name) == other:
            raise ConfigError(f"{path}: variants {one.name} and {other.name} are the same: expected different keys")
    reference = next((v for v in variants if v.name == study.reference), variants[0])
    runs = []
    for seed in study.seeds:
        for number, v in enumerate(variants):
            own = (seed * len(variants) + number) % (MAX_INT + 1) if levels else seed
            runs.append(PlannedRun(run_name(v.name, seed), v, seed, dataclasses.replace(v.experiment, seed=own)))
    return Plan(study, reference, variants, tuple(runs), levels)


def two_level_design(num_factors: int) -> list[list[int]]:
    """A design [rows, factors] of -1 and 1 of resolution IV: no interaction of two factors biases a main effect.

    A Hadamard matrix and its mirror image (Box and Wilson 1951, J. R. Stat. Soc. B 13, 1-45); each level is in half of
    the rows. With m the power of 2 that is at least the number of factors there are 2 m rows.
    """
    import scipy.linalg  # commands that plan no study do without

    half = scipy.linalg.hadamard(1 << (num_factors - 1).bit_length())[:, :num_factors]
    return np.vstack([half, -half]).tolist()


def _at_levels(factors: Mapping[str, list[Any]], row: tuple[int, ...]) -> dict[str, Any]:
    """The keys of a variant, each factor at its level, -1 for the first of its two, which may be a table of keys."""
    keys: dict[str, Any] = {}
    for (name, values), level in zip(factors.items(), row, strict=True):
        value = values[level > 0]
        keys |= changes_of(value) if isinstance(value, Mapping) else {name: value}
    return keys


def _make_variant(study: StudyConfig, name: str, table: Mapping[str, Any], path: str) -> Variant:
    where = f"{path}: factors" if study.factors else f"{path}: variants.{name}"
    try:
        base = config.load(config.find_file(table.get("experiment", study.base), "experiment"))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}" if "experiment" in table else f"{path}: base: {error}") from None
    experiment = config.change(base, {**changes_of(study.changes), **changes_of(table)}, where)
    budget, source = table.get("budget", study.budget), table.get("init_from", "")
    experiment = dataclasses.replace(
        experiment,
        seed=study.seeds[0],
        num_iterations=num_iterations(experiment, budget, where),
        evaluation=dataclasses.replace(experiment.evaluation, num_games=0),  # the study's ladder rates it
    )
    return Variant(name, experiment, budget, source, source if source in study.variants else "")


def num_iterations(experiment: Experiment, budget: BudgetConfig, where: str) -> int:
    """How many iterations a run has at most: by the budget of them or of frames, else by the experiment."""
    limits = [budget.iterations] if budget.iterations else []
    if budget.frames:
        if experiment.selfplay is None:
            raise ConfigError(f"{where}: a budget of frames needs [selfplay], which plays them")
        limits.append(math.ceil(budget.frames / (experiment.selfplay.num_games * experiment.selfplay.num_plies)))
    return min(limits, default=experiment.num_iterations)


def changed_keys(plan: Plan) -> dict[str, dict[str, Any]]:
    """The keys in which variants differ, and the value of each variant (absent: it has no such key)."""
    flat: dict[str, dict[str, Any]] = {}
    for v in plan.variants:
        limits = {f"budget.{unit}": limit for unit, limit in vars(v.budget).items() if limit}
        flat[v.name] = config.flatten(v.experiment) | limits | ({"init_from": v.init_from} if v.init_from else {})
    keys = dict.fromkeys(key for values in flat.values() for key in values)
    found = {key: {name: values[key] for name, values in flat.items() if key in values} for key in keys}
    return {
        key: values
        for key, values in found.items()
        if len(values) < len(flat) or any(value != next(iter(values.values())) for value in values.values())
    }
