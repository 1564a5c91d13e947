"""TD-Leaf: worked numbers, what trains and what does not, and a run that is cut and goes on."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from stopping import StopAfter, share_trainer

from alphagateau import config
from alphagateau.config import ConfigError, TargetsConfig
from alphagateau.games.rules import Game
from alphagateau.runs import checkpoint
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.checks import check_experiment
from alphagateau.training.frames import Trajectory
from alphagateau.training.selfplay.openings import read_starts
from alphagateau.training.selfplay.targets import td_errors, td_leaf_frames

EXPERIMENT = Path(__file__).parents[3] / "experiments" / "giraffe_gardner.toml"
VALUES = jnp.array([[0.10], [-0.30], [0.20], [0.40]])  # for the mover; White's: .10 .30 .20 -.40


def errors(discount: list[float], reward: list[float], stride: int = 1) -> tuple[list[float], list[bool]]:
    rewards, discounts = (jnp.array(x, jnp.float32)[:, None] for x in (reward, discount))
    targets = TargetsConfig(kind="td_leaf", td_lambda=0.7, td_stride=stride)
    error, is_known = td_errors(rewards, discounts, VALUES, targets)
    return [round(float(x), 4) for x in error[:, 0]], is_known[:, 0].tolist()


def test_errors_of_the_worked_example():
    """White's differences are .20 -.10 -.60; the last ply has none."""
    assert errors([-1, -1, -1, -1], [0, 0, 0, 0]) == ([-0.164, 0.52, -0.6, 0.0], [True, True, True, False])


def test_errors_against_the_same_players_next_turn():
    assert errors([-1, -1, -1, -1], [0, 0, 0, 0], 2) == ([0.1, 0.7, 0.0, 0.0], [True, True, False, False])


def test_the_end_of_a_game_stops_the_errors():
    """The second ply mates: what follows belongs to another game."""
    assert errors([-1, 0, -1, 0], [0, 1, 0, 0])[0] == [round(0.2 - 0.7 * 1.3, 4), 1.3, round(-0.6 + 0.7 * 0.4, 4), -0.4]
    found, is_known = errors([-1, 0, -1, -1], [0, 1, 0, 0], 2)
    assert found[:2] == [-1.1, 1.3] and is_known == [True, True, False, False]


def trajectory(game: Game, leaf_color: list[int], is_over: list[bool]) -> Trajectory:
    """Four plies of one game, beginning with White."""
    position = jax.tree.map(lambda x: jnp.broadcast_to(x, (4, 1, *x.shape)), game.position(game.init()))
    position = position._replace(color=jnp.array([[0], [1], [0], [1]], jnp.int8))
    zeros = jnp.zeros((4, 1))
    return Trajectory(
        position=position,
        policy_target=jnp.ones((4, 1, game.max_legal_moves), jnp.float16),
        edge=jnp.zeros((4, 1), jnp.int16),
        reward=zeros,
        discount=zeros - 1,
        prior_entropy=zeros,
        root_value=zeros,
        search_value=jnp.asarray(VALUES),
        leaf=position._replace(color=jnp.array(leaf_color, jnp.int8)[:, None]),
        leaf_is_over=jnp.array(is_over)[:, None],
    )


def test_the_leaf_learns_for_its_own_player_to_move(gardner):
    """Three plies down it is the opponent's turn: -( .10 - .164). A game's end, and the last ply, train nothing."""
    plies = trajectory(gardner, [1, 1, 0, 1], [False, True, False, False])
    frames = td_leaf_frames(plies, TargetsConfig(kind="td_leaf", td_lambda=0.7, learn_from="all"))
    np.testing.assert_allclose(frames.value_target[:, 0], [0.064, 0.22, -0.4, 0.4], atol=1e-6)
    assert frames.value_mask[:, 0].tolist() == [True, False, True, False]
    assert float(frames.policy_target.sum()) == 0 and frames.position.color[0, 0] == 1


def test_the_start_alone_learns_and_searched_positions_may_train_the_policy(gardner):
    plies = trajectory(gardner, [0, 1, 0, 1], [False] * 4)
    options = {"kind": "td_leaf", "td_lambda": 0.7, "max_error": 0.05}
    frames = td_leaf_frames(plies, TargetsConfig(**options))
    np.testing.assert_allclose(frames.value_target, [[0.05]], atol=1e-6)
    both = td_leaf_frames(plies, TargetsConfig(**options, root_policies=True))
    assert both.value_mask[:, 0].tolist() == [True, False, False, False, False]
    assert both.policy_target[:, 0].sum(axis=-1).tolist() == [0] + [gardner.max_legal_moves] * 4


def test_starts_come_from_a_file(gardner, tmp_path):
    path = tmp_path / "starts.fen"
    path.write_text("# two\n1k1n1/p4/2P2/4P/1K1R1 w - - 0 1\n\n1k1n1/p4/2P2/4P/1K1R1 b - -\n")
    starts = read_starts(gardner, str(path), 0)
    assert starts[1].tolist() == [0, 1] and starts[5].tolist() == [2, 3]
    path.write_text("1k1n1/p4/2P2/4P/1K1R1 x - - 0 1")
    with pytest.raises(ConfigError, match=r"^selfplay.starts, .*starts.fen line 1: FEN .* has a wrong side to move"):
        read_starts(gardner, str(path), 0)
    with pytest.raises(ConfigError, match=r"^selfplay.starts: nowhere cannot be read: No such file"):
        read_starts(gardner, "nowhere", 0)


def test_td_leaf_asks_for_a_search_with_lines():
    table = config.to_dict(config.load(EXPERIMENT))
    with pytest.raises(ConfigError, match=r'search.algorithm must be "probability" or "depth" for TD-Leaf'):
        config.from_dict({**table, "search": {"algorithm": "gumbel"}})
    with pytest.raises(ConfigError, match=r"targets.bootstrap has no meaning for TD-Leaf, got true"):
        config.from_dict({**table, "targets": {**table["targets"], "bootstrap": True}})


def test_a_split_is_a_checkpoint_whose_weights_do_not_change(tmp_path):
    """A run, whose newest checkpoint may change, is none; a checkpoint is told by its manifest."""
    table, place = config.to_dict(config.load(EXPERIMENT)), tmp_path / "moves" / "checkpoints" / "3"
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    check_experiment(config.from_dict({**table, "search": {**table["search"], "split": str(place)}}))
    for split in ("even", str(tmp_path / "moves")):
        with pytest.raises(ConfigError, match=r'^search.split must be "prior", "uniform" or a checkpoint, such as'):
            check_experiment(config.from_dict({**table, "search": {**table["search"], "split": split}}))


@pytest.mark.whole
def test_a_run_by_td_leaf_goes_on_bit_for_bit(tmp_path, monkeypatch):
    """Stopped inside an iteration by its own clock, and never stopped: the same weights."""
    starts = tmp_path / "starts.fen"
    starts.write_text("1k1n1/p4/2P2/4P/1K1R1 w - - 0 9\nrnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1\n")
    changes = {
        "num_iterations": 2,
        "aim": False,
        "selfplay.num_games": 8,
        "selfplay.num_plies": 4,
        "selfplay.segment_plies": 2,
        "selfplay.starts": str(starts),
        "search.num_nodes": 120,
        "window.size": 32,
        "training.batch_size": 16,
        "training.material_positions": 512,
        "evaluation.num_games": 0,
        "checkpoint_every": 1,
    }
    experiment = config.change(config.load(EXPERIMENT), changes)
    share_trainer(monkeypatch, experiment)
    hashes = []
    for name in ("whole", "cut"):
        if name == "cut":
            assert not loop.train(experiment, tmp_path / name, StopAfter(6))
        assert loop.train(experiment, tmp_path / name, StopRequest())
        found, _ = checkpoint.find(tmp_path / name / "checkpoints")
        hashes.append({c.order: c.manifest["weights_hash"] for c in found if c.order[1:] == (0, 0)})
    assert hashes[0] == hashes[1] and len(set(hashes[0].values())) == 3
