"""The loss by hand, Adam by hand, and a tiny network that learns."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from alphagateau.games.actions import legal_edge_mask, slots_to_edges
from alphagateau.games.notation import from_fen
from alphagateau.games.rules import Game
from alphagateau.games.state import Position
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.training.frames import Frame
from alphagateau.training.learner import TrainState, by_part, make_learner
from alphagateau.training.losses.policy_value import policy_value_loss, reduce_terms
from alphagateau.training.optimizer import make_optimizer

BATCH = 8


def one_position(game: Game, edges: list[int]) -> Position:
    """The first position, with other moves called legal."""
    mask = np.zeros(game.num_edges, bool)
    mask[edges] = True
    return jax.device_get(game.position(game.init()))._replace(legal=np.packbits(mask))


def frame_of(game: Game, edges, policy, value, is_known) -> Frame:
    target = np.zeros(game.max_legal_moves, np.float16)
    target[: len(policy)] = policy
    return Frame(one_position(game, edges), target, np.float32(value), np.bool_(is_known))


def stack(frames) -> Frame:
    return jax.tree.map(lambda *x: np.stack(x), *frames)


# The loss.


@pytest.fixture(scope="module")
def losses(gardner):
    """The figures of equation (10) on the 5x5 board, compiled."""
    return jax.jit(lambda evaluation, frames: reduce_terms(policy_value_loss(gardner, evaluation, frames))[1])


def test_the_loss_of_two_edges_by_hand(gardner, losses):
    """Logits ln 1 and ln 3 are probabilities 1/4 and 3/4; illegal edges have none, however large their logits."""
    frames = stack(
        [
            frame_of(gardner, [3, 200], [0.25, 0.75], 1, True),
            frame_of(gardner, [3, 200], [1.0, 0.0], -1, False),  # the result is not known
        ]
    )
    logits = np.full((2, gardner.num_edges), 50.0, np.float32)
    logits[:, [3, 200]] = np.log([1, 3])
    terms = losses(Evaluation(logits, np.float32([0.5, 0.9])), frames)
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    expected = {
        "policy_loss": (entropy + math.log(4)) / 2,
        "value_loss": (0.5**2 + 0) / 2,  # the masked frame adds nothing and still counts
        "policy_entropy": entropy,
        "target_entropy": entropy / 2,
        "value_accuracy": 1.0,
        "value_error": 0.5,
        "value_known": 0.5,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(terms[name], value, rtol=1e-5, err_msg=name)


def test_value_accuracy_counts_decisive_known_frames(gardner, losses):
    """Right, wrong, a draw, two unknown results: one of two."""
    values = [(0.3, 1, True), (0.3, -1, True), (0.3, 0, True), (0.3, 1, False), (0.3, -1, False)]
    frames = stack([frame_of(gardner, [3], [1.0], target, known) for _, target, known in values])
    evaluation = Evaluation(np.zeros((5, gardner.num_edges)), np.float32([v for v, _, _ in values]))
    terms = losses(evaluation, frames)
    np.testing.assert_allclose(terms["value_accuracy"], 0.5)
    np.testing.assert_allclose(terms["value_error"], (0.7 + 1.3 + 0.3) / 3, rtol=1e-6)
    np.testing.assert_allclose(terms["value_loss"], (0.49 + 1.69 + 0.09) / 5, rtol=1e-6)


def test_calibration_sums_by_hand(gardner, losses):
    """Ten bins over [-1, 1]: count, predictions and results of the frames whose result is known."""
    values = [(-1.0, -1, True), (0.31, 1, True), (0.39, 0, True), (0.35, 1, False), (1.0, 1, True)]
    frames = stack([frame_of(gardner, [3], [1.0], target, known) for _, target, known in values])
    evaluation = Evaluation(np.zeros((5, gardner.num_edges)), np.float32([v for v, _, _ in values]))
    sums = losses(evaluation, frames)["calibration"]
    expected = np.zeros((3, 10))
    expected[:, 0], expected[:, 6], expected[:, 9] = (1, -1, -1), (2, 0.7, 1), (1, 1, 1)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)


def test_a_batch_without_results_trains_the_policy_only(gardner, losses):
    frames = stack([frame_of(gardner, [3, 200], [0.5, 0.5], 0, False)] * 2)

    def loss(values):
        terms = losses(Evaluation(jnp.zeros((2, gardner.num_edges)), values), frames)
        return terms["policy_loss"] + terms["value_loss"], terms

    gradient, terms = jax.grad(loss, has_aux=True)(jnp.float32([0.4, -0.9]))
    assert gradient.tolist() == [0, 0]
    assert terms["value_loss"] == terms["value_error"] == terms["value_accuracy"] == 0
    assert all(np.isfinite(x).all() for x in terms.values())


def test_the_gradient_of_the_policy_term_is_policy_minus_target(gardner, losses):
    """For each legal edge, over the batch size; 0 for illegal ones; finite where the target is 0."""
    frames = stack(
        [
            frame_of(gardner, [3, 200, 300], [1.0, 0.0, 0.0], 1, True),
            frame_of(gardner, [7], [1.0], 1, True),
        ]
    )
    logits = np.random.default_rng(0).normal(size=(2, gardner.num_edges)).astype(np.float32)
    logits[0, 3] = -60.0  # what the target wants, the network thinks impossible

    def policy_loss(logits):
        return losses(Evaluation(logits, jnp.zeros(2)), frames)["policy_loss"]

    expected = np.zeros_like(logits)
    policy = np.exp(logits[0, [3, 200, 300]]) / np.exp(logits[0, [3, 200, 300]]).sum()
    expected[0, [3, 200, 300]] = (policy - [1, 0, 0]) / 2
    np.testing.assert_allclose(jax.grad(policy_loss)(logits), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["gardner_chess", "chess"])
def test_policy_over_edges_puts_each_target_on_its_edge(name):
    game = get_game(name)
    fens = {
        "gardner_chess": [game.start_fen, "n1k1r/P3P/5/p3p/R1K1N b - - 0 1", "4k/5/5/r4/K4 w - - 0 1"],
        "chess": [
            game.start_fen,
            "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",  # every slot is in use
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
        ],
    }[name]
    states = [jax.device_get(from_fen(game, fen)) for fen in fens]
    frames, position = [], jax.jit(game.position)
    for state in states:
        count = int((state.legal_edges >= 0).sum())
        target = np.zeros(game.max_legal_moves, np.float16)
        target[:count] = np.arange(1, count + 1) / (count * (count + 1) / 2)
        frames.append(Frame(position(state), target, np.float32(0), np.bool_(True)))
    frames = stack(jax.device_get(frames))
    legal = legal_edge_mask(game, frames.position)
    target = jax.jit(slots_to_edges)(legal, frames.policy_target)
    for row, state in enumerate(states):
        edges = state.legal_edges[state.legal_edges >= 0]
        expected = np.zeros(game.num_edges, np.float32)
        expected[edges] = frames.policy_target[row, : len(edges)]
        np.testing.assert_array_equal(target[row], expected)
        assert np.flatnonzero(legal[row]).tolist() == edges.tolist()


# Steps of a tiny network.


POSITIONS = [
    get_game("gardner_chess").start_fen,
    "r3k/pppbp/2P1p/PPPQ1/RNB1K w - - 1 5",
    "4k/2pbp/2P2/pR2K/1RBQ1 w - - 2 12",
    "rn2k/pbQqp/1P2P/P2P1/R3K b - - 1 8",
    "1r2k/pP1bq/2Qp1/PPn2/1RBK1 b - - 6 14",
    "n1k1r/P3P/5/p3p/R1K1N b - - 0 1",
    "r3k/1b3/pP1P1/1q3/1R1K1 b - - 0 14",
    "rR1qk/3n1/1ppp1/3Q1/RNB1K w - - 0 9",
]


@pytest.fixture(scope="module")
def frames(gardner) -> Frame:
    """Eight positions, targets with zeros in them, results of all kinds, one unknown."""
    rng = np.random.default_rng(0)
    states = stack([jax.device_get(from_fen(gardner, fen)) for fen in POSITIONS])
    policy = np.where(states.legal_edges >= 0, rng.exponential(size=states.legal_edges.shape), 0)
    policy = np.where(policy < np.median(policy[policy > 0]), 0, policy)  # about half the legal moves
    policy = (policy / policy.sum(axis=1, keepdims=True)).astype(np.float16)
    value = np.float32([1, -1, 0, 1, -1, 0, 1, -1])
    position = jax.device_get(jax.jit(jax.vmap(gardner.position))(states))
    return Frame(position, policy, value, np.arange(BATCH) != 7)


@pytest.fixture(scope="module")
def train_step(gardner, tiny):
    """(TrainState, Frames, learning rate), compiled once."""

    @jax.jit
    def step(state: TrainState, frames: Frame, learning_rate):
        return make_learner(gardner, tiny.network, policy_value_loss, make_optimizer(learning_rate)).step(state, frames)

    return step


@pytest.fixture(scope="module")
def start(gardner, tiny) -> TrainState:
    return jax.jit(make_learner(gardner, tiny.network, policy_value_loss, make_optimizer(0.001)).init)(tiny.variables)


def test_one_step_reduces_the_loss_of_its_batch(start, frames, train_step):
    state, before = train_step(start, frames, 0.001)
    _, after = train_step(state, frames, 0.001)
    assert after["loss"] < before["loss"]
    np.testing.assert_allclose(before["loss"], before["policy_loss"] + before["value_loss"], rtol=1e-6)
    assert int(start.num_steps) == 0 and int(state.num_steps) == 1


def test_the_logged_norms_are_those_of_the_step(tiny, start, frames, train_step):
    """Adam's first step moves each parameter that has a gradient by the learning rate."""
    old = tiny.variables["params"]
    state, terms = train_step(start, frames, 0.001)
    new = state.variables["params"]
    moved = jax.tree.leaves(jax.tree.map(lambda a, b: np.asarray(b - a).ravel(), old, new))
    flat = np.concatenate(moved)
    assert (abs(flat) < 0.001 * 1.01).all() and np.median(abs(flat)) > 0.0009
    np.testing.assert_allclose(terms["update_norm"], np.linalg.norm(flat), rtol=1e-3)
    weights = np.concatenate([np.ravel(x) for x in jax.tree.leaves(new)])
    np.testing.assert_allclose(terms["weight_norm"], np.linalg.norm(weights), rtol=1e-5)


def test_gradients_are_finite_where_policy_targets_are_zero(start, frames, train_step):
    assert ((frames.policy_target == 0) & (frames.policy_target.cumsum(axis=1) < 0.999)).any()
    state, terms = train_step(start, frames, 0.001)
    for leaf in jax.tree.leaves((state, terms)):
        assert np.isfinite(leaf).all()
    assert terms["gradient_norm"] > 0


def test_a_tiny_batch_is_learnt_by_heart(start, frames, train_step):
    """The policy loss cannot fall below the targets' entropy; it comes near, and the value loss near 0."""
    state = start
    for step in range(300):
        state, terms = train_step(state, frames, 0.02 if step < 240 else 0.005)
    assert 0 <= terms["policy_loss"] - terms["target_entropy"] < 0.1
    assert terms["value_loss"] < 0.02
    assert terms["value_accuracy"] == 1


def toy_network(num_chunks: int) -> Network:
    """A learnt logit an edge and a learnt weight of material, trained in chunks."""

    def apply(variables, positions, train=False, axis_name=None):
        material = positions.boards[:, 0].astype(jnp.float32).sum(axis=-1)
        logits = jnp.cos(material)[:, None] * variables["params"]["logits"]
        statistics = {"batch_stats": {"material": material.mean()}}
        return Evaluation(logits, jnp.tanh(0.1 + variables["params"]["weight"] * material)), statistics

    return Network(lambda key: {}, apply, lambda batch: num_chunks)


def test_a_step_in_chunks_is_the_step_of_the_batch(gardner, frames):
    """Weights, statistics and metrics; gradient descent, as Adam's first step has the size of no gradient."""
    params = {"logits": jnp.sin(jnp.arange(gardner.num_edges)), "weight": jnp.float32(0.01)}

    def step(num_chunks: int, num_parts: int = 1):
        network, optimizer = toy_network(num_chunks), optax.sgd(0.1)
        learner = make_learner(gardner, network, policy_value_loss, optimizer, num_parts=num_parts)
        state = learner.init({"params": params, "batch_stats": {"material": jnp.float32(0)}})
        return jax.jit(learner.step)(state, frames)

    whole = step(1)
    for chunks in (step(4), step(1, 4), step(2, 2)):
        assert jax.tree.structure(chunks) == jax.tree.structure(whole)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), chunks, whole)
    assert float(whole[1]["gradient_norm"]) > 0.01


def test_a_part_of_a_batch_is_the_same_on_any_number_of_devices():
    """Four shares of six frames in two parts: a part has three of each share, wherever the shares lie."""
    batch = np.arange(24)
    (whole,), halves = ([by_part(x, 2).reshape(2, -1) for x in np.split(batch, n)] for n in (1, 2))
    for part in range(2):
        assert set(whole[part]) == {*halves[0][part], *halves[1][part]}
        assert np.bincount(whole[part] // 6).tolist() == [3, 3, 3, 3]


@pytest.fixture(scope="module")
def infer(tiny):
    return jax.jit(lambda positions: tiny.network.apply(tiny.variables, positions, False))


def test_batch_statistics_change_in_training_and_not_in_inference(tiny, start, frames, train_step, infer):
    old = tiny.variables["batch_stats"]
    moved, _ = train_step(start, frames, 0.001)
    assert moved.variables.keys() == tiny.variables.keys()
    same = jax.tree.map(lambda a, b: bool((a == b).all()), old, moved.variables["batch_stats"])
    assert not any(jax.tree.leaves(same))
    evaluation, statistics = infer(frames.position)
    jax.tree.map(np.testing.assert_array_equal, statistics["batch_stats"], old)
    assert np.isfinite(evaluation.prior_logits).all() and (abs(evaluation.value) <= 1).all()


def test_inference_does_not_see_the_other_positions_of_the_batch(frames, infer):
    kept = np.array([0, 1, 2, 3, 0, 0, 0, 0])
    whole, _ = infer(frames.position)
    others, _ = infer(jax.tree.map(lambda x: x[kept], frames.position))
    for one, other in zip(whole[:2], others[:2], strict=True):
        np.testing.assert_allclose(one[kept], other, atol=1e-6)
