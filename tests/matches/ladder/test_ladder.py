"""The ladder and the commands around it, with players that need no network."""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st
from tiny_checkpoints import save_tiny

from alphagateau.cli import ladders
from alphagateau.cli.ladders import run_ladder
from alphagateau.commands.main import main
from alphagateau.config import ConfigError, LadderConfig, load, load_ladder, make_record
from alphagateau.games.pgn.pgn import Identity, MoveNote, read_pgn
from alphagateau.matches import final_match
from alphagateau.matches.ladder.games import LadderGamesError, read_games
from alphagateau.matches.ladder.ladder import play_ladder
from alphagateau.matches.ladder.players import list_specs, load_players
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.match import play_match
from alphagateau.matches.match_games import Match
from alphagateau.matches.players import Player, random_player
from alphagateau.matches.recorded_results import read_any_results
from alphagateau.matches.specs import read_spec
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.networks.trained import load_weights
from alphagateau.runs.newest import newest_checkpoint

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"


@pytest.fixture(scope="module")
def smoke_run(tmp_path_factory) -> Path:
    """Two iterations of the smallest run: three checkpoints."""
    folder = tmp_path_factory.mktemp("runs")
    options = ["--num-iterations", "2", "--evaluation.num-games", "0", "--search.num-simulations", "2"]
    assert main(["train", str(SMOKE), "--runs", str(folder), *options]) == 0
    return folder / "smoke"


@pytest.fixture(scope="module")
def played(smoke_run, tmp_path_factory) -> Path:
    """A ladder of the run's raw policies and the random mover, every pair twice."""
    out = tmp_path_factory.mktemp("ladder") / "out"
    words = ["ladder", f"{smoke_run}?search=policy", "random", "--matching", "all", "--games-per-pair", "2"]
    assert main([*words, "--anchor", "random", "--out", str(out)]) == 0
    return out


def test_the_outputs_agree_with_one_another(played):
    assert {p.name for p in played.iterdir()} >= {
        "games.jsonl",
        "games.pgn",
        "index.html",
        "ratings.csv",
        "ratings.svg",
        "results.csv",
    }
    results, _ = read_any_results(played / "results.csv")
    assert sum(sum(row[2:5]) for row in results.rows) == 12 == len(read_games(played / "games.jsonl"))
    with (played / "ratings.csv").open() as file:
        ratings = {row["player"]: row for row in csv.DictReader(file)}
    assert set(ratings) == {"random", "smoke/0", "smoke/1", "smoke/2"}
    assert float(ratings["random"]["rating"]) == 0.0 == float(ratings["random"]["standard_error"])
    assert all(int(row["games"]) == 6 for row in ratings.values())
    cost = ratings["smoke/2"]  # two iterations of 8 games of 8 plies, 2 simulations each
    assert (cost["frames"], cost["simulations"], cost["search"]) == ("128", "256", "policy")
    assert int(cost["flops"]) > 0 and float(cost["device_seconds"]) > 0 and ratings["random"]["frames"] == ""


def test_rate_reads_what_the_ladder_wrote(played, tmp_path, capsys):
    assert main(["rate", str(played / "results.csv"), "--out", str(tmp_path / "csv")]) == 0
    assert main(["rate", str(played / "games.pgn"), "--out", str(tmp_path / "pgn"), "--method", "wls"]) == 0
    assert "smoke/2" in capsys.readouterr().out
    assert (tmp_path / "csv" / "results.csv").read_text().count("\n") == 7
    assert (tmp_path / "pgn" / "index.html").exists()


def test_games_of_a_ladder_are_pgn_and_say_who_played(played, smoke_run, capsys):
    assert main(["pgn", str(played / "games.pgn")]) == 0
    hashes = {k: newest_checkpoint(smoke_run / "checkpoints" / str(k)).manifest["weights_hash"] for k in range(3)}
    for record in read_pgn((played / "games.pgn").read_text()):
        tags, notes = record.headers, list(record.notes) + [MoveNote()] * len(record.moves)
        for side, color in enumerate(("White", "Black")):
            is_network = tags[color] != "random"
            if is_network:
                found = tuple(tags[f"{color}{tag}"] for tag in ("Run", "Iteration", "Weights", "Search"))
                iteration = int(tags[color].removeprefix("smoke/"))
                assert found == ("smoke", str(iteration), hashes[iteration], "policy")
            said = {notes[ply].score is not None for ply in range(4 + side, len(record.moves), 2)}
            assert said <= {is_network} and notes[side].score is None  # the openings are nobody's


def test_a_finished_ladder_plays_nothing_more(played, smoke_run):
    before = (played / "games.jsonl").read_text()
    words = ["ladder", f"{smoke_run}?search=policy", "random", "--matching", "all", "--games-per-pair", "2"]
    assert main([*words, "--anchor", "random", "--out", str(played)]) == 0
    assert (played / "games.jsonl").read_text() == before


def test_a_killed_ladder_goes_on_with_the_same_games(played, smoke_run, tmp_path):
    out = Path(shutil.copytree(played, tmp_path / "out"))
    lines = (out / "games.jsonl").read_text().splitlines(keepends=True)
    (out / "games.jsonl").write_text("".join(lines[:5]) + lines[5][: len(lines[5]) // 2])
    words = ["ladder", f"{smoke_run}?search=policy", "random", "--matching", "all", "--games-per-pair", "2"]
    assert main([*words, "--anchor", "random", "--out", str(out)]) == 0

    def games_of(folder):
        return {(g.white, g.black, g.opening) for g in read_games(folder / "games.jsonl")}

    assert games_of(out) == games_of(played) and len(read_games(out / "games.jsonl")) == 12
    for name in ("results.csv", "ratings.csv"):
        assert (out / name).read_bytes() == (played / name).read_bytes()
    assert sorted(read_games(out / "games.jsonl")) == sorted(read_games(played / "games.jsonl"))


def test_games_stored_before_moves_had_comments_are_read(tmp_path):
    stored = {"white": ["a"], "black": ["b"], "opening": 0, "result": "1-0", "termination": "", "start_fen": "x"}
    (tmp_path / "games.jsonl").write_text(json.dumps({**stored, "moves": ["e2e4"]}) + "\n")
    (game,) = read_games(tmp_path / "games.jsonl")
    assert game.moves == ("e2e4",) and game.comments == ()


def test_a_checkpoint_that_vanished_is_left_out_and_said(smoke_run, tmp_path, capsys):
    ladder = LadderConfig(
        players=(f"{smoke_run}/checkpoints/0?search=policy", str(tmp_path / "gone"), "random"),
        games_per_pair=2,
        matching="all",
        boards=("gardner_chess",),
    )
    said: list[str] = []
    (report,) = run_ladder(ladder, tmp_path / "out", Callbacks(said.append))
    ratings = report.ratings
    assert any("gone" in line for line in said)
    assert set(ratings.players) == {"0", "random"} or set(ratings.players) == {"smoke/0", "random"}
    assert "gone" in (tmp_path / "out" / "index.html").read_text()


def test_players_under_different_searches_are_different_players(smoke_run):
    spec = f"{smoke_run}/checkpoints/2"
    players, notes = load_players(
        [read_spec(f"{spec}{options}") for options in ("?search=policy", "?simulations=2")], "gardner_chess"
    )
    assert len({p.key for p in players}) == len({p.name for p in players}) == 2 and not notes
    assert [p.key[1] for p in players] == ["policy", "gumbel 2 simulations, 16 considered"]
    players, notes = load_players([read_spec(spec), read_spec(f"{spec}?search=gumbel")], "gardner_chess")
    assert len(players) == 1 and "one player" in notes[0]


def test_the_same_weights_in_another_network_are_no_other_name_of_a_player(tmp_path):
    """As iterations 0 of two runs are whose networks differ in how they use their weights."""
    spec = save_tiny(tmp_path / "one", "gardner_chess", GateauConfig).path
    for name, changes, said in (
        ("two", {"rematerialize": True}, "0 is 0: the same weights and search, one player"),
        ("three", {"message": "updated_edge"}, "left out: 0 has the weights of 0, in another network"),
    ):
        other = save_tiny(tmp_path / name, "gardner_chess", GateauConfig, **changes).path
        players, notes = load_players([read_spec(str(spec)), read_spec(str(other))], "gardner_chess")
        assert len(players) == 1 and notes == [said]


def test_a_run_stands_for_every_kth_of_its_iterations_and_the_last(smoke_run):
    names = [Path(spec.text).name for spec in list_specs([f"{smoke_run}?search=policy", "random"], every=2)]
    assert names == ["0?search=policy", "2?search=policy", "random"]


def test_the_informative_ladder_stops_at_its_number_of_games(smoke_run, tmp_path):
    ladder = LadderConfig(
        players=(f"{smoke_run}?search=policy", "random"), games_per_pair=2, max_games=12, boards=("gardner_chess",)
    )
    (report,) = run_ladder(ladder, tmp_path, Callbacks(lambda text: None))
    assert report.ratings.games.sum() // 2 == 12


def test_info_names_the_checkpoint(smoke_run, capsys):
    assert main(["info", str(smoke_run), "--json"]) == 0
    description = json.loads(capsys.readouterr().out)
    assert description["iteration"] == 2 and description["game"] == "gardner_chess"
    assert description["checkpoints"] == [0, 1, 2] and len(description["weights_hash"]) == 16
    assert main(["info", str(smoke_run / "checkpoints" / "0")]) == 0
    assert "weights hash" in capsys.readouterr().out


def test_report_is_one_page_of_the_run(smoke_run, tmp_path, capsys):
    assert main(["report", str(smoke_run), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "train/policy_loss" in page or "policy_loss" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_match_prints_scores_and_writes_pgn(smoke_run, tmp_path, capsys):
    pgn = tmp_path / "games.pgn"
    words = ["match", f"{smoke_run}?search=policy", "random", "--games", "4", "--pgn", str(pgn)]
    assert main(words) == 0
    assert "smoke/2" in capsys.readouterr().out
    assert pgn.read_text().count("[Result ") == 4 and main(["pgn", str(pgn)]) == 0
    rounds = [record.headers["Round"] for record in read_pgn(pgn.read_text())]
    assert rounds == ["1.1", "1.2", "2.1", "2.2"]  # whichever ended first


def test_the_match_at_the_end_leaves_its_games(smoke_run, tmp_path, monkeypatch):
    def play(game, match, should_stop):
        matches.append(match)
        return play_match(game, Match(random_player(), random_player(), match.openings), should_stop=should_stop)

    matches: list[Match] = []
    monkeypatch.setattr(final_match, "play_match", play)
    run = Path(shutil.copytree(smoke_run, tmp_path / "smoke"))
    experiment, found = load(run / "config.toml"), newest_checkpoint(run)
    experiment = replace(experiment, evaluation=replace(experiment.evaluation, num_games=2), num_iterations=1)
    variables = load_weights(found, experiment.game)
    assert final_match.final_match(experiment, run, variables, lambda: False)
    assert main(["pgn", str(run / "results.pgn")]) == 0 and len(read_pgn((run / "results.pgn").read_text())) == 4
    assert matches[0].a.name == "iteration 2"
    newest = run / "checkpoints" / "2"
    newest.rename(newest.with_name("2-stopped"))  # within iteration 3, as if num_iterations had been lowered then
    assert final_match.final_match(experiment, run, variables, lambda: False)
    assert matches[2].a.name == "iteration 2-stopped"
    last, first, mover = matches[0].a.identity, matches[0].b.identity, matches[1].b.identity
    assert last == Identity("smoke", 2, found.manifest["weights_hash"], "gumbel 2 simulations, 16 considered")
    assert (first.run, first.iteration, first.search) == ("smoke", 0, last.search) and first.weights != last.weights
    assert mover == Identity(search="random")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "players"),
        ({"players": []}, "players"),
        ({"players": "random"}, "array of texts"),
        ({"players": ["random"], "game_per_pair": 2}, "games_per_pair"),
        ({"players": ["random"], "games_per_pair": 3}, "even"),
        ({"players": ["random"], "matching": "best"}, "informative"),
        ({"players": ["random"], "seed": -1}, "seed"),
    ],
)
def test_a_wrong_ladder_is_one_sentence(table, said):
    with pytest.raises(ConfigError, match=said) as caught:
        make_record(LadderConfig, table, "ladder.toml")
    assert "\n" not in str(caught.value)


def test_a_ladder_file_that_is_not_toml_is_named(tmp_path):
    (tmp_path / "ladder.toml").write_text("players = [")
    with pytest.raises(ConfigError, match=r"ladder\.toml"):
        load_ladder(tmp_path / "ladder.toml")
    with pytest.raises(ConfigError, match="nowhere"):
        load_ladder(tmp_path / "nowhere.toml")


def test_a_damaged_game_line_is_named(tmp_path):
    (tmp_path / "games.jsonl").write_text("{}\n")
    with pytest.raises(LadderGamesError, match="line 1"):
        read_games(tmp_path / "games.jsonl")


def test_a_kill_while_games_are_repaired_loses_none(played, tmp_path, monkeypatch):
    whole = (played / "games.jsonl").read_bytes()
    path = tmp_path / "games.jsonl"
    path.write_bytes(whole[:-40])  # a kill in the midst of the last line

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "replace", killed)
        read_games(path)
    assert path.read_bytes() == whole[:-40]
    games = read_games(path)
    assert len(games) == whole.count(b"\n") - 1
    assert path.read_bytes() == whole[: whole[:-1].rindex(b"\n") + 1] and read_games(path) == games


def test_a_whole_last_line_without_its_end_is_a_game(played, tmp_path):
    """As a script joins files: it was left out, and removed from the file."""
    whole, path = (played / "games.jsonl").read_bytes(), tmp_path / "games.jsonl"
    path.write_bytes(whole[:-1])
    assert read_games(path, repair=False) == read_games(played / "games.jsonl") == read_games(path)
    assert path.read_bytes() == whole


def test_flops_of_runs_on_several_boards_are_each_their_own(monkeypatch):
    """Two runs of one game and network whose shares of boards differ."""
    smoke, asked = load(SMOKE), []
    runs = {Path(boards): boards for boards in ("gardner_chess 1, chess 1", "gardner_chess 3, chess 1")}

    def read_spent(folder, forward_flops):
        experiment = replace(smoke, selfplay=replace(smoke.selfplay, num_games=32, boards=runs[folder]))
        return {1: forward_flops(experiment)}

    monkeypatch.setattr(ladders, "read_spent", read_spent)
    monkeypatch.setattr(ladders, "experiment_flops", lambda experiment: asked.append(experiment) or len(asked))
    players = [Player(str(run), identity=Identity(str(run), 1), key=("", ""), folder=run) for run in runs]
    assert ladders.spent_by([*players, *players]) == {players[0].name: 1, players[1].name: 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["match", "random"], "match needs A and B"),
        (["match", "random", "random"], "--game"),
        (["match", "random", "random", "--game", "gardner_chess", "--games", "3"], "even"),
        (["rate", "nowhere.csv"], "nowhere.csv"),
        (["ladder"], "ladder file"),
        (["ladder", "random", "--boards", "go"], "unknown game 'go'"),
        (["info"], "info needs"),
        (["report", "nowhere"], "nowhere"),
    ],
)
def test_bad_command_lines_are_one_line(words, said, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words) in (1, 2)
    error = capfd.readouterr().err
    assert said in error and "Traceback" not in error and error.strip().count("\n") == 0


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_the_page_opens_in_a_browser(played, tmp_path):
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    command = ["chromium", *flags.split(), "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=3000", "--dump-dom"]
    page = (played / "index.html").resolve().as_uri()
    dom = subprocess.run([*command, page], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "smoke/2" in dom and not re.search("<html[^>]*data-error", dom)


KEYS = st.sampled_from(
    ["players", "boards", "every", "rows", "seed", "matching", "target_error", "anchor", "x", '"\\n"']
)
VALUES = st.sampled_from(
    ["[]", '["random"]', '["../x"]', "[1]", "2", "-1", "1e999", "nan", "true", '"all"', "'\n'", "{}"]
)


@fuzzed(300)
@given(st.lists(st.tuples(KEYS, VALUES).map(" = ".join), max_size=4), st.binary(max_size=12))
def test_any_ladder_file_is_one_or_is_refused_in_one_sentence(tmp_path_factory, lines, rest):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes("\n".join(lines).encode() + rest)
    try:
        found = load_ladder(path)
        assert found.players or found.pool
    except ConfigError as error:
        assert str(path) in str(error) and "\n" not in str(error)


@pytest.mark.parametrize("board", ["../evil", "/evil", "chess/../../evil"])
def test_a_board_does_not_lead_out_of_the_folder(board, tmp_path):
    ladder = make_record(LadderConfig, {"players": ["random"], "boards": ["chess", board]}, "ladder")
    with pytest.raises(ValueError, match="unknown game"):
        next(play_ladder(ladder, list_specs(ladder.players, 1), tmp_path / "out", Callbacks(print)))
    assert not list(tmp_path.iterdir())


def test_players_and_events_named_like_paths_are_written_into_the_folder_only(tmp_path):
    names = "../../evil", "/evil/../b"
    tags = f'[Event "../evil"]\n[White "{names[0]}"]\n[Black "{names[1]}"]\n[Result "1-0"]\n\n1. e4 1-0\n\n'
    (tmp_path / "games.pgn").write_text(tags + tags)
    assert main(["rate", str(tmp_path / "games.pgn"), "--out", str(tmp_path / "a" / "b")]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "games.pgn"]
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["b"]
    assert all(p.is_file() for p in (tmp_path / "a" / "b").iterdir())
    assert set(read_any_results(tmp_path / "a" / "b" / "results.csv")[0].players) == set(names)
