"""The parts of an algorithm: shapes, and a learner that learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import alphagateau
from alphagateau.config import ConfigError
from alphagateau.training.losses.terms import LossTerms


@pytest.fixture(scope="module")
def parts():
    game = alphagateau.make_game("gardner_chess")
    network = alphagateau.make_network(game, {"hidden_size": 8, "num_blocks": 1})
    search = alphagateau.make_search(game, network, {"algorithm": "policy", "temperature": 1.0})
    return game, network, alphagateau.make_selfplay(game, search, num_games=4, num_plies=6)


def test_self_play_gives_frames_that_a_learner_learns(parts):
    game, network, selfplay = parts
    variables = network.init(jax.random.key(0))
    states, frames = jax.jit(selfplay.play)(variables, jax.random.key(1), selfplay.init())
    assert states.ply.tolist() == [6] * 4
    assert frames.policy_target.shape == (24, game.init().legal_edges.shape[0])
    assert np.allclose(frames.policy_target.sum(axis=-1), 1, atol=2e-3)
    assert not frames.value_mask.any()  # no game has ended
    learner = alphagateau.make_learner(game, network)
    state, step = learner.init(variables), jax.jit(learner.step)
    frames = frames._replace(policy_target=jax.nn.one_hot(jnp.zeros(24, int), frames.policy_target.shape[1]))
    losses = []
    for _ in range(30):
        state, metrics = step(state, frames)
        losses.append(float(metrics["policy_loss"]))
    assert losses[-1] < losses[0] - 0.1


def test_a_loss_of_ones_own_is_a_function(parts):
    game, network, selfplay = parts
    variables = network.init(jax.random.key(0))
    _, frames = jax.jit(selfplay.play)(variables, jax.random.key(1), selfplay.init())

    def loss(game, evaluation, frames):
        return LossTerms({"square": jnp.square(evaluation.value - 0.5)}, {}, {}, {})

    learner = alphagateau.make_learner(game, network, loss)
    _, metrics = jax.jit(learner.step)(learner.init(variables), frames)
    evaluation, _ = network.apply(variables, frames.position, True)
    assert metrics["square"] == pytest.approx(float(jnp.square(evaluation.value - 0.5).mean()), rel=1e-4)
    assert metrics["loss"] == metrics["square"]


def test_a_loss_of_a_head_that_the_network_has_not_is_said(parts):
    game, network, selfplay = parts
    variables = network.init(jax.random.key(0))
    frames = jax.eval_shape(selfplay.play, variables, jax.random.key(1), selfplay.init())[1]
    for loss, needed in ("policy_wdl", "'wdl_logits'"), ("state_value_l2", "'state_value'"):
        learner = alphagateau.make_learner(game, network, loss)
        with pytest.raises(
            ConfigError, match=f"the loss needs {needed}, which neither the network nor the frames have"
        ):
            jax.eval_shape(learner.step, learner.init(variables), frames)


def test_what_cannot_be_made_is_refused_in_one_sentence(parts):
    game, network, _ = parts
    with pytest.raises(ValueError, match="unknown game 'ches', did you mean 'chess'"):
        alphagateau.make_game("ches")
    with pytest.raises(ConfigError, match="hidden_sise"):
        alphagateau.make_network(game, {"hidden_sise": 8})
    with pytest.raises(TypeError, match='game must be a Game, as make_game returns it, got "gardner_chess"'):
        alphagateau.make_network("gardner_chess")  # type: ignore[arg-type]
    search = alphagateau.make_search(game, network)
    for make in (
        lambda game: alphagateau.make_search(game, network),
        lambda game: alphagateau.make_selfplay(game, search, 4, 4),
        lambda game: alphagateau.make_learner(game, network),
    ):
        with pytest.raises(TypeError, match='game must be a Game, as make_game returns it, got "gardner_chess"'):
            make("gardner_chess")
    for make in alphagateau.make_search, alphagateau.make_learner:
        for given, kind in ({"params": {}}, "a table"), ("gateau", '"gateau"'):
            with pytest.raises(TypeError, match=f"network must be a Network, as make_network returns it, got {kind}"):
                make(game, given)  # type: ignore[arg-type]
    for keys, kind in ("gateau", '"gateau"'), (network, "a Network"):  # which is what one would save
        with pytest.raises(ConfigError, match=f"network must be a table of keys, got {kind}"):
            alphagateau.save("mine", game, keys, {})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match='search must be a table of keys, got "gumbel"'):
        alphagateau.make_search(game, network, "gumbel")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="algorithm must be one of"):
        alphagateau.make_search(game, network, {"algorithm": "alphabeta"})
    with pytest.raises(ConfigError, match=r"loss must be one of .*policy_wdl"):
        alphagateau.make_learner(game, network, "hinge")
    with pytest.raises(ConfigError, match=r"head must be one of .*reply_edge"):
        alphagateau.make_selfplay(game, alphagateau.make_search(game, network), 4, 4, heads=("reply",))
    with pytest.raises(TypeError, match="heads must be a tuple of names, got 'reply_edge'"):
        alphagateau.make_selfplay(game, alphagateau.make_search(game, network), 4, 4, heads="reply_edge")
    with pytest.raises(TypeError, match="td_lamda"):  # all of these were taken, and failed within a trace
        alphagateau.make_selfplay(game, search, 4, 4, td_lamda=0.9)  # pyright: ignore[reportCallIssue]
    with pytest.raises(ConfigError, match="td_lambda must be"):
        alphagateau.make_selfplay(game, search, 4, 4, td_lambda=9.0)
    with pytest.raises(ConfigError, match="num_plies must be"):
        alphagateau.make_selfplay(game, search, 4, 0)
    with pytest.raises(TypeError, match=r"optimizer must be optax's, .* got 0.001"):
        alphagateau.make_learner(game, network, optimizer=1e-3)
