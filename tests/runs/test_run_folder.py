"""Who holds a run's folder: one process at a time, named to all others, until it ends in whatever way."""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from alphagateau.distributed import processes
from alphagateau.runs import run_folder, run_record

HOLD = """
import sys
from pathlib import Path
from alphagateau.runs.run_folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""

DIE_WRITING = """
import os, signal, sys
from pathlib import Path
from alphagateau.runs.files import write_text
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
write_text(Path(sys.argv[1]), "half")
"""


def hold(run: Path) -> subprocess.Popen:
    """A process that holds the run until its standard input is closed."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run)], env=env, **pipes)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_a_run_that_is_held_names_its_holder_until_that_is_killed(tmp_path):
    run = tmp_path / "run"
    with hold(run) as process:
        for _ in range(2):  # asking does not change what the holder wrote
            with pytest.raises(run_folder.RunError) as caught, run_folder.locked(run):
                pass
            holder = f"pid {process.pid} on {platform.node()}"
            assert str(caught.value) == f"{run} is in use by {holder}"
        process.send_signal(signal.SIGKILL)
    with run_folder.locked(run):
        assert (run / ".lock").read_text() == f"pid {os.getpid()} on {platform.node()}"


def test_who_holds_a_run_removes_what_a_killed_holder_left_half_written(tmp_path):
    run = tmp_path / "run"
    (run / "games").mkdir(parents=True)
    for path in (run / "run.json", run / "games" / "000001.pgn"):
        done = subprocess.run([sys.executable, "-c", DIE_WRITING, str(path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert [p.suffix for p in path.parent.glob(".*")] == [".tmp"]
    with run_folder.locked(run):
        assert {p.name for p in run.rglob("*")} == {".lock", "games"}


def test_a_folder_of_which_nothing_came_goes_and_another_stays(tmp_path):
    with run_folder.locked(tmp_path / "empty"):
        assert (tmp_path / "empty").is_dir()
    assert not (tmp_path / "empty").exists()
    for _ in range(2):
        with run_folder.locked(tmp_path / "run"):
            (tmp_path / "run" / "config.toml").touch()
    assert (tmp_path / "run" / "config.toml").exists()


def test_a_run_below_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(run_folder.RunError, match=r"^cannot write to [^\n]*$"), run_folder.locked(tmp_path / "file"):
        pass


def test_the_hash_of_the_code_is_of_the_whole_package(tmp_path, monkeypatch):
    """What processes of one run compare: a change in any package is a difference."""
    package = tmp_path / "alphagateau"
    for folder in ("runs", "search"):
        (package / folder).mkdir(parents=True)
        (package / folder / "module.py").write_text("x = 1\n")
    monkeypatch.setattr(run_record, "__file__", str(package / "runs" / "run_record.py"))
    before = run_record._code_hash()
    (package / "search" / "module.py").write_text("x = 2\n")
    assert run_record._code_hash() != before


def test_a_cpu_is_one_device_of_a_start_however_many_it_counts_as():
    (said,) = processes.device_names()
    assert said.startswith("cpu ") and said != "cpu "
