"""Factorial designs: their balance, the runs that they make, and the effects that a study finds with them."""

import itertools

import numpy as np
import pytest

from alphagateau.config import ConfigError, StudyConfig
from alphagateau.studies.plan import changed_keys, make_plan, two_level_design

FACTORS = {"network": {"hidden_size": [8, 16]}, "search": {"num_simulations": [2, 4]}, "window": {"size": [64, 128]}}


def factorial(**keys) -> StudyConfig:
    return StudyConfig(**{"base": "smoke", "budget": {"steps": 3}, "design": "factorial", "factors": FACTORS, **keys})


@pytest.mark.parametrize(("num_factors", "num_rows"), [(1, 2), (2, 4), (3, 8), (4, 8), (5, 16), (8, 16), (9, 32)])
def test_a_design_is_of_resolution_four(num_factors, num_rows):
    """In every three columns all combinations of levels are equally often: main effects are clear of interactions."""
    design = np.array(two_level_design(num_factors))
    assert design.shape == (num_rows, num_factors)
    for size in range(1, min(num_factors, 3) + 1):
        for columns in itertools.combinations(range(num_factors), size):
            _, counts = np.unique(design[:, columns], axis=0, return_counts=True)
            assert len(counts) == 2**size and len({*counts}) == 1


def test_a_row_is_a_variant_whose_runs_have_seeds_of_their_own():
    plan = make_plan(factorial(seeds=(0, 1)), "study.toml")
    assert [v.name for v in plan.variants] == [f"row0{k}" for k in range(1, 9)] and len(plan.runs) == 16
    assert [run.experiment.seed for run in plan.runs] == [*range(16)]
    assert [run.name for run in plan.runs[6:9]] == ["row07-0", "row08-0", "row01-1"]
    for v in plan.variants:
        first, second, third = plan.levels[v.name]
        assert vars(v.experiment.network)["hidden_size"] == (16 if first > 0 else 8)
        assert v.experiment.search.num_simulations == (4 if second > 0 else 2)
        assert v.experiment.window.size == (128 if third > 0 else 64)
    assert set(changed_keys(plan)) == {"network.hidden_size", "search.num_simulations", "window.size"}


def test_a_factor_of_several_keys_changes_them_together():
    decay = {"training": {"schedule": "cosine", "warmup_steps": 2}}
    factors = {"decay": [{}, decay], "training": {"mirror": [False, True]}}
    plan = make_plan(factorial(factors=factors), "study.toml")
    for v in plan.variants:
        is_decaying, is_mirrored = (level > 0 for level in plan.levels[v.name])
        assert v.experiment.training.schedule == ("cosine" if is_decaying else "constant")
        assert v.experiment.training.warmup_steps == (2 if is_decaying else 0)
        assert v.experiment.training.mirror == is_mirrored


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"factors": {"budget": [1000, 2000]}}, r"factors\.budget: budget is no key of an experiment"),
        ({"factors": {"experiment": ["smoke", "quickstart"]}}, r"factors\.experiment: experiment is no key"),
        ({"variants": {"a": {}}}, r'design = "factorial" has \[factors\] in the place of \[variants\]'),
        ({"design": "variants", "variants": {"a": {}}}, r'design = "factorial" has \[factors\]'),
        ({"factors": {}}, r'design = "factorial" has \[factors\]'),
        ({"factors": {"network.hidden_size": [8]}}, "factors.network.hidden_size must be an array of two different"),
        ({"factors": {"network.hidden_size": [8, 8]}}, "must be an array of two different values, got an array"),
        ({"factors": {"seed": [1, 2]}}, "factors: seed is not a variant's to change"),
        ({"factors": {"more": [{}, {"seed": 2}]}}, "factors.more: seed is not a variant's to change"),
        ({"factors": {"size": [{"budget": {"steps": 1}}, {}]}}, "factors.size: budget is no key of an experiment"),
        ({"factors": {"from": [{}, {"init_from": "a/b"}]}}, "factors.from: init_from is no key of an experiment"),
        ({"factors": {"more": [{"aim": True}, 2]}}, "factors.more must be two values or two tables of keys, got one"),
        ({"factors": {"a": [{}, {"aim": True}], "aim": [True, False]}}, "factors.aim changes aim, as another factor"),
        (
            {"factors": {"network.hiden_size": [8, 16]}},
            'study.toml: factors: unknown key "network.hiden_size"; did you',
        ),
        ({"direct_games": 2}, "has no reference, and so no direct_games"),
        ({"design": "fractional"}, 'design must be one of "variants", "factorial", got "fractional"'),
    ],
)
def test_a_wrong_design_is_one_sentence(keys, said):
    with pytest.raises(ConfigError, match=said):
        make_plan(factorial(**keys), "study.toml")


def test_the_largest_seed_has_runs_too():
    plan = make_plan(factorial(seeds=(2**31 - 1,)), "study.toml")
    assert len({run.experiment.seed for run in plan.runs}) == 8
