"""Labels boards by a UCI engine or by a player of ours.

A label depends on the board, the engine, its options and the nodes alone: each search begins from an empty hash table,
or all searches of a board do, in the order of its edges. So workers, their number, their order and kills cannot change
a byte.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from alphagateau.data import label_files, workers
from alphagateau.data.label_files import LabelJob, Unit
from alphagateau.data.positions import SPLITS
from alphagateau.data.tables import DataError, LabellingError, file_hash
from alphagateau.data.workers import KnownLabels, Pace, SearchResult, Workers, open_engine
from alphagateau.engines.engine import EngineError
from alphagateau.games.notation import board_edges, board_from_fen
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
            raise DataError(
                f"engine {job.command!r} shows at most {first.most_lines} moves (MultiPV), and boards of "
                f"{job.game.name} have up to {job.game.max_legal_moves}"
            )
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
    wanted = {key.lower(): value for key, value in job.options.items()}
    ours = {**workers.OWN_OPTIONS, "UCI_Variant": job.game.uci_variant, "UCI_Chess960": "true"}
    own = {key.lower(): value for key, value in ours.items()}
    if any(value != {**own, **wanted}.get(key) for key, value in left.items()) or not wanted.keys() <= left.keys():
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
    identity = label_files.identity_of(there)
    table = pa.concat_tables([label_files.read_part(path, identity) for path in parts]).combine_chunks()
    is_labelled = zip(table["fen"].to_pylist(), table["failed"].to_pylist(), strict=True)
    places = {fen: place for place, (fen, why) in enumerate(is_labelled) if not why}
    return lambda fen: table.slice(places[fen], 1).to_pylist()[0] if fen in places else None


class Labeller(NamedTuple):
    """A player of ours as a source of labels."""

    about: Mapping[str, Any]  # its name, weights and search, for the manifest
    search: Callable[[Sequence[str]], list[SearchResult]]  # of the FENs of a unit


def label_by_player(
    job: LabelJob, player: Labeller, should_stop: Callable[[], bool], report: Callable[[Pace], None]
) -> bool:
    """Labels what is not labelled yet; True once all is, False if it was stopped or another process has the rest.

    Raises DataError.
    """
    job.output.mkdir(parents=True, exist_ok=True)
    units = label_files.read_units(job)
    identity = label_files.write_manifest(job.output, label_files.labels_manifest(job, player.about))
    total, before, began = sum(len(unit.boards) for unit in units), workers.count_done(job, units), time.monotonic()

    def report_or_stop() -> bool:
        done = workers.count_done(job, units)
        report(Pace(done, total, done - before, time.monotonic() - began, 0.0))
        return should_stop()

    label_files.write_parts(job, identity, units, report_or_stop, lambda unit: _player_labels(job, player, unit))
    report_or_stop()
    return label_files.finish(job.output, units, identity)


def _player_labels(job: LabelJob, player: Labeller, unit: Unit) -> list[dict[str, Any]]:
    """The rows of a unit's part. Raises DataError, naming file and row for a FEN that is none."""
    edges, labelled = [], []
    for row, board in enumerate(unit.boards, unit.first):
        try:
            legal = board_edges(job.game, board_from_fen(job.game, board["fen"]))
        except ValueError as error:
            raise DataError(f"{unit.source}, row {row}: {error}") from None
        edges.append({move: edge for edge, move in legal.items()})
    for board, moves, result in zip(unit.boards, edges, player.search([x["fen"] for x in unit.boards]), strict=True):
        if result.move not in moves:
            raise LabellingError(
                f"{player.about['name']} answered {result.move}, which is no legal move of {board['fen']}"
            )
        by_edge = {moves[result.move]: result} if job.target == "best" else {}
        labelled.append({**board, **workers.labels_of(result, by_edge)})
    return labelled
