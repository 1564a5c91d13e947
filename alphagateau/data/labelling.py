"""Labels boards by a UCI engine.

A label depends on the board, the engine, its options and the nodes alone: each search begins from an empty hash table,
or all searches of a board do, in the order of its edges. So workers, their number, their order and kills cannot change
a byte.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from alphagateau.data import label_files, workers
from alphagateau.data.label_files import LabelJob, Unit
from alphagateau.data.positions import SPLITS
from alphagateau.data.tables import DataError
from alphagateau.data.workers import KnownLabels, Pace, Workers, open_engine
from alphagateau.engines.engine import EngineError
from alphagateau.runs.files import file_hash
from alphagateau.runs.programs import split_command


def label(job: LabelJob, should_stop: Callable[[], bool], report: Callable[[Pace], None]) -> bool:
    """Labels what is not labelled yet; True once all is, False if it was stopped before.

    Several processes, on one machine or several that share the folder, may work at once. Where nothing is left to do no
    engine is started. Raises DataError.
    """
    job.output.mkdir(parents=True, exist_ok=True)
    units = label_files.read_units(job)
    if is_finished(job, units):
        shutil.rmtree(job.output / ".locks", ignore_errors=True)  # of a process that was killed in the last moment
        return True
    try:
        first = open_engine(job, should_stop)
    except EngineError as error:
        if should_stop():
            return False
        raise DataError(str(error)) from None
    try:
        if job.multipv and first.most_lines < job.game.max_legal_moves:
            boards = f"boards of {job.game.name} have up to {job.game.max_legal_moves}"
            raise DataError(f"engine {job.command!r} shows at most {first.most_lines} moves (MultiPV), and {boards}")
        manifest = label_files.labels_manifest(job, engine_facts(job, first.name, first.options))
        known = read_known(job, manifest)  # may refuse the job, which then writes nothing
        threads = Workers(job, label_files.write_manifest(job.output, manifest), units, known, should_stop)
    except BaseException:
        first.close()
        raise
    threads.run(first, report)
    if threads.failure:
        raise threads.failure
    return label_files.finish(job.output, units, threads.identity)


def is_finished(job: LabelJob, units: list[Unit]) -> bool:
    """Whether all labels are there, as far as can be found without the engine."""
    try:
        there = label_files.read_manifest(job.output)
        engine, parts = there.pop("engine"), there.pop("parts")
        name, options = engine["name"], engine["options"]
        left = {key.lower(): value for key, value in options.items()}
    except (DataError, KeyError, TypeError, AttributeError):
        return False
    ours = {**workers.OWN_OPTIONS, "UCI_Variant": job.game.uci_variant, "UCI_Chess960": "true", **job.options}
    wanted = {key.lower(): value for key, value in ours.items()}  # the user's last
    if not left.items() <= wanted.items() or not {key.lower() for key in job.options} <= left.keys():
        return False
    paths = {unit.name: label_files.part_path(job.output, unit) for unit in units}
    is_whole = all(path.exists() for path in [*paths.values(), job.output / "failed.jsonl"])
    is_same = {**there, "engine": engine} == label_files.labels_manifest(job, engine_facts(job, name, options))
    return is_whole and is_same and parts == {unit: file_hash(path) for unit, path in paths.items()}


def engine_facts(job: LabelJob, name: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The manifest's facts of an engine with these options, on which its labels depend."""
    program = shutil.which((split_command(job.command) or [""])[0])
    return {
        "name": name,
        "sha256": file_hash(Path(program)) if program else "",
        "options": options,
        "nodes": job.nodes,
        "clear": job.clear,
        **({"multipv": True} if job.multipv else {}),
    }


def read_known(job: LabelJob, manifest: Mapping[str, Any]) -> KnownLabels:
    """The labels of `job.known`, which may be unfinished, without those that failed.

    Raises DataError if the engine would not find the same: they are of another target, engine, options or nodes.
    """
    if job.known is None:
        return lambda fen: None
    there = label_files.read_manifest(job.known)
    for key in ("format", "game", "target", "engine"):
        if there.get(key) != manifest[key]:
            raise DataError(
                f"{job.known} has labels whose {key} is {json.dumps(there.get(key))}, not {json.dumps(manifest[key])}"
            )
    parts = sorted(path for split in SPLITS for path in job.known.glob(f"{split}-*.parquet"))
    if not parts:
        raise DataError(f"{job.known} has no labels yet")
    label_files.check_parts(job.known, there)
    identity = label_files.identity_of(there)
    table = pa.concat_tables([label_files.read_part(path, identity) for path in parts]).combine_chunks()
    is_labelled = zip(table["fen"].to_pylist(), table["failed"].to_pylist(), strict=True)
    places = {fen: place for place, (fen, why) in enumerate(is_labelled) if not why}
    return lambda fen: table.slice(places[fen], 1).to_pylist()[0] if fen in places else None
