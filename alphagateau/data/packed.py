"""Packs labels, in parquet parts or Bagz shards, into memory-mapped columns that training reads by row."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import jax
import numpy as np
from filelock import FileLock

from alphagateau.data.bagz import Kind, Record, by_board, open_bag
from alphagateau.data.label_files import MAX_BYTES, check_parts, identity_of, read_manifest, read_part
from alphagateau.data.tables import DataError
from alphagateau.games.notation import board_edges, board_from_fen, from_fens, jitted
from alphagateau.games.rules import Game, outermost_rooks
from alphagateau.games.scores import NO_SCORE, win_probability
from alphagateau.games.state import State, pad_rows
from alphagateau.games.variants import get_game
from alphagateau.runs.files import filling, read_bounded, sync, write_text

FORMAT = 1
CHUNK = 256  # boards entered at once
NO_VALUE = 65_535
LARGEST = 65_534  # the code of a probability of 1


class Boards(NamedTuple):
    """Labelled boards without a past, R rows of numpy or JAX arrays.

    Probabilities q of winning are for the player to move, as round(65534 q).
    """

    board: Any  # int8 [R, N], as the newest of `Position.boards`
    color: Any  # int8 [R]
    castling: Any  # uint8 [R]
    en_passant: Any  # int8 [R]
    halfmove_count: Any  # int16 [R]
    ply: Any  # int16 [R]
    legal: Any  # uint8 [R, ceil(E / 8)]
    state_value: Any  # uint16 [R]
    action_value: Any  # uint16 [R, S], of the legal edges in rising order, NO_VALUE where there is no label
    best: Any  # int16 [R], the slot of the move of the highest value, the first of several; -1: none is labelled
    count: Any  # int32 [R], occurrences


class Moves(NamedTuple):
    """Labelled moves of boards, a row each."""

    boards: Boards  # R rows
    slot: Any  # int16 [R, 1], the move's


DTYPES = Boards(*["int8", "int8", "uint8", "int8", "int16", "int16", "uint8", "uint16", "uint16", "int16", "int32"])


def columns_of(game: Game) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of a row of each column."""
    shapes = {"board": game.num_squares, "legal": (game.num_edges + 7) // 8, "action_value": game.max_legal_moves}
    return {name: (kind, (shapes[name],) if name in shapes else ()) for name, kind in DTYPES._asdict().items()}


class Labelled(NamedTuple):
    """The labels of a board, coded as in Boards."""

    where: str  # file and row, for errors
    fen: str
    edges: list[int]
    values: np.ndarray  # uint16, of those edges
    state_value: int
    count: int  # pyright: ignore[reportIncompatibleMethodOverride]


def open_packed(labels: Path, split: str, mate_value: str = "certain") -> Boards:
    """The columns of a finished folder of labels, or of shards, memory-mapped; packed first where they are not yet.

    mate_value: as in `win_probability`; shards have no splits, and probabilities without mates. Raises DataError if the
    labelling has not ended, or a part is damaged or of other labels.
    """
    manifest, grade = read_manifest(labels), "" if mate_value == "certain" else f"-{mate_value}"
    game = get_game(manifest["game"])
    if grade and "shards" in manifest:
        raise DataError(f'{labels} holds probabilities: expected mate_value "certain", got "{mate_value}"')
    if "shards" in manifest:
        folder = labels.parent / f"{labels.name}.packed" if labels.is_file() else labels / "packed"
        make_rows = partial(_shard_rows, labels, manifest, game)
    elif "parts" in manifest:
        folder = labels / f"packed-{split}{grade}"
        make_rows = partial(_part_rows, labels, manifest, split, mate_value)
    else:
        raise DataError(f"{labels} is not labelled to its end: `alphagateau label` goes on with it")
    if not _is_of(folder, manifest, game):
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not _is_of(folder, manifest, game):  # nobody else has packed it meanwhile
                _write(game, folder.resolve(), make_rows(), manifest)
    return _columns(folder, game)


def _columns(folder: Path, game: Game) -> Boards:
    return Boards(*(np.lib.format.open_memmap(folder / f"{name}.npy", mode="r") for name in columns_of(game)))


def _is_of(folder: Path, manifest: dict[str, Any], game: Game) -> bool:
    try:
        is_same = json.loads(read_bounded(folder / "packed.json", MAX_BYTES)) == {"format": FORMAT, "labels": manifest}
        return is_same and bool(_columns(folder, game))
    except (OSError, ValueError):  # also of a column that is cut off
        return False


def _write(game: Game, folder: Path, rows: Iterator[Labelled], manifest: dict[str, Any]) -> None:
    """Writes the columns under another name, CHUNK rows at a time, and gives them theirs when they are whole."""
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        with filling(folder):
            _write_columns(game, temporary, rows)
        write_text(temporary / "packed.json", json.dumps({"format": FORMAT, "labels": manifest}))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _write_columns(game: Game, folder: Path, rows: Iterator[Labelled]) -> None:
    paths, number = {name: folder / f"{name}.npy" for name in columns_of(game)}, 0
    with ExitStack() as stack:
        files = {name: stack.enter_context(path.open("wb")) for name, path in paths.items()}
        _write_headers(game, files, 0)
        while some := list(islice(rows, CHUNK)):
            block = pack_labels(game, some)
            number += len(block.count)
            for name, (kind, _) in columns_of(game).items():
                files[name].write(getattr(block, name).astype(kind).tobytes())
        _write_headers(game, files, number)
    for path in paths.values():
        sync(path)


def _write_headers(game: Game, files: Mapping[str, IO[bytes]], number: int) -> None:
    """Begins each column as a `.npy` of `number` rows; numpy leaves room in a header for the rows to grow."""
    for name, (kind, shape) in columns_of(game).items():
        files[name].seek(0)
        header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (number, *shape)}
        np.lib.format.write_array_header_1_0(files[name], header)


def _part_rows(labels: Path, manifest: dict[str, Any], split: str, mate_value: str) -> Iterator[Labelled]:
    """The boards of a split, without those on which the engine failed. Raises DataError."""
    check_parts(labels, manifest, f"{split}-")
    identity = identity_of(manifest)
    for path in [labels / f"{name}.parquet" for name in manifest["parts"] if name.startswith(f"{split}-")]:
        for number, row in enumerate(read_part(path, identity).to_pylist()):
            if not row["failed"]:
                yield labels_of_row(f"{path}, row {number}", row, mate_value)


def _shard_rows(path: Path, manifest: dict[str, Any], game: Game) -> Iterator[Labelled]:
    """The boards of each shard in the order of their first records, with all their moves there. Raises DataError."""
    for name in manifest["shards"]:
        bag = open_bag(path if path.is_file() else path / name, manifest["kind"])
        for numbers in by_board(bag):
            records: dict[str, list[Record]] = {}
            for number in numbers:
                record = bag.record(number)
                records.setdefault(record.fen, []).append(record)  # of one FEN, but for hashes that agree by chance
            for found in records.values():
                yield labels_of_records(game, f"{bag.path}, record {numbers[0]}", bag.kind, found)


def labels_of_records(game: Game, where: str, kind: Kind, found: list[Record]) -> Labelled:
    """The labels of one board, of records of a shard. Raises DataError."""
    fen = found[0].fen
    if kind == "state_value":
        return Labelled(where, fen, [], np.zeros(0, np.uint16), round(LARGEST * found[0].win), len(found))
    try:
        edges = {move: edge for edge, move in board_edges(game, board_from_fen(game, fen)).items()}
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None
    by_move = {record.move: record.win for record in found}
    if unknown := [move for move in by_move if move not in edges]:
        raise DataError(f"{where}: the labelled move {unknown[0]} of {fen} is not legal")
    if kind == "behavioral_cloning":  # of several best moves of a board the last
        return Labelled(where, fen, [edges[found[-1].move]], np.array([NO_VALUE], np.uint16), NO_VALUE, 1)
    codes = [round(LARGEST * win) for win in by_move.values()]
    return Labelled(where, fen, [edges[move] for move in by_move], np.array(codes, np.uint16), NO_VALUE, 1)


def labels_of_row(where: str, row: dict[str, Any], mate_value: str = "certain") -> Labelled:
    """The labels of one board, of a row of a part. Raises DataError."""
    if None in (*row["edges"], *row["scores"]) or len(row["edges"]) != len(row["scores"]):
        raise DataError(f"{where} is not whole: expected no nulls, and a score of each edge")
    values, state = (to_codes(np.array(row[name], np.int16), mate_value) for name in ("scores", "state_score"))
    return Labelled(where, row["fen"], row["edges"], values, int(state), row["count"])


def pack_labels(game: Game, found: Sequence[Labelled]) -> Boards:
    """The columns of up to CHUNK boards, but for those at which the game is over. Raises DataError."""
    states = _enter(game, found)
    states, positions = jax.device_get((states, jitted(game.position, True)(states)))
    values = np.full((len(found), game.max_legal_moves), NO_VALUE, np.uint16)
    best = np.full(len(found), -1, np.int16)
    for number, row in enumerate(found):
        order = np.argsort(row.edges)
        slots = np.flatnonzero(np.isin(states.legal_edges[number], row.edges) & (states.legal_edges[number] >= 0))
        if len(slots) != len(row.edges):
            raise DataError(f"{row.where}: a labelled move of {row.fen} is not legal")
        values[number, slots] = codes = row.values[order]
        if len(slots):
            best[number] = slots[np.where(codes == NO_VALUE, -1, codes.astype(np.int32)).argmax()]
    is_kept = ~states.terminated[: len(found)]
    if game.is_fischer_random:  # a row has rights, not the files of their rooks, which are then the outermost
        rooks = jax.vmap(partial(outermost_rooks, game.size))(positions.boards[:, 0])
        is_kept &= (np.where(states.castling, 1 + rooks, 0) == states.castling).all(axis=1)[: len(found)]
    rows = np.flatnonzero(is_kept)
    return Boards(
        board=positions.boards[rows, 0],
        **{name: getattr(positions, name)[rows] for name in Boards._fields[1:7]},
        state_value=np.array([row.state_value for row in found], np.uint16)[rows],
        action_value=values[rows],
        best=best[rows],
        count=np.array([row.count for row in found], np.int32)[rows],
    )


def _enter(game: Game, found: Sequence[Labelled]) -> State:
    """The states of boards, the first repeated up to CHUNK, so that it is compiled once. Raises DataError."""
    fens = [row.fen for row in found]
    try:
        return from_fens(game, pad_rows(fens, CHUNK))
    except ValueError:
        for row in found:  # the error names the row
            try:
                board_from_fen(game, row.fen)
            except ValueError as error:
                raise DataError(f"{row.where}: {error}") from None
        raise


def to_codes(scores: np.ndarray, mate_value: str = "certain") -> np.ndarray:
    """uint16 of coded scores: round(65534 q), NO_VALUE where there is none."""
    q = np.nan_to_num(win_probability(scores, mate_value))
    return np.where(scores == NO_SCORE, NO_VALUE, np.rint(q * LARGEST)).astype(np.uint16)
