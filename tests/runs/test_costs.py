"""What a run costs, by its metrics."""

import numpy as np
import pytest
from command_lines import read_experiment

from alphagateau import config
from alphagateau.config import BudgetConfig, ConfigError, parse_budget
from alphagateau.config.searches import simulations_per_ply
from alphagateau.runs.costs import Cost, costs, reached

ROWS = [
    {"iteration": 1, "train/steps": 3, "time/selfplay": 2.0, "time/train": 1.0, "time/compile": 40.0},
    {"iteration": 2, "train/steps": 8, "time/selfplay": 2.0, "time/train": 2.0, "time/checkpoint": 0.5},
]


def test_costs_of_the_smoke_experiment_by_hand():
    """8 games of 8 plies, 4 simulations and the root, batches of 32, three forward passes a frame learnt."""
    smoke = config.load(config.find_file("smoke", "experiment"))
    played, step = 64 * 2.0 * 5, 2.0 * 3 * 32
    assert costs(ROWS, smoke, {"gardner_chess": 2.0}) == [
        Cost(1, 64, 3, played + 3 * step, 3.0),
        Cost(2, 128, 8, 2 * played + 8 * step, 7.5),
    ]
    assert costs(ROWS, smoke) == [Cost(1, 64, 3, 0.0, 3.0), Cost(2, 128, 8, 0.0, 7.5)]
    assert costs([], smoke, {"gardner_chess": 2.0}) == []


def test_cheap_searches_cost_what_they_are():
    """64 frames an iteration, of 16 simulations or 3; a quarter expected in full, 3/8 and then none found so."""
    options = ["--search.num-simulations=16", "--selfplay.full-search-share=0.25", "--selfplay.cheap-simulations=3"]
    experiment = read_experiment("smoke", options)
    rows = [{"iteration": 1, "selfplay/full_search_rate": 3 / 8}, {"iteration": 2, "selfplay/full_search_rate": 0.0}]
    found = [cost.flops for cost in costs(rows, experiment, {"gardner_chess": 2.0})]
    assert found == [24 * 34 + 40 * 8, 24 * 34 + 40 * 8 + 64 * 8]
    assert simulations_per_ply(experiment) == 0.25 * 16 + 0.75 * 3
    assert simulations_per_ply(experiment, 0.5) == 9.5


def test_steps_on_several_boards_cost_what_they_are():
    """Three of 5x5 and one of 8x8 in the second iteration, of batches of 32; the first does not say, as before."""
    options = ["--selfplay.num-games=32", "--selfplay.boards=gardner_chess 3, chess 1"]
    experiment = read_experiment("smoke", [*options, "--window.size=4096"])
    rows = [
        {"iteration": 1, "train/steps": 4},
        {"iteration": 2, "train/steps": 8, "train/board_steps/gardner_chess": 3, "train/board_steps/chess": 1},
        {"iteration": 3, "train/steps": 8, "train/board_steps/gardner_chess": 3, "train/board_steps/chess": 1},
    ]
    played = 32 * 8 * 2.0 * 5  # the mean network, of four simulations and the root
    steps = np.cumsum([4 * 2.0, 3 * 1.0 + 1 * 5.0, 3 * 1.0 + 1 * 5.0]) * 3 * 32
    found = [cost.flops for cost in costs(rows, experiment, {"gardner_chess": 1.0, "chess": 5.0})]
    assert found == [k * played + x for k, x in zip((1, 2, 3), steps, strict=True)]


def test_mirrors_averaged_are_twice_the_passes():
    experiment = read_experiment("smoke", ["--search.average-mirrors"])
    (cost,) = costs(ROWS[:1], experiment, {"gardner_chess": 2.0})
    assert cost.flops == 64 * 2 * 2.0 * 5 + 3 * 2.0 * 3 * 32


def test_a_budget_is_reached_by_its_first_limit():
    cost = Cost(2, 20, 8, 1e4, 7.5)
    assert reached(cost, BudgetConfig(steps=9, seconds=7.5)) == "7.5 seconds"
    assert reached(cost, BudgetConfig(frames=21, flops=1e5)) is None
    assert reached(cost._replace(frames=1_234_567), BudgetConfig(frames=1_234_567)) == "1,234,567 frames"


def test_budgets_as_words():
    assert parse_budget("frames=1e6,seconds=600") == BudgetConfig(frames=1_000_000, seconds=600.0)
    assert parse_budget("flops=2e15") == BudgetConfig(flops=2e15)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps", 'budget "steps" must be a unit and a number, such as steps=8000'),
        ("steps=x", 'budget "steps=x" must be a unit'),
        ("steps=1.5", "steps must be an integer from 0 to 2147483647, got 1.5"),
        ("steps=nan", "steps must be an integer"),
        ("steps=inf", "steps must be an integer"),
        ("steps=8000,steps=9000", 'budget names steps twice, the second time as "steps=9000"'),
        ("hours=3", 'unknown key "hours"; valid keys: iterations, frames, steps, flops, seconds'),
        ("steps=0", "a budget must name at least one of iterations, frames, steps, flops, seconds"),
        ("", "must be a unit and a number"),
    ],
)
def test_a_budget_that_is_none_is_refused_in_one_sentence(text, said):
    with pytest.raises(ConfigError) as caught:
        parse_budget(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)
