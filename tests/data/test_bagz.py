"""Shards of ChessBench, from files written here as Bagz and Beam lay them down."""

import struct
from pathlib import Path

import chess
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alphagateau.data.bagz import Record, by_board, decode, open_bag
from alphagateau.data.label_files import read_manifest
from alphagateau.data.packed import LARGEST, NO_VALUE, open_packed
from alphagateau.data.tables import BOARDS, DataError, read_table, write_table
from alphagateau.games.notation import from_fen, legal_moves
from alphagateau.games.variants import get_game

FEN = "8/8/8/8/8/8/8/K1k5 w - - 0 1"
PUBLISHED = b"\x1c" + FEN.encode() + b"\x04a1b1" + bytes.fromhex("3fe2e9af2470dd79")  # as Beam 2.77 codes it


def write_bag(path: Path, records: list[bytes]) -> Path:
    ends, total = [], 0
    for record in records:
        total += len(record)
        ends.append(total)
    path.write_bytes(b"".join(records) + struct.pack(f"<{len(ends)}q", *ends))
    return path


def read_bag(path: Path, kind) -> list[Record]:
    bag = open_bag(path, kind)
    return [bag.record(number) for number in range(len(bag.ends))]


def test_a_published_record_is_read():
    assert decode(PUBLISHED, "action_value") == Record(FEN, "a1b1", 0.5910258971916128)


def test_a_shard_gives_its_records_in_order(tmp_path):
    other = b"\x1c" + FEN.encode() + b"\x05a7a8q" + struct.pack(">d", 1.0)
    shard = write_bag(tmp_path / "action_value.bag", [PUBLISHED, other, PUBLISHED])
    assert [numbers.tolist() for numbers in by_board(open_bag(shard, "action_value"))] == [[0, 1, 2]]
    assert [(r.move, r.win) for r in read_bag(shard, "action_value")] == [
        ("a1b1", 0.5910258971916128),
        ("a7a8q", 1.0),
        ("a1b1", 0.5910258971916128),
    ]


def test_the_other_kinds_have_fewer_fields(tmp_path):
    long = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3".ljust(140)  # its length takes two bytes
    state = b"\x8c\x01" + long.encode() + struct.pack(">d", 0.25)
    assert read_bag(write_bag(tmp_path / "s.bag", [state]), "state_value") == [Record(long, "", 0.25)]
    (cloned,) = read_bag(write_bag(tmp_path / "b.bag", [b"\x1c" + FEN.encode() + b"a1b1"]), "behavioral_cloning")
    assert cloned[:2] == (FEN, "a1b1")


def test_a_damaged_shard_is_named(tmp_path):
    shard = write_bag(tmp_path / "whole.bag", [PUBLISHED] * 3)
    cut = tmp_path / "cut.bag"
    cut.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"cut.bag cannot be read as Bagz"):
        read_bag(cut, "action_value")
    with pytest.raises(DataError, match=r"whole.bag, record 0: expected a record of state_value"):
        read_bag(shard, "state_value")
    mixed = write_bag(tmp_path / "mixed.bag", [PUBLISHED, b"\x1c" + FEN.encode() + b"a1b1"])
    with pytest.raises(DataError, match=r"mixed.bag, record 1"):
        read_bag(mixed, "action_value")


def coded(fen: str, move: str | None, win: float | None) -> bytes:
    """A record as Beam codes it; the last field has no length."""
    text = struct.pack("B", len(fen)) + fen.encode()
    if win is None:
        return text + str(move).encode()
    return text + (struct.pack("B", len(move)) + move.encode() if move else b"") + struct.pack(">d", win)


START = chess.STARTING_FEN
BLACK = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
LATE = "8/8/8/8/8/2k5/8/K6R w - - 0 300"  # a finished game here


def test_action_values_of_shards_are_packed_a_row_a_board(tmp_path):
    """Two moves of one board are one row; a board beyond the ply limit is left out; shards are read by name."""
    first = [coded(START, "e2e4", 0.6), coded(BLACK, "e7e5", 0.25), coded(LATE, "h1h3", 0.5), coded(START, "a2a3", 0.5)]
    write_bag(tmp_path / "action_value-00000-of-00002_data.bag", first)
    write_bag(tmp_path / "action_value-00001-of-00002_data.bag", [coded(START, "e2e4", 1.0)])
    packed = open_packed(tmp_path, "train")
    assert packed.color.tolist() == [0, 1, 0] and read_manifest(tmp_path)["target"] == "actions"
    assert isinstance(packed.board, np.memmap) and packed.board.shape == (3, 64)
    slots = [list(legal_moves(get_game("chess"), from_fen(get_game("chess"), fen))) for fen in (START, BLACK)]
    values = packed.action_value
    assert values[0, slots[0].index("e2e4")] == round(0.6 * LARGEST) and (values[0] != NO_VALUE).sum() == 2
    assert values[1, slots[1].index("e7e5")] == round(0.25 * LARGEST) and (values[1] != NO_VALUE).sum() == 1
    assert packed.best.tolist() == [slots[0].index("e2e4"), slots[1].index("e7e5"), slots[0].index("e2e4")]
    assert (packed.state_value == NO_VALUE).all()
    again = (tmp_path / "packed" / "board.npy").stat().st_mtime_ns
    open_packed(tmp_path, "test")
    assert (tmp_path / "packed" / "board.npy").stat().st_mtime_ns == again


def test_state_values_and_best_moves_are_packed_too(tmp_path):
    shard = write_bag(tmp_path / "state_value_data.bag", [coded(START, None, 0.5), coded(BLACK, None, 0.4)])
    packed = open_packed(shard, "train")
    assert packed.state_value.tolist() == [round(0.5 * LARGEST), round(0.4 * LARGEST)] and (packed.best == -1).all()
    last_of_three = [coded(BLACK, move, None) for move in ("e7e5", "d7d5", "e7e5")]
    cloned = write_bag(tmp_path / "behavioral_cloning_data.bag", last_of_three)
    packed = open_packed(cloned, "test")
    moves = list(legal_moves(get_game("chess"), from_fen(get_game("chess"), BLACK)))
    assert packed.best.tolist() == [moves.index("e7e5")] and (packed.action_value == NO_VALUE).all()


def test_shards_that_cannot_be_packed_are_named(tmp_path):
    write_bag(tmp_path / "action_value_data.bag", [coded(BLACK, "e7e5", 0.6), coded(START, "e2e5", 0.6)])
    with pytest.raises(DataError, match=r"action_value_data.bag, record 1: the labelled move e2e5 of .* is not legal"):
        open_packed(tmp_path, "train")
    with pytest.raises(DataError, match=r'holds probabilities: expected mate_value "certain", got "graded"'):
        open_packed(tmp_path, "train", "graded")
    write_bag(tmp_path / "state_value_data.bag", [coded("8/8 w - - 0 1", None, 0.6)])
    with pytest.raises(DataError, match=r"state_value_data.bag, record 0: FEN .* has a wrong board"):
        open_packed(tmp_path / "state_value_data.bag", "train")
    with pytest.raises(DataError, match=r"expected shards of one kind, their names beginning with one of action_value"):
        open_packed(tmp_path, "train")
    with pytest.raises(DataError, match=r"none.bag: No such file"):
        open_packed(tmp_path / "action_value_none.bag", "train")


def test_a_shard_of_more_than_a_shard_has_is_refused(tmp_path, monkeypatch):
    shard = write_bag(tmp_path / "action_value.bag", [PUBLISHED] * 3 + [PUBLISHED * 99])
    with pytest.raises(DataError, match="record 3: 4,158 bytes, expected at most 4,096"):
        read_bag(shard, "action_value")
    monkeypatch.setattr("alphagateau.data.bagz.MAX_RECORDS", 3)
    with pytest.raises(DataError, match="its index has more than 3 records"):
        open_bag(shard, "action_value")


def test_a_table_of_more_than_memory_is_refused(tmp_path, monkeypatch):
    path, fens = tmp_path / "boards.parquet", ["x" * 100] * 5000
    write_table(path, {"fen": fens, "game": [0] * 5000, "ply": [0] * 5000, "count": [1] * 5000}, BOARDS, {"a": "b"})
    table, about = read_table(path, BOARDS)
    assert table.num_rows == 5000 and about["a"] == "b"
    named_alike = pa.table({"fen": fens[:1], "game": [0], "ply": [0], "count": [1]})
    pq.write_table(named_alike, tmp_path / "alike.parquet")
    with pytest.raises(DataError, match=r"has the columns .*ply: int64.*; expected .*ply: int"):
        read_table(tmp_path / "alike.parquet", BOARDS)
    monkeypatch.setattr("alphagateau.data.tables.MAX_BYTES", 2**18)
    with pytest.raises(DataError, match="more than 0 MB of rows"):
        read_table(path, BOARDS)
    monkeypatch.setattr("alphagateau.data.tables.MAX_ROWS", 4999)
    with pytest.raises(DataError, match="has 5,000 rows, expected at most 4,999"):
        read_table(path, BOARDS)
