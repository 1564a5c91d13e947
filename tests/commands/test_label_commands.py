"""`alphagateau positions`, `label`, `evaluate` and `puzzles` as their users meet them: what is said, and exit codes."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from markup import Outline
from random_games import random_records
from tiny_checkpoints import save_tiny

from alphagateau.cli import players
from alphagateau.commands import evaluate, puzzles
from alphagateau.commands.label import Reporter
from alphagateau.commands.main import main
from alphagateau.data.workers import Pace
from alphagateau.games.pgn.pgn import read_pgn, to_pgn
from alphagateau.games.rules import Game
from alphagateau.matches.specs import PlayerError
from alphagateau.networks.giraffe.config import GiraffeConfig
from alphagateau.suites import solving
from alphagateau.suites.solving import Solution

FAKE = Path(__file__).parents[1] / "fake_engine.py"
ENGINE = shlex.join([sys.executable, str(FAKE)])
MATE = "k4/p2P1/2K2/P4/5 b - - 0 19"


@pytest.fixture(scope="module")
def games(gardner: Game, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("games") / "games.pgn"
    path.write_text("".join(map(to_pgn, random_records(gardner, 4, seed=7))))
    return path


@pytest.fixture(scope="module")
def boards(games) -> Path:
    folder = games.parent / "boards"
    words = ["positions", str(games), "--game", "gardner_chess", "--output", str(folder), "--test-share", "0.5"]
    assert main([*words, "--max-boards", "60"]) == 0
    return folder


@pytest.fixture(scope="module")
def labels(boards) -> Path:
    assert main(["label", str(boards), "--engine", ENGINE, "--nodes", "50", "--workers", "1"]) == 0
    return boards / "labels"


def test_boards_are_labelled_and_what_it_took_is_said(boards, labels, capfd):
    again = ["label", str(boards), "--engine", ENGINE, "--nodes", "50"]
    assert main(again) == 0
    out, error = capfd.readouterr()
    assert out == f"{labels}: all boards are labelled\n" and not error  # no engine was started
    together = [*again, "--multipv", "--output", str(boards / "together")]
    assert main(together) == 0
    assert json.loads((boards / "together" / "manifest.json").read_text())["engine"]["multipv"] is True
    assert main([*again, "--output", str(boards / "mixed"), "--known", str(boards / "together")]) == 2
    assert "together has labels whose engine is" in capfd.readouterr().err
    best = [*again, "--target", "best", "--output", str(boards / "best"), "--workers", "1"]
    assert main(best) == 0
    assert "the engines' cores were " in capfd.readouterr().err
    assert json.loads((boards / "best" / "manifest.json").read_text())["target"] == "best"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("label BOARDS --nodes 0", '--nodes must be a whole number, 1 or more, got "0"'),
        ("label BOARDS --timeout -1", '--timeout must be a number, from 0.001 to 1e+09, got "-1"'),
        ("label BOARDS --timeout 1e300", '--timeout must be a number, from 0.001 to 1e+09, got "1e300"'),
        ("label BOARDS --stop-after soon", "soon"),
        ("label BOARDS --engine nothing-here", "engine 'nothing-here' cannot be started: No such file"),
        ("label BOARDS --engine ENGINE?Contempt=0", "has no option 'Contempt'"),
        ("label BOARDS --engine ENGINE --nodes 51", "manifest.json has engine {"),
        ("label BOARDS --multipv --target best", "--multipv was given with --target or --clear"),
        ("label BOARDS --multipv --clear board", "--multipv was given with --target or --clear"),
        ("label BOARDS --player nowhere", "--target must be best or states with --player, got actions"),
        ("label BOARDS --player nowhere --target best", "nowhere holds no whole checkpoint"),
        ("label BOARDS --player nowhere --engine ENGINE", "--player nowhere were given: expected one"),
        ("label nowhere", "nowhere/train.parquet does not exist: expected a folder that `alphagateau positions` wrote"),
        ("positions PGN --game go --output x", "--game: unknown game 'go'"),
        ("positions PGN --test-share 2 --output x", '--test-share must be a number, from 0 to 1, got "2"'),
        ("positions PGN --random-moves 2 --output x", '--random-moves must be a number, from 0 to 1, got "2"'),
        ("positions nowhere.pgn --output x", "nowhere.pgn cannot be read: No such file"),
        ("positions PGN --output x", "hold no board of chess to label; left out: "),
        ("positions --output x", "positions needs sources or --players"),
        ("positions --output x --players random --games 3", "--games must be even"),
        ("evaluate random", "evaluate needs players and a folder"),
        ("evaluate random nowhere", "nowhere/manifest.json is no manifest of labels: No such file"),
        ("evaluate nowhere LABELS", "left out: nowhere holds no whole checkpoint"),
        ("puzzles random", "puzzles needs players and a file"),
        ("puzzles random nowhere.csv", "nowhere.csv cannot be read: No such file"),
        ("puzzles random PGN", "games.pgn, line 1: expected the columns FEN (or PGN), Moves and Rating"),
        (f"puzzles random {os.devnull}", f"the hash of its file: expected a plain file, got {os.devnull}"),
        ("puzzles random PGN --game go", "unknown game 'go'"),
        ("puzzles random PGN --band 0", '--band must be a whole number, 1 or more, got "0"'),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(words, said, games, boards, labels, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"PGN": str(games), "BOARDS": str(boards), "LABELS": str(labels)}
    given = [places.get(word, word.replace("ENGINE", ENGINE)) for word in words.split()]
    assert main(given) == 2
    out, error = capfd.readouterr()
    assert said in error and error.count("\n") == 1 and not out


def test_what_labelled_nothing_says_nothing_of_its_engines(tmp_path, capfd):
    reporter = Reporter(1)
    for labelled, said in ((0, 0), (3, 1)):
        reporter.report(Pace(3, 3, labelled, 1.0, 0.5))
        reporter.conclude(False, None, tmp_path)
        assert capfd.readouterr().err.count("the engines' cores were 50% busy with searching") == said


def test_an_engine_that_fails_at_work_is_no_usage_error(boards, capfd, tmp_path):
    """It exited 2, as if the command line were wrong."""
    words = ["label", str(boards), "--nodes", "50", "--workers", "1", "--output", str(tmp_path)]
    assert main([*words, "--engine", f"{ENGINE} lie"]) == 1
    assert "row 0: engine " in (error := capfd.readouterr().err) and "to searchmoves" in error


@pytest.mark.whole
def test_a_player_labels_its_best_moves_and_a_network_is_measured_on_them(boards, capfd, tmp_path):
    """The labeller plays its own labels; to it all moves are alike, so the best is of the first three by chance."""
    found = save_tiny(tmp_path, "gardner_chess", GiraffeConfig)
    player, output = f"{found.path}?search=depth&plies=1&nodes=100", tmp_path / "labels"
    words = ["label", str(boards), "--player", player, "--target", "best", "--output", str(output)]
    assert main(words) == 0 and main(words) == 0
    assert capfd.readouterr().out == f"{output}: all boards are labelled\n" * 2
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["engine"]["weights"] == found.manifest["weights_hash"]
    assert manifest["engine"]["search"] == "depth 1 plies, 100 nodes"
    assert main(["evaluate", player, str(output), "--json", str(tmp_path / "m.json")]) == 0
    (measured,) = json.loads((tmp_path / "m.json").read_text())
    assert measured["score"] == measured["total"] > 5
    tops = [measured["measures"][f"policy_top_{number}"]["value"] for number in (1, 3)]
    assert 0 < tops[0] < tops[1] < 1 and tops[1] <= 3 * tops[0] + 1e-6
    assert main([*words[:2], "--player", "random", *words[4:]]) == 2
    assert "player 'random' has no network: expected a run or a checkpoint" in capfd.readouterr().err


@pytest.mark.whole
def test_games_of_players_are_sources(tmp_path, capfd):
    words = ["positions", "--players", "random", "--games", "4", "--game", "gardner_chess", "--output", str(tmp_path)]
    assert main(words) == 0
    assert "from 4 games" in capfd.readouterr().out
    records = read_pgn((tmp_path / "games.pgn").read_text())
    assert len(records) == 4 and all(record.game == "gardner_chess" for record in records)
    boards = (tmp_path / "train.parquet").read_bytes(), (tmp_path / "test.parquet").read_bytes()
    assert main([*words[:-1], str(tmp_path / "again")]) == 0
    again = tmp_path / "again"
    assert boards == ((again / "train.parquet").read_bytes(), (again / "test.parquet").read_bytes())


@pytest.mark.whole
def test_a_player_alone_plays_each_opening_once(tmp_path, capfd):
    """With the other color it would play the same game again."""
    player = f"{save_tiny(tmp_path, 'gardner_chess', GiraffeConfig).path}?search=policy"
    words = ["positions", "--players", player, "--games", "4", "--game", "gardner_chess", "--output", str(tmp_path)]
    assert main(words) == 0
    assert "from 4 games" in capfd.readouterr().out
    records = read_pgn((tmp_path / "games.pgn").read_text())
    assert len({record.moves for record in records}) == len({record.moves[:8] for record in records}) == 4


@pytest.mark.whole
def test_players_are_measured_on_labels(labels, capfd, tmp_path):
    """The fake engine is right where its first move is the best of its own labels, as is said of nobody else."""
    engine = f"uci:{ENGINE}?nodes=50"
    assert main(["evaluate", "random", engine, str(labels), "--json", str(tmp_path / "m.json")]) == 0
    shown = capfd.readouterr().out
    assert "action_accuracy" in shown and "tau_published" in shown
    random, fake = json.loads((tmp_path / "m.json").read_text())
    assert random["name"] == "random" and random["total"] == fake["total"] > 5
    assert random["measures"]["tau_b"]["value"] == 0 and set(fake["measures"]) == {"action_accuracy"}
    assert random["score"] == round(random["measures"]["action_accuracy"]["value"] * random["total"])


@pytest.mark.whole
def test_players_solve_puzzles_as_a_page(tmp_path, capfd):
    file = tmp_path / "few.csv"
    file.write_text(f"PuzzleId,FEN,Moves,Rating,Themes\na,{MATE},a5b5 d4d5q,801,mate\nb,{MATE},a5b5 d4d5r,1200,mate\n")
    words = ["puzzles", "random", str(file), "--game", "gardner_chess", "--out", str(tmp_path / "page")]
    assert main([*words, "--json", str(tmp_path / "p.json")]) == 0
    out = capfd.readouterr().out
    assert "800-" in out and str(tmp_path / "page" / "index.html") in out
    (random,) = json.loads((tmp_path / "p.json").read_text())
    assert random["total"] == 2 and [band["low"] for band in random["bands"]] == [800, 1200]
    assert random["themes"]["mate"]["total"] == 2 and 0 <= random["score"] <= 2
    page = Outline((tmp_path / "page" / "index.html").read_text())
    assert page
    assert (tmp_path / "page" / "puzzles.svg").read_text().startswith("<svg")
    assert (tmp_path / "page" / "solutions.csv").read_text().count("\n") == 3


def test_measures_of_a_player_that_fails_replace_nothing(labels, capfd, tmp_path, monkeypatch):
    """An engine that died left `[]` in the place of good measures; of puzzles it was an error of the command line."""

    def fail(*told, **more):
        raise PlayerError("random died")

    monkeypatch.setattr(evaluate, "measures_of", fail)
    monkeypatch.setattr(solving, "solve", fail)
    (tmp_path / "found.json").write_text("[1]")
    (tmp_path / "few.csv").write_text(f"FEN,Moves,Rating\n{MATE},a5b5 d4d5q,801\n")
    of_puzzles = ["puzzles", "nowhere", "random", str(tmp_path / "few.csv"), "--game", "gardner_chess"]
    for words in (["evaluate", "nowhere", "random", str(labels)], [*of_puzzles, "--out", str(tmp_path / "page")]):
        assert main([*words, "--json", str(tmp_path / "found.json")]) == 1
        errors = capfd.readouterr().err.splitlines()
        assert errors[0].startswith("left out: nowhere") and errors[1:] == [
            "random left: random died",
            "alphagateau: no player is left: nothing is measured or written",
        ]
        assert (tmp_path / "found.json").read_text() == "[1]" and not (tmp_path / "page").exists()


def test_a_file_of_puzzles_that_moves_while_they_are_solved_has_its_hash(tmp_path, monkeypatch):
    """It was an error after the last puzzle."""
    file = tmp_path / "few.csv"
    file.write_text(f"FEN,Moves,Rating\n{MATE},a5b5 d4d5q,801\n")
    told = {}

    def measure_each(specs, *others):
        file.unlink()
        return {spec: [Solution(True, 1, "d4d5q")] for spec in specs}, []

    monkeypatch.setattr(players, "measure_each", measure_each)
    monkeypatch.setattr(puzzles, "write", lambda arguments, results, notes, about: told.update(about))
    monkeypatch.setattr(puzzles, "write_solutions", lambda *told: None)
    assert main(["puzzles", "random", str(file), "--game", "gardner_chess", "--out", str(tmp_path)]) == 0
    assert len(told["sha256"]) == 64
