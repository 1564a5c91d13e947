"""Outputs: none that is an input, by any name, and none that holds something else."""

import os
from pathlib import Path

import pytest

from alphagateau.cli.outputs import OutputError, check_own_games, overwritten
from alphagateau.commands.main import main
from alphagateau.games.pgn.text_files import BOUNDS

GAME = '[White "A"]\n[Black "B"]\n[Result "1-0"]\n\n1. e4 1-0\n'
RESULTS = "player,opponent,wins,draws,losses\nA,B,3,0,0\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A current folder with a file of each kind, linked in each way."""
    monkeypatch.chdir(tmp_path)
    Path("games.pgn").write_text(GAME)
    Path("results.csv").write_text(RESULTS)
    Path("other").mkdir()
    Path("other/results.csv").write_text(RESULTS)
    Path("other/games.jsonl").write_text("")
    Path("pool").mkdir()
    for name in ("pool.json", "ratings.csv", "results.csv"):
        Path("pool", name).write_text("")
    Path("labelled", "labels").mkdir(parents=True)
    Path("run").mkdir()
    Path("run", "config.toml").write_text("")
    Path("ladder.toml").write_text('players = ["random"]\nopenings = "other/games.pgn"\n')
    Path("other/games.pgn").write_text(GAME)
    Path("soft.pgn").symlink_to("games.pgn")
    os.link("games.pgn", "hard.pgn")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "pgn games.pgn --analyse C --annotate games.pgn",
        "pgn games.pgn --analyse C --annotate other/../games.pgn",
        "pgn games.pgn --analyse C --annotate soft.pgn",
        "pgn soft.pgn --json hard.pgn",
        "pgn games.pgn --analyse C --output games.pgn",
        "rate results.csv --out .",
        "rate other/results.csv --out other",
        "match random random --openings games.pgn --pgn games.pgn",
        "puzzles random results.csv --json results.csv",
        "sts random games.pgn --json games.pgn",
        "sts random games.pgn --plot ./games.pgn",
        "positions games.pgn --output .",
        "evaluate random other --json other/results.csv",
        "pgn games.pgn --json x --analyse C --annotate x",
        "ladder ladder.toml --out other",
    ],
)
def test_an_output_that_is_an_input_is_refused_before_anything_is_done(words, folder, capfd):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(words.split()) == 2
    error = capfd.readouterr().err
    assert "write somewhere else" in error and error.count("\n") == 1
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("match random random --game chess --games 2 --pgn games.pgn", "--pgn games.pgn holds other games"),
        ("match random random --game chess --games 2 --pgn results.csv", "--pgn results.csv holds other games"),
        ("rate results.csv --out other", "--out other holds games.jsonl, which this command does not replace"),
        ("rate results.csv --out pool", "--out pool holds pool.json, which this command does not replace"),
        (
            "positions --players random --game gardner_chess --games 2 --output other",
            "--output other holds games.pgn, which this command does not replace",
        ),
        (
            "positions games.pgn --output labelled",
            "--output labelled holds labels, which this command does not replace",
        ),
        ("label labelled --output run", "--output run holds config.toml, which this command does not replace"),
        ("sts random results.csv --json games.pgn", "holds something that is not JSON"),
        ("report other --out games.pgn", "holds something that is not HTML"),
        ("sts random results.csv --json other", "is a folder"),
        (
            "match random random --game chess --games 2 --pgn results.csv/games.pgn",
            "where nothing can be written",
        ),
        ("rate results.csv --out games.pgn/ratings", "games.pgn, where nothing can be written"),
    ],
)
def test_a_file_of_other_games_or_of_another_kind_is_not_replaced(words, said, capfd):
    assert main(words.split()) == 2
    assert said in capfd.readouterr().err
    assert Path("games.pgn").read_text() == GAME and Path("other/results.csv").read_text() == RESULTS


def test_a_result_of_the_same_command_is_replaced(capfd):
    for _ in range(2):
        assert main(["rate", "results.csv", "--out", "ratings"]) == 0
        assert main(["pgn", "games.pgn", "--json", "counts.json"]) == 0
    assert (Path("ratings") / "results.csv").read_text() == RESULTS


def test_games_of_the_same_match_are_replaced_and_those_of_another_are_not(capfd):
    """The same command refused its own output."""
    words = ["match", "random", "random", "--game", "gardner_chess", "--games", "2", "--pgn", "match.pgn"]
    assert main(words) == 0 and main(words) == 0
    text = Path("match.pgn").read_text()
    Path("match.pgn").write_text(text + GAME.replace("[White", '[Event "A against B"]\n[White'))
    assert text.count("[Event ") == 2 and main(words) == 2
    assert "holds other games" in capfd.readouterr().err


def test_annotated_games_are_replaced_by_the_same_analyst_alone(capfd):
    Path("annotated.pgn").write_text(GAME.replace("[White", '[Annotator "r/1, policy"]\n[White') + GAME)
    check_own_games("--annotate", Path("annotated.pgn"), "Annotator", "r/1, policy", BOUNDS)  # one of them has a fault
    for path, analyst in (("annotated.pgn", "r/2, policy"), ("games.pgn", "r/1, policy")):
        with pytest.raises(OutputError, match="holds other games"):
            check_own_games("--annotate", Path(path), "Annotator", analyst, BOUNDS)
    faulty = GAME.replace("e4", "e5").replace("[White", '[Annotator "Fritz"]\n[White')  # left as it was, with its tag
    Path("annotated.pgn").write_text(Path("annotated.pgn").read_text() + "\n" + faulty)
    check_own_games("--annotate", Path("annotated.pgn"), "Annotator", "r/1, policy", BOUNDS, faulty=True)
    Path("games.pgn").write_text(faulty)
    for path, is_faulty in (("annotated.pgn", False), ("games.pgn", True)):
        with pytest.raises(OutputError, match="holds other games"):
            check_own_games("--annotate", Path(path), "Annotator", "r/1, policy", BOUNDS, faulty=is_faulty)


def test_a_text_that_is_too_long_for_a_path_is_no_input():
    """An engine with many options was refused as a file name that is too long."""
    for text in ("uci:stockfish?" + "&".join(f"Option{k}=0" for k in range(100)), "a\0b", ""):
        assert overwritten([Path("games.pgn")], [text]) is None
    assert overwritten([Path("games.pgn")], [["soft.pgn"]]) == Path("games.pgn")


def test_no_output_that_is_no_file_is_replaced_by_one(monkeypatch):
    """/dev/null became a file."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert main(["pgn", "games.pgn", "--json", "pipe"]) == 0
    assert os.read(reader, 100).startswith(b"{") and Path("pipe").is_fifo()
    os.close(reader)


def test_a_ladder_writes_over_no_openings_of_its_file_where_it_writes_by_default(capsys):
    folder = Path("eval/own")
    folder.mkdir(parents=True)
    (folder / "games.jsonl").write_text("")
    (folder / "games.pgn").write_text(GAME)
    Path("own.toml").write_text('players = ["random"]\nopenings = "eval/own/games.pgn"\n')
    assert main(["ladder", "own.toml"]) == 2
    assert "eval/own/games.pgn is what this command reads" in capsys.readouterr().err
    assert Path("eval/own/games.pgn").read_text() == GAME
