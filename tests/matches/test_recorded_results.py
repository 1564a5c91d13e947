"""Tables of results out of anybody's files: right, or one sentence that says where they are wrong."""

import bz2
import gzip
import lzma

import pyarrow
import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.matches.recorded_results import read_any_results
from alphagateau.ratings.results import ResultsError, Row
from alphagateau.ratings.results_files import RESULTS_HEADER

HEADER = ",".join(RESULTS_HEADER) + "\n"
NAME = st.text(min_size=1, max_size=8)
CELL = st.one_of(st.sampled_from(["a", "b", "1", "0", "-1", "1e3", '"', "", "a,b"]), NAME)


def _lines(rows: list[list[str]]) -> bytes:
    return "\n".join(",".join(row) for row in rows).encode(errors="surrogatepass")


@pytest.fixture
def results_file(tmp_path):
    def write(content: str | bytes, name: str = "results.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_missing_file_and_unknown_suffix_are_said(tmp_path):
    with pytest.raises(ResultsError, match=r"none\.csv cannot be read: No such file"):
        read_any_results(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ResultsError, match=r"cannot be read"):
        read_any_results(tmp_path / "folder.csv")
    with pytest.raises(ResultsError, match=r"'\.txt', expected \.csv or \.pgn"):
        read_any_results(tmp_path / "results.txt")


@fuzzed(200)
@given(st.one_of(st.binary(), st.lists(st.lists(CELL, max_size=6)).map(_lines)))
def test_any_bytes_are_a_table_or_a_sentence(tmp_path_factory, content):
    for name in ("any.csv", "any.pgn"):
        path = tmp_path_factory.getbasetemp() / name
        for head in (b"", HEADER.encode()):
            path.write_bytes(head + content)
            try:
                read_any_results(path)
            except ResultsError as error:
                assert str(path) in str(error) and "\n" not in str(error)


def game(white="a", black="b", result="1-0", moves="1. e4 e5", end=None) -> str:
    tags = f'[Event "x"]\n[White "{white}"]\n[Black "{black}"]\n[Result "{result}"]\n'
    return f"{tags}\n{moves} {result if end is None else end}\n\n"


def test_pgn_results_carry_colors_and_leave_out_what_has_no_result(results_file):
    text = game() + game("b", "a", "1/2-1/2") + game(result="*") + game("c", "c") + game("b", "a")
    results, notes = read_any_results(results_file(text, "games.pgn"))
    assert results.rows == (Row("a", "b", 1, 0, 0, 1), Row("a", "b", 0, 1, 1, -1))
    assert notes == (
        "left out: 1 of 5 games, unfinished (result *)",
        "left out: 1 of 5 games, of a player against itself",
    )
    assert results.players == ("a", "b", "c")


def test_a_name_with_escapes_is_the_name_that_they_stand_for(results_file):
    assert read_any_results(results_file(game('a\\"q\\"', "b\\\\"), "games.pgn"))[0].players == ('a"q"', "b\\")


def test_marks_that_cannot_be_seen_are_no_part_of_a_name(results_file):
    """One beside a space refused the file."""
    games = [f'[White "{name}"]\n[Black "Bob"]\n[Result "1-0"]\n\n1-0\n\n' for name in ("\u200e Ann", "Ann \u200b")]
    assert read_any_results(results_file("".join(games), "games.pgn"))[0].players == ("Ann", "Bob")


def test_pgn_games_without_empty_lines_or_final_results_are_not_lost(results_file):
    # As the paper's authors published theirs; chess.pgn.read_headers takes the three for one game
    text = game(end="").replace("\n\n", "\n") * 3
    assert read_any_results(results_file(text, "games.pgn"))[0].rows == (Row("a", "b", 3, 0, 0, 1),)


def test_pgn_comments_and_variant_games_are_passed_over(results_file):
    moves = '1. e4 {[White "no"]\n[Result "0-1"] 0-1\n} e5 ; 0-1 {\n% {\n2. Nf3'
    gardner = '[Variant "Gardner"]\n[FEN "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"]\n' + game()
    found = read_any_results(results_file(game(moves=moves) + gardner + game(moves=""), "games.pgn"))
    assert found[0].rows == (Row("a", "b", 3, 0, 0, 1),)


def test_games_whose_moves_are_not_told_are_not_the_same_games(results_file):
    """Two players of whom results alone are known, in equal rounds against one opponent."""
    tag = '[Round "{}"]\n[Result'
    rounds = [game(p, "x", moves="").replace("[Result", tag.format(k)) for k in range(6) for p in "ab"]
    assert read_any_results(results_file("".join(rounds), "games.pgn"))[0].alike == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not a game", r"game 1 \(line 1\): no White tag"),
        (game() + game().replace('[Black "b"]\n', ""), r"game 2 \(line 8\): no Black tag"),
        (game() + game(result="2-0"), r"game 2 \(line 8\): result '2-0': expected one of 1-0"),
        (game(white="?"), r"game 1 .*a player is '\?'"),
        (game(white=""), r"game 1 .*a player is '.' or has no name"),
        (game(end="0-1"), r"game 1 .*result '1-0' in its tag and '0-1' after its moves"),
        (game(end="1-0 rubbish"), r"game 2 \(line 6\): no White tag"),
        (game() + game(moves="1. e4 {lost"), r"game 2 .*the comment of line 13 does not end"),
        (game() + '[White "a"]\n[Black', r"game 2 \(line 8\): line 9, '\[Black', is no tag"),
    ],
)
def test_malformed_pgn_names_file_and_game(results_file, text, said):
    path = results_file(text, "games.pgn")
    with pytest.raises(ResultsError, match=said) as caught:
        read_any_results(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_pgn_may_be_in_the_encoding_of_its_standard(results_file):
    path = results_file(game(white="Müller").encode("latin-1"), "games.pgn")
    assert read_any_results(path)[0].players[0] == "Müller"
    text = game().replace('"x"', '"A…"')  # whose byte is a line end to Unicode
    path = results_file(text.encode("cp1252"), "ellipsis.pgn")
    assert sum(sum(row[2:5]) for row in read_any_results(path)[0].rows) == 1


def test_suffix_chooses_the_reader(results_file):
    assert read_any_results(results_file(HEADER + "a,b,1,0,0\n"))[0].rows == (Row("a", "b", 1, 0, 0),)
    results, notes = read_any_results(results_file(game(result="*"), "games.PGN"))
    assert results.rows == () and len(notes) == 1


PACKED = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pyarrow.compress(content, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("end", PACKED)
def test_packed_files_are_read_as_pgn_reads_them(results_file, end):
    assert read_any_results(results_file(PACKED[end](game().encode()), f"games.pgn{end}"))[0].rows == ONE
    table = results_file(PACKED[end]((HEADER + "a,b,1,0,0\n").encode()), f"results.csv{end}")
    assert read_any_results(table)[0].rows == (Row("a", "b", 1, 0, 0),)
    with pytest.raises(ResultsError, match="cannot be read"):
        read_any_results(results_file(PACKED[end](game().encode())[:-9], f"games.pgn{end}"))


ONE = (Row("a", "b", 1, 0, 0, 1),)


@pytest.mark.parametrize(
    "content",
    [
        game().encode("utf-16"),
        game().encode("utf-16-le"),
        b"\xef\xbb\xbf" + game().encode(),
        game().encode() + bytes(300),
        game().encode() + b"\x1a" * 30,
        game().replace("[", "  [").encode(),
        game().replace("\n", "\r").encode(),
        game(moves="1. e4 e5 ( 1... c5 2. Nf3 * ) ( 1... a5 1/2-1/2 )").encode(),
        game().replace('[Result "1-0"]\n', "").encode(),
        game().replace("1-0", "1\u20130").encode(),
        game().replace('"a"', "a").replace("[White", "[white").encode(),
        game().replace("]\n", "] ").replace("\n", " ").encode(),
        (game("Line", "?", "*", moves="") + game()).encode(),
        ('[White "Line"]\n[Result "*"]\n\n*\n\n' + game()).encode(),
    ],
)
def test_what_programs_write_is_rated(results_file, content):
    assert read_any_results(results_file(content, "games.pgn"))[0].rows == ONE


def test_what_is_left_out_of_an_unplayed_game_is_said(results_file):
    results, notes = read_any_results(results_file(game("Line", "?", "*", moves="") + game(), "games.pgn"))
    assert results.players == ("Line", "a", "b") and notes == ("left out: 1 of 2 games, unfinished (result *)",)


@pytest.mark.parametrize("half", ["1/2", "\u00bd-\u00bd", "1/2\u20131/2", "0.5-0.5"])
def test_a_half_is_a_draw_in_the_tag_and_behind_the_moves(results_file, half):
    assert read_any_results(results_file(game(result=half), "games.pgn"))[0].rows == (Row("a", "b", 0, 1, 0, 1),)
