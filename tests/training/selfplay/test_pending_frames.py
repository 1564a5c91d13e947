"""Plies wait until their game's result is known: each enters once, then, and with that result; in whole runs too."""

from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_lines import read_experiment
from stopping import StopAfter, share_trainer

from alphagateau.games.state import Position
from alphagateau.runs import checkpoint
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.frames import Trajectory
from alphagateau.training.selfplay.state import no_pending, settle
from alphagateau.training.selfplay.targets import frames_from

ROWS, PLIES, LONGEST, ROUNDS = 5, 4, 9, 12  # LONGEST: plies of a game, at most
SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"


def games_of(rng: np.random.Generator) -> Trajectory:
    """ROUNDS * PLIES plies of ROWS rows of games, [T, B]; `edge` numbers the plies, each last mover wins."""
    num_plies = ROUNDS * PLIES
    number = np.arange(num_plies * ROWS, dtype=np.int32).reshape(num_plies, ROWS)
    discount = np.full(number.shape, -1, np.float32)
    for row in range(ROWS):
        ends = np.cumsum(rng.integers(1, LONGEST + 1, num_plies)) - 1
        discount[ends[ends < num_plies], row] = 0
    nothing, reward = np.zeros(number.shape, np.float32), (discount == 0).astype(np.float32)
    position = Position(*[number] * len(Position._fields))
    return Trajectory(position, nothing, number, reward, discount, *[nothing] * (len(Trajectory._fields) - 5))


def test_each_ply_enters_once_when_its_game_ends_and_with_its_result():
    games = games_of(np.random.default_rng(0))
    ends = np.where(games.discount == 0, np.arange(len(games.edge))[:, None], len(games.edge))
    end_of = np.minimum.accumulate(ends[::-1], axis=0)[::-1]  # of the game of each ply
    waiting, entered = no_pending(games, LONGEST - 1), {}
    settle_jitted, to_frames = jax.jit(settle), jax.jit(frames_from)
    for round_ in range(ROUNDS):
        new = jax.tree.map(lambda x, first=round_ * PLIES: jnp.asarray(x[first : first + PLIES]), games)
        plies, has_result, waiting = settle_jitted(waiting, new)
        frames = to_frames(plies)
        assert frames.value_mask[has_result].all()
        numbers = np.asarray(plies.edge)[has_result].tolist()
        assert not entered.keys() & set(numbers)
        entered |= dict(zip(numbers, np.asarray(frames.value_target)[has_result].tolist(), strict=True))
        last = (round_ + 1) * PLIES - 1
        assert sorted(entered) == games.edge[end_of <= last].tolist()
        assert sorted(np.asarray(waiting.trajectory.edge)[waiting.is_waiting].tolist()) == sorted(
            games.edge[: last + 1][end_of[: last + 1] > last].tolist()
        )
    for number, target in entered.items():
        ply, row = divmod(number, ROWS)
        assert target == (-1) ** (end_of[ply, row] - ply)


OPTIONS = ["--search.num-simulations", "2", "--selfplay.num-games", "32", "--selfplay.num-plies", "48"]
OPTIONS += ["--selfplay.continue-games", "--targets.wait-for-result", "--targets.td-lambda", "0.9"]
OPTIONS += ["--training.mirror", "--sample-roots", "8", "--num-iterations", "3"]


def lasting(folder: Path) -> list[dict]:
    """metrics.jsonl without what depends on the clock."""
    rows = read_metrics(folder / "metrics.jsonl")
    return [
        {k: v for k, v in row.items() if not any(x in k for x in ("per_second", "time/", "energy/"))} for row in rows
    ]


@pytest.mark.whole
def test_a_run_whose_frames_wait_and_are_mirrored_goes_on_bit_for_bit(tmp_path, monkeypatch):
    """Stopped in self-play and in training, with plies of earlier iterations waiting."""
    experiment, folders = read_experiment(SMOKE, OPTIONS), [tmp_path / "whole", tmp_path / "stopped"]
    share_trainer(monkeypatch, experiment)
    assert loop.train(experiment, folders[0], StopRequest())
    for looks in (5, 3):
        assert not loop.train(experiment, folders[1], StopAfter(looks))
    assert loop.train(experiment, folders[1], StopRequest())
    rows, again = map(lasting, folders)
    assert rows == again and len(rows) == 3
    hashes = [checkpoint.find(folder / "checkpoints")[0][0].manifest["weights_hash"] for folder in folders]
    assert hashes[0] == hashes[1]
    waited = 0
    for row in rows:
        assert row["window/waiting"] == waited + 32 * 48 - row["window/new_frames"]
        waited = row["window/waiting"]
        assert row.get("train/value_known", 1) == 1
        assert ("train/value_known" in row) == (row["train/frame_reuse"] > 0)  # too few yet for a batch
        assert row["search/target_noise"] > 0 and 0 <= row["network/mirror_disagreement"] <= 1
    assert 0 < waited < 32 * 255 and rows[-1]["train/frame_reuse"] > 0


def test_an_iteration_without_an_optimizer_step_says_nothing_of_the_steps_before(tmp_path):
    """Its frames all wait; the sums of the last steps are still in the state, but not after a stop."""
    experiment = read_experiment(SMOKE, [*OPTIONS, "--training.samples-per-frame", "1"])
    producer = SimpleNamespace(num_batches=lambda _: 8, num_new_frames=lambda _: 0, metrics=lambda *_: {})
    state = SimpleNamespace(
        totals={"loss": np.float32(7), "calibration": np.ones((3, 10), np.float32)},
        train=SimpleNamespace(num_steps=12),
        producer=None,
    )
    run = SimpleNamespace(experiment=experiment, trainer=SimpleNamespace(producer=producer))
    values = loop.iteration_values(run, state, 3, {})  # pyright: ignore[reportArgumentType]
    assert not {"train/loss", "train/calibration", "train/calibration_error"} & values.keys()
    assert values["train/steps"] == 12 and values["train/frame_reuse"] == 0
