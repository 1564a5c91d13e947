"""Shards of ChessBench, from files written here as Bagz and Beam lay them down."""

import struct
from pathlib import Path

import pytest

from alphagateau.data.bagz import Record, decode, read_bag
from alphagateau.data.tables import DataError

FEN = "8/8/8/8/8/8/8/K1k5 w - - 0 1"
PUBLISHED = b"\x1c" + FEN.encode() + b"\x04a1b1" + bytes.fromhex("3fe2e9af2470dd79")  # as Beam 2.77 codes it


def write_bag(path: Path, records: list[bytes]) -> Path:
    ends, total = [], 0
    for record in records:
        total += len(record)
        ends.append(total)
    path.write_bytes(b"".join(records) + struct.pack(f"<{len(ends)}q", *ends))
    return path


def test_a_published_record_is_read():
    assert decode(PUBLISHED, "action_value") == Record(FEN, "a1b1", 0.5910258971916128)


def test_a_shard_gives_its_records_in_order(tmp_path):
    other = b"\x1c" + FEN.encode() + b"\x05a7a8q" + struct.pack(">d", 1.0)
    shard = write_bag(tmp_path / "action_value.bag", [PUBLISHED, other, PUBLISHED])
    assert [(r.move, r.win) for r in read_bag(shard, "action_value")] == [
        ("a1b1", 0.5910258971916128),
        ("a7a8q", 1.0),
        ("a1b1", 0.5910258971916128),
    ]


def test_the_other_kinds_have_fewer_fields(tmp_path):
    long = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3".ljust(140)  # its length takes two bytes
    state = b"\x8c\x01" + long.encode() + struct.pack(">d", 0.25)
    assert list(read_bag(write_bag(tmp_path / "s.bag", [state]), "state_value")) == [Record(long, "", 0.25)]
    (cloned,) = read_bag(write_bag(tmp_path / "b.bag", [b"\x1c" + FEN.encode() + b"a1b1"]), "behavioral_cloning")
    assert cloned[:2] == (FEN, "a1b1")


def test_a_damaged_shard_is_named(tmp_path):
    shard = write_bag(tmp_path / "whole.bag", [PUBLISHED] * 3)
    cut = tmp_path / "cut.bag"
    cut.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"cut.bag cannot be read as Bagz"):
        list(read_bag(cut, "action_value"))
    with pytest.raises(DataError, match=r"whole.bag, record 0: expected a record of state_value"):
        list(read_bag(shard, "state_value"))
    mixed = write_bag(tmp_path / "mixed.bag", [PUBLISHED, b"\x1c" + FEN.encode() + b"a1b1"])
    with pytest.raises(DataError, match=r"mixed.bag, record 1"):
        list(read_bag(mixed, "action_value"))
