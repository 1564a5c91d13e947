"""metrics.jsonl, run.json, results.json: whatever a kill or a stranger left in them. Aim: one run, no step twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import fuzzed
from hypothesis import given
from hypothesis import strategies as st

from alphagateau.runs import run_folder
from alphagateau.runs.log import open_log, read_metrics

SMOKE = Path(__file__).parents[2] / "experiments" / "smoke.toml"
LINES = st.one_of(
    st.binary(max_size=30),
    st.integers(-2, 9).map(lambda k: json.dumps({"iteration": k, "train/loss": 0.5}).encode()),
    st.sampled_from([b'{"iteration": "1"}', b'{"iteration": true}', b"[" * 9999, b'{"iteration": 3', b"NaN", b"null"]),
)


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
)
def test_any_run_record_is_one_or_is_refused_in_one_sentence(tmp_path_factory, content):
    run = tmp_path_factory.getbasetemp()
    (run / "run.json").write_bytes(content)
    try:
        record = run_folder.read_record(run)
        assert record["starts"] == [] and "unhealthy" not in record
    except run_folder.RunError as error:
        assert "run.json is damaged" in str(error) and "\n" not in str(error)


@fuzzed(300)
@given(st.binary(max_size=30) | st.sampled_from([b"{}", b"[]", b'{"scores": 1}', b"[" * 9999, b'{"scores": [1]}']))
def test_any_final_results_are_results_or_none(tmp_path_factory, content):
    run = tmp_path_factory.getbasetemp()
    (run / "results.json").write_bytes(content)
    assert run_folder.read_final(run) == {}
    whole = {"weights_hash": "0", "evaluation": [], "scores": [["a", "b", 1, 2, 3, 0]]}
    (run / "results.json").write_text(json.dumps(whole))
    assert run_folder.read_final(run) == whole


TRACK = """
import os, signal, sys
from pathlib import Path
from alphagateau.commands.experiments import read_experiment
from alphagateau.runs import run_folder
from alphagateau.training.loop import open_run_log
experiment, run = read_experiment(sys.argv[1], ["--aim"]), Path(sys.argv[2])
first, last, is_killed = int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "killed"
log = open_run_log(experiment, run, run_folder.read_record(run), first - 1)
for iteration in range(first, last + 1):
    log.write(iteration, {"train/loss": float(iteration)})
    log.write_games(iteration, f"game {iteration}")
if is_killed:
    os.kill(os.getpid(), signal.SIGKILL)
log.close()
"""
READ = """
import aim, json
from aim.storage.context import Context
repo = aim.Repo(".")
(name,) = repo.list_all_runs()
run = aim.Run(name, repo=repo, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
(loss,) = [m for m in run.metrics() if m.name == "loss"]
values = loss.values.sparse_list()[1]
texts = run.get_text_sequence("sample_games", Context({})).values.sparse_list()[1]
print(json.dumps([run["hparams"], sorted(values), sorted(text.data for text in texts)]))
"""


def python(code: str, folder: Path, *words: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code, *map(str, words)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.whole
def test_a_run_that_is_killed_and_goes_on_is_one_aim_run_without_a_step_twice(tmp_path, tmp_path_factory):
    """Killed after steps that no checkpoint holds: they are tracked again and take the place of the first."""
    pytest.importorskip("aim")
    run = tmp_path / "run"
    run.mkdir()
    for first, last, end in ((1, 4, "killed"), (3, 7, "closed")):
        done = python(TRACK, tmp_path, SMOKE, run, first, last, end)
        assert done.returncode == (-9 if end == "killed" else 0), done.stderr
    read = python(READ, tmp_path)
    assert read.returncode == 0, read.stderr
    parameters, losses, games = json.loads(read.stdout.splitlines()[-1])
    assert parameters["game"] == "gardner_chess"
    assert losses == [1, 2, 3, 4, 5, 6, 7]
    assert games == [f"game {k}" for k in range(1, 8)]
    assert [row["iteration"] for row in read_metrics(run / "metrics.jsonl")] == [1, 2, 3, 4, 5, 6, 7]
    done = python(TRACK, tmp_path_factory.mktemp("elsewhere"), SMOKE, run, 8, 8, "closed")
    assert done.returncode == 0 and "does not hold the run's Aim run" in done.stderr
