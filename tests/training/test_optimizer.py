"""The optimizer's steps, their size and number, and the average of weights that plays; numbers worked by hand."""

import dataclasses
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_lines import read_experiment
from stopping import StopAfter, share_trainer

from alphagateau import config
from alphagateau.config import ConfigError, TrainingConfig
from alphagateau.runs import checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop, resume
from alphagateau.training.learner import Learner, TrainState, with_average
from alphagateau.training.optimizer import (
    learning_rate_schedule,
    make_optimizer,
    num_run_steps,
    num_steps,
)
from alphagateau.training.plan import make_plan

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
SMALL = ["--evaluation.num-games", "0", "--search.num-simulations", "2", "--training.segment-steps", "2"]
ALL_OPTIONS = {
    "samples-per-frame": "2.5",
    "optimizer": "muon",
    "schedule": "cosine",
    "warmup-steps": "3",
    "weight-decay": "0.01",
    "max-gradient-norm": "0.5",
    "average-decay": "0.9",
}


def test_adam_takes_the_steps_of_its_paper():
    """Two steps of one parameter with gradients 2 and -1: moments, their corrections and the quotient."""
    optimizer = make_optimizer(0.1)
    params = {"w": jnp.float32(5.0)}
    state, m, v = optimizer.init(params), 0.0, 0.0
    for t, g in enumerate([2.0, -1.0], start=1):
        updates, state = optimizer.update({"w": jnp.float32(g)}, state, params)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected = -0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(updates["w"], expected, rtol=1e-4)


def test_nadam_takes_the_steps_of_its_paper():
    """With beta 0.9 and 0.98: the first moment is looked at one step ahead."""
    optimizer = make_optimizer(0.1, TrainingConfig(optimizer="nadam", beta2=0.98, epsilon=1e-7))
    params = {"w": jnp.float32(5.0)}
    state, m, v = optimizer.init(params), 0.0, 0.0
    for t, g in enumerate([2.0, -1.0], start=1):
        updates, state = optimizer.update({"w": jnp.float32(g)}, state, params)
        m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
        ahead = 0.9 * m / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
        np.testing.assert_allclose(updates["w"], -0.1 * ahead / (math.sqrt(v / (1 - 0.98**t)) + 1e-7), rtol=1e-4)


@pytest.mark.parametrize("shape", [(6, 4), (3, 3, 2, 5)])
def test_muon_steps_along_its_momentum_with_equal_singular_values(shape):
    """Of a gradient of singular values from 1 to some 0.1 the step keeps the vectors and evens the values out.

    Newton-Schulz leaves them within 0.68 and 1.14 (Jordan 2024), the scale is that of Adam's steps. Vectors by NAdam.
    """
    params = {"kernel": jnp.zeros(shape), "b": jnp.zeros(3)}
    gradient = np.random.default_rng(0).normal(size=(math.prod(shape[:-1]), shape[-1]))
    u, _, v = np.linalg.svd(gradient, full_matrices=False)
    gradient = u * np.geomspace(1, 0.1, len(v)) @ v
    optimizer = make_optimizer(0.1, TrainingConfig(optimizer="muon"))
    grads = {"kernel": jnp.float32(gradient).reshape(shape), "b": jnp.float32([1, -2, 0])}
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    values = u.T @ np.asarray(updates["kernel"]).reshape(gradient.shape) @ v.T
    values /= -0.1 * 0.2 * math.sqrt(max(gradient.shape))
    np.testing.assert_allclose(values, np.diag(np.diag(values)), atol=1e-3)
    np.testing.assert_allclose(np.diag(values), np.full(len(v), 0.91), atol=0.25)
    np.testing.assert_allclose(updates["b"], [-0.1 * (1 + 0.09 / 0.19), 0.1 * (1 + 0.09 / 0.19), 0], rtol=1e-4)


def test_muon_leaves_tables_to_nadam():
    """Rows of which a batch meets some: tokens, squares, and offsets by head; NAdam's first steps have one size."""
    shapes = {"A_Q": (2, 3, 3, 4), "c": (25, 4), "embed_tokens": (9, 4), "promotion": (3, 4), "D": (2, 3, 3)}
    rng = np.random.default_rng(0)
    grads = {name: jnp.float32(rng.choice([-1, 0.01, 3], size=shape)) for name, shape in shapes.items()}
    params = jax.tree.map(jnp.zeros_like, grads)
    optimizer = make_optimizer(0.1, TrainingConfig(optimizer="muon"))
    updates, _ = optimizer.update(grads, optimizer.init(params), params)
    for name, step in updates.items():
        np.testing.assert_allclose(step, -0.1 * (1 + 0.09 / 0.19) * np.sign(grads[name]), rtol=1e-4)


def test_a_schedule_in_steps_is_that_of_cf_6m():
    training = config.TrainingConfig(schedule="steps", learning_rate=5e-4, warmup_steps=1000)
    rate = learning_rate_schedule(training, 2_000_000)
    assert not isinstance(rate, float)
    rates = [float(rate(step)) for step in (500, 1_599_999, 1_600_001, 1_799_999, 1_800_001)]
    np.testing.assert_allclose(rates, [2.5e-4, 5e-4, 1.58e-4, 1.58e-4, 5e-5], rtol=2e-3)


def test_adam_does_not_decay_weights():
    optimizer, params = make_optimizer(0.1), {"large": jnp.float32(1e3), "small": jnp.float32(-1e-3)}
    zero = jax.tree.map(jnp.zeros_like, params)
    updates, _ = optimizer.update(zero, optimizer.init(params), params)
    assert updates == {"large": 0, "small": 0}


def test_only_matrices_are_decayed_by_their_share_of_the_step():
    """AdamW without a gradient: w <- w - rate * decay * w."""
    optimizer = make_optimizer(0.1, TrainingConfig(weight_decay=0.5))
    params = {"w": jnp.full((2, 2), 8.0), "b": jnp.full(2, 8.0)}
    updates, _ = optimizer.update(jax.tree.map(jnp.zeros_like, params), optimizer.init(params), params)
    np.testing.assert_allclose(updates["w"], np.full((2, 2), -0.1 * 0.5 * 8), rtol=1e-6)
    np.testing.assert_array_equal(updates["b"], 0)


def test_a_gradient_is_cut_to_the_norm_before_adam_sees_it():
    """(3, 4) has norm 5: cut to 1 it is (0.6, 0.8), of which Adam's second moment holds the squares."""
    optimizer, params = make_optimizer(0.1, TrainingConfig(max_gradient_norm=1.0)), {"w": jnp.zeros(2)}
    _, (_, (adam, *_)) = optimizer.update({"w": jnp.float32([3, 4])}, optimizer.init(params), params)
    np.testing.assert_allclose(adam.nu["w"], 0.001 * np.square([0.6, 0.8]), rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "at"),
    [
        ("constant", {0: 0.0, 2: 0.5, 4: 1.0, 9: 1.0, 99: 1.0}),
        ("linear", {0: 0.0, 2: 0.5, 4: 1.0, 9: 0.6, 14: 0.2, 99: 0.2}),
        ("cosine", {0: 0.0, 2: 0.5, 4: 1.0, 9: 0.6, 14: 0.2, 99: 0.2}),
    ],
)
def test_the_step_size_rises_and_falls_as_worked_by_hand(schedule, at):
    """Four steps up to 1, ten down to 0.2: half way down both are half way between."""
    training = config.TrainingConfig(schedule=schedule, learning_rate=1.0, min_learning_rate=0.2, warmup_steps=4)
    rate = learning_rate_schedule(training, 14)
    assert {step: round(float(rate(step)), 6) for step in at} == at


def test_a_constant_step_size_is_a_number():
    assert learning_rate_schedule(config.TrainingConfig(learning_rate=0.25), 100) == 0.25


def small(**training) -> config.Experiment:
    experiment = config.load(SMOKE)
    return dataclasses.replace(experiment, training=dataclasses.replace(experiment.training, **training))


def test_steps_follow_the_epochs_or_the_new_frames():
    """By epochs: all batches that often. By samples: 64 new frames drawn 2.5 times in batches of 32 are 5 steps."""
    assert num_steps(small(batch_size=32, num_epochs=3), 7, 64) == 21
    assert num_steps(small(batch_size=32, samples_per_frame=2.5), 7, 64) == 5
    assert num_steps(small(batch_size=32, samples_per_frame=2.5), 0, 64) == 0


def test_the_steps_of_a_run_are_those_that_it_makes():
    """The window grows by the iteration's frames until it is full."""
    experiment = small(batch_size=32, num_epochs=1)
    new, size = experiment.selfplay.num_games * experiment.selfplay.num_plies, experiment.window.size
    held = [min(size, k * new) for k in range(1, experiment.num_iterations + 1)]
    assert num_run_steps(make_plan(experiment)) == sum(frames // 32 for frames in held)


def test_the_average_forgets_its_first_weights_and_then_moves_slowly():
    """Step 0: decay 1 / 11, so 10 / 11 of the way; late: decay 0.9, a tenth of the way."""
    old, new = {"w": jnp.float32(0)}, {"w": jnp.float32(11)}
    learner = with_average(
        Learner(lambda x: TrainState(x, (), 0), lambda state, x: (state._replace(variables=x), {})), 0.9
    )
    for step, expected in ((0, 10), (1000, 1.1)):
        after, _ = learner.step(learner.init(old)._replace(num_steps=jnp.int32(step)), new)
        np.testing.assert_allclose(after.playing["w"], expected, rtol=1e-5)


def test_boards_of_one_run_are_counted_together_and_a_run_without_end_at_once():
    """Each of two boards makes 40 frames, of which a batch of 96 takes none, and both together one: a step each."""
    experiment = small(batch_size=96, samples_per_frame=1.0)
    selfplay = dataclasses.replace(
        experiment.selfplay, num_games=16, num_plies=5, boards="gardner_chess 1, los_alamos_chess 1"
    )
    window = dataclasses.replace(experiment.window, size=960)
    mixed = dataclasses.replace(experiment, selfplay=selfplay, window=window, num_iterations=100)
    assert 98 <= num_run_steps(make_plan(mixed)) <= 100
    assert num_run_steps(make_plan(dataclasses.replace(experiment, num_iterations=2 * 10**9))) > 10**9


def test_a_lowest_step_size_above_the_highest_is_refused():
    with pytest.raises(ConfigError, match=r"training.min_learning_rate \(0.01\) must be at most 0.001"):
        small(learning_rate=0.001, min_learning_rate=0.01)


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["train/loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.whole
def test_a_run_of_all_options_goes_on_bit_for_bit_and_plays_its_average(tmp_path, monkeypatch):
    options = [word for name, value in ALL_OPTIONS.items() for word in (f"--training.{name}", value)]
    experiment = read_experiment(SMOKE, [*SMALL, "--num-iterations", "3", *options])
    trainer = share_trainer(monkeypatch, experiment)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert loop.train(experiment, whole, StopRequest())
    assert not loop.train(experiment, parts, StopAfter(6))
    (stopped,) = (parts / "checkpoints").glob("*-stopped")
    _, state = resume.restore(trainer, checkpoint.open_checkpoint(stopped))
    hashes = [checkpoint.weights_hash(jax.device_get(x)) for x in (state.train.playing, state.train.variables)]
    assert checkpoint.open_checkpoint(stopped).manifest["weights_hash"] == hashes[0] != hashes[1]
    assert loop.train(experiment, parts, StopRequest())
    assert losses(parts) == losses(whole)
    manifests = [checkpoint.open_checkpoint(run / "checkpoints" / "3").manifest for run in (whole, parts)]
    assert manifests[0]["weights_hash"] == manifests[1]["weights_hash"]
    assert manifests[0]["optimizer_steps"] == num_run_steps(make_plan(experiment))


@pytest.mark.parametrize(("batch_size", "moved"), [(1, 0.010), (256, 0.102)])
def test_adadelta_moves_by_the_sum_over_a_batch(batch_size, moved):
    """100 steps along a mean gradient of 1e-4, whose size epsilon drowns if it is not made a sum."""
    optimizer = make_optimizer(1.0, TrainingConfig(optimizer="adadelta", batch_size=batch_size))

    def one_step(carry, _):
        x, state = carry
        update, state = optimizer.update(jnp.float32(1e-4), state, x)
        return (x + update, state), None

    start = jnp.float32(0)
    (x, _), _ = jax.lax.scan(one_step, (start, optimizer.init(start)), length=100)
    assert float(-x) == pytest.approx(moved, abs=0.001)
