"""The published shards of ChessBench in, their records out (Ruoss et al. 2024; files `*_data.bag`).

A Bagz file is its records, then their ends as int64; the last of these, its last 8 bytes, is also where they begin. A
record is coded as Apache Beam codes a tuple: a string but the last field has its length before it, a number is a
big-endian double.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from alphagateau.data.tables import DataError

Kind = Literal["action_value", "state_value", "behavioral_cloning"]


TARGETS = {"action_value": "actions", "state_value": "states", "behavioral_cloning": "best"}


class Record(NamedTuple):
    """One label of ChessBench."""

    fen: str
    move: str  # UCI; "" of a state's value
    win: float  # probability in [0, 1] for the player to move; NaN of a move to clone


def find_shards(path: Path) -> list[Path]:
    """The Bagz files that a path is or holds, by name; none if it is something else."""
    if path.suffix == ".bag":
        return [path]
    return sorted(path.glob("*.bag")) if path.is_dir() else []


def describe_shards(shards: list[Path]) -> dict[str, Any]:
    """What a manifest of labels would say of shards. Raises DataError if they are of several kinds, or of none."""
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


def read_bag(path: Path, kind: Kind) -> Iterator[Record]:
    """The records of a shard. Raises DataError, naming file and record, for one that is damaged or of another kind."""
    try:
        content = np.memmap(path, np.uint8, "r")
        (start,) = struct.unpack("<q", content[-8:].tobytes())
        ends = np.frombuffer(content[start:].tobytes(), "<i8")
    except (OSError, ValueError, struct.error) as error:
        raise DataError(f"{path} cannot be read as Bagz: {getattr(error, 'strerror', None) or error}") from None
    first = 0
    if start < 0 or not len(ends) or ends[-1] != start or (np.diff(ends, prepend=0) < 0).any():
        raise DataError(f"{path} cannot be read as Bagz: its index is damaged or it is cut short")
    for number, end in enumerate(ends.tolist()):
        try:
            yield decode(content[first:end].tobytes(), kind)
        except (ValueError, struct.error, IndexError):
            raise DataError(f"{path}, record {number}: expected a record of {kind}") from None
        first = end


def decode(record: bytes, kind: Kind) -> Record:
    """Raises ValueError, IndexError or struct.error for bytes that are no such record."""
    fen, rest = _string(record)
    if kind == "behavioral_cloning":
        return Record(fen, _checked(rest.decode("ascii")), float("nan"))
    move = ""
    if kind == "action_value":
        move, rest = _string(rest)
        _checked(move)
    (win,) = struct.unpack(">d", rest)
    if not 0 <= win <= 1:
        raise ValueError("no probability")
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


def _checked(move: str) -> str:
    if len(move) not in (4, 5):
        raise ValueError("no move")
    return move
