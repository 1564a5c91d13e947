"""Reading and writing results tables: right, or one sentence that says where they are wrong."""

import csv
import io

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import Results, ResultsError, Row, make_results, without_colors
from alphagateau.ratings.results_files import RESULTS_HEADER, read_results, write_ratings, write_results

HEADER = ",".join(RESULTS_HEADER) + "\n"


def read(text: str) -> Results:
    return read_results(io.StringIO(text, newline=""), "results.csv")


def test_duplicate_and_swapped_pairs_are_merged():
    rows = [Row("a", "b", 1, 2, 3), Row("b", "a", 10, 20, 30), Row("a", "b", 1, 0, 0)]
    assert make_results(rows).rows == (Row("a", "b", 32, 22, 13),)


def test_colors_are_kept_apart_and_can_be_dropped():
    rows = [Row("a", "b", 1, 2, 3, 1), Row("b", "a", 10, 20, 30, 1), Row("a", "b", 5, 5, 5, 1)]
    results = make_results(rows)
    assert results.rows == (Row("a", "b", 6, 7, 8, 1), Row("a", "b", 30, 20, 10, -1))
    assert without_colors(results).rows == (Row("a", "b", 36, 27, 18),)


def test_players_come_in_the_order_asked_for():
    results = make_results([Row("b", "a", 1, 0, 0)], ["a", "idle"])
    assert results.players == ("a", "idle", "b")
    assert results.rows == (Row("a", "b", 0, 0, 1),)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (Row("a", "a", 1, 0, 0), "meets itself"),
        (Row("", "a", 1, 0, 0), "printable"),
        (Row(" b", "a", 1, 0, 0), "spaces"),
        (Row("b\n", "a", 1, 0, 0), "printable"),
        (Row("b", "a", -1, 0, 0), "whole numbers"),
        (Row("b", "a", 1, 0.5, 0), "whole numbers"),  # type: ignore[arg-type]
        (Row("b", "a", 1, 0, 0, 2), "color"),
    ],
)
def test_bad_rows_are_refused(row, said):
    with pytest.raises(ResultsError, match=said):
        make_results([row])


def test_csv_is_read_and_merged():
    rows = read(HEADER + 'a,b,1,2,3\n"b","a",1,0,0\n\nc,"d, e",0,0,0\n').rows
    assert rows == (Row("a", "b", 1, 2, 4), Row("c", "d, e", 0, 0, 0))
    assert read(HEADER).rows == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "line 1: expected the header player,opponent,wins,draws,losses"),
        ("player,opponent,wins,losses,draws\n", "line 1: expected the header"),
        (HEADER + "a,b,1,2\n", "line 2: 4 fields, expected player,opponent"),
        (HEADER + "a,b,1,2,3\na,c,1,x,3\n", "line 3: draws is 'x', expected a whole number"),
        (HEADER + "a,b,1,2,-3\n", "line 2: losses is '-3'"),
        (HEADER + "a,b,1_0,2,3\n", "line 2: wins is '1_0'"),
        (HEADER + "a,b,٣,2,3\n", "line 2: wins is '٣'"),
        (HEADER + "a,b,1.0,2,3\n", "line 2: wins is '1.0'"),
        (HEADER + "a,b,9999999999,2,3\n", "line 2: wins, draws, losses"),
        (HEADER + "a,a,1,2,3\n", "line 2: player 'a' meets itself"),
        (HEADER + "a, b,1,2,3\n", "line 2: player name ' b'"),
        (HEADER + 'a,"b\nc",1,2,3\n', "line 3: player name 'b\\\\nc'"),
        (HEADER + 'a,"b,1,2,3\n', "unexpected end of data"),
        (HEADER + 'a,"b"x,1,2,3\n', "line 2: "),
        (HEADER + "a," + "b" * 200_000 + ",1,2,3\n", "line 2: "),
    ],
)
def test_malformed_csv_names_file_and_line(content, said):
    with pytest.raises(ResultsError, match=said) as caught:
        read(content)
    assert str(caught.value).startswith("results.csv, line ") and "\n" not in str(caught.value)


NAME = st.text(min_size=1, max_size=8)


@fuzzed(200)
@given(st.lists(st.tuples(NAME, NAME, *[st.integers(0, 10**6)] * 3, st.integers(-1, 1))))
def test_what_is_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    try:
        results = make_results(Row(*row) for row in rows)
    except ResultsError:
        return
    write_results(results, path)
    again = read(path.read_bytes().decode())
    assert again.rows == without_colors(results).rows


def test_ratings_csv_begins_as_promised_and_is_ordered(tmp_path):
    results = make_results([Row("a", "b", 5, 1, 9), Row("c", "d", 1, 1, 1)], ["idle"])
    write_ratings(rate(results, anchor="a"), tmp_path / "ratings.csv")
    with (tmp_path / "ratings.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:4] == ["player", "rating", "standard_error", "games"]
    assert [row[0] for row in rows] == ["b", "a", "c", "d", "idle"]
    assert rows[1][:5] == ["a", "0.00", "0.00", "15", "0.3667"]
    assert rows[4][1:5] == ["nan", "nan", "0", "nan"]
    assert not (tmp_path / "ratings.csv.part").exists()
