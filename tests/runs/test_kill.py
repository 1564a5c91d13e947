"""The kill harnesses, quickly: a sample of what `kill_runs.py` and `kill_labels.py` of benchmarks/ kill in full."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.whole
def test_every_kill_leaves_a_whole_checkpoint_and_the_same_end(tmp_path):
    """Runs on arrays of numpy, killed before every 17th change of their folder and at random times."""
    command = [
        sys.executable,
        str(BENCHMARKS / "kill_runs.py"),
        "--toy-every",
        "17",
        "--toy-random",
        "4",
        "--real",
        "0",
    ]
    done = subprocess.run([*command, "--json", str(tmp_path / "counts")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "counts").read_text())
    assert counts["failures"] == []
    assert counts["kills"]["toy, before a change"] >= 12
    assert counts["survived"] == sum(counts["kills"].values())


@pytest.mark.whole
def test_every_kill_of_a_labelling_leaves_it_to_end_with_the_same_bytes(tmp_path):
    """Killed before every 13th change of its folder, and gone on with by another number of workers."""
    command = [sys.executable, str(BENCHMARKS / "kill_labels.py"), "--every", "13", "--random", "2"]
    done = subprocess.run([*command, "--json", str(tmp_path / "counts")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "counts").read_text())["before a change"] >= 6
