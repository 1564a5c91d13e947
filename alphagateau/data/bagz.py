"""Reads the published shards of ChessBench (Ruoss et al. 2024; files `*_data.bag`).

A Bagz file is its records, then their ends as int64; the last of these, its last 8 bytes, is also where they begin. A
record is coded as Apache Beam codes a tuple: a string but the last field has its length before it, a number is a
big-endian double.
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from alphagateau.data.tables import DataError

MAX_RECORDS = 2**26  # of a shard
MAX_RECORD = 4096  # bytes
T = TypeVar("T")
Kind = Literal["action_value", "state_value", "behavioral_cloning"]
TARGETS = {"action_value": "actions", "state_value": "states", "behavioral_cloning": "best"}


class Record(NamedTuple):
    """One label of ChessBench."""

    fen: str
    move: str  # UCI; "" of a state's value
    win: float  # probability in [0, 1] for the player to move; NaN of a move to clone


def find_shards(path: Path) -> list[Path]:
    """The Bagz file `path`, or those in the folder `path`, by name; none if it is something else."""
    if path.suffix == ".bag":
        return [path]
    return sorted(path.glob("*.bag")) if path.is_dir() else []


def shards_manifest(shards: list[Path]) -> dict[str, Any]:
    """A manifest of labels for shards. Raises DataError if they are of several kinds, or of none."""
    kinds = {next((kind for kind in TARGETS if shard.name.startswith(kind)), None) for shard in shards}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        expected = ", ".join(TARGETS)
        raise DataError(f"{shards[0]}: expected shards of one kind, their names beginning with one of {expected}")
    try:
        sizes = {shard.name: [shard.stat().st_size, shard.stat().st_mtime_ns] for shard in shards}
    except OSError as error:
        raise DataError(f"{error.filename}: {error.strerror}") from None
    return {"game": "chess", "target": TARGETS[kind], "engine": {"name": "ChessBench"}, "kind": kind, "shards": sizes}


class Bag(NamedTuple):
    """An open shard; its records stay on disk until they are read."""

    path: Path
    kind: Kind
    content: np.ndarray  # uint8, memory-mapped
    ends: np.ndarray  # int64 [records], rising

    def record(self, number: int) -> Record:
        """Raises DataError, naming file and record."""
        return self.read(number, lambda coded: decode(coded, self.kind))

    def read(self, number: int, decoded: Callable[[bytes], T]) -> T:
        """What a function makes of a record's bytes. Raises DataError, naming file and record."""
        start, end = int(self.ends[number - 1]) if number else 0, int(self.ends[number])
        if end - start > MAX_RECORD:
            raise DataError(f"{self.path}, record {number}: {end - start:,} bytes, expected at most {MAX_RECORD:,}")
        try:
            return decoded(self.content[start:end].tobytes())
        except (ValueError, struct.error, IndexError):
            raise DataError(f"{self.path}, record {number}: expected a record of {self.kind}") from None


def open_bag(path: Path, kind: Kind) -> Bag:
    """Raises DataError for a file that is damaged."""
    try:
        content = np.memmap(path, np.uint8, "r")
        (start,) = struct.unpack("<q", content[-8:].tobytes())
        if (len(content) - start) // 8 > MAX_RECORDS:
            raise ValueError(f"its index has more than {MAX_RECORDS:,} records")
        ends = np.frombuffer(content[start:].tobytes(), "<i8")
    except (OSError, ValueError, struct.error) as error:
        raise DataError(f"{path} cannot be read as Bagz: {getattr(error, 'strerror', None) or error}") from None
    if start < 0 or not len(ends) or ends[-1] != start or (np.diff(ends, prepend=0) < 0).any():
        raise DataError(f"{path} cannot be read as Bagz: its index is damaged or it is cut short")
    return Bag(path, kind, content, ends)


def by_board(bag: Bag) -> Iterator[np.ndarray]:
    """The numbers of a shard's records, those of a board together, boards in the order of their first records.

    Boards are told apart by 64 bits of a hash of the FEN, so that memory is some tens of bytes a record. Raises
    DataError, naming file and record.
    """
    count = len(bag.ends)
    hashes = np.fromiter((bag.read(number, _hash_of_fen) for number in range(count)), np.int64, count)
    _, first, board = np.unique(hashes, return_index=True, return_inverse=True)
    firsts = first[board]
    order = np.argsort(firsts, kind="stable")
    cuts = np.flatnonzero(np.diff(firsts[order], prepend=-1, append=count))
    return (order[start:end] for start, end in pairwise(cuts))


def _hash_of_fen(record: bytes) -> int:
    fen, _ = _string(record)
    return int.from_bytes(hashlib.blake2b(fen.encode(), digest_size=8).digest(), "big", signed=True)


def decode(record: bytes, kind: Kind) -> Record:
    """Raises ValueError, IndexError or struct.error for bytes that are no such record."""
    fen, rest = _string(record)
    if kind == "behavioral_cloning":
        move, win = rest.decode("ascii"), float("nan")
    else:
        move, rest = _string(rest) if kind == "action_value" else ("", rest)
        (win,) = struct.unpack(">d", rest)
        if not 0 <= win <= 1:
            raise ValueError("no probability")
    if kind != "state_value" and len(move) not in (4, 5):
        raise ValueError("no move")
    return Record(fen, move, win)


def _string(data: bytes) -> tuple[str, bytes]:
    """A string after its length (seven bits a byte, the lowest first), and what follows it."""
    length = shift = place = 0
    while True:
        byte = data[place]
        length |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            break
    if place + length > len(data):
        raise ValueError("cut short")
    return data[place : place + length].decode("ascii"), data[place + length :]
