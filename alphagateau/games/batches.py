"""Batches of a fixed number of rows, so that few shapes are compiled."""

from collections.abc import Sequence
from typing import TypeVar

import jax
import numpy as np

Row = TypeVar("Row")


def pad_rows(rows: Sequence[Row], num_rows: int | None = None) -> list[Row]:
    """The rows, the first repeated up to `num_rows` of them, or to the next power of two. Raises ValueError."""
    if num_rows is None:
        num_rows = 1 << max(len(rows) - 1, 0).bit_length()
    if not 0 < len(rows) <= num_rows:
        raise ValueError(f"expected 1 to {num_rows} rows in a batch, got {len(rows)}")
    return [*rows, *[rows[0]] * (num_rows - len(rows))]


def stack_rows(rows: Sequence[Row]) -> Row:
    """Trees of arrays [...], such as States, as one tree of numpy arrays [B, ...]."""
    return jax.tree.map(lambda *x: np.stack(x), *rows)
