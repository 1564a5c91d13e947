"""Positions whose moves have points: reading EPD, scoring a player, and the command."""

import json
import math
from pathlib import Path

import pytest

from alphagateau.commands.main import main
from alphagateau.games.pgn.text_files import TextFileError
from alphagateau.games.variants import get_game
from alphagateau.matches.players import Player, Reply, random_player
from alphagateau.suites.sts import answer, first_of_each_theme, read_epd, scores

LINES = """\
7k/8/8/8/8/8/8/KR6 w - - bm Rh1; id "STS(v2.0) Open Files.001"; c8 "10 4 3"; c9 "b1h1 b1b8 b1h1";
7k/8/8/8/8/8/8/KR6 b - - id "STS(v2.1) Open files.002"; c8 "10"; c9 "h8g8";

7k/4P3/8/8/8/8/8/K7 w - - id "STS(v10.0) Simplification.001"; c0 "e8=Q+=10, Ka2=3";
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "suite.epd"
    path.write_text(LINES)
    return path


def first_choice(move: str, nodes: int | None) -> Player:
    """An engine that plays one move wherever it is legal."""
    return Player("one", move=lambda fen, moves: Reply(move, nodes=nodes))


def test_moves_have_their_first_points_and_themes_one_spelling(suite):
    one, two, three = read_epd(get_game("chess"), suite)
    assert one.points == {"b1h1": 10, "b1b8": 4} and one.num_moves == 15
    assert one.theme == two.theme == " 2 Open Files" and three.theme == "10 Simplification"
    assert three.points == {"e7e8q": 10, "a1a2": 3}
    assert first_of_each_theme([one, two, three], 1) == [one, three]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("7k/8/8/8/8/8/8/KR6 w - -", "its moves have no points, expected operations c8"),
        ("7k/8/8/8/8/8/8/KR6 w - - bm Rh1;", "its moves have no points, expected operations c8 and c9 or c7, or c0"),
        (
            '7k/8/8/8/8/8/8/KR6 w - - c8 "10 4"; c9 "b1h1";',
            "1 moves have the points '10 4', expected a number for each",
        ),
        ('7k/8/8/8/8/8/8/KR6 w - - c8 "0"; c9 "b1h1";', "none of its moves has a point"),
        ('7k/8/8/8/8/8/8/KR6 w - - c8 ""; c9 "";', "none of its moves has a point"),
        ('7k/8/8/8/8/8/8/KR6 w - - c8 "10"; c9 "b1a1";', "'b1a1' is no legal move of 7k/8/8/8/8/8/8/KR6 w - - 0 1"),
        ('7k/8/8/8/8/8/8/KR6 w - - 0 300 c8 "10"; c9 "b1h1";', "the game is over by ply limit: 7k/8/8/8/8/8/8/KR6 w"),
        ('7k/8/8/8/8/8/8/KR6 w - - 100 90 c8 "10"; c9 "b1h1";', "the game is over by fifty moves: 7k/8/8/8/8/8/8/KR6"),
        ('7k/8/8/8/8/8/8/K9 w - - c8 "10"; c9 "a1a2";', "has a wrong board: expected 8 rows of 8 squares"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, line, expected):
    path = tmp_path / "wrong.epd"
    path.write_text(LINES + line)
    with pytest.raises(TextFileError) as error:
        read_epd(get_game("chess"), path)
    assert str(error.value).startswith(f"{path} line 5: ") and expected in str(error.value)


@pytest.mark.parametrize(
    ("operations", "name", "points"),
    [
        ('id Bird\'s; c0 "Rh1=10, Ka2=2";', "Bird's", {"b1h1": 10, "a1a2": 2}),
        ('c7 "Rh1+ Ka2"; c8 "10 2"; id "a \\"b\\"; c";', 'a "b"; c', {"b1h1": 10, "a1a2": 2}),
        ('c8 "3"; c9 "b1b8"; id # the rest is a comment "', "", {"b1b8": 3}),
    ],
)
def test_operations_as_programs_write_them(tmp_path, operations, name, points):
    path = tmp_path / "suite.epd"
    path.write_bytes(f"\ufeff# Réti's\n\n7k/8/8/8/8/8/8/KR6 w - - {operations}\r\n".encode())
    (position,) = read_epd(get_game("chess"), path)
    assert (position.name, position.points) == (name, points)


def test_a_quote_without_an_end_is_said(tmp_path):
    path = tmp_path / "suite.epd"
    path.write_text('7k/8/8/8/8/8/8/KR6 w - - id "open; bm Rh1;')
    with pytest.raises(TextFileError, match=r"line 1: .*the quote does not end"):
        read_epd(get_game("chess"), path)


def test_points_nodes_and_what_a_random_mover_expects(suite):
    game = get_game("chess")
    positions = read_epd(game, suite)
    found = scores(positions, answer(game, first_choice("b1b8", 50), positions, 0, lambda done: None))
    assert [(one.theme, one.score, one.total, one.best_moves) for one in found] == [
        ("2 Open Files", 4, 20, 0),
        ("10 Simplification", 0, 10, 0),
        ("total", 4, 30, 0),
    ]
    assert found[-1].nodes == 50
    assert found[-1].random == pytest.approx(14 / 15 + 10 / 3 + 13 / 7)
    silent = scores(positions, answer(game, first_choice("a1a2", None), positions, 0, lambda done: None))
    assert silent[-1].score == 3 and math.isnan(silent[-1].nodes)


def test_every_kind_of_player_answers(suite):
    """A search of many positions at once: the random mover's moves are legal, and depend on the seed alone."""
    game = get_game("chess")
    positions = read_epd(game, suite)
    one, again = (answer(game, random_player(), positions, 3, lambda done: None) for _ in range(2))
    assert one == again and len(one) == 3


def test_the_command_writes_what_it_prints(suite, tmp_path, capsys):
    results, plot = tmp_path / "sts.json", tmp_path / "sts.svg"
    assert main(["sts", "random", str(suite), "--json", str(results), "--plot", str(plot)]) == 0
    assert "Open Files" in capsys.readouterr().out
    table = json.loads(results.read_text())
    assert table["total"] == 30 and table["nodes"] == 0 and [t["total"] for t in table["themes"]] == [20, 10]
    assert len(table["points"]) == 3 and sum(table["points"]) == table["score"]
    assert plot.read_text().startswith("<svg") and "Simplification" in plot.read_text()
    assert main(["sts", "random", str(tmp_path / "none.epd")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("alphagateau: ") and said.endswith("none.epd cannot be read: No such file or directory\n")
