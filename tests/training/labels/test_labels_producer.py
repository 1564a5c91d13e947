"""Frames from labelled boards: which rows an iteration reads, what becomes of them, and a run that learns from them."""

import dataclasses
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from command_lines import read_experiment
from random_games import random_records
from stopping import StopAfter, share_trainer

from alphagateau import config
from alphagateau.config import ConfigError, DataConfig, Experiment
from alphagateau.config.losses import LOSSES
from alphagateau.data.label_files import UNIT, Unit, finish
from alphagateau.data.packed import LARGEST, NO_VALUE, Boards, Moves, open_packed
from alphagateau.data.positions import boards_of
from alphagateau.data.tables import LABELS, write_table
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.actions import legal_edge_mask
from alphagateau.games.notation import board_edges, board_from_fen
from alphagateau.games.scores import MATE
from alphagateau.games.variants import get_game
from alphagateau.networks.network import Evaluation, Network
from alphagateau.networks.tokens.config import TokenTransformerConfig
from alphagateau.runs import checkpoint
from alphagateau.runs.files import write_text
from alphagateau.runs.logging.log import read_metrics
from alphagateau.runs.stop import StopRequest
from alphagateau.training import loop
from alphagateau.training.frames import ACTION_KNOWN, ACTION_SLOT, ACTION_VALUE, Frame
from alphagateau.training.labels.labelled_frames import to_frames
from alphagateau.training.labels.measures import choose_boards, make_held_out
from alphagateau.training.labels.producer import (
    DataState,
    check_target,
    make_board_held_out,
    make_data_producer,
    make_records,
    open_columns,
    put_rows,
    sample_rows,
)
from alphagateau.training.plan import BoardPlan

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"


def material(board) -> int:
    """Centipawns for the player to move."""
    worth = {1: 1, 2: 3, 3: 3, 4: 5, 5: 9, 6: 0}
    return sum(100 * worth[p.piece_type] * (1 if p.color == board.turn else -1) for p in board.piece_map().values())


@pytest.fixture(scope="module")
def labels(gardner, tmp_path_factory) -> Path:
    """Boards of random games, each move worth the material after it."""
    folder, rows = tmp_path_factory.mktemp("labels"), []
    for seen in [seen for record in random_records(gardner, 4, seed=5) for seen in boards_of(gardner, record)]:
        board = board_from_fen(gardner, seen.fen)
        moves, scores = board_edges(gardner, board), []
        for uci in moves.values():
            board.push_uci(uci)
            scores.append(MATE - 1 if board.is_checkmate() else -material(board))
            board.pop()
        row = {"fen": seen.fen, "game": 1, "ply": seen.ply, "count": 1, "state_score": max(scores), "failed": ""}
        rows.append(row | {"edges": list(moves), "scores": scores, "depths": [1] * len(moves)})
    manifest = {"format": 1, "game": gardner.name, "target": "actions", "engine": {}, "boards": {}, "unit": UNIT}
    identity = json.dumps(manifest, sort_keys=True)
    write_text(folder / "manifest.json", json.dumps(manifest))
    for name, part in (("train-00000", rows[:200]), ("test-00000", rows[200:220])):
        columns = {key: [row[key] for row in part] for key in LABELS.names}
        write_table(folder / f"{name}.parquet", columns, LABELS, {"board": gardner.name, "labels": identity})
    finish(folder, [Unit("train-00000", []), Unit("test-00000", [])], identity)
    return folder


@pytest.fixture(scope="module")
def experiment(labels, tmp_path_factory):
    """The smoke experiment, with labels in place of games."""
    text = SMOKE.read_text()
    start, end = text.index("[selfplay]"), text.index("[", text.index("[selfplay]") + 1)
    data = f'[data]\npath = "{labels}"\nframes_per_iteration = 96\ntest_boards = 16\n\n'
    path = tmp_path_factory.mktemp("experiments") / "labelled.toml"
    path.write_text((text[:start] + data + text[end:]).replace("[network]", "[network]\nhistory = false"))
    options = ["--training.batch-size", "32", "--training.segment-steps", "2", "--evaluation.num-games", "0"]
    return read_experiment(path, [*options, "--training.learning-rate", "0.01"])


def test_an_epoch_reads_each_row_once_in_an_order_of_its_own():
    """Ten rows, four an iteration: iterations 0 to 4 are two whole epochs."""
    stream = np.concatenate([sample_rows(np.ones(10), 3, "uniform", iteration, 4) for iteration in range(5)])
    assert sorted(stream[:10]) == sorted(stream[10:]) == list(range(10))
    assert stream[:10].tolist() != stream[10:].tolist()
    np.testing.assert_array_equal(sample_rows(np.ones(10), 3, "uniform", 2, 4), stream[8:12])


def test_a_weighted_sampler_draws_by_counts():
    """A row of no count is never drawn, one of three times the count three times as often."""
    found = np.bincount(sample_rows(np.array([1, 0, 3]), 0, "weighted", 0, 8000), minlength=3)
    assert found[1] == 0 and abs(found[2] / found[0] - 3) < 0.25


def three_boards() -> Boards:
    """Boards with labels of two moves, of none and of one; they occurred once, five times and three times."""
    values = np.full((3, 4), NO_VALUE, np.uint16)
    values[0, [0, 3]], values[2, 1] = (10, 20), 30
    return Boards(**dict.fromkeys(Boards._fields))._replace(action_value=values, count=np.array([1, 5, 3]))


def test_an_epoch_of_moves_reads_each_labelled_move_once():
    data = DataConfig(path="", record="move", frames_per_iteration=3)
    records = make_records(three_boards(), data, 7)
    assert records.number == 3
    for iteration in range(3):
        rows, slots = records.sample(iteration)
        assert sorted(zip(rows.tolist(), slots[:, 0].tolist(), strict=True)) == [(0, 0), (0, 3), (2, 1)]


def test_weighted_moves_are_drawn_as_often_as_their_boards_occurred():
    data = DataConfig(path="", record="move", sampler="weighted", frames_per_iteration=5000)
    rows, slots = make_records(three_boards(), data, 7).sample(0)
    found = {move: 0 for move in [(0, 0), (0, 3), (2, 1)]}
    for move in zip(rows.tolist(), slots[:, 0].tolist(), strict=True):
        found[move] += 1
    shares = np.array(list(found.values())) / 5000
    np.testing.assert_allclose(shares, [0.2, 0.2, 0.6], atol=0.03)


def test_boards_without_labelled_moves_hold_no_records():
    boards = three_boards()
    boards.action_value[:] = NO_VALUE
    with pytest.raises(ConfigError, match="holds no labelled move"):
        make_records(boards, DataConfig(path="x", record="move"), 0)


def test_fewer_boards_are_spread_evenly_over_the_labelled_ones(gardner, labels):
    whole = open_packed(labels, "train")
    some = open_columns(DataConfig(path=str(labels), train_boards=50), gardner, "action_value_log")
    for name in Boards._fields:
        np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[np.arange(50) * 4])
    for number in (0, 200, 1000):
        assert (
            len(open_columns(DataConfig(path=str(labels), train_boards=number), gardner, "policy_value").count) == 200
        )
    held_out = open_columns(DataConfig(path=str(labels), train_boards=5), gardner, "policy_value", "test")
    assert len(held_out.count) == 20


def test_a_frame_of_a_move_holds_its_label_alone(labels):
    columns = open_packed(labels, "train")
    boards, slot = Boards(*(np.array(column[:32]) for column in columns)), np.full((32, 1), 1, np.int16)
    make = jax.jit(to_frames, static_argnums=1)
    frames, whole = (jax.device_get(make(rows, 0.0)) for rows in (Moves(boards, slot), boards))
    for name in (ACTION_VALUE, ACTION_KNOWN):
        np.testing.assert_array_equal(frames.extra[name], whole.extra[name][:, 1:2])
    assert (frames.extra[ACTION_SLOT] == 1).all()
    np.testing.assert_array_equal(frames.policy_target, whole.policy_target)


def test_frames_hold_what_the_labels_say(gardner, labels):
    columns = open_packed(labels, "train")
    rows = Boards(*(np.array(column[:32]) for column in columns))
    frames = jax.device_get(jax.jit(to_frames, static_argnums=1)(rows, 0.0))
    np.testing.assert_allclose(frames.value_target, 2 * (rows.state_value / LARGEST) - 1, atol=1e-6)
    assert (frames.policy_target.argmax(axis=-1) == rows.best).all() and frames.policy_mask.all()
    legal = np.asarray(legal_edge_mask(gardner, frames.position)).sum(axis=-1)
    assert (frames.extra[ACTION_KNOWN].sum(axis=-1) == legal).all()
    best = frames.extra[ACTION_VALUE].max(axis=-1)
    np.testing.assert_allclose(frames.extra[ACTION_VALUE][np.arange(32), rows.best], best)
    soft = jax.device_get(jax.jit(to_frames, static_argnums=1)(rows, 0.1)).policy_target.astype(np.float32)
    expected = np.where(frames.extra[ACTION_KNOWN], np.exp((frames.extra[ACTION_VALUE] - best[:, None]) / 0.1), 0)
    np.testing.assert_allclose(soft, expected / expected.sum(axis=-1, keepdims=True), atol=2e-3)
    assert (frames.position.boards[:, 1:] == 0).all() and (frames.position.repeated == 0).all()


def test_a_move_to_clone_is_learnt_at_any_temperature(labels):
    """It has no value, and the target was all 0."""
    columns = open_packed(labels, "train")
    rows = Boards(*(np.array(column[:2]) for column in columns))
    rows.action_value[0] = NO_VALUE
    hard, soft = (np.asarray(to_frames(rows, temperature).policy_target) for temperature in (0.0, 0.1))
    np.testing.assert_array_equal(soft[0], hard[0])
    assert hard[0].sum() == 1 and soft[1].max() < 1


def test_boards_are_mirrored_only_if_the_experiment_says_so(gardner, labels, experiment):
    """Of those drawn position and labels change together; the others are the same."""
    data = dataclasses.replace(experiment.data, test_boards=0)
    mesh, shares = make_mesh(experiment.num_shares), np.arange(experiment.num_shares)
    rows = put_rows(
        open_columns(data, gardner, "policy_value"), np.arange(data.frames_per_iteration), len(shares), mesh
    )

    def first_batch(mirror: bool) -> Frame:
        training = dataclasses.replace(experiment.training, mirror=mirror)
        asked = dataclasses.replace(experiment, data=data, training=training)
        producer = make_data_producer(BoardPlan(asked, gardner, Network(None, None)), data, mesh)  # pyright: ignore
        take = jax.jit(lambda state, key: producer.batches(state, key, shares)(0))
        return jax.device_get(take(DataState(rows), jax.random.key(3)))

    plain, mirrored = first_batch(False), first_batch(True)
    moved = (plain.position.boards != mirrored.position.boards).any(axis=(1, 2))
    assert 0 < moved.sum() < len(moved)
    same_values = (plain.extra[ACTION_VALUE] == mirrored.extra[ACTION_VALUE]).all(axis=1)
    assert same_values[~moved].all() and not same_values[moved].all()


def test_labels_of_another_game_are_refused(labels, experiment):
    with pytest.raises(ConfigError, match="holds labels of gardner_chess, expected chess"):
        open_columns(experiment.data, get_game("chess"), "policy_value")


@pytest.mark.parametrize(
    ("target", "loss", "expected"),
    [
        ("states", "action_value_hl_gauss", "'actions'"),
        ("best", "all_labels_log", "'actions'"),
        ("states", "behavioral_cloning", "'best' or 'actions'"),
        ("states", "policy_wdl", "'actions' or 'best'"),
        ("best", "state_value_l2", ""),
        ("actions", "state_value_l2", ""),
        ("best", "policy_value", ""),
    ],
)
def test_labels_that_lack_what_the_loss_learns_are_refused(tmp_path, target, loss, expected):
    manifest = {"game": "chess", "target": target}
    if not expected:
        check_target(tmp_path, manifest, loss)
        return
    with pytest.raises(
        ConfigError, match=f"holds labels of '{target}', expected {expected} for training.loss '{loss}'"
    ):
        check_target(tmp_path, manifest, loss)


def test_shards_have_labels_of_one_kind_alone(tmp_path):
    manifest = {"game": "chess", "target": "actions", "shards": {}}
    check_target(tmp_path, manifest, "action_value_log")
    with pytest.raises(ConfigError, match="holds shards of 'actions', expected 'states' for "):
        check_target(tmp_path, manifest, "state_value_log")
    with pytest.raises(ConfigError, match="expected labels of `alphagateau label` for "):
        check_target(tmp_path, manifest, "all_labels_log")


def by_moves(experiment: Experiment) -> Experiment:
    """The experiment with action values, learnt by a token transformer from a move a frame."""
    heads: dict[str, Any] = {"policy_head": False, "value_head": "none", "action_values": True, "num_bins": 16}
    return dataclasses.replace(
        experiment,
        network=TokenTransformerConfig(hidden_size=16, num_blocks=2, num_heads=2, **heads),
        data=dataclasses.replace(experiment.data, record="move"),
        training=dataclasses.replace(experiment.training, loss="action_value_log"),
    )


def test_published_shards_are_data_too(tmp_path):
    """A Bagz file of one record: the length of the FEN, the FEN, of the move, the move, a double; then its end."""
    game = get_game("chess")
    record = struct.pack("B", len(game.start_fen)) + game.start_fen.encode() + b"\x04e2e4" + struct.pack(">d", 0.75)
    path = tmp_path / "action_value_data.bag"
    path.write_bytes(record + struct.pack("<q", len(record)))
    columns = open_columns(DataConfig(path=str(path)), game, "action_value_log")
    assert columns.best.shape == (1,) and columns.action_value[0, columns.best[0]] == round(0.75 * LARGEST)
    with pytest.raises(ConfigError, match=r"action_value_data.bag\) holds labels of chess, expected gardner_chess"):
        open_columns(DataConfig(path=str(path)), get_game("gardner_chess"), "action_value_log")


def test_held_out_boards_are_spread_over_the_games_and_measured_by_the_loss(gardner, labels):
    """20 boards, of which a network that says nothing finds ln(number of moves) of the policy, and q = 1/2."""
    columns = open_packed(labels, "test")
    assert choose_boards(columns, 5).ply.tolist() == columns.ply[::4].tolist()
    assert len(choose_boards(columns, 10**6).count) == 20
    network = Network(lambda key: {}, lambda variables, positions, train: (silent(gardner, positions), {}))
    loss = LOSSES["all_labels_l2"].terms
    found = make_held_out(choose_boards(columns, 8), gardner, network, loss, 0.0, make_mesh(8))({})
    frames = to_frames(choose_boards(columns, 8), 0.0)
    num_legal = legal_edge_mask(gardner, frames.position).sum(axis=-1)
    assert found["test/policy_loss"] == pytest.approx(np.log(num_legal).mean(), rel=1e-5)
    off = np.abs(np.asarray(frames.extra[ACTION_VALUE]) - 0.5)[np.asarray(frames.extra[ACTION_KNOWN])]
    assert found["test/action_value_error"] == pytest.approx(off.mean(), rel=1e-5)
    assert "test/calibration" not in found


def silent(game, positions) -> Evaluation:
    """Even logits and values of 1/2, of a network that says one number of states and moves."""
    batch = len(positions.ply)
    extra = {
        "value_logits": np.full((batch, 1), 0.5),
        "action_value_logits": np.full((batch, game.max_legal_moves, 1), 0.5),
    }
    return Evaluation(
        jax.numpy.zeros((batch, game.num_edges)), jax.numpy.zeros(batch), jax.tree.map(jax.numpy.asarray, extra)
    )


def test_shards_have_no_held_out_boards(gardner, tmp_path, experiment):
    (tmp_path / "action_value_data.bag").write_bytes(b"")
    data = DataConfig(path=str(tmp_path), test_boards=8)
    with pytest.raises(ConfigError, match=r"data.test_boards must be 0: data.path .* holds shards"):
        make_board_held_out(BoardPlan(experiment, gardner, Network(dict, dict)), data, make_mesh(8))


@pytest.mark.whole
@pytest.mark.parametrize("record", ["board", "move"])
def test_a_run_learns_from_labels_and_goes_on_bit_for_bit(experiment, record, labels, tmp_path, monkeypatch):
    experiment = by_moves(experiment) if record == "move" else experiment
    share_trainer(monkeypatch, experiment)
    assert loop.train(experiment, tmp_path / "whole", StopRequest())
    assert not loop.train(experiment, tmp_path / "parts", StopAfter(5))
    assert list((tmp_path / "parts" / "checkpoints").glob("*-stopped"))
    assert loop.train(experiment, tmp_path / "parts", StopRequest())
    last = str(experiment.num_iterations)
    hashes = [checkpoint.open_checkpoint(tmp_path / run / "checkpoints" / last) for run in ("whole", "parts")]
    assert hashes[0].manifest["weights_hash"] == hashes[1].manifest["weights_hash"]
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    name = "train/action_value_loss" if record == "move" else "train/policy_loss"
    assert rows[-1][name] < rows[0][name]
    measured = "test/action_value_error" if record == "move" else "test/policy_loss"
    assert 0 < rows[-1][measured] < 10
    number = 200 if record == "board" else (open_packed(labels, "train").action_value != NO_VALUE).sum()
    assert rows[-1]["data/epochs"] == pytest.approx(96 * experiment.num_iterations / number, rel=1e-5)
    monkeypatch.setattr(loop.files, "file_hash", lambda path: "others")
    with pytest.raises(ConfigError, match=r"whole learnt from other labels than those of data.path now"):
        loop.train(experiment, tmp_path / "whole", StopRequest())


@pytest.mark.whole
def test_devices_share_what_an_iteration_reads(experiment, tmp_path):
    """One and two of them learn from the same boards: the losses differ by rounding."""
    path, rows = tmp_path / "labelled.toml", []
    path.write_text(config.dumps(dataclasses.replace(experiment, aim=False, num_iterations=1)))
    for number in ("1", "2"):
        words = ["train", str(path), "--cpu-devices", number, "--runs", str(tmp_path), "--run", number]
        subprocess.run([sys.executable, "-m", "alphagateau.commands.main", *words], check=True)
        (device,) = json.loads((tmp_path / number / "run.json").read_text())["starts"][0]["devices"]
        assert re.match(r"cpu .+", device)  # one CPU, however many devices it is
        rows.append(read_metrics(tmp_path / number / "metrics.jsonl")[0])
    for name in ("train/policy_loss", "train/value_loss"):
        assert rows[0][name] == pytest.approx(rows[1][name], rel=1e-3)
