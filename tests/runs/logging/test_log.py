"""metrics.jsonl, run.json, results.json: whatever a kill or a stranger left in them.

Aim: one run, no step twice, and whatever fails in it is one warning.
"""

import errno
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.runs import run_folder, run_record
from alphagateau.runs.logging import aim_process
from alphagateau.runs.logging.log import open_log, read_metrics

SMOKE = Path(__file__).parents[3] / "experiments" / "smoke.toml"
LINES = st.one_of(
    st.binary(max_size=30),
    st.integers(-2, 9).map(lambda k: json.dumps({"iteration": k, "train/loss": 0.5}).encode()),
    st.sampled_from([b'{"iteration": "1"}', b'{"iteration": true}', b"[" * 9999, b'{"iteration": 3', b"NaN", b"null"]),
)


def test_whole_numbers_are_written_in_full_and_others_in_six_digits(tmp_path):
    log = open_log(tmp_path, 0)
    log.write(1, {"train/steps": 1_999_997, "window/frames": 1_048_577.0, "train/loss": 0.123456789, "x": [2.5, 7]})
    log.close()
    (row,) = read_metrics(tmp_path / "metrics.jsonl")
    counts = {"iteration": 1, "train/steps": 1_999_997, "window/frames": 1_048_577}
    assert row == counts | {"train/loss": 0.123457, "x": [2.5, 7]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"time/x": [1]},
        {"energy/joules": [1]},
        {"train/steps": math.nan},
        {"train/policy_entropy": [1.0]},
        {"train/calibration": 7},
        {"train/calibration": [1, 2]},
        {"selfplay/games": "7"},
        {"train/steps": [1]},
        {"selfplay/full_search_rate": [1]},
        {"train/board_steps/chess": [1]},
        {"train/steps": 10**400},
        {"time/selfplay": 10**400},
        {"train/calibration_error": [1]},
        {"train/calibration": [[10**400, 0.5, 0.2]]},
    ],
)
def test_values_that_no_run_writes_are_passed_over(tmp_path, wrong):
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"iteration": 1, "train/calibration": [[1, 0.5, 0.2]], **wrong}))
    (row,) = read_metrics(tmp_path / "metrics.jsonl")
    assert row == {"iteration": 1, **({} if "train/calibration" in wrong else {"train/calibration": [[1, 0.5, 0.2]]})}


@fuzzed(150)
@given(st.lists(LINES, max_size=6))
def test_any_metrics_file_gives_its_whole_lines(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "metrics.jsonl"
    path.write_bytes(b"\n".join(lines))
    rows = read_metrics(path)
    assert all(type(row["iteration"]) is int for row in rows)
    log = open_log(path.parent, 5)
    log.write(6, {"train/loss": 1.0})
    again = read_metrics(path)
    assert [row["iteration"] for row in again] == [row["iteration"] for row in rows if row["iteration"] <= 5] + [6]


@fuzzed(300)
@given(
    st.binary(max_size=30)
    | st.sampled_from([b"{}", b"[]", b'{"starts": 1}', b"[" * 9999, b'{"starts": [1]}', b'{"unhealthy": 1}'])
    | st.sampled_from([b'{"init_from": 5}', b'{"init_from": "a\\u0000b"}'])
)
def test_any_run_record_is_one_or_is_refused_in_one_sentence(tmp_path_factory, content):
    run = tmp_path_factory.getbasetemp()
    (run / "run.json").write_bytes(content)
    try:
        record = run_record.read_record(run)
        assert record["starts"] == [] and "unhealthy" not in record
    except run_folder.RunError as error:
        assert "run.json is damaged" in str(error) and "\n" not in str(error)


def test_a_run_record_that_cannot_be_read_is_not_called_damaged(tmp_path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(run_folder.RunError, match=r"run.json: Is a directory$"):
        run_record.read_record(tmp_path)


@fuzzed(300)
@given(st.binary(max_size=30) | st.sampled_from([b"{}", b"[]", b'{"scores": 1}', b"[" * 9999, b'{"scores": [1]}']))
def test_any_final_results_are_results_or_none(tmp_path_factory, content):
    run = tmp_path_factory.getbasetemp()
    (run / "results.json").write_bytes(content)
    assert run_record.read_final_match(run) == {}
    whole = {"weights_hash": "0", "evaluation": [], "scores": [["a", "b", 1, 2, 3, 0]]}
    (run / "results.json").write_text(json.dumps(whole))
    assert run_record.read_final_match(run) == whole


TRACK = """
import json, os, resource, shutil, signal, sys
from pathlib import Path
from alphagateau.runs.logging.aim_process import AimProcess
from alphagateau.runs.logging.log import open_log
run, first, last, what = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
(run / "games").mkdir(parents=True, exist_ok=True)
record = run / "run.json"
if "full" in what:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
if what and what[0].endswith(".toml"):  # as a run opens it
    from command_lines import read_experiment
    from alphagateau.runs.run_record import read_record
    from alphagateau.training.loop import open_run_log
    log = open_run_log(read_experiment(what[0], ["--aim"]), run, read_record(run), first - 1)
else:
    aim_run = json.loads(record.read_text())["aim_run"] if record.exists() else None
    keep = lambda aim_run: record.write_text(json.dumps({"aim_run": aim_run}))
    log = open_log(run, first - 1)._replace(aim=AimProcess(run, aim_run, {"game": "gardner_chess"}, keep))
for iteration in range(first, last + 1):
    (run / "games" / f"{iteration:06}.pgn").write_text(f"game {iteration}")
    log.write(iteration, {"train/loss": float(iteration), "train/list": [1, 2]})
    if what and iteration == last - 1:  # until Aim is open, or has failed
        while log.aim._process and not (record.exists() and "aim_run" in record.read_text()):
            log.aim.poke()
        if "removed" in what:
            shutil.rmtree(".aim")
if "killed" in what:
    os.kill(os.getpid(), signal.SIGKILL)
log.close()
"""
READ = """
import aim, json
from aim.storage.context import Context
repo, found = aim.Repo("."), []
for name in repo.list_all_runs():
    run = aim.Run(name, repo=repo, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
    losses = [sorted(m.values.sparse_list()[1]) for m in run.metrics() if m.name == "loss"]
    texts = run.get_text_sequence("sample_games", Context({})).values.sparse_list()[1]
    found.append([run["run"], run["hparams"], *losses, sorted(text.data for text in texts)])
    run.close()
print(json.dumps(sorted(found)))
"""
FAILED = "metrics.jsonl goes on alone, and a later start brings Aim up to date from it"


def start(code: str, folder: Path, *words: object) -> subprocess.Popen:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], cwd=folder, env=env, **pipes)


def ending(process: subprocess.Popen) -> tuple[int, str]:
    """(exit code, standard error)."""
    error = process.communicate(timeout=300)[1]
    return process.returncode, error


def track(folder: Path, first: int, last: int, *what: str | Path) -> tuple[int, str]:
    """A run in `folder` that logs the iterations `first` to `last` to Aim, and meets with what `what` says."""
    return ending(start(TRACK, folder, folder / "run", first, last, *what))


def in_aim(folder: Path) -> list[list]:
    """[folder, parameters, losses, games] of each run in the Aim repository of `folder`."""
    process = start(READ, folder)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return json.loads(out.splitlines()[-1])


def assert_failed_with_one_warning(end: tuple[int, str], folder: Path, iterations: int) -> None:
    code, error = end
    assert code == 0 and error.count("\n") == 1 and FAILED in error, error
    assert [row["iteration"] for row in read_metrics(folder / "run" / "metrics.jsonl")] == [*range(1, iterations + 1)]


def assert_up_to_date(folder: Path, iterations: int) -> None:
    (found,) = in_aim(folder)
    assert found[0] == str(folder / "run") and found[1]["game"] == "gardner_chess"
    assert found[2:] == [[*range(1, iterations + 1)], [f"game {k}" for k in range(1, iterations + 1)]]


@pytest.mark.whole
def test_a_run_that_is_killed_and_goes_on_is_one_aim_run_without_a_step_twice(tmp_path, tmp_path_factory):
    """Killed after steps that no checkpoint holds: they are tracked again and take the place of the first."""
    assert track(tmp_path, 1, 4, SMOKE, "killed")[0] == -9
    assert track(tmp_path, 3, 7, SMOKE) == (0, "")
    assert_up_to_date(tmp_path, 7)
    assert [row["iteration"] for row in read_metrics(tmp_path / "run" / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6, 7]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.move(tmp_path / "run", elsewhere / "run")
    code, error = track(elsewhere, 8, 8)
    assert code == 0 and "does not hold the run's Aim run" in error
    assert_up_to_date(elsewhere, 8)


@pytest.mark.whole
def test_eight_runs_that_start_at_once_where_no_repository_is_are_eight_aim_runs(tmp_path):
    runs = [start(TRACK, tmp_path, f"run{k}", 1, 3) for k in range(8)]
    assert [ending(run) for run in runs] == [(0, "")] * 8
    assert {path.name for path in tmp_path.iterdir()} == {".aim", *(f"run{k}" for k in range(8))}
    assert [found[0] for found in in_aim(tmp_path)] == [f"run{k}" for k in range(8)]
    assert all(found[2] == [1, 2, 3] for found in in_aim(tmp_path))


@pytest.mark.whole
def test_what_a_dying_run_left_of_a_deleted_aim_repository_is_made_a_repository_again(tmp_path):
    (tmp_path / ".aim" / "check_ins").mkdir(parents=True)
    (tmp_path / ".aim" / "check_ins" / "left").touch()
    assert track(tmp_path, 1, 3) == (0, "")
    assert_up_to_date(tmp_path, 3)
    assert {path.name for path in tmp_path.iterdir()} == {".aim", "run"}


def test_a_file_where_the_aim_repository_should_be_is_one_warning(tmp_path):
    (tmp_path / ".aim").write_text("")
    assert_failed_with_one_warning(track(tmp_path, 1, 3), tmp_path, 3)


def test_without_aim_a_run_has_one_sentence_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(aim_process.importlib.util, "find_spec", lambda name: None)
    aim = aim_process.AimProcess(tmp_path, None, {}, lambda aim_run: None)
    aim.poke()
    aim.close()
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.whole
@pytest.mark.parametrize("what", ["removed", "full"])
def test_aim_that_fails_on_the_way_is_one_warning_and_a_later_start_brings_it_up_to_date(what, tmp_path):
    assert_failed_with_one_warning(track(tmp_path, 1, 4, what), tmp_path, 4)
    code, error = track(tmp_path, 5, 5)
    assert code == 0 and "Aim failed" not in error
    assert_up_to_date(tmp_path, 5)


@pytest.mark.whole
@pytest.mark.parametrize("damaged", ["VERSION", "run_metadata.sqlite", "meta/chunks/*/CURRENT"])
def test_a_damaged_aim_repository_is_one_warning(damaged, tmp_path):
    assert track(tmp_path, 1, 2) == (0, "")
    (file,) = (tmp_path / ".aim").glob(damaged)
    file.write_bytes(b"\xff" * 100)
    assert_failed_with_one_warning(track(tmp_path, 3, 4), tmp_path, 4)
    shutil.rmtree(tmp_path / ".aim")
    code, error = track(tmp_path, 5, 5)
    assert code == 0 and "Aim failed" not in error
    assert_up_to_date(tmp_path, 5)


@pytest.mark.whole
def test_steps_that_aim_has_lost_are_tracked_again(tmp_path):
    """RocksDB goes on without the records of a damaged journal, and says nothing."""
    assert track(tmp_path, 1, 2) == (0, "")
    (file,) = (tmp_path / ".aim").glob("seqs/chunks/*/*.log")
    file.write_bytes(b"")
    assert track(tmp_path, 3, 3) == (0, "")
    assert_up_to_date(tmp_path, 3)


@pytest.mark.parametrize(
    ("program", "seconds", "said"), [("sleep 60", 0.5, "within 0.5 s"), ("exit 3", 60, "process ended")]
)
def test_aim_that_hangs_or_dies_is_one_warning(program, seconds, said, tmp_path, monkeypatch, capfd):
    (tmp_path / "python").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(aim_process.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(aim_process, "CLOSE_SECONDS", seconds)
    log = open_log(tmp_path, 0)._replace(aim=aim_process.AimProcess(tmp_path, None, {}, lambda _: None))
    for iteration in (1, 2):
        log.write(iteration, {"train/loss": 1.0})
    log.close()
    log.close()
    error = capfd.readouterr().err
    assert said in error and FAILED in error and error.count("\n") == 1
    assert [row["iteration"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]


def test_metrics_that_find_the_disk_full_wait_for_room(tmp_path, monkeypatch, capfd):
    log = open_log(tmp_path, 0)
    log.write(1, {"train/loss": 1.0})
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        log.write(2, {"train/loss": 2.0})
        log.write(3, {"train/loss": 3.0})
    assert [row["iteration"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1]
    log.close()
    assert [row["iteration"] for row in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2, 3]
    error = capfd.readouterr().err
    assert "No space left on device" in error and error.count("\n") == 1
