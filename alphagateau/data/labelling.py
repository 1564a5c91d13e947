"""Labels boards by an engine: units of boards, each a file that is whole or not there.

A label depends on the board, the engine, its options and the nodes alone: each search begins from an empty hash table,
or all searches of a board do, in the order of its edges. So workers, their number, their order and kills cannot change
a byte.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock

from alphagateau.data.bagz import describe_shards, find_shards
from alphagateau.data.crew import OWN_OPTIONS, Crew, Known, Order, Pace, Unit, part_path, start
from alphagateau.data.positions import SPLITS
from alphagateau.data.tables import BOARDS, LABELS, DataError, file_hash, read_table, rows
from alphagateau.engines.engine import EngineError
from alphagateau.games.entries import GAME_NAMES
from alphagateau.runs.files import remove_half_written, write_text
from alphagateau.runs.programs import split_command

UNIT = 256  # boards of a part
FORMAT = 1
FILES = ("parts", "shards")  # keys of a manifest that name files beside it


def label(order: Order, should_stop: Callable[[], bool], tell: Callable[[Pace], None]) -> bool:
    """Labels what is not labelled yet; True once all is, False if it was stopped before.

    Several processes, on one machine or several that share the folder, may work at once. Where nothing is left to do no
    engine is started. Raises DataError.
    """
    order.output.mkdir(parents=True, exist_ok=True)
    units = [unit for split in SPLITS for unit in read_units(order, split)]
    if is_finished(order, units):
        shutil.rmtree(order.output / ".locks", ignore_errors=True)  # of who was killed in the last moment
        return True
    try:
        first = start(order, should_stop)
    except EngineError as error:
        if should_stop():
            return False
        raise DataError(str(error)) from None
    try:
        if order.multipv and first.most_lines < order.game.max_legal_moves:
            raise DataError(
                f"engine {order.command!r} shows at most {first.most_lines} moves (MultiPV), and boards of "
                f"{order.game.name} have up to {order.game.max_legal_moves}"
            )
        manifest = describe(order, describe_engine(order, first.name, first.options))
        known = read_known(order, identity_of(manifest))  # may refuse the order, which then claims nothing
        identity = claim(order.output, manifest)
    except BaseException:
        first.close()
        raise
    crew = Crew(order, identity, units, known, should_stop, tell)
    crew.work(first)
    if crew.failure:
        raise crew.failure
    if any(not part_path(order.output, unit).exists() for unit in units):
        return False
    finish(order.output, units, identity)
    return True


def read_units(order: Order, split: str) -> list[Unit]:
    """The units of a split."""
    path = order.boards / f"{split}.parquet"
    table, about = read_table(path, BOARDS)
    if about.get("board") != order.game.name:
        raise DataError(f"{path} holds boards of {about.get('board')}, expected {order.game.name}")
    cut = range(0, table.num_rows, UNIT)
    return [
        Unit(f"{split}-{number:05}", rows(table.slice(start, UNIT)), str(path), start)
        for number, start in enumerate(cut)
    ]


def is_finished(order: Order, units: list[Unit]) -> bool:
    """Whether the labels asked for are all there, as far as can be told without the engine."""
    try:
        there = read_manifest(order.output)
        engine, parts = there.pop("engine"), there.pop("parts")
        name, options = engine["name"], engine["options"]
        left = {key.lower(): value for key, value in options.items()}
    except (DataError, KeyError, TypeError, AttributeError):
        return False
    asked = {key.lower(): value for key, value in order.options.items()}
    own = {key.lower(): value for key, value in {**OWN_OPTIONS, "UCI_Variant": order.game.uci_variant}.items()}
    if any(value != {**own, **asked}.get(key) for key, value in left.items()) or not asked.keys() <= left.keys():
        return False
    paths = {unit.name: part_path(order.output, unit) for unit in units}
    is_whole = all(path.exists() for path in [*paths.values(), order.output / "failed.jsonl"])
    is_same = {**there, "engine": engine} == describe(order, describe_engine(order, name, options))
    return is_whole and is_same and parts == {unit: file_hash(path) for unit, path in paths.items()}


def describe_engine(order: Order, name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """What the manifest says of an engine of this name with these options."""
    program = shutil.which((split_command(order.command) or [""])[0])
    return {
        "name": name,
        "sha256": file_hash(Path(program)) if program else "",
        "options": options,
        "nodes": order.nodes,
        "clear": order.clear,
        **({"multipv": True} if order.multipv else {}),
    }


def describe(order: Order, engine: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of an order's labels, by an engine or a player of which this is known."""
    return {
        "format": FORMAT,
        "game": order.game.name,
        "target": order.target,
        "engine": dict(engine),
        "boards": {split: file_hash(order.boards / f"{split}.parquet") for split in SPLITS},
        "unit": UNIT,
    }


def claim(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Writes manifest.json, or checks that the one there is of the same labels; a hash of it marks every part."""
    path = folder / "manifest.json"
    with FileLock(folder / ".manifest.lock"):
        if not path.exists():
            write_text(path, json.dumps(manifest, indent=1))
        there = read_manifest(folder)
    there.pop("parts", None)
    for key, value in manifest.items():
        if there.get(key) != value:
            raise DataError(
                f"{path} has {key} {json.dumps(there.get(key))}, not {json.dumps(value)}: use another folder"
            )
    return identity_of(manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """manifest.json of a folder of labels, or what is known of Bagz shards. Raises DataError."""
    path = folder / "manifest.json"
    if not path.exists() and (shards := find_shards(folder)):
        return describe_shards(shards)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not {"game", "target", "engine"} <= found.keys():
            raise ValueError("it does not say game, target and engine")
        if found["game"] not in GAME_NAMES or any(Path(n).name != n for key in FILES for n in found.get(key, ())):
            raise ValueError("it names a board that there is not, or files elsewhere")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path} is no manifest of labels: {getattr(error, 'strerror', None) or error}") from None
    return found


def read_known(order: Order, identity: str) -> Known:
    """The labels of `order.known`, which may be unfinished, without those that failed.

    Raises DataError if they are not what the engine would say again: of another target, engine, options or nodes.
    """
    if order.known is None:
        return lambda fen: None
    there, wanted = read_manifest(order.known), json.loads(identity)
    for key in ("format", "game", "target", "engine"):
        if there.get(key) != wanted[key]:
            raise DataError(
                f"{order.known} has labels whose {key} is {json.dumps(there.get(key))}, not {json.dumps(wanted[key])}"
            )
    identity = identity_of(there)
    parts = sorted(path for split in SPLITS for path in order.known.glob(f"{split}-*.parquet"))
    if not parts:
        raise DataError(f"{order.known} has no labels yet")
    table = pa.concat_tables([read_part_table(path, identity) for path in parts]).combine_chunks()
    is_labelled = zip(table["fen"].to_pylist(), table["failed"].to_pylist(), strict=True)
    places = {fen: place for place, (fen, why) in enumerate(is_labelled) if not why}

    def known(fen: str) -> dict[str, Any] | None:
        return rows(table.slice(places[fen], 1))[0] if fen in places else None

    return known


def finish(folder: Path, units: list[Unit], identity: str) -> None:
    """Checks that all parts are of these labels; then failed.jsonl, and the parts' hashes in manifest.json."""
    failed: list[str] = []
    for unit in units:
        for number, row in enumerate(read_part(folder, unit.name, identity)):
            if row["failed"]:
                failed.append(json.dumps({"part": unit.name, "row": number, "fen": row["fen"], "why": row["failed"]}))
    parts = {unit.name: file_hash(part_path(folder, unit)) for unit in units}
    with FileLock(folder / ".manifest.lock"):
        remove_half_written(folder)
        write_text(folder / "failed.jsonl", "".join(f"{line}\n" for line in failed))
        write_text(folder / "manifest.json", json.dumps({**json.loads(identity), "parts": parts}, indent=1))
    shutil.rmtree(folder / ".locks", ignore_errors=True)


def identity_of(manifest: Mapping[str, Any]) -> str:
    """What marks every part of the labels of a manifest."""
    return json.dumps({key: value for key, value in manifest.items() if key != "parts"}, sort_keys=True)


def read_part(folder: Path, name: str, identity: str) -> Iterator[dict[str, Any]]:
    """The rows of a part. Raises DataError if it is damaged, or of other labels than `identity`."""
    yield from rows(read_part_table(folder / f"{name}.parquet", identity))


def read_part_table(path: Path, identity: str) -> pa.Table:
    """As `read_part`, not yet cut into rows."""
    table, about = read_table(path, LABELS)
    if about.get("labels") != identity:
        raise DataError(f"{path} holds labels of another engine, other options or other boards than manifest.json says")
    return table
