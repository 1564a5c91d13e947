"""The kill harness, quickly: a sample of what `python benchmarks/kill_runs.py` kills in full."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "benchmarks" / "kill_runs.py"


@pytest.mark.whole
def test_every_kill_leaves_a_whole_checkpoint_and_the_same_end(tmp_path):
    """Runs on arrays of numpy, killed before every 17th change of their folder and at random times."""
    command = [sys.executable, str(HARNESS), "--toy-every", "17", "--toy-random", "4", "--real", "0"]
    done = subprocess.run([*command, "--json", str(tmp_path / "counts")], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "counts").read_text())
    assert counts["failures"] == []
    assert counts["kills"]["toy, before a change"] >= 12
    assert counts["survived"] == sum(counts["kills"].values())
