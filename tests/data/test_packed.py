"""Columns of labels: what is read by row is what was labelled, and nothing else is."""

import json
import shutil
from pathlib import Path

import chess
import jax
import numpy as np
import pytest

from alphagateau.data import packed as packing
from alphagateau.data.label_files import UNIT, Unit, finish
from alphagateau.data.packed import LARGEST, NO_VALUE, labels_of_row, open_packed, pack_labels
from alphagateau.data.tables import LABELS, DataError, write_table
from alphagateau.games.notation import board_edges, board_from_fen, from_fen
from alphagateau.games.scores import MATE, NO_SCORE, win_probability
from alphagateau.games.variants import get_game
from alphagateau.runs.files import write_text

CHESS = get_game("chess")
FENS = [CHESS.start_fen, "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kq d6 0 42", "4k3/8/8/8/8/8/3p4/2R2K2 b - - 4 60"]


def row_of(fen: str, skip: int = 0, **changes) -> dict:
    """Labels of all legal moves but the first `skip`: 10 cp more each."""
    edges = list(board_edges(CHESS, board_from_fen(CHESS, fen)))[skip:]
    row = {"fen": fen, "game": 1, "ply": 0, "count": 2, "state_score": 50, "edges": edges}
    row |= {"scores": [10 * k for k in range(len(edges))], "depths": [3] * len(edges), "failed": ""}
    return row | changes


def pack(*found: dict, mate_value: str = "certain"):
    """The columns of rows of a part."""
    return pack_labels(CHESS, [labels_of_row(f"p.parquet, row {n}", row, mate_value) for n, row in enumerate(found)])


def test_a_row_holds_the_position_and_its_labels():
    packed = pack(*(row_of(fen) for fen in FENS))
    for number, fen in enumerate(FENS):
        state = from_fen(CHESS, fen)
        position = jax.device_get(jax.jit(CHESS.position)(state))
        np.testing.assert_array_equal(packed.board[number], position.boards[0])
        for name in ("color", "castling", "en_passant", "halfmove_count", "ply", "legal"):
            np.testing.assert_array_equal(getattr(packed, name)[number], getattr(position, name))
        moves = chess.Board(fen).legal_moves.count()
        expected = np.rint(win_probability(np.arange(0, 10 * moves, 10)) * LARGEST)
        np.testing.assert_array_equal(packed.action_value[number, :moves], expected)
        assert (packed.action_value[number, moves:] == NO_VALUE).all()
        assert packed.best[number] == moves - 1 and packed.count[number] == 2
    assert packed.state_value[0] == round(LARGEST / (1 + np.exp(-0.00368208 * 50)))


def test_mates_are_certain_and_moves_without_a_label_have_none():
    """Labelled from the third move on: a loss, no score, then wins; of two mates the first slot is best."""
    scores = [3 - MATE, NO_SCORE, MATE - 5, MATE - 1]
    row = row_of(FENS[0], skip=2)
    row |= {"edges": row["edges"][:4], "scores": scores}
    packed = pack(row)
    assert packed.action_value[0, :7].tolist() == [NO_VALUE, NO_VALUE, 0, NO_VALUE, LARGEST, LARGEST, NO_VALUE]
    assert packed.best[0] == 4


def test_graded_mates_are_worth_less_the_slower_they_are(labels):
    """In 1, 5 and 30 moves, and against the mover in 2; what is no mate stays."""
    scores = [MATE - 1, MATE - 5, MATE - 30, 2 - MATE, 100]
    found = win_probability(scores, "graded")
    np.testing.assert_allclose(found, [1 - 1 / 500, 1 - 5 / 500, 1 - 20 / 500, 2 / 500, 0.591026], atol=5e-7)
    row = row_of(FENS[0])
    row |= {"edges": row["edges"][:5], "scores": scores}
    packed = pack(row, mate_value="graded")
    assert packed.action_value[0, :2].tolist() == [round(0.998 * LARGEST), round(0.99 * LARGEST)]
    assert pack(row).action_value[0, :2].tolist() == [LARGEST, LARGEST]
    open_packed(labels, "train", "graded"), open_packed(labels, "train")
    assert {path.name for path in labels.glob("packed-*")} == {"packed-train", "packed-train-graded"}


def test_an_illegal_move_and_a_fen_of_another_game_are_refused():
    with pytest.raises(DataError, match=r"^p.parquet, row 1: a labelled move of .* is not legal"):
        pack(row_of(FENS[0]), row_of(FENS[0], edges=[4000], scores=[1]))
    with pytest.raises(DataError, match=r"^p.parquet, row 2: FEN .* has a wrong board"):
        pack(row_of(FENS[0]), row_of(FENS[1]), row_of(FENS[0]) | {"fen": "5/5/5/5/5 w - - 0 1"})


@pytest.fixture
def labels(tmp_path):
    """A finished folder: two parts for training, one for tests, one failed board."""
    manifest = {"format": 1, "game": "chess", "target": "actions", "engine": {}, "boards": {}, "unit": UNIT}
    identity = json.dumps(manifest, sort_keys=True)
    write_text(tmp_path / "manifest.json", json.dumps(manifest))
    parts = {
        "train-00000": [row_of(FENS[0]), row_of(FENS[1], failed="it hung", edges=[], scores=[])],
        "train-00001": [row_of(FENS[2])],
        "test-00000": [row_of(FENS[1])],
    }
    for name, found in parts.items():
        columns = {key: [row[key] for row in found] for key in LABELS.names}
        write_table(tmp_path / f"{name}.parquet", columns, LABELS, {"board": "chess", "labels": identity})
    finish(tmp_path, [Unit(name, []) for name in parts], identity)
    return tmp_path


def test_parts_become_columns_without_failed_boards(labels):
    for _ in range(2):  # packed, then found
        packed = open_packed(labels, "train")
        assert packed.board.shape == (2, 64) and isinstance(packed.board, np.memmap)
        np.testing.assert_array_equal(packed.color, [0, 1])
    assert open_packed(labels, "test").ply.tolist() == [82]


def test_columns_are_written_some_boards_at_a_time(labels, monkeypatch):
    """One board a block: the same bytes, and numpy reads what was appended as its own."""
    whole = {path.name: path.read_bytes() for path in packed_files(labels)}
    blocks: list[int] = []
    monkeypatch.setattr(packing, "CHUNK", 1)
    monkeypatch.setattr(packing, "pack_labels", lambda game, some: blocks.append(len(some)) or pack_labels(game, some))
    shutil.rmtree(labels / "packed-train")
    assert {path.name: path.read_bytes() for path in packed_files(labels)} == whole and blocks == [1, 1]
    assert np.load(labels / "packed-train" / "count.npy").tolist() == [2, 2]


def test_columns_are_packed_where_a_link_leads(labels, tmp_path):
    """All boards were packed beside the link, and then could not have its name."""
    (tmp_path / "disk" / "packed").mkdir(parents=True)
    (labels / "packed-train").symlink_to(tmp_path / "disk" / "packed")
    assert open_packed(labels, "train").count.tolist() == [2, 2]
    assert (labels / "packed-train").is_symlink() and (tmp_path / "disk" / "packed" / "packed.json").exists()


def packed_files(labels) -> list[Path]:
    open_packed(labels, "train")
    return sorted((labels / "packed-train").iterdir())


def test_columns_that_are_cut_off_or_gone_are_packed_anew(labels):
    whole = {path.name: path.read_bytes() for path in packed_files(labels)}
    (labels / "packed-train" / "board.npy").write_bytes(whole["board.npy"][:150])
    (labels / "packed-train" / "ply.npy").unlink()
    assert {path.name: path.read_bytes() for path in packed_files(labels)} == whole


@pytest.mark.parametrize("changes", [{"edges": [None] * 20}, {"scores": [None]}, {"scores": []}])
def test_a_row_that_is_not_whole_is_refused(changes):
    with pytest.raises(DataError, match=r"^p.parquet, row 0 is not whole: expected no nulls"):
        labels_of_row("p.parquet, row 0", {**row_of(FENS[0]), **changes})


def test_a_part_that_changed_is_named(labels):
    part = labels / "train-00001.parquet"
    part.write_bytes((labels / "test-00000.parquet").read_bytes())
    with pytest.raises(DataError, match=r"train-00001.parquet does not have the hash"):
        open_packed(labels, "train")


def test_labels_that_are_not_finished_are_refused(labels):
    manifest = json.loads((labels / "manifest.json").read_text())
    names = list(manifest.pop("parts"))
    for wrong, said in (
        ({}, "is not labelled to its end"),
        ({"parts": names}, "hashes"),
        ({"shards": []}, "no known kind"),
    ):
        (labels / "manifest.json").write_text(json.dumps(manifest | wrong))
        with pytest.raises(DataError, match=said):
            open_packed(labels, "train")
