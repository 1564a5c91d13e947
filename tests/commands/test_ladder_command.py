"""`alphagateau ladder` around its games: costs of checkpoints, several boards, watching, two processes, signals."""

import csv
import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_players import BOARD, host_player
from pretended_runs import write_checkpoint, write_iteration
from tiny_checkpoints import save_tiny

from alphagateau import config
from alphagateau.cli import ladders as command
from alphagateau.commands.ladder import read_arguments
from alphagateau.commands.main import main
from alphagateau.config import LadderConfig
from alphagateau.matches.ladder import ladder as ladders
from alphagateau.matches.ladder.rounds import Callbacks
from alphagateau.matches.specs import parse_spec
from alphagateau.networks.gateau.config import GateauConfig
from alphagateau.runs import run_folder, run_record
from alphagateau.runs.spent import Spent, find_origin, read_spent

SIX = "los_alamos_chess"
START = {"command": "", "python": "", "versions": {}}


@pytest.fixture
def runs(tmp_path) -> tuple[Path, Path]:
    """Two iterations on 5x5, three on 6x6 from the weights of the second."""
    smoke = config.load(config.find_file("smoke", "experiment"))
    pre, tuned = tmp_path / "runs" / "pre", tmp_path / "runs" / "tuned"
    for run, board, origin in ((pre, BOARD, None), (tuned, SIX, str(pre))):
        experiment = dataclasses.replace(smoke, game=board)
        run.mkdir(parents=True)
        (run / "config.toml").write_text(config.dumps(experiment))
        starts = [{**START, "devices": ["gpu X"] * 2, "iteration": 0}, {**START, "devices": ["gpu Y"], "iteration": 2}]
        began = {"init_from": origin, "init_from_hash": "pre/2" if origin else None}
        run_record.write_record(run, {"starts": starts, **began})
        write_checkpoint(run, experiment, 0, weights="pre/2" if origin else "")
        for iteration in range(1, 4 if origin else 3):
            write_iteration(run, experiment, iteration)
    return pre, tuned


def test_what_a_checkpoint_has_cost_by_hand(runs):
    """64 frames and 4 simulations a ply; 3 steps of 32 frames, three passes each; 2 s on two devices, then on one."""
    pre, tuned = runs
    flops = 2 * (64 * 5 * 10.0 + 3 * 3 * 32 * 10.0)
    spent = read_spent(pre, lambda experiment: {experiment.game: 10.0})
    assert spent[0] == Spent() and spent[2].frames == 128 and spent[2].simulations == 512
    assert (spent[1].device_seconds, spent[2].device_seconds, spent[2].flops) == (4.0, 8.0, flops)
    assert spent[2].devices == ("gpu X",) and spent[2].joules != spent[2].joules  # nobody measured them
    found = read_spent(tuned, lambda experiment: {experiment.game: 10.0})
    assert found[0][:4] == spent[2][:4]  # with what its weights had cost before
    assert found[3].frames == 128 + 192 and found[3].device_seconds == 8.0 + 4 + 4 + 2
    assert found[3].devices == ("gpu X", "gpu Y")
    assert read_spent(tuned.parent, lambda experiment: {experiment.game: 10.0}) == {}


def test_what_weights_had_cost_is_known_though_a_run_began_with_them_changed(runs):
    """As those of a smaller board are, whose far offsets begin as the nearest."""
    pre, tuned = runs
    record = run_record.read_record(tuned)
    shutil.rmtree(tuned / "checkpoints" / "0")
    write_checkpoint(tuned, config.load(tuned / "config.toml"), 0, weights="pre/2 with far offsets")
    assert find_origin(tuned, record) == (pre, 2)
    assert find_origin(tuned, record | {"init_from_hash": "another"}) is None


def test_joules_add_up_where_every_iteration_was_measured(runs):
    pre, _ = runs
    rows = [json.loads(line) for line in (pre / "metrics.jsonl").read_text().splitlines()]
    (pre / "metrics.jsonl").write_text("".join(json.dumps({**r, "energy/joules": 70.5}) + "\n" for r in rows))
    spent = read_spent(pre, lambda experiment: {experiment.game: 10.0})
    assert [one.joules for one in spent.values()] == [0.0, 70.5, 141.0]


def test_the_run_that_weights_came_from_is_found_by_their_hash(runs):
    pre, tuned = runs
    weights = {"init_from_hash": "pre/2"}
    assert find_origin(tuned, {"init_from": str(pre), **weights}) == (pre, 2)
    for moved in ("elsewhere/pre", "elsewhere/pre/checkpoints/2"):  # with the run beside it
        assert find_origin(tuned, {"init_from": moved, **weights}) == (pre, 2)
    assert find_origin(tuned, {"init_from": "elsewhere/pre", "init_from_hash": "pre/3"}) is None
    assert find_origin(tuned, {"init_from": "gone", **weights}) is None is find_origin(pre, {"init_from": None})


def test_runs_are_found_where_they_lie_by_default(runs):
    """In a folder checkpoints, as the checkpoints of a run do."""
    folder = runs[0].parent.rename(runs[0].parent.with_name("checkpoints"))
    for source in ("pre", "pre/checkpoints/2"):
        origin = {"init_from": str(folder / source), "init_from_hash": "pre/2"}
        assert find_origin(folder / "tuned", origin) == (folder / "pre", 2)


@pytest.fixture
def seated(runs, monkeypatch):
    """Players of both runs for any board; what a network costs is not counted."""

    def load(specs, board, *_):
        folders = [(runs[0], 0), (runs[0], 2), (runs[1], 3)]
        made = [host_player(f"{folder.name}/{k}", folder, k, board) for folder, k in folders]
        made[1] = made[1]._replace(also=((runs[1], 0),))
        return [*made, host_player("engine", board_name=board)], []

    monkeypatch.setattr(ladders, "load_players", load)
    monkeypatch.setattr(command, "_forward_flops", lambda experiment: {experiment.game: 10.0})


@pytest.mark.whole
def test_one_ladder_rates_on_both_boards_and_draws_the_transfer_curve(seated, runs, tmp_path):
    keys = {"matching": "all", "games_per_pair": 2, "boards": (BOARD, SIX), "rows": 8, "method": "history"}
    command.run_ladder(LadderConfig(players=("a", "b"), **keys), tmp_path / "out", Callbacks(lambda text: None))
    page, six = ((tmp_path / "out" / name / "index.html").read_text() for name in ("", SIX))
    for text in (page, six):
        assert f"pre, learnt on {BOARD}: zero-shot" in text and f"tuned, learnt on {BOARD}, then {SIX}" in text
        assert "at 5" in text  # two iterations and then three: the last of the curve
    assert f"then {SIX}: zero-shot" not in page  # its weights had learnt on both
    assert f"out: {SIX}" in six
    assert f"Elo on {BOARD}" in page and f"Elo on {SIX}" in page
    assert f'href="{SIX}/index.html"' in page and "Elo by device-hours" in six and "Elo by frames played" in six
    assert "engine" in six
    with (tmp_path / "out" / SIX / "ratings.csv").open() as file:
        header = next(csv.reader(file))
        file.seek(0)
        rows = {row["player"]: row for row in csv.DictReader(file)}
    assert header[-7:] == ["frames", "device_seconds", "simulations", "flops", "joules", "devices", "flags"]
    assert rows["tuned/3"]["frames"] == "320" and rows["tuned/3"]["devices"] == "gpu X; gpu Y"
    assert rows["engine"]["frames"] == "" == rows["tuned/3"]["joules"] and float(rows["tuned/3"]["flops"]) > 0


@pytest.mark.parametrize("boards", [(BOARD,), (BOARD, SIX)])
def test_a_ladder_stopped_before_its_first_game_goes_on_where_it_was_told_to_write(seated, tmp_path, boards):
    """Its folder, and that of any ladder of several boards, was taken for another command's."""
    ladder = LadderConfig(players=("a", "b"), boards=boards)
    command.run_ladder(ladder, tmp_path / "out", Callbacks(lambda text: None, lambda: True))
    words = ["a", "b", "--boards", ",".join(boards), "--out", str(tmp_path / "out")]
    assert read_arguments(words)[1] == tmp_path / "out"


def test_a_watched_ladder_takes_up_new_checkpoints_and_stops(monkeypatch, tmp_path):
    """First there is nobody to play with, then no anchor; each is said, and waited for."""
    there, new, said, stop = ["engine"], ["r/0", "r/1", "r/2"], [], []
    monkeypatch.setattr(command, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(command, "list_specs", lambda players, every: list(map(parse_spec, there)))
    folder = Path("r")
    monkeypatch.setattr(
        ladders,
        "load_players",
        lambda *_: ([host_player(s, folder, int(s[2:])) if s[:2] == "r/" else host_player(s) for s in there], []),
    )

    def say(text):
        said.append(text)
        if text.startswith("waiting"):
            there.append(new.pop(0)) if new else stop.append(True)

    ladder = LadderConfig(players=("r",), matching="all", games_per_pair=2, boards=(BOARD,), rows=8, anchor="r/1")
    command.watch_ladder(ladder, tmp_path, Callbacks(say, lambda: bool(stop)))
    nexts = [line for line in said if "next" in line]
    assert nexts == [
        f"{BOARD}: 0 games played; next 6 games of 3 pairs",
        f"{BOARD}: 6 games played; next 6 games of 3 pairs",
    ]
    assert said[:1] + said[2:3] == [
        f"1 player is left on {BOARD}, expected two or more",
        f"anchor 'r/1' is not a player on {BOARD}: engine, r/0",
    ]
    assert "r/2" in (tmp_path / "ratings.csv").read_text()


def test_a_ladder_that_another_process_plays_is_refused(tmp_path, capsys):
    with run_folder.locked(tmp_path):
        assert main(["ladder", "random", "--boards", BOARD, "--out", str(tmp_path), "--watch"]) == 1
    assert "is in use by pid " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["random", "--watch", "--merge", "a"], "--merge plays nothing"),
        (["random", "--merge"], "--merge needs whose games to take up"),
        (["random", "--boards", BOARD, "--merge", "nowhere"], "1 player is left"),
        (["ladder.toml", "--merge", "nowhere"], "ladder.toml"),
        (["random", "--boards", BOARD, "--part", "3/2"], "part must be a number"),
        (["random", "--watch"], "no player says which board to play on: name it, such as gardner_chess, with"),
    ],
)
def test_what_a_ladder_cannot_do_is_one_sentence(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["ladder", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not list(tmp_path.glob("eval/*/games.jsonl"))


@pytest.mark.whole
def test_a_signal_stops_a_watched_ladder_and_the_same_command_goes_on(tmp_path):
    """With checkpoints of a run in progress, the second while it plays."""
    (tmp_path / "runs" / "r" / "checkpoints").mkdir(parents=True)
    first = save_tiny(tmp_path / "runs" / "r" / "checkpoints", BOARD, GateauConfig)
    (tmp_path / "runs" / "r" / "config.toml").touch()  # by which it is a run
    words = ["ladder", "runs/r?search=policy", "random", "--matching", "all", "--games-per-pair", "2", "--out", "out"]
    run_main = "import sys; from alphagateau.commands.main import main; sys.exit(main())"
    program = [sys.executable, "-c", run_main, *words]
    process = subprocess.Popen([*program, "--watch"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    def wait_for(name):
        ratings = tmp_path / "out" / "ratings.csv"
        until = time.monotonic() + 300
        while not (ratings.exists() and name in ratings.read_text()):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.3)

    try:
        wait_for("r/0")
        refused = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True)
        assert refused.returncode == 1 and "is in use by pid " in refused.stderr
        save_tiny(tmp_path / "runs" / "r" / "checkpoints", BOARD, GateauConfig, name="1", seed=1)
        wait_for("r/1")
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 0 and "stopped (SIGTERM)" in said and first.path.exists()
    before = (tmp_path / "out" / "games.jsonl").read_text()
    assert before.count("\n") == 6
    assert subprocess.run(program, cwd=tmp_path, capture_output=True).returncode == 0
    assert (tmp_path / "out" / "games.jsonl").read_text() == before
