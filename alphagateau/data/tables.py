"""Reads and writes tables of boards and of labels as parquet files that are whole or not there."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from alphagateau.runs.files import reason, replacing, sync

BOARDS = pa.schema(
    [
        ("fen", pa.string()),
        ("game", pa.uint64()),  # hash of the game's start and moves
        ("ply", pa.int16()),  # of that game, 0 at its start
        ("count", pa.int32()),  # occurrences in all sources
    ]
)
LABELS = pa.schema(
    [
        *BOARDS,
        ("state_score", pa.int16()),  # as `scores.encode`, for the player to move
        ("edges", pa.list_(pa.int16())),  # labelled moves, rising
        ("scores", pa.list_(pa.int16())),  # of those moves, for the same player
        ("depths", pa.list_(pa.uint8())),  # that their searches reached
        ("failed", pa.string()),  # why there is no label; "": there is
    ]
)
MAX_ROWS, MAX_BYTES = 2**27, 2**32  # of a table, unpacked
BATCH = 1024  # rows read at a time


class DataError(RuntimeError):
    """Data that cannot be read, made or mixed; one sentence naming file and row."""


class LabellingError(DataError):
    """An engine or a disk that fails during labelling, though the request was right."""


def write_table(path: Path, columns: Mapping[str, list], schema: pa.Schema, about: Mapping[str, str]) -> None:
    """Writes rows, with `about` in the schema's metadata; the same rows give the same bytes."""
    table = pa.table(dict(columns), schema=schema.with_metadata(dict(about)))
    with replacing(path, table.nbytes) as temporary:
        pq.write_table(table, temporary, compression="zstd")
        sync(temporary)


def read_table(path: Path, schema: pa.Schema) -> tuple[pa.Table, dict[str, str]]:
    """(rows, the schema's metadata). Raises DataError for a file that is damaged, or of another kind."""
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow
            if found.names != schema.names or found.types != schema.types:
                has, expected = (", ".join(f"{field.name}: {field.type}" for field in x) for x in (found, schema))
                raise DataError(f"{path} has the columns {has}; expected {expected}")
            table = pa.Table.from_batches(_batches(path, file), found)
            table.validate(full=True)  # that texts are UTF-8, above all
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: of a column's name
        raise DataError(f"{path} cannot be read: {reason(error)}") from None
    if any(column.null_count for column in table.columns) or (table["count"].to_numpy() < 1).any():
        row = next(n for n, x in enumerate(table.to_pylist()) if None in x.values() or x["count"] < 1)
        raise DataError(f"{path}, row {row} is not whole: expected no nulls, and a count of 1 or more")
    about = {k.decode(errors="replace"): v.decode(errors="replace") for k, v in (found.metadata or {}).items()}
    return table, about


def _batches(path: Path, file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """The rows, some at a time. Raises DataError as soon as they are more than a table of this kind has."""
    num_rows, size = file.metadata.num_rows, 0
    if num_rows > MAX_ROWS:
        raise DataError(f"{path} has {num_rows:,} rows, expected at most {MAX_ROWS:,}")
    for batch in file.iter_batches(BATCH):
        size += batch.nbytes
        if size > MAX_BYTES:
            raise DataError(f"{path} has more than {MAX_BYTES >> 20} MB of rows, expected fewer: split the table")
        yield batch
