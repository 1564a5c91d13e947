"""`alphagateau pgn`: what it says of files of any kind, and the page and annotated games of a network."""

import bz2
import gzip
import io
import json
import lzma
import sys

import pyarrow
import pytest
from chess.engine import Cp
from markup import Outline, browser, dom_of
from tiny_checkpoints import save_tiny

from alphagateau.commands.main import main
from alphagateau.games.pgn.analysed import AnalysedGame, annotated_text
from alphagateau.games.pgn.pgn import read_pgn, replay
from alphagateau.games.pgn.text import read_games
from alphagateau.games.scores import win_chance
from alphagateau.networks.gateau.config import GateauConfig

GOOD = """[White "a"]
[Black "b"]
[Result "0-1"]

1. f3 e5 2. g4 Qh4# 0-1

"""
BROKEN = '[White "a"]\n\n1. e4 e5\n2. Ke3 *\n\n'
UNKNOWN = '[Variant "Atomic"]\n\n1. e4 *\n\n'
SMALL = '[Variant "Gardner"]\n[White "c"]\n\n1. Nc3 dxc3 2. bxc3 bxc3 {a remark} *\n\n'
MIDDLE = '[Variant "losalamos"]\n\n1. Nd3 Nd4 *\n\n'


@pytest.fixture
def file(tmp_path):
    def write(content: str | bytes, name: str = "games.pgn") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (GOOD + SMALL, 0, "2 games, 8 plies: 2 keep to the rules, 0 break them; boards: "),
        (GOOD + BROKEN + SMALL, 1, "game 2, line 10, ply 3, Ke3: illegal san: 'Ke3' in rnbqkbnr/pppp1ppp/"),
        (GOOD.replace("0-1", "1-0"), 1, "ply 4, Qh4#: result '1-0' after checkmate: expected '0-1'"),
        (UNKNOWN + GOOD, 2, "2 games, 5 plies: 1 keeps to the rules, 0 break them, 1 of unknown variants"),
        (UNKNOWN + BROKEN, 1, "variant 'atomic': expected 'Standard' or 'Gardner' or 'Los Alamos'"),
    ],
)
def test_what_is_said_of_games(file, capsys, text, code, said):
    path = file(text)
    assert main(["pgn", path]) == code
    *faults, summary = capsys.readouterr().out.splitlines()
    assert said in "\n".join([*faults, summary]) and all(line.startswith(f"{path}: game ") for line in faults)


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        bz2.compress,
        lzma.compress,
        lambda content: pyarrow.compress(content, codec="zstd", asbytes=True),
        lambda content: b"\xef\xbb\xbf" + content,
        lambda content: content.decode().encode("utf-16"),
    ],
)
def test_packed_files_are_read(file, capsys, pack):
    assert main(["pgn", file(pack((GOOD + SMALL).encode())), "--each"]) == 0
    assert "game 1, line 1: a - b 0-1, 4 plies of chess, over by the rules after 4 plies" in capsys.readouterr().out


def test_latin_1_and_windows_lines_are_read(file, capsys):
    text = GOOD.replace('"a"', '"Réti"').replace("\n", "\r\n")
    assert main(["pgn", file(text.encode("latin-1")), "--each"]) == 0
    assert "Réti - b" in capsys.readouterr().out


def test_one_ply_is_no_plies(file, capsys):
    assert main(["pgn", file('[White "a"]\n[Black "b"]\n\n1. e4 *\n\n'), "--each"]) == 0
    game, summary = capsys.readouterr().out.splitlines()
    assert game.endswith("game 1, line 1: a - b *, 1 ply of chess") and summary.startswith("1 game, 1 ply: ")


def test_standard_input_is_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(BROKEN.encode()))))
    assert main(["pgn", "-"]) == 1
    assert "standard input: game 1, line 4, ply 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no games: expected PGN"),
        (b"\n% nothing\n", "holds no games: expected PGN"),
        (b"\x28\xb5\x2f\xfd...", "cannot be read"),
        (b"PK\x03\x04...", "is a ZIP archive"),
        (gzip.compress(GOOD.encode() * 99, mtime=0)[:60], "cannot be read"),
    ],
)
def test_what_is_no_file_of_games(file, capsys, content, said):
    assert main(["pgn", file(content)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.pgn"], "nowhere.pgn cannot be read: No such file"),
        (["x.pgn", "--output", "x.html"], "--output and --annotate need --analyse"),
        (["x.pgn", "--analyse", "y"], "--analyse needs --output"),
        (["x.pgn", "--player", "y"], "--player and --least need --book"),
    ],
)
def test_wrong_words_are_one_sentence(capsys, words, said):
    assert main(["pgn", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_json_counts_and_names_what_is_wrong(file, tmp_path):
    assert main(["pgn", file(GOOD + BROKEN + UNKNOWN), "--json", str(tmp_path / "x.json")]) == 1
    found = json.loads((tmp_path / "x.json").read_text())
    assert (found["games"], found["broken"], found["unknown"], found["boards"]) == (3, 1, 1, {"chess": 1})
    assert [(fault["game"], fault["line"], fault["ply"]) for fault in found["faults"]] == [(2, 10, 3), (3, 12, 0)]


def test_a_book_has_the_games_that_keep_to_the_rules(file, tmp_path, capsys):
    page, path = tmp_path / "book.html", file(gzip.compress((GOOD + BROKEN + GOOD).encode()))
    assert main(["pgn", path, "--book", str(page), "--player", "a"]) == 1
    assert capsys.readouterr().out.endswith(f"{page}\n")
    assert "1. f3: 2 games, 100%, White scored 0.000" in page.read_text()
    assert main(["pgn", path, "--book", str(page), "--player", "c"]) == 2
    assert "player 'c' is in none of 2 games: expected a name in them" in capsys.readouterr().err


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """A page and annotated games of all boards, by the raw policy of an untrained network."""
    folder = tmp_path_factory.mktemp("analysed")
    checkpoint = save_tiny(folder / "net" / "checkpoints", "gardner_chess", GateauConfig)
    (folder / "net" / "config.toml").touch()  # by which it is a run
    (folder / "games.pgn").write_text(GOOD + SMALL + BROKEN + MIDDLE)
    words = ["pgn", str(folder / "games.pgn"), "--analyse", str(checkpoint.path), "--simulations", "0"]
    outputs = ["--output", str(folder / "page.html"), "--annotate", str(folder / "annotated.pgn")]
    assert main([*words, *outputs]) == 1
    return folder


def test_annotated_games_carry_an_evaluation_of_each_move(analysed, capsys):
    text = (analysed / "annotated.pgn").read_text()
    assert text.count(BROKEN) == 1
    records = read_pgn(text.replace(BROKEN, ""))
    assert [record.game for record in records] == ["chess", "gardner_chess", "los_alamos_chess"]
    for record in records:
        assert record.headers["Annotator"] == "net/0, policy"
        has_score = [note.score is not None for note in record.notes]
        assert has_score == [True] * (3 if record.result == "0-1" else len(record.moves))  # none of a mate
    assert records[1].notes[-1].comment == "a remark"
    assert main(["pgn", str(analysed / "annotated.pgn")]) == 1


def test_annotated_games_keep_what_people_wrote():
    """Variations, the comment before the moves and scores of others."""
    text = """[Event "x"]

{Intro.} 1. e4 {best} e5 (1... c5 {my analysis}) 2. Nf3?! { [%eval
9.99] [%clk 0:01:00] } Nc6 {[%eval 1]} *
"""
    (written,) = read_games(text.splitlines(), keep_text=True)
    record = replay(written).record
    assert record
    scores = (Cp(0), Cp(10), Cp(20), Cp(-300), Cp(5))
    chances = tuple(100 * win_chance(score.score()) for score in scores)
    game = AnalysedGame(record, scores, chances, ("",) * 5, 'an "analyst"')
    assert (
        annotated_text(written, game)
        == """[Event "x"]
[Annotator "an 'analyst'"]

{Intro.} 1. e4 { [%eval 0.10] } {best} e5 { [%eval 0.20] } (1... c5 {my analysis}) 2. Nf3 $4 { [%eval -3.00] } { \
[%clk 0:01:00] } Nc6 $4 { [%eval 0.05] }  *
"""
    )


def test_the_page_shows_every_game_and_asks_for_nothing(analysed):
    page = (analysed / "page.html").read_text()
    outline = Outline(page)
    assert "1. a - b  0-1" in page and "http://" not in page.replace("http://www.w3.org", "")
    assert outline.tags.count("h3") == 3 and "analysed by net/0, policy" in page


@browser
def test_the_page_opens_in_a_browser(analysed, tmp_path):
    assert "Board: Start (0 of 4)" in dom_of((analysed / "page.html").read_text(), tmp_path)
