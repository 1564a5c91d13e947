"""Times the reading of labelled boards for an iteration: records a second against a goal."""

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import numpy as np

from alphagateau.config import DataConfig
from alphagateau.data.packed import LARGEST, NO_VALUE, Boards, Moves, columns_of
from alphagateau.distributed.mesh import make_mesh
from alphagateau.games.rules import Game
from alphagateau.games.variants import get_game
from alphagateau.training.labels.producer import make_records, put_rows
from throughput.ratios import Row, make_row

GOAL = 100_000  # records a second of one core: no network here learns as fast
NUM_BOARDS = 2**18  # of 8x8, packed: some 300 MB, in the page cache once written
NUM_LABELS = 30  # legal moves of a board, all labelled
NUM_RECORDS = 2**16  # of an iteration
NUM_SHARES = 8


def write_columns(game: Game, folder: Path) -> Boards:
    """Memory-mapped columns of the size of real boards, with arbitrary contents."""
    rng, columns = np.random.default_rng(0), {}
    for name, (kind, shape) in columns_of(game).items():
        column = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", kind, (NUM_BOARDS, *shape))
        column[:] = NO_VALUE if name == "action_value" else 1
        columns[name] = column
    columns["action_value"][:, :NUM_LABELS] = rng.integers(LARGEST, size=(NUM_BOARDS, NUM_LABELS))
    return Boards(**columns)


def make_reader(columns: Boards, record: str) -> Callable[[], None]:
    """Makes a call that samples the records of the next iteration and puts them on the device."""
    data = DataConfig(path="", record=record, frames_per_iteration=NUM_RECORDS)  # pyright: ignore[reportArgumentType]
    records, mesh, iterations = make_records(columns, data, 0), make_mesh(1), itertools.count()

    def read() -> None:
        rows, slots = records.sample(next(iterations))
        batch = put_rows(columns, rows, NUM_SHARES, mesh)
        if slots is not None:
            batch = Moves(batch, put_rows(slots, np.arange(NUM_RECORDS), NUM_SHARES, mesh))
        jax.block_until_ready(batch)

    return read


def data_rows(rounds: int) -> Iterator[Row]:
    """Rows of boards with all their labels, and of moves with one label each."""
    with tempfile.TemporaryDirectory() as folder:
        columns = write_columns(get_game("chess"), Path(folder))
        for record in ("board", "move"):
            read, paces = make_reader(columns, record), []
            read()
            for _ in range(rounds):
                start = time.perf_counter()
                read()
                paces.append(NUM_RECORDS / (time.perf_counter() - start))
            shares = [pace / GOAL for pace in paces]
            name = f"{record}s read a second, 8x8, {NUM_RECORDS} an iteration, by {GOAL:,}"
            yield make_row(name, (paces, [GOAL]), shares, 1.0, "1/s")
