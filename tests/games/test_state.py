"""Batches of a fixed number of rows."""

import numpy as np
import pytest

from alphagateau.games.state import pad_rows, stack_rows


def test_the_first_row_fills_a_batch():
    assert pad_rows("abc", 5) == ["a", "b", "c", "a", "a"]
    assert [len(pad_rows(range(n))) for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 4, 8]


@pytest.mark.parametrize(("rows", "num_rows"), [([], None), ([], 4), ([1, 2], 1)])
def test_a_batch_without_rows_or_with_too_many_is_refused(rows, num_rows):
    with pytest.raises(ValueError, match=r"expected 1 to \d rows in a batch, got [02]"):
        pad_rows(rows, num_rows)


def test_trees_are_stacked_leaf_by_leaf():
    stacked = stack_rows([{"a": np.zeros(2)}, {"a": np.ones(2)}])
    assert stacked["a"].tolist() == [[0, 0], [1, 1]]
