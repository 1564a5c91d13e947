"""Labels in parquet parts in, memory-mapped columns that training reads by row out."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from alphagateau.data.labelling import read_manifest, read_part
from alphagateau.data.scores import NO_SCORE, win_probability
from alphagateau.data.tables import DataError, file_hash
from alphagateau.games.notation import from_fens
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.runs.files import sync, write_text

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


def columns_of(game: Game) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of a row of each column."""
    return {
        "board": ("int8", (game.num_squares,)),
        "color": ("int8", ()),
        "castling": ("uint8", ()),
        "en_passant": ("int8", ()),
        "halfmove_count": ("int16", ()),
        "ply": ("int16", ()),
        "legal": ("uint8", ((game.num_edges + 7) // 8,)),
        "state_value": ("uint16", ()),
        "action_value": ("uint16", (game.max_legal_moves,)),
        "best": ("int16", ()),
        "count": ("int32", ()),
    }


def open_packed(labels: Path, split: str) -> Boards:
    """The columns of a finished folder of labels, memory-mapped; packed first where they are not yet.

    Raises DataError if the labelling has not ended, or a part is damaged or of other labels.
    """
    manifest = read_manifest(labels)
    if "parts" not in manifest:
        raise DataError(f"{labels} is not labelled to its end: `alphagateau label` goes on with it")
    game = get_game(manifest["game"])
    folder = labels / f"packed-{split}"
    if not _is_of(folder, manifest):
        _pack(game, labels, split, manifest, folder)
    return Boards(*(np.lib.format.open_memmap(folder / f"{name}.npy", mode="r") for name in columns_of(game)))


def _is_of(folder: Path, manifest: dict[str, Any]) -> bool:
    try:
        return json.loads((folder / "packed.json").read_text()) == {"format": FORMAT, "labels": manifest}
    except (OSError, ValueError):
        return False


def _pack(game: Game, labels: Path, split: str, manifest: dict[str, Any], folder: Path) -> None:
    """Writes the columns under another name, and gives them theirs when they are whole."""
    parts = {name: digest for name, digest in manifest["parts"].items() if name.startswith(f"{split}-")}
    identity = json.dumps({key: value for key, value in manifest.items() if key != "parts"}, sort_keys=True)
    blocks = [block for name, digest in parts.items() for block in _blocks(game, labels, name, digest, identity)]
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name, (kind, shape) in columns_of(game).items():
        column = np.concatenate([np.zeros((0, *shape), kind), *(getattr(block, name) for block in blocks)])
        np.save(temporary / f"{name}.npy", column.astype(kind))
        sync(temporary / f"{name}.npy")
    write_text(temporary / "packed.json", json.dumps({"format": FORMAT, "labels": manifest}))
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def _blocks(game: Game, labels: Path, name: str, digest: str, identity: str) -> Iterator[Boards]:
    """The columns of a part, some boards at a time; boards on which the engine failed are left out."""
    path = labels / f"{name}.parquet"
    if path.exists() and file_hash(path) != digest:
        raise DataError(f"{path} is not the file whose hash manifest.json has")
    found = [row for row in read_part(labels, name, identity) if not row["failed"]]
    for start in range(0, len(found), CHUNK):
        yield pack_rows(game, found[start : start + CHUNK], f"{path}, row {start}")


def pack_rows(game: Game, found: list[dict[str, Any]], where: str = "") -> Boards:
    """The columns of rows of labels. Raises DataError for a board or a move that is none of the game's."""
    fens = [row["fen"] for row in found]
    try:
        states = from_fens(game, fens + fens[:1] * (CHUNK - len(fens)))  # of one size, so compiled once
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None
    states, positions = jax.device_get((states, _to_positions(game.name)(states)))
    values = np.full((len(found), game.max_legal_moves), NO_VALUE, np.uint16)
    best = np.full(len(found), -1, np.int16)
    for number, row in enumerate(found):
        legal = states.legal_edges[number]
        slots = np.flatnonzero(np.isin(legal, row["edges"]) & (legal >= 0))
        if len(slots) != len(row["edges"]):
            raise DataError(f"{where}: a labelled move of {row['fen']} is not legal")
        values[number, slots] = codes = to_codes(np.array(row["scores"], np.int16))
        if len(slots):
            best[number] = slots[np.where(codes == NO_VALUE, -1, codes.astype(np.int32)).argmax()]
    size = len(found)
    return Boards(
        board=positions.boards[:size, 0],
        **{name: getattr(positions, name)[:size] for name in Boards._fields[1:7]},
        state_value=to_codes(np.array([row["state_score"] for row in found], np.int16)),
        action_value=values,
        best=best,
        count=np.array([row["count"] for row in found], np.int32),
    )


@lru_cache
def _to_positions(game_name: str) -> Callable:
    return jax.jit(jax.vmap(get_game(game_name).position))


def to_codes(scores: np.ndarray) -> np.ndarray:
    """uint16 of coded scores: round(65534 q), NO_VALUE where there is none."""
    return np.where(scores == NO_SCORE, NO_VALUE, np.rint(np.nan_to_num(win_probability(scores)) * LARGEST)).astype(
        np.uint16
    )
