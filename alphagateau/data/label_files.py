"""Folders of labels: manifest.json, a part for each unit of boards, failed.jsonl; each file is whole or not there."""

import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from filelock import FileLock, Timeout

from alphagateau.data.bagz import TARGETS, find_shards, shards_manifest
from alphagateau.data.positions import SPLITS
from alphagateau.data.tables import BOARDS, LABELS, DataError, read_table, write_table
from alphagateau.games.entries import GAMES
from alphagateau.games.rules import Game
from alphagateau.runs.files import file_hash, read_bounded, reason, remove_half_written, write_text

UNIT = 256  # boards of a part
FORMAT = 1
MAX_BYTES = 2**26  # of a manifest, which has some 90 of each part
FILES = ("parts", "shards")  # keys of a manifest that name files beside it


class LabelJob(NamedTuple):
    """Boards to label, and how. A player's job leaves the keys of an engine unused."""

    game: Game
    boards: Path  # folder of train.parquet and test.parquet
    output: Path
    command: str
    options: Mapping[str, str]
    nodes: int
    target: str  # "actions": all legal moves and the state; "states": the state; "best": the state and its best move
    clear: str  # "move" or "board": before which the hash table is emptied
    workers: int
    timeout: float  # seconds of a search
    known: Path | None = None  # folder of labels that are taken over for the boards in it
    multipv: bool = False  # one search, of so many nodes a move, scores all moves of a board


class Unit(NamedTuple):
    """Boards whose labels are one file."""

    name: str  # such as train-00012
    boards: list[dict[str, Any]]
    source: str = ""  # their file
    first: int = 0  # row of the first of them there


def part_path(folder: Path, unit: Unit) -> Path:
    return folder / f"{unit.name}.parquet"


def read_units(job: LabelJob) -> list[Unit]:
    """The units of both splits. Raises DataError."""
    units: list[Unit] = []
    for split in SPLITS:
        path = job.boards / f"{split}.parquet"
        table, about = read_table(path, BOARDS)
        if about.get("board") != job.game.name:
            raise DataError(f"{path} holds boards of {about.get('board')}, expected {job.game.name}")
        units += [
            Unit(f"{split}-{number:05}", table.slice(start, UNIT).to_pylist(), str(path), start)
            for number, start in enumerate(range(0, table.num_rows, UNIT))
        ]
    return units


def write_parts(
    job: LabelJob,
    identity: str,
    units: list[Unit],
    should_stop: Callable[[], bool],
    label_unit: Callable[[Unit], list[dict[str, Any]] | None],
) -> None:
    """Writes the parts that are missing and that nobody else has locked; `label_unit` returns None where stopped."""
    locks = job.output / ".locks"
    locks.mkdir(exist_ok=True)
    for unit in units:
        if should_stop():
            return
        path = part_path(job.output, unit)
        with suppress(Timeout), FileLock(locks / unit.name, timeout=0):
            if not path.exists() and (labels := label_unit(unit)) is not None:
                columns = {name: [row[name] for row in labels] for name in LABELS.names}
                write_table(path, columns, LABELS, {"board": job.game.name, "labels": identity})


def labels_manifest(job: LabelJob, engine: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a job's labels by an engine or a player; `engine`: its name and what its labels depend on."""
    return {
        "format": FORMAT,
        "game": job.game.name,
        "target": job.target,
        "engine": dict(engine),
        "boards": {split: file_hash(job.boards / f"{split}.parquet") for split in SPLITS},
        "unit": UNIT,
    }


def identity_of(manifest: Mapping[str, Any]) -> str:
    """The mark of every part of a manifest's labels."""
    return json.dumps({key: value for key, value in manifest.items() if key != "parts"}, sort_keys=True)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Writes manifest.json, or checks that it is of the same labels, and its parts whole; returns their identity."""
    path = folder / "manifest.json"
    with FileLock(folder / ".manifest.lock"):
        if not path.exists() or not any(folder.glob("t*-*.parquet")):  # of a labelling that labelled nothing
            write_text(path, json.dumps(manifest, indent=1))
        there = read_manifest(folder)
    for key, value in manifest.items():
        if there.get(key) != value:
            raise DataError(
                f"{path} has {key} {json.dumps(there.get(key))}, not {json.dumps(value)}: use another folder"
            )
    check_parts(folder, there)  # else `finish` would take a damaged one for the labels
    return identity_of(manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a folder of labels, or one made for Bagz shards. Raises DataError."""
    path = folder / "manifest.json"
    if not path.exists() and (shards := find_shards(folder)):
        return shards_manifest(shards)
    try:
        found = {"engine": None, **json.loads(read_bounded(path, MAX_BYTES))}
        if not {"game", "target"} <= found.keys() or not isinstance(found["engine"], dict):
            raise ValueError("it lacks game, target or a table engine")
        if found["game"] not in GAMES or any(Path(n).name != n for key in FILES for n in found.get(key, ())):
            raise ValueError("it names a board that there is not, or files elsewhere")
        if not isinstance(found.get("parts", {}), dict) or ("shards" in found and found.get("kind") not in TARGETS):
            raise ValueError("it names parts without their hashes, or shards of no known kind")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path} is no manifest of labels: {reason(error)}") from None
    return found


def finish(folder: Path, units: list[Unit], identity: str) -> bool:
    """False if parts are missing; else checks them, writes failed.jsonl, and the parts' hashes into manifest.json."""
    paths = {unit.name: part_path(folder, unit) for unit in units}
    if not all(path.exists() for path in paths.values()):
        return False
    failed = [
        json.dumps({"part": name, "row": number, "fen": row["fen"], "why": row["failed"]})
        for name, path in paths.items()
        for number, row in enumerate(read_part(path, identity).to_pylist())
        if row["failed"]
    ]
    parts = {name: file_hash(path) for name, path in paths.items()}
    with FileLock(folder / ".manifest.lock"):
        remove_half_written(folder)
        write_text(folder / "failed.jsonl", "".join(f"{line}\n" for line in failed))
        write_text(folder / "manifest.json", json.dumps({**json.loads(identity), "parts": parts}, indent=1))
    shutil.rmtree(folder / ".locks", ignore_errors=True)
    return True


def check_parts(folder: Path, manifest: Mapping[str, Any], split: str = "") -> None:
    """Raises DataError for a part, of a split or of all, that is there without the hash that a manifest has of it."""
    for name, digest in manifest.get("parts", {}).items():
        path = folder / f"{name}.parquet"
        if name.startswith(split) and path.is_file() and file_hash(path) != digest:
            raise DataError(f"{path} does not have the hash in its manifest.json: delete it, and label again")


def read_part(path: Path, identity: str) -> pa.Table:
    """The rows of a part. Raises DataError if it is damaged, or of other labels than `identity`."""
    table, about = read_table(path, LABELS)
    if about.get("labels") != identity:
        raise DataError(f"{path} holds labels of another engine, other options or other boards than its manifest.json")
    return table
