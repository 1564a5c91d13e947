"""Losses on labelled positions: by hand, where they do not learn, and a network that learns four boards."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from alphagateau.config import ConfigError, DataConfig, Experiment, TrainingConfig, from_dict
from alphagateau.config.losses import LOSSES
from alphagateau.games.actions import legal_edge_mask, random_positions
from alphagateau.games.variants import get_game
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.make_network import make_network
from alphagateau.networks.network import Evaluation
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.training.checks import check_experiment, check_heads
from alphagateau.training.frames import Frame
from alphagateau.training.learner import make_learner
from alphagateau.training.losses.policy_value import reduce_terms
from alphagateau.training.losses.terms import hl_gauss
from alphagateau.training.optimizer import make_optimizer

BOARDS, BINS = 4, 16


def labelled(game, num, seed=0) -> Frame:
    """Random boards with random labels; of the last board's moves only the first is labelled, and not its state."""
    positions = random_positions(game, num)
    legal = legal_edge_mask(game, positions).sum(axis=-1)
    rng = np.random.default_rng(seed)
    q = rng.uniform(0.05, 0.95, (num, game.max_legal_moves)).astype(np.float32)
    known = np.arange(game.max_legal_moves) < np.asarray(legal)[:, None]
    known[-1, 1:] = False
    state_known = np.arange(num) < num - 1
    best = np.where(known, q, -1).argmax(axis=-1)
    return Frame(
        position=positions,
        policy_target=jax.nn.one_hot(best, game.max_legal_moves, dtype=jnp.float16),
        value_target=jnp.zeros(num),
        value_mask=jnp.zeros(num, bool),
        extra={
            "state_value": jnp.asarray(rng.uniform(size=num).astype(np.float32)),
            "state_known": jnp.asarray(state_known),
            "action_value": jnp.asarray(np.where(known, q, 0)),
            "action_known": jnp.asarray(known),
        },
    )


def random_evaluation(game, num, bins) -> Evaluation:
    keys = jax.random.split(jax.random.key(1), 3)
    extra = {
        "action_value_logits": jax.random.normal(keys[0], (num, game.max_legal_moves, bins)),
        "value_logits": jax.random.normal(keys[1], (num, bins)),
    }
    return Evaluation(jax.random.normal(keys[2], (num, game.num_edges)), jnp.zeros(num), extra)


@pytest.mark.parametrize(("kind", "bins"), [("hl_gauss", BINS), ("log", BINS), ("l2", 1)])
def test_what_is_illegal_or_has_no_label_does_not_learn(gardner, kind, bins):
    frames, evaluation = labelled(gardner, BOARDS), random_evaluation(gardner, BOARDS, bins)
    loss = LOSSES[f"all_labels_{kind}"].terms
    gradient = jax.jit(jax.grad(lambda said: reduce_terms(loss(gardner, said, frames))[0]))(evaluation)
    learns = (gradient.extra["action_value_logits"] != 0).any(axis=-1)
    np.testing.assert_array_equal(learns, frames.extra["action_known"])
    learns = (gradient.extra["value_logits"] != 0).any(axis=-1)
    np.testing.assert_array_equal(learns, frames.extra["state_known"])
    np.testing.assert_array_equal(gradient.prior_logits != 0, legal_edge_mask(gardner, frames.position))
    assert np.isfinite(gradient.prior_logits).all()


def test_values_of_moves_and_states_by_hand(gardner):
    """A number a move: the first board's errors are 0.1 and 0.3 of two moves, the second's 0.2 of one."""
    frames = labelled(gardner, 2)
    q, known = np.zeros((2, gardner.max_legal_moves), np.float32), np.zeros((2, gardner.max_legal_moves), bool)
    q[0, :2], q[1, 0], known[0, :2], known[1, 0] = (0.5, 0.6), 0.2, True, True
    said = np.full((2, gardner.max_legal_moves, 1), 9, np.float32)  # a move without a label is not chosen
    said[0, :2, 0], said[1, 0, 0] = (0.6, 0.3), 0.4
    extra = {"action_value": q, "action_known": known, "state_value": np.float32([1, 0.5])}
    frames = frames._replace(extra=extra | {"state_known": np.array([True, False])})
    evaluation = Evaluation(
        jnp.zeros((2, gardner.num_edges)),
        jnp.zeros(2),
        {"action_value_logits": said, "value_logits": jnp.float32([[0.5], [7]])},
    )
    _, metrics = reduce_terms(LOSSES["all_labels_l2"].terms(gardner, evaluation, frames))
    expected = {
        "action_value_loss": ((0.01 + 0.09) / 2 + 0.04) / 2,
        "action_value_excess": (0.01 + 0.09 + 0.04) / 3,
        "action_value_error": (0.1 + 0.3 + 0.2) / 3,
        "action_accuracy": 0.5,  # of the first board the other move is best
        "state_value_loss": 0.25 / 2,
        "state_value_error": 0.5,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(metrics[name], value, rtol=1e-5, err_msg=name)


def of_moves(frames: Frame) -> Frame:
    """The frames with the label of their second move alone; the last board has none there."""
    slot = jnp.ones((len(frames.value_target), 1), jnp.int32)
    of_slot = {name: frames.extra[name][:, 1:2] for name in ("action_value", "action_known")}
    return frames._replace(extra={**frames.extra, **of_slot, "action_slot": slot})


def test_a_network_that_values_all_moves_learns_the_one_of_a_frame(gardner):
    frames, evaluation = of_moves(labelled(gardner, BOARDS)), random_evaluation(gardner, BOARDS, BINS)
    one = evaluation.extra["action_value_logits"][:, 1:2]
    loss = LOSSES["action_value_log"].terms
    total, metrics = reduce_terms(loss(gardner, evaluation, frames))
    alone = evaluation._replace(extra={"action_value_logits": one})
    assert total == reduce_terms(loss(gardner, alone, frames))[0]
    bins = np.ceil(np.asarray(frames.extra["action_value"][:-1, 0]) * BINS).astype(int) - 1
    expected = -jax.nn.log_softmax(one[:-1, 0])[np.arange(BOARDS - 1), bins].sum() / BOARDS
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert "action_accuracy" not in metrics  # one move is always the best of one


@pytest.mark.whole
def test_a_token_transformer_learns_moves_states_and_policies(gardner):
    """Four frames of one move each, by one network with the three heads."""
    heads = {"policy_head": True, "value_head": "bins", "action_values": True, "num_bins": BINS}
    config = TokenTransformerConfig(hidden_size=16, num_blocks=2, num_heads=2, **heads)
    network, frames = make_network(gardner, config), of_moves(labelled(gardner, BOARDS))
    learner = make_learner(gardner, network, LOSSES["all_labels_hl_gauss"].terms, make_optimizer(0.01))

    @jax.jit
    def learn(state):
        return jax.lax.scan(lambda state, _: learner.step(state, frames), state, length=60)

    _, metrics = learn(learner.init(network.init(jax.random.key(0))))
    first, last = ({name: float(values[i]) for name, values in metrics.items()} for i in (0, -1))
    assert first["action_value_error"] > 0.1 > 2 * last["action_value_error"], (first, last)
    assert last["state_value_error"] < 0.05 and last["policy_accuracy"] == 1, last


def test_a_token_transformer_learns_action_values_from_frames_of_moves_only():
    def experiment(**data) -> Experiment:
        network = TokenTransformerConfig(policy_head=False, value_head="none", action_values=True)
        return Experiment(
            game="gardner_chess",
            num_iterations=1,
            network=network,
            data=DataConfig(path="labels", **data),
            training=TrainingConfig(loss="action_value_hl_gauss"),
        )

    check_experiment(experiment(record="move"))
    with pytest.raises(ConfigError, match=r'data\.record must be "move" for training\.loss "action_value_hl_gauss"'):
        check_experiment(experiment())


def test_a_loss_on_bins_is_least_where_the_network_says_the_label(gardner):
    """The least is the entropy of HL-Gauss's distribution, which is not 0: 1.2003 nats away from the ends."""
    frames = labelled(gardner, BOARDS)
    logits = jnp.log(jnp.maximum(hl_gauss(frames.extra["action_value"], 128), 1e-30))
    evaluation = Evaluation(jnp.zeros((BOARDS, gardner.num_edges)), jnp.zeros(BOARDS), {"action_value_logits": logits})
    total, metrics = reduce_terms(LOSSES["action_value_hl_gauss"].terms(gardner, evaluation, frames))
    np.testing.assert_allclose(metrics["action_value_excess"], 0, atol=1e-4)
    np.testing.assert_allclose(total, 1.2003, atol=1e-3)
    assert metrics["action_accuracy"] == 1


def test_behavioral_cloning_of_two_moves_by_hand(gardner):
    """The labelled move has half of the legal moves' probability on the first board, and is not likely on the other."""
    frames = labelled(gardner, 2)
    legal = np.asarray(legal_edge_mask(gardner, frames.position))
    logits = np.full(legal.shape, 50, np.float32)  # illegal moves are not seen
    best = np.asarray(frames.policy_target).argmax(axis=-1)
    for row, (mask, slot) in enumerate(zip(legal, best, strict=True)):
        logits[row, mask] = 0
        logits[row, np.flatnonzero(mask)[slot]] = np.log(mask.sum() - 1) * (1 if row == 0 else -1)
    _, metrics = reduce_terms(LOSSES["behavioral_cloning"].terms(gardner, Evaluation(logits, jnp.zeros(2), {}), frames))
    others = legal[1].sum() - 1
    second = np.log(others * (others + 1 / others))
    np.testing.assert_allclose(metrics["policy_loss"], (np.log(2) + second) / 2, rtol=1e-5)
    assert metrics["policy_accuracy"] == 0.5


def test_four_boards_are_learnt_to_full_agreement_by_weights_that_fit_every_board(gardner):
    """One forward pass values all moves; the same weights then value those of 8x8 chess."""
    config = GateauConfig(
        hidden_size=16, num_blocks=1, normalization="layer", action_values=True, value_head="bins", num_bins=BINS
    )
    network, frames = make_network(gardner, config), labelled(gardner, BOARDS)
    learner = make_learner(gardner, network, LOSSES["all_labels_hl_gauss"].terms, make_optimizer(0.01))

    @jax.jit
    def learn(state):
        return jax.lax.scan(lambda state, _: learner.step(state, frames), state, length=300)

    state, metrics = learn(learner.init(network.init(jax.random.key(0))))
    last = {name: float(values[-1]) for name, values in metrics.items()}
    assert last["action_accuracy"] == 1 and last["policy_accuracy"] == 1
    assert last["action_value_error"] < 0.05 and last["state_value_error"] < 0.05, last

    chess = get_game("chess")
    larger, positions = make_network(chess, config), random_positions(chess, 1)
    shapes = jax.tree.map(jnp.shape, jax.eval_shape(larger.init, jax.random.key(0)))
    assert shapes == jax.tree.map(jnp.shape, state.variables)
    evaluation, _ = jax.jit(partial(larger.apply, state.variables))(positions)
    assert evaluation.extra["action_value_logits"].shape == (1, chess.max_legal_moves, BINS)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(evaluation))


@pytest.mark.parametrize(
    ("loss", "network", "said"),
    [
        ("action_value_log", {}, 'network.action_values must be true for training.loss "action_value_log", got false'),
        ("state_value_log", {}, 'network.value_head must be "bins" for training.loss "state_value_log", got "scalar"'),
        ("all_labels_l2", {"value_head": "bins"}, "network.action_values must be true"),
        ("action_value_l2", {"action_values": True}, "network.num_bins must be 1 for training.loss"),
        ("state_value_hl_gauss", {"value_head": "bins", "num_bins": 1}, "network.num_bins must be 2 or more"),
    ],
)
def test_a_loss_whose_head_is_not_there_is_refused(loss, network, said):
    with pytest.raises(ConfigError) as error:
        check_heads(loss, GateauConfig(**network))
    assert said in str(error.value)


def test_a_policy_that_is_not_there_is_not_learnt():
    for loss in ("behavioral_cloning", "policy_value", "all_labels_log"):
        with pytest.raises(ConfigError, match=r"network\.policy_head must be true for training\.loss"):
            heads = {"policy_head": False, "action_values": True, "value_head": "bins"}
            check_heads(loss, TokenTransformerConfig(**heads))
    with pytest.raises(ConfigError, match=r'network\.value_head must be "scalar" or "bins".*got "none"'):
        check_heads("policy_value", TokenTransformerConfig(value_head="none"))


def test_a_loss_whose_head_is_there_is_not_refused():
    check_heads("behavioral_cloning", GateauConfig())
    check_heads("policy_value", GateauConfig(value_head="bins", action_values=True))
    check_heads("all_labels_hl_gauss", GateauConfig(value_head="bins", action_values=True))
    check_heads("action_value_l2", GateauConfig(action_values=True, num_bins=1))


def test_a_player_of_action_values_needs_them():
    search = {"algorithm": "action_value"}
    table = {"game": "gardner_chess", "num_iterations": 1, "data": {"path": "x"}, "search": search}
    with pytest.raises(ConfigError, match=r'network.action_values must be true for search.algorithm "action_value"'):
        check_experiment(from_dict({**table, "network": {"history": False}}))
    table["network"] = {"history": False, "action_values": True}
    with pytest.raises(ConfigError, match='"policy_value" teaches no action values, by which search'):
        check_experiment(from_dict(table))
    check_experiment(from_dict({**table, "training": {"loss": "action_value_hl_gauss"}}))
