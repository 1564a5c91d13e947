"""Reading and writing results tables: right, or one sentence that says where they are wrong."""

import csv
import gzip

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.ratings.rate import rate
from alphagateau.ratings.results import ResultsError, Row, make_results, without_colors
from alphagateau.ratings.results_files import (
    RESULTS_HEADER,
    read_any_results,
    read_pgn_results,
    read_results,
    write_ratings,
    write_results,
)

HEADER = ",".join(RESULTS_HEADER) + "\n"


@pytest.fixture
def results_file(tmp_path):
    def write(content: str | bytes, name: str = "results.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


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


def test_csv_is_read_and_merged(results_file):
    path = results_file(HEADER + 'a,b,1,2,3\n"b","a",1,0,0\n\nc,"d, e",0,0,0\n')
    assert read_results(path).rows == (Row("a", "b", 1, 2, 4), Row("c", "d, e", 0, 0, 0))
    assert read_results(results_file("\ufeff" + HEADER)).rows == ()


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
        (HEADER.encode() + b"a,b,1,2,3\n\xff,b,1,2,3\n", "line 3: byte that is not UTF-8"),
        (HEADER + "a,b\x00,1,2,3\n", "line 2: "),
        (HEADER + "a," + "b" * 200_000 + ",1,2,3\n", "line 2: "),
    ],
)
def test_malformed_csv_names_file_and_line(results_file, content, said):
    path = results_file(content)
    with pytest.raises(ResultsError, match=said) as caught:
        read_results(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_missing_file_and_unknown_suffix_are_said(tmp_path):
    with pytest.raises(ResultsError, match=r"none\.csv cannot be read: No such file"):
        read_any_results(tmp_path / "none.csv")
    with pytest.raises(ResultsError, match=r"cannot be read"):
        read_results(tmp_path)
    with pytest.raises(ResultsError, match=r"'\.txt', expected \.csv or \.pgn"):
        read_any_results(tmp_path / "results.txt")


NAME = st.text(min_size=1, max_size=8)
CELL = st.one_of(st.sampled_from(["a", "b", "1", "0", "-1", "1e3", '"', "", "a,b"]), NAME)


def _lines(rows: list[list[str]]) -> bytes:
    return "\n".join(",".join(row) for row in rows).encode(errors="surrogatepass")


@fuzzed(200)
@given(st.one_of(st.binary(), st.lists(st.lists(CELL, max_size=6)).map(_lines)))
def test_any_bytes_are_a_table_or_a_sentence(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any"
    for head in (b"", HEADER.encode()):
        path.write_bytes(head + content)
        for read in (read_results, read_pgn_results):
            try:
                read(path)
            except ResultsError as error:
                assert str(path) in str(error) and "\n" not in str(error)


@fuzzed(200)
@given(st.lists(st.tuples(NAME, NAME, *[st.integers(0, 10**6)] * 3, st.integers(-1, 1))))
def test_what_is_written_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    try:
        results = make_results(Row(*row) for row in rows)
    except ResultsError:
        return
    write_results(results, path)
    again = read_results(path)
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


def game(white="a", black="b", result="1-0", moves="1. e4 e5", end=None) -> str:
    tags = f'[Event "x"]\n[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n'
    return f"{tags}\n{moves} {result if end is None else end}\n\n"


def test_pgn_results_carry_colors_and_leave_out_what_has_no_result(results_file):
    text = game() + game("b", "a", "1/2-1/2") + game(result="*") + game("c", "c") + game("b", "a")
    found = read_pgn_results(results_file(text, "games.pgn"))
    assert found.results.rows == (Row("a", "b", 1, 0, 0, 1), Row("a", "b", 0, 1, 1, -1))
    assert (found.num_games, found.num_unfinished, found.num_self_games) == (5, 1, 1)
    assert found.notes == (
        "left out: 1 of 5 games, unfinished (result *)",
        "left out: 1 of 5 games, of a player against itself",
    )
    assert found.results.players == ("a", "b", "c")


def test_a_name_with_escapes_is_the_name_that_they_stand_for(results_file):
    assert read_pgn_results(results_file(game('a\\"q\\"', "b\\\\"))).results.players == ('a"q"', "b\\")


def test_pgn_games_without_empty_lines_or_final_results_are_not_lost(results_file):
    # As the paper's authors published theirs; chess.pgn.read_headers takes the three for one game
    text = game(end="").replace("\n\n", "\n") * 3
    assert read_pgn_results(results_file(text)).results.rows == (Row("a", "b", 3, 0, 0, 1),)


def test_pgn_comments_and_variant_games_are_passed_over(results_file):
    moves = '1. e4 {[White "no"]\n[Result "0-1"] 0-1\n} e5 ; 0-1 {\n% {\n2. Nf3'
    gardner = '[Variant "Gardner"]\n[FEN "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"]\n' + game()
    found = read_pgn_results(results_file(game(moves=moves) + gardner + game(moves="")))
    assert found.results.rows == (Row("a", "b", 3, 0, 0, 1),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not a game", r"game 1 \(line 1\): no White tag"),
        (game() + game().replace('[Black "b"]\n', ""), r"game 2 \(line 8\): no Black tag"),
        (game() + game(result="2-0"), r"game 2 \(line 8\): Result is '2-0', expected one of 1-0"),
        (game(white="?"), r"game 1 .*a player is '\?'"),
        (game(white=""), r"game 1 .*player name ''"),
        (game(end="0-1"), r"game 1 .*moves end with '0-1', expected '1-0'"),
        (game(end="1-0 rubbish"), r"game 1 .*moves end with '1-0 rubbish'"),
        (game() + game(moves="1. e4 {lost"), r"line 13: comment without an end"),
        (game() + '[White "a"]\n[Black', r"game 2 \(line 8\): no Black tag"),
    ],
)
def test_malformed_pgn_names_file_and_game(results_file, text, said):
    path = results_file(text, "games.pgn")
    with pytest.raises(ResultsError, match=said) as caught:
        read_pgn_results(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_pgn_may_be_in_the_encoding_of_its_standard(results_file):
    path = results_file(game(white="Müller").encode("latin-1"), "games.pgn")
    assert read_pgn_results(path).results.players[0] == "Müller"
    text = game().replace('"x"', '"A…"')  # whose byte is a line end to Unicode
    path = results_file(text.encode("cp1252"), "ellipsis.pgn")
    assert read_pgn_results(path).num_games == 1


def test_suffix_chooses_the_reader(results_file):
    assert read_any_results(results_file(HEADER + "a,b,1,0,0\n"))[0].rows == (Row("a", "b", 1, 0, 0),)
    results, notes = read_any_results(results_file(game(result="*"), "games.PGN"))
    assert results.rows == () and len(notes) == 1


def test_a_compressed_file_is_read_as_what_it_holds(tmp_path):
    path = tmp_path / "games.pgn.gz"
    path.write_bytes(gzip.compress(game(result="1-0").encode()))
    assert read_any_results(path)[0].rows == read_any_results_of(tmp_path, game(result="1-0"))
    path.write_bytes(gzip.compress(game(result="1-0").encode())[:-9])
    with pytest.raises(ResultsError, match="cannot be read"):
        read_any_results(path)
    path.write_bytes(b"[White")
    with pytest.raises(ResultsError, match="Not a gzipped file"):
        read_any_results(path)


def read_any_results_of(folder, text: str) -> tuple[Row, ...]:
    (folder / "plain.pgn").write_text(text)
    return read_any_results(folder / "plain.pgn")[0].rows
