"""The seams: frames from elsewhere than self-play, a loss of one's own, extra outputs and targets, masked policies."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau import config
from alphagateau.distributed.mesh import BY_SECOND
from alphagateau.games.rules import Game
from alphagateau.games.state import Array
from alphagateau.networks.network import Evaluation, Network
from alphagateau.runs import checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop, trainer
from alphagateau.training.frames import Frame
from alphagateau.training.learner import make_learner
from alphagateau.training.losses.policy_value import policy_value_loss, reduce_terms
from alphagateau.training.losses.terms import LossTerms
from alphagateau.training.optimizer import make_optimizer
from alphagateau.training.phases import Phase, Producer, Progress, RunState, advance

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
BATCH, STEPS = 8, 3


def some_frames(game: Game, num: int, **more: Any) -> Frame:
    """`num` times the first position, its first legal move and a win."""
    position = jax.tree.map(lambda x: np.broadcast_to(x, (num, *x.shape)), jax.device_get(game.position(game.init())))
    policy = np.zeros((num, game.max_legal_moves), np.float16)
    policy[:, 0] = 1
    return Frame(position, policy, np.ones(num, np.float32), np.ones(num, bool), **more)


def toy_network(game: Game) -> Network:
    """Logits of zero, a value of zero, and an output of its own for each position: one learnt number."""

    def apply(variables, positions, train=False, axis_name=None):
        batch = positions.color.shape[0]
        moves_left = jnp.broadcast_to(variables["params"]["moves_left"], (batch,))
        evaluation = Evaluation(jnp.zeros((batch, game.num_edges)), jnp.zeros(batch), {"moves_left": moves_left})
        return evaluation, {}

    return Network(lambda key: {"params": {"moves_left": jnp.float32(0)}}, apply)


def moves_left_loss(game: Game, evaluation: Evaluation, frames: Frame) -> LossTerms:
    error = evaluation.extra["moves_left"] - frames.extra["moves_left"]
    return LossTerms(minimized={"moves_left_loss": jnp.square(error)})


def test_a_loss_of_ones_own_learns_an_extra_output_from_an_extra_target(gardner):
    learner = make_learner(gardner, toy_network(gardner), moves_left_loss, make_optimizer(0.5))
    frames = some_frames(gardner, BATCH, extra={"moves_left": np.full(BATCH, 3, np.float32)})
    state = learner.init(toy_network(gardner).init(jax.random.key(0)))
    losses = []
    for _ in range(20):
        state, metrics = jax.jit(learner.step)(state, frames)
        losses.append(float(metrics["moves_left_loss"]))
    assert losses[0] == 9 and losses[-1] < 1
    assert abs(float(state.variables["params"]["moves_left"]) - 3) < 1


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda x: {"age": x}, "a loss must return LossTerms, whose fields are dicts, got dict"),
        (lambda x: x, "a loss must return LossTerms, whose fields are dicts, got an array"),
        (lambda x: LossTerms([x]), "whose fields are dicts, got LossTerms"),
        (lambda x: LossTerms({"age": 0 * x}, {"age": x}), 'the loss\'s term "age" is given twice'),
        (lambda x: LossTerms({"age": 0 * x}, {}, {"age": (x, x > 0)}), 'the loss\'s term "age" is given twice'),
        (lambda x: LossTerms({}, {"age": x}), "a loss must have a term in minimized, got none"),
        (lambda x: LossTerms({"age": x[:4]}), r'the loss\'s term "age" must be \[8\], one a frame, got \[4\]'),
        (lambda x: LossTerms({"age": x}, {"old": x[:, None]}), r'"old" must be \[8\], one a frame, got \[8, 1\]'),
        (lambda x: LossTerms({"age": x}, {}, {"young": x}), r'logged_among "young" must be \(values, a mask of bool'),
        (lambda x: LossTerms({"age": x}, {}, {"young": (x, x)}), 'logged_among "young" must be .* of bool of their'),
        (lambda x: LossTerms({"age": x}, {}, {"young": (x, x[:1] > 0)}), 'logged_among "young" must be .* of their sh'),
        (lambda x: LossTerms({"age": x}, sums={"calibration": x}), r"sum calibration must be \[3, 10\], got \[8\]"),
    ],
)
def test_a_loss_that_makes_something_else_is_refused_in_one_sentence(gardner, made, said):
    """Half as many terms were a wrong mean, and nobody was told."""
    network = toy_network(gardner)
    learner = make_learner(gardner, network, lambda _, found, frames: made(found.value), make_optimizer(0.5))
    with pytest.raises(config.ConfigError, match=said):
        jax.eval_shape(learner.step, learner.init(network.init(jax.random.key(0))), some_frames(gardner, BATCH))


def test_a_frame_without_extras_holds_nothing_more(gardner):
    plain = some_frames(gardner, 1)
    assert len(jax.tree.leaves(plain)) == len(jax.tree.leaves(plain.position)) + 3


def test_a_masked_policy_is_not_learnt(gardner):
    """Of two equal frames one trains the value only: it counts 0 in the policy's mean."""
    evaluation = Evaluation(np.zeros((2, gardner.num_edges), np.float32), np.zeros(2, np.float32))
    halves = np.zeros((2, gardner.max_legal_moves), np.float16)
    halves[:, :2] = 0.5
    frames = some_frames(gardner, 2)._replace(policy_target=halves)
    _, all_learnt = reduce_terms(policy_value_loss(gardner, evaluation, frames))
    masked = frames._replace(policy_mask=np.array([True, False]))
    _, half_learnt = reduce_terms(policy_value_loss(gardner, evaluation, masked))
    np.testing.assert_allclose(half_learnt["policy_loss"], all_learnt["policy_loss"] / 2, rtol=1e-6)
    np.testing.assert_allclose(half_learnt["target_entropy"], np.log(2) / 2, rtol=1e-6)
    np.testing.assert_allclose(half_learnt["value_loss"], all_learnt["value_loss"])


class Stream(NamedTuple):
    """The batches of an iteration, as a file would give them."""

    frames: Frame  # [STEPS, B, ...]


def stream_producer(game: Game) -> Producer:
    """Frames that no search made: labels read from elsewhere, three batches an iteration."""
    frames = some_frames(game, STEPS * BATCH)
    frames = jax.tree.map(lambda x: jnp.asarray(x).reshape(STEPS, BATCH, *x.shape[1:]), frames)

    def read(state: RunState, iteration: int, segment: int) -> RunState:
        return state._replace(producer=Stream(jax.tree.map(jnp.copy, frames)))

    def batches(state: Stream, key: Array, share_ids: Array):
        return lambda step: jax.tree.map(lambda x: x[step], state.frames)

    return Producer(
        init=lambda: Stream(jax.tree.map(jnp.zeros_like, frames)),
        specs=Stream(BY_SECOND),  # pyright: ignore[reportArgumentType]
        transient=frozenset({"frames"}),
        phases=(Phase("read", lambda _: 1, read),),
        num_batches=lambda _: STEPS,
        num_new_frames=lambda _: STEPS * BATCH,
        batches=batches,
        metrics=lambda state, iteration, seconds: {"data/records": float(STEPS * BATCH)},
        sample_games=lambda *_: "",
    )


@pytest.mark.whole
def test_a_run_learns_from_a_stream_as_it_does_from_self_play(gardner, monkeypatch, tmp_path):
    """Another producer in the place of self-play: the loop, checkpoints, logs and resuming do not know."""
    monkeypatch.setattr(trainer, "make_board_producer", lambda board, mesh: stream_producer(board.game))
    experiment = config.load(SMOKE)
    assert loop.train(experiment, tmp_path / "smoke", StopRequest())
    found, _ = checkpoint.find(tmp_path / "smoke" / "checkpoints")
    assert [c.order for c in found] == [(k, 0, 0) for k in (4, 3, 2, 1, 0)]
    assert found[0].manifest["optimizer_steps"] == 4 * STEPS
    rows = (tmp_path / "smoke" / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 4 and '"data/records": 24.0' in rows[-1]
    hashes = [c.manifest["weights_hash"] for c in found]
    checkpoint.remove(found[0])
    assert loop.train(experiment, tmp_path / "smoke", StopRequest())
    again = checkpoint.find(tmp_path / "smoke" / "checkpoints")[0][0]
    assert again.manifest["weights_hash"] == hashes[0]


def test_progress_goes_through_phases_and_segments_in_order():
    """A phase of no segments is passed over; an iteration ends with the last segment of its last phase."""
    ran = []

    def phase(name: str, num: int) -> Phase:
        def run_segment(state, iteration, segment):
            ran.append((name, iteration, segment))
            return state

        return Phase(name, lambda _: num, run_segment)

    phases, progress, places = (phase("a", 2), phase("b", 0), phase("c", 1)), Progress(), [Progress()]
    state = RunState(None, None, {})  # pyright: ignore[reportArgumentType]
    while progress.iteration < 1:
        state, progress = advance(phases, state, progress)
        places.append(progress)
    assert ran == [("a", 0, 0), ("a", 0, 1), ("c", 0, 0)]
    assert places == sorted(places) == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 2, 0), (1, 0, 0)]
