"""Several boards in one run: who plays what, whose batch a step is of, what is said of each board, and resuming."""

import dataclasses
import math
import tomllib
from collections import namedtuple
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_lines import read_experiment
from stopping import StopAfter, share_trainer

from alphagateau import config
from alphagateau.cli.experiments import check
from alphagateau.config import ConfigError, Experiment, board_experiments
from alphagateau.runs.checkpoint import weights_hash as tree_hash
from alphagateau.runs.costs import costs
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import flops, loop, resume
from alphagateau.training.iteration_metrics import over_boards, training_metrics
from alphagateau.training.learner import Learner
from alphagateau.training.optimizer import num_run_steps
from alphagateau.training.phases import Progress, advance, saved_fields, with_fields
from alphagateau.training.plan import make_plan
from alphagateau.training.selfplay.several_boards import BoardBatch, choose_in_order, make_boards_learner
from alphagateau.training.trainer import make_trainer

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"
BOARDS = ("gardner_chess", "los_alamos_chess")
MIXED = ["--selfplay.boards", "gardner_chess 2, los_alamos_chess 1", "--selfplay.num-games", "24"]
MIXED += ["--window.size", "384", "--network.board-statistics", "gardner_chess, los_alamos_chess"]


@pytest.fixture(scope="module")
def mixed() -> Experiment:
    return read_experiment(SMOKE, MIXED)


def test_each_board_has_its_part_of_the_games_and_of_the_window(mixed):
    five, six = board_experiments(mixed)
    assert (five.game, five.selfplay.num_games, five.window.size) == ("gardner_chess", 16, 256)
    assert (six.game, six.selfplay.num_games, six.window.size) == ("los_alamos_chess", 8, 128)
    assert five.seed == mixed.seed != six.seed and five.selfplay.boards == "none"
    assert board_experiments(five) == (five,)
    assert config.from_dict(tomllib.loads(config.dumps(mixed))) == mixed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"selfplay.boards": "gardner_chess, chess"}, 'such as "gardner_chess 2, chess 1", got "gardner_chess, chess"'),
        ({"selfplay.boards": "gardner_chess 1, gardner_chess 1"}, "must be boards and their parts"),
        ({"selfplay.boards": "gardner_chess 0, chess 1"}, "must be boards and their parts"),
        (
            {"selfplay.boards": "gardner_chess 3, los_alamos_chess 1"},
            "gives gardner_chess 18 of 24 games, expected a multiple of 8",
        ),
        (
            {"selfplay.boards": "los_alamos_chess 2, chess 1", "network.board_statistics": "none"},
            "game (gardner_chess) must be one of selfplay.boards",
        ),
        ({"window.size": 64}, "training.batch_size (32) must be at most 16, the part of window.size"),
        ({"network.architecture": "alphazero"}, 'needs a network of any board, got "alphazero"'),
        ({"selfplay.starts": "fens"}, 'selfplay.starts must be "none" with selfplay.boards'),
        (
            {"selfplay.boards": "gardner_chess 2, checkers 1", "network.board_statistics": "none"},
            "game: unknown game 'checkers'",
        ),
        ({"network.board_statistics": "gardner_chess"}, "must name los_alamos_chess, got gardner_chess"),
        ({"selfplay.num_plies": 300, "selfplay.boards": "gardner_chess 2, los_alamos_chess 1"}, "must be at most 256"),
    ],
)
def test_a_mixture_that_cannot_be_is_refused_in_one_sentence(mixed, changes, said):
    with pytest.raises(ConfigError) as error:
        check(config.change(mixed, changes), "file")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_flops_and_steps_are_those_of_the_boards(mixed, monkeypatch):
    monkeypatch.setattr(flops, "forward_flops", lambda game, network: float(game.size))
    assert flops.experiment_flops(mixed) == {"gardner_chess": 5.0, "los_alamos_chess": 6.0}
    none, one = (
        costs([{"iteration": 1, "train/steps": steps}], mixed, flops.experiment_flops(mixed))[0].flops
        for steps in (0, 1)
    )
    assert one - none == pytest.approx(3 * 32 * (2 * 5 + 6) / 3)
    assert num_run_steps(make_plan(mixed)) == (4 + 8 + 8 + 8) + (2 + 4 + 4 + 4)  # 128 and 64 new frames, batches of 32


def test_an_epoch_has_each_batch_of_each_board_once_in_an_order_of_its_own():
    def epoch(seed: int) -> list[tuple[int, int]]:
        counts, of_boards = jnp.array([3, 0, 2]), [lambda step, b=b: (b, int(step)) for b in range(3)]
        choose = choose_in_order(jax.random.key(seed), counts, [4, 2, 2], of_boards)
        choices = [choose(jnp.int32(step)) for step in range(5)]
        return [choice.batches[int(choice.board)]() for choice in choices]

    epochs = [epoch(seed) for seed in range(3)]
    assert {tuple(sorted(found)) for found in epochs} == {((0, 0), (0, 1), (0, 2), (2, 0), (2, 1))}
    assert len({tuple(found) for found in epochs}) > 1


def test_a_step_is_that_of_its_board():
    """Learners that add 1 and 10 times what their batch holds, of different shapes."""

    def learner(factor: int) -> Learner:
        def step(train, frames):
            return train + factor * frames.sum(), {"loss": frames.mean(), "gradient_norm": jnp.float32(factor)}

        return Learner(lambda variables: variables, step)

    made = make_boards_learner({"small": learner(1), "large": learner(10)})
    batches = (lambda: jnp.ones(2), lambda: jnp.full((3, 2), 2.0))

    @jax.jit
    def step(train, board):
        return made.step(train, BoardBatch(board, batches))

    train, metrics = step(made.init(jnp.float32(0)), 0)
    assert train == 2
    assert metrics == {
        "loss": 1,
        "gradient_norm": 1,
        "loss/small": 1,
        "loss/large": 0,
        "steps/small": 1,
        "steps/large": 0,
    }
    train, metrics = step(train, 1)
    assert train == 2 + 120 and metrics["loss/large"] == 2 == metrics["loss"] and metrics["steps/large"] == 1


def test_the_names_under_which_a_state_is_saved_by_hand():
    five, six = namedtuple("Five", "x y")(1, 2), namedtuple("Six", "z")(3)
    states, fields = {"b": five, "a": six}, {"b_x": 1, "b_y": 2, "a_z": 3}
    assert saved_fields(states) == fields and with_fields(states, fields | {"a_z": 4}) == {"b": five, "a": (4,)}
    assert saved_fields(five) == {"x": 1, "y": 2} and with_fields(five, {"x": 3, "y": 4}) == (3, 4)


def test_what_is_said_of_boards_and_of_all_by_hand():
    found = training_metrics({"loss": 8.0, "loss/a": 6.0, "loss/b": 2.0, "steps/a": 3.0, "steps/b": 1.0}, 4)
    of_boards = {"train/board_steps/a": 3, "train/board_steps/b": 1}
    assert found == {"train/loss": 2, "train/loss/a": 2, "train/loss/b": 2} | of_boards
    a = {"selfplay/games": 3, "selfplay/draw_rate": 1.0, "selfplay/plies": 30, "selfplay/moves_per_second": 30.0}
    b = {"selfplay/games": 1, "selfplay/draw_rate": 0.0, "selfplay/plies": 10, "selfplay/moves_per_second": 5.0}
    a |= {"selfplay/simulations_per_second": 480.0, "search/target_noise": 1.0}
    b |= {"selfplay/simulations_per_second": 20.0, "search/target_noise": 2.0}
    said = over_boards({"a": a, "b": b})
    assert (said["selfplay/games"], said["selfplay/plies"], said["selfplay/draw_rate"]) == (4, 40, 0.75)
    assert said["search/target_noise"] == 1.25  # by plies
    assert said["selfplay/moves_per_second"] == 40 / 3  # 1 s, then 2
    assert said["selfplay/simulations_per_second"] == (480 + 2 * 20) / 3
    assert said["selfplay/draw_rate/b"] == 0 and said["selfplay/games/a"] == 3
    assert math.isnan(over_boards({"a": a | {"selfplay/moves_per_second": 0.0}})["selfplay/moves_per_second"])


@pytest.mark.whole
def test_a_run_of_two_boards_goes_on_bit_for_bit_and_plays_each_as_a_run_of_it_alone(mixed, tmp_path, monkeypatch):
    mixed = dataclasses.replace(mixed, num_iterations=2)
    trainer = share_trainer(monkeypatch, mixed)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert loop.train(mixed, whole, StopRequest())
    assert not loop.train(mixed, cut, StopAfter(9))
    assert next((cut / "checkpoints").glob("*-stopped"))
    assert loop.train(mixed, cut, StopRequest())
    ends = [newest_checkpoint(run).manifest for run in (whole, cut)]
    assert ends[0]["weights_hash"] == ends[1]["weights_hash"] and ends[0]["boards"] == list(BOARDS)
    learnt = resume.load_weights(trainer, resume.find_origin(whole))["statistics"]
    assert tree_hash(learnt[BOARDS[0]]) != tree_hash(learnt[BOARDS[1]])
    variables = trainer.init_variables()
    state, progress = trainer.init(variables), Progress()
    while progress.phase < 4:
        state, progress = advance(trainer.phases, state, progress)
    board, part = BOARDS[1], board_experiments(mixed)[1]  # which comes after the other
    alone = make_trainer(part, trainer.mesh)
    played, progress = alone.init(variables), Progress()
    while progress.phase < 2:
        played, progress = advance(alone.phases, played, progress)
    for field in ("trajectory", "window"):
        ours = getattr(state.producer[board], field)
        jax.tree.map(np.testing.assert_array_equal, ours, getattr(played.producer, field))
