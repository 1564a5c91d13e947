"""Tables of boards and labels as a stranger may have written them: read, or refused in a sentence."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alphagateau.data.tables import BOARDS, LABELS, DataError, read_table, write_table


def test_a_text_that_is_not_utf_8_is_one_sentence(tmp_path):
    """It was a traceback, in a FEN, in the table's own facts and in a column's name."""
    path, bytes_ = tmp_path / "train.parquet", pa.array([b"8/8 \xff"])
    columns = [pa.Array.from_buffers(pa.string(), 1, bytes_.buffers()), *([1] for _ in BOARDS.names[1:])]
    pq.write_table(pa.table(columns, BOARDS), path)
    with pytest.raises(DataError, match=r"train.parquet cannot be read: .*UTF8") as caught:
        read_table(path, BOARDS)
    assert "\n" not in str(caught.value)
    pq.write_table(pa.table([["8/8"], [1], [1], [1]], BOARDS.with_metadata({b"board": b"\xff"})), path)
    assert read_table(path, BOARDS)[1] == {"board": "\ufffd"}
    path.write_bytes(path.read_bytes().replace(b"count", b"co\xffnt"))
    with pytest.raises(DataError, match=r"train.parquet cannot be read: 'utf-8' codec can't decode"):
        read_table(path, BOARDS)


@pytest.mark.parametrize("changes", [{"fen": ["8/8", None]}, {"game": [1, None]}, {"count": [1, 0]}])
def test_a_row_that_is_not_whole_is_named(changes, tmp_path):
    """A FEN of nothing was a traceback, and the others were found after all boards had been labelled."""
    columns = {"fen": ["8/8", "8/8"], "game": [1, 1], "ply": [0, 0], "count": [1, 1]} | changes
    write_table(path := tmp_path / "train.parquet", columns, BOARDS, {})
    with pytest.raises(DataError, match=r"train.parquet, row 1 is not whole: expected no nulls, and a count of 1"):
        read_table(path, BOARDS)


@pytest.mark.parametrize("name", LABELS.names)
def test_a_label_without_one_of_its_columns_is_not_whole(name, tmp_path):
    row = {"fen": "8/8", "game": 1, "ply": 0, "count": 1, "state_score": 1, "edges": [], "scores": [], "depths": []}
    columns = {key: [value] for key, value in (row | {"failed": "", name: None}).items()}
    write_table(path := tmp_path / "train-00000.parquet", columns, LABELS, {})
    with pytest.raises(DataError, match=r"train-00000.parquet, row 0 is not whole"):
        read_table(path, LABELS)
