"""Targets that self-play gives for nothing, the opponent's reply and the plies left, and what is learnt of them."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stopping import StopAfter, share_trainer

from alphagateau import config
from alphagateau.config import ConfigError, TargetsConfig
from alphagateau.config.losses import heads_of
from alphagateau.games.symmetry import edges_from_other_side, mirror_edges
from alphagateau.games.variants import get_game
from alphagateau.networks.chessformer.config import ChessformerConfig
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.network import Evaluation
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.newest import newest_checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.checks import check_experiment, check_heads
from alphagateau.training.frames import Frame, Trajectory
from alphagateau.training.losses.auxiliary import (
    auxiliary_terms,
    bin_of,
    moves_left,
    reply_edge,
    search_value,
    short_term,
    soften,
)
from alphagateau.training.losses.policy_value import policy_value_loss, reduce_terms
from alphagateau.training.selfplay.window_phase import make_to_frames

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"
LABELLED = SMOKE.with_name("labelled_gardner.toml")
E2, E4, E5, E7 = 33, 35, 36, 38  # squares of 8x8, as white sees them


def edge(game, sender, receiver, promotion=0) -> int:
    found = (game.senders == sender) & (game.receivers == receiver) & (game.promotions == promotion)
    return int(np.flatnonzero(found)[0])


def played(edges, discounts) -> Trajectory:
    """One row that played these edges."""
    columns = {"edge": jnp.int16(edges)[:, None], "discount": jnp.float32(discounts)[:, None]}
    others: dict[str, Any] = dict.fromkeys(Trajectory._fields)
    zeros = jnp.zeros((len(edges), 1))
    return Trajectory(**(others | columns | {"reward": zeros, "search_value": zeros}))


def test_replies_and_plies_left_by_hand():
    """A game of three plies, then two of the next; a player who moves twice is not answered."""
    trajectory = played([5, 6, 7, 8, 9], [-1, -1, 0, -1, -1])
    assert reply_edge(trajectory)[:, 0].tolist() == [6, 7, -1, 9, -1]
    assert moves_left(trajectory)[:, 0].tolist() == [3, 2, 1, -1, -1]
    assert reply_edge(played([5, 6, 7], [1, -1, -1]))[:, 0].tolist() == [-1, 7, -1]


def test_frames_hold_only_the_targets_that_heads_ask_for():
    trajectory = played([5, 6], [-1, 0])
    for heads, names in (({}, []), ({"reply_head": True}, ["reply_edge"]), ({"moves_left_head": True}, ["moves_left"])):
        frames = make_to_frames(TargetsConfig(), heads_of(GateauConfig(**heads)))(trajectory)
        assert list(frames.extra) == names
        assert all(x.dtype == jnp.int16 for x in frames.extra.values())


def test_a_move_of_the_other_side_is_between_the_same_squares():
    """Black's e7e5 is played as e2e4 is, and lies between e7 and e5 for white; promotions reach the first rank."""
    chess = get_game("chess")
    other = edges_from_other_side(chess)
    assert other[edge(chess, E2, E4)] == edge(chess, E7, E5)
    a7, a8, a2, a1 = 6, 7, 1, 0
    assert {other[edge(chess, a7, a8, promotion)] for promotion in (0, 2, 3, 4)} == {edge(chess, a2, a1)}
    mirrored = mirror_edges(chess)
    np.testing.assert_array_equal(mirrored[other], other[mirrored])


@pytest.mark.parametrize("name", ["gardner_chess", "los_alamos_chess"])
def test_the_other_side_of_the_other_side_is_this_one(name):
    game = get_game(name)
    other = edges_from_other_side(game)
    plain = np.flatnonzero(game.promotions == 0)
    np.testing.assert_array_equal(other[other[plain]], plain)


def test_the_terms_of_the_heads_by_hand(gardner):
    """One reply of probability 1/2 and one not known; 30 plies left where 10 were said, and 4 where 6 were."""
    num = 2
    position = jax.tree.map(lambda x: jnp.broadcast_to(x, (num, *x.shape)), gardner.position(gardner.init()))
    reply = 17
    logits = jnp.zeros((num, gardner.num_edges))
    at = edges_from_other_side(gardner)[reply]
    logits = logits.at[0, at].set(np.log(gardner.num_edges - 1))
    policy = jnp.zeros((num, gardner.max_legal_moves), jnp.float16).at[:, 0].set(1)
    extra = {"reply_edge": jnp.int16([reply, -1]), "moves_left": jnp.int16([30, 4])}
    frames = Frame(position, policy, jnp.zeros(num), jnp.ones(num, bool), extra=extra)
    said = Evaluation(
        jnp.zeros((num, gardner.num_edges)),
        jnp.zeros(num),
        {"reply_logits": logits, "moves_left": jnp.float32([10, 6])},
    )
    total, metrics = reduce_terms(policy_value_loss(gardner, said, frames))
    np.testing.assert_allclose(metrics["reply_loss"], 0.15 * np.log(2) / 2, rtol=1e-5)
    assert metrics["reply_accuracy"] == 1
    # beyond half a unit of 20 plies the loss is linear: 0.5 * (1 - 0.25); within, 0.1 ** 2 / 2
    np.testing.assert_allclose(metrics["moves_left_loss"], (0.375 + 0.005) / 2, rtol=1e-5)
    np.testing.assert_allclose(metrics["moves_left_error"], 11)
    terms = ("policy_loss", "value_loss", "reply_loss", "moves_left_loss")
    np.testing.assert_allclose(total, sum(metrics[name] for name in terms), rtol=1e-6)

    unknown = frames._replace(extra={"reply_edge": jnp.int16([-1, -1]), "moves_left": jnp.int16([-1, -1])})
    plain, _ = reduce_terms(policy_value_loss(gardner, said._replace(extra={}), frames))
    np.testing.assert_array_equal(reduce_terms(policy_value_loss(gardner, said, unknown))[0], plain)


def test_frames_without_the_target_of_a_head_are_refused(gardner):
    """It was `KeyError: 'reply_edge'`."""
    frames = Frame(None, None, jnp.zeros(1), jnp.ones(1, bool))
    said = Evaluation(jnp.zeros((1, gardner.num_edges)), jnp.zeros(1), {"reply_logits": jnp.zeros(1)})
    with pytest.raises(ConfigError, match="no target of head 'reply_edge': make_selfplay"):
        auxiliary_terms(gardner, said, frames)


def test_a_loss_that_does_not_learn_a_head_is_refused():
    with pytest.raises(ConfigError, match=r"network\.reply_head must be false for training\.loss"):
        check_heads("behavioral_cloning", GateauConfig(reply_head=True))


def test_a_mean_of_the_next_values_by_hand():
    """Searches said .6, -.2, .4, then the last mover mated; and of a game that goes on the last mean is its value."""
    trajectory = played([1, 2, 3], [-1, -1, 0])._replace(
        search_value=jnp.float32([[0.6], [-0.2], [0.4]]), reward=jnp.float32([[0], [0], [1]])
    )
    np.testing.assert_allclose(short_term(trajectory)[:, 0], [0.752778, -0.783333, 0.9], atol=1e-3)
    np.testing.assert_allclose(search_value(trajectory)[:, 0], [0.6, -0.2, 0.4], atol=1e-3)
    going_on = trajectory._replace(discount=-jnp.ones((3, 1)), reward=jnp.zeros((3, 1)))
    np.testing.assert_allclose(short_term(going_on)[1:, 0], [-0.2 / 6 - 5 / 6 * 0.4, 0.4], atol=1e-3)
    twice = going_on._replace(discount=jnp.ones((3, 1)))  # the same player moves again
    np.testing.assert_allclose(short_term(twice)[1:, 0], [-0.2 / 6 + 5 / 6 * 0.4, 0.4], atol=1e-3)


def test_softer_policies_and_bins_by_hand():
    np.testing.assert_allclose(soften(jnp.float32([16 / 17, 1 / 17, 0])), [2 / 3, 1 / 3, 0], rtol=1e-6)
    assert soften(jnp.zeros(3)).tolist() == [0, 0, 0]
    assert bin_of(jnp.float32([-1, 0, 1]), 32).tolist() == [0, 16, 31]


def test_a_predicted_error_is_learnt_without_pulling_at_the_value(gardner):
    """Value -.5 where .5 is right, error .25 where 1 is: losses 1 and .5625; of bins 32 equal ones cost ln 32 / 10."""
    position = jax.tree.map(lambda x: x[None], gardner.position(gardner.init()))
    frames = Frame(
        position, jnp.zeros((1, 1)), jnp.zeros(1), jnp.zeros(1, bool), None, {"short_term": jnp.float16([0.5])}
    )

    def terms(value):
        extra = {"short_term": value, "short_term_error": jnp.float32([0.25]), "short_term_bins": jnp.zeros((1, 32))}
        return auxiliary_terms(gardner, Evaluation(jnp.zeros((1, 1)), jnp.zeros(1), extra), frames).minimized

    found = terms(jnp.float32([-0.5]))
    want = {"short_term_loss": 1.0, "short_term_error_loss": 0.5625, "short_term_bins_loss": 0.1 * np.log(32)}
    assert {name: float(x[0]) for name, x in found.items()} == pytest.approx(want, rel=1e-5)
    slope = jax.grad(lambda value: terms(value)["short_term_error_loss"].sum())(jnp.float32([-0.5]))
    assert slope[0] == 0


def test_the_soft_policy_learns_the_softened_target(gardner):
    """Even logits over all legal moves cost 8 ln(their number), whatever the target; a cheap frame nothing."""
    position = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, *x.shape)), gardner.position(gardner.init()))
    policy = jnp.zeros((2, gardner.max_legal_moves)).at[:, :2].set(jnp.float32([16 / 17, 1 / 17]))
    frames = Frame(position, policy, jnp.zeros(2), jnp.zeros(2, bool), jnp.array([True, False]))
    said = Evaluation(jnp.zeros((2, 1)), jnp.zeros(2), {"soft_logits": jnp.zeros((2, gardner.num_edges))})
    num_legal = int((gardner.init().legal_edges >= 0).sum())
    loss = auxiliary_terms(gardner, said, frames).minimized["soft_policy_loss"]
    np.testing.assert_allclose(loss, [8 * np.log(num_legal), 0], rtol=1e-5)


def test_heads_without_targets_or_loss_are_refused():
    learnt = ChessformerConfig(soft_policy_head=True, search_value_head=True, short_term_head=True)
    check_heads("policy_value", learnt)
    assert [head.name for head in heads_of(learnt) if head.target] == ["search_value", "short_term"]
    for name in ("soft_policy_head", "search_value_head", "short_term_head"):
        with pytest.raises(ConfigError, match=f"network.{name} must be false"):
            check_heads("behavioral_cloning", ChessformerConfig(**{name: True}))
    with pytest.raises(ConfigError, match=r"network\.short_term_head must be false with \[data\]"):
        check_experiment(config.change(config.load(LABELLED), {
            "network.architecture": "chessformer", "network.short_term_head": True
        }))  # fmt: skip


@pytest.mark.whole
def test_a_run_learns_win_draw_and_loss_replies_and_plies_left(tmp_path):
    experiment = config.change(
        config.load(SMOKE),
        {
            "num_iterations": 1,
            "evaluation.num_games": 0,
            "network.value_head": "wdl",
            "network.reply_head": True,
            "network.moves_left_head": True,
            "training.loss": "policy_wdl",
            "training.mirror": True,
        },
    )
    assert loop.train(experiment, tmp_path / "smoke", StopRequest())
    row = read_metrics(tmp_path / "smoke" / "metrics.jsonl")[-1]
    terms = [row[f"train/{name}_loss"] for name in ("policy", "value", "reply", "moves_left")]
    np.testing.assert_allclose(row["train/loss"], sum(terms), rtol=1e-5)
    assert row["train/reply_loss"] > 0 and np.isfinite(terms).all()


def chessformer_experiment(num_iterations: int) -> config.Experiment:
    """With all heads, NAdam in steps and an average of weights."""
    names = ["reply_head", "moves_left_head", "soft_policy_head", "search_value_head", "short_term_head"]
    return config.change(
        config.load(SMOKE),
        {
            "num_iterations": num_iterations,
            "evaluation.num_games": 0,
            "network.architecture": "chessformer",
            "network.num_heads": 2,
            "network.ffn_size": 8,
            "network.value_head": "wdl",
            "network.categorical_values": True,
            **{f"network.{name}": True for name in names},
            "training.loss": "policy_wdl",
            "training.mirror": True,
            "training.optimizer": "nadam",
            "training.beta2": 0.98,
            "training.schedule": "steps",
            "training.average_decay": 0.9,
        },
    )


@pytest.mark.whole
def test_a_run_of_chessformer_learns_all_its_heads_and_goes_on_bit_for_bit(tmp_path, monkeypatch):
    experiment = chessformer_experiment(2)
    share_trainer(monkeypatch, experiment)
    assert loop.train(experiment, tmp_path / "whole", StopRequest())
    assert not loop.train(experiment, tmp_path / "cut", StopAfter(3))
    assert loop.train(experiment, tmp_path / "cut", StopRequest())
    assert (
        newest_checkpoint(tmp_path / "cut").manifest["weights_hash"]
        == newest_checkpoint(tmp_path / "whole").manifest["weights_hash"]
    )
    row = read_metrics(tmp_path / "whole" / "metrics.jsonl")[-1]
    parts = ["policy", "value", "reply", "moves_left", "soft_policy"]
    parts += [f"{name}{of}" for name in ("search_value", "short_term") for of in ("", "_error", "_bins")]
    np.testing.assert_allclose(row["train/loss"], sum(row[f"train/{name}_loss"] for name in parts), rtol=1e-5)
